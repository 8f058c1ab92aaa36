"""N010: eps is larger than the variance that it is added to, and sets the scale of the output."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity, first_layers
from traindx.messages import say
from traindx.records import Site
from traindx.rules.normalization.scale import doubtful, normalizations, surviving
from traindx.rules.remembered import lately
from traindx.rules.rule import rule
from traindx.run import Run

_CONSTANT = 1e-9
"""Below this an input does not vary at all, which is not for eps to explain."""


@rule(
    "N010",
    severity=Severity.WARNING,
    reads=("output.rms",),
    explained_by=("N011", "N012", "O001", "O016", "S002"),
    lasting=True,
)
def norm_eps_dominates(
    run: Run, *, share: float = 0.5, error_share: float = 0.1, window: float = 3
) -> Iterator[Evidence]:
    """The eps of a normalization is larger than the variance that it is added to.

    ## Why it matters
    A normalization divides by sqrt(var + eps). Where eps is the larger of the two, it is divided by
    sqrt(eps), whatever the input: nothing is normalized, the output is small, and layers behind it
    and their gradients with it. That happens to inputs in a unit that makes them tiny, and to an
    eps that was mistyped or taken from elsewhere (1e-3 in Keras, 1e-5 in PyTorch).

    ## How it is measured
    What is left of unit variance, var/(var + eps), follows from the output: its mean square
    (without exact zeros, which a mask has put there) less that of the bias, over the mean square of
    the weight. It must be under `share`, which is reached
    where eps is as large as the variance, at each of the last `window` measured steps; under
    `error_share` it is an error. One finding per model, at its first such layer.

    ## How to fix
    Bring the input to a size of about 1 before the layer: standardize the data, or use another
    unit. Or lower `eps`, far below the variance.

    ## False alarms
    Layers in eval mode, and those whose weight no optimizer trains, are not judged. Inputs that do
    not vary at all (dead layers before, groups of one number) are told by other rules. Weight and
    bias are taken for independent of the input, which they are only nearly after some training.

    ## References
    Ioffe & Szegedy, "Batch Normalization" (ICML 2015), algorithm 1. PyTorch and Keras
    documentation of BatchNorm and LayerNorm, on the default of `eps`.
    """
    for model in run.models.values():
        # All of the last `window` outputs must be bad, so that a good one counts for as many.
        well = lately(
            run,
            (norm_eps_dominates, model.name),
            (model, share),
            reads=("output.rms",),
            lasts=int(window),
            holds=lambda it=model: not doubtful(run, it, share),
        )
        if well:
            continue
        found: dict[str, float] = {}
        for norm in doubtful(run, model, share):
            left = surviving(run, model, norm, int(window))
            group = run.at("norm.group", Site(model.name, norm.fqn))
            if group is not None and group.last <= 1:
                continue
            if len(left) == int(window) and _CONSTANT < max(left) < share:
                found[norm.fqn] = max(left)
        if found:
            first = next(norm for norm in normalizations(model) if norm.fqn in found)
            eps, left_at_first = first.options.get("eps"), found[first.fqn]
            yield Evidence(
                site=Site(model.name, first.fqn),
                step=run.step,
                message=say(
                    "eps={eps} takes the place of the variance: of unit variance {left:.2g} is "
                    "left behind `{layer}` (threshold {threshold:g}), in {count} of {norms} "
                    "normalization layers",
                    eps=eps,
                    left=left_at_first,
                    layer=first.fqn,
                    threshold=error_share if left_at_first < error_share else share,
                    count=len(found),
                    norms=len(normalizations(model)),
                ),
                numbers={"left": left_at_first, "layers": len(found)},
                cause=say(
                    "The variance of its input is {times:.2g} times eps.",
                    times=left_at_first / (1 - left_at_first),
                ),
                fix=say("Bring the input to a size of 1, or build the layer with a smaller eps."),
                excluded=(say("inputs that do not vary at all"), say("layers in eval mode")),
                series=("output.rms",),
                severity=(Severity.ERROR if left_at_first < error_share else Severity.WARNING),
                layers=first_layers(found),
            )
