"""G001: gradients fade on their way to the first layers."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.records import Point, Site
from traindx.rules.gradients.depth import LEAST_SLOPE, DepthProfile, no_depth, vanishing
from traindx.rules.rule import rule
from traindx.run import Run


@rule(
    "G001",
    severity=Severity.ERROR,
    reads=("grad.rms",),
    hits=3,
    applies=no_depth,
    explained_by=("F005",),
    remedies=("use-relu-he",),
)
def vanishing_depth(
    run: Run,
    *,
    slope: float = 0.3,
    ratio: float = 1e-3,
    vanished: float = 1e-6,
    loss: float = 0.05,
) -> Iterator[Evidence]:
    """The gradient shrinks layer by layer until the first layers hardly move.

    ## Why it matters
    Backward multiplies one Jacobian a layer. Where each shrinks the gradient by the same factor,
    the first layers get an exponentially smaller one than the last: they stay at their random
    start, and whatever the last layers learn they learn from noise.

    ## How it is measured
    On the RMS of the gradient (so that the size of a layer does not matter) of at least 4 weight
    matrices of one module kind in one model, in the order of their first call. Against that
    order, log10 of it must rise by at least `slope` decades per layer by least squares, and the
    first over the last must be below `ratio`, at three measured steps in a row. In a deep net a
    slow decay adds up: below `vanished` any slope of more than 0.05 decades per layer is enough.
    An exact zero counts as the least positive float32, and of several in front only the last one
    enters the slope. Silent once the loss is at `loss` of its first value or below: the model has
    learned all the same. Not evaluated where no gradient is finite.

    ## How to fix
    Use ReLU or GELU in place of sigmoid or tanh, with the initialization that suits them
    (`nn.init.kaiming_normal_(weight, nonlinearity="relu")`), put a normalization layer before each
    activation, or add skip connections.

    ## False alarms
    Late in training all gradients fall, which is why layers are compared with each other and not
    with a constant. LoRA and other branches that start at zero give exact zeros in the first
    step only, and three steps are asked for. Frozen layers and embeddings are left out. Layers of
    one kind that stand side by side (many heads) are no depth, yet look like one if their
    gradients happen to be sorted.

    ## References
    Hochreiter, "Untersuchungen zu dynamischen neuronalen Netzen" (1991). Glorot & Bengio,
    "Understanding the difficulty of training deep feedforward neural networks" (AISTATS 2010).
    Zhang et al., "AutoTrainer" (ICSE 2021), for the ratio of 1e-3. CS231n, "Neural Networks
    Part 3".
    """
    for model in run.models.values():
        profiles = vanishing(run, model, slope=slope, ratio=ratio, vanished=vanished, loss=loss)
        for profile in profiles:
            steep = profile.ratio < ratio and profile.slope >= slope
            thresholds = (ratio, slope) if steep else (vanished, LEAST_SLOPE)
            yield _evidence(profile, *thresholds)


def _evidence(profile: DepthProfile, ratio: float, slope: float) -> Evidence:
    first, last, layers = profile.params[0], profile.params[-1], len(profile.params)
    return Evidence(
        site=Site(profile.model, first.module),
        step=profile.step,
        message=f"gradient RMS is {profile.rms[0]:.2g} at `{first.fqn}` and "
        f"{profile.rms[-1]:.2g} at `{last.fqn}`: a ratio of {profile.ratio:.2g} (threshold "
        f"{ratio:g}), falling by {profile.slope:.2f} decades per layer (threshold {slope:g}) over "
        f"{layers} {profile.kind} weights",
        numbers={
            "ratio": profile.ratio,
            "slope": profile.slope,
            "first": profile.rms[0],
            "last": profile.rms[-1],
            "layers": layers,
        },
        point=Point.GRAD,
        cause="Every layer shrinks the gradient that passes it.",
        fix="Use ReLU with `nn.init.kaiming_normal_(weight, nonlinearity='relu')`, normalization "
        "layers, or skip connections.",
        excluded=("the loss has fallen all the same", "frozen layers", "zero-initialized branches"),
        series=("grad.rms", "loss"),
    )
