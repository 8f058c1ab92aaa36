"""S001: several layers that are together one affine map."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity, first_layers
from traindx.messages import say
from traindx.rules.probed import STEP, Observation, observations
from traindx.rules.rule import rule
from traindx.run import Run


@rule("S001", severity=Severity.WARNING, reads=("probe.curvature",), source="probe")
def missing_nonlinearity(
    run: Run, *, rounding: float = 1e-8, unlearned: float = 0.05
) -> Iterator[Evidence]:
    """The layers of the network are together one affine map, as if there were only one.

    ## Why it matters
    A linear map of a linear map is a linear map. Without a nonlinear function between them, any
    number of linear layers and convolutions can express no more than a single one, and is harder to
    train. Such a network learns something, which is why the missing activation is not noticed.

    ## How it is measured
    Exactly. An affine function f has f(x + d) + f(x - d) = 2 f(x) for every d. For random d as
    large as the data, a thousand and a million times as large, the RMS of the difference over that
    of f(x + d) - f(x - d) is below `rounding` in float64, at what every product with weights
    returns: linear layers, convolutions, and weights that are no module. All real inputs are moved
    together, then each alone with the others held, and the embeddings of what is no real number. An
    input counts only if every such layer works on what was made of it: a network whose layers are a
    single map of a graph's nodes has no nonlinearity, though it multiplies with the edges. It is
    measured in evaluation mode, in which dropout does nothing and BatchNorm is affine, with every
    trained parameter moved by a tenth, so that a branch that starts times zero counts. At least two
    layers must stand one behind the other. Where more than `unlearned` of the loss of a guess is
    left after a training on a few samples (`overfit-tiny-subset`), the missing function is missed,
    and it is an error.

    ## How to fix
    Put a nonlinear function between the layers: `nn.ReLU()`, `nn.GELU()`. Check that an activation
    that the model makes is also called in `forward`.

    ## False alarms
    A narrow layer between two wider ones restricts the rank, and is a factorization on purpose (a
    linear autoencoder, a low-rank pair, an embedding smaller than its words and the classes): it is
    not reported. Deep linear networks that are studied for their own sake are, and layers with a
    given mask between them. LayerNorm, a product of two branches, max-pooling and attention are
    nonlinear, so that a network with one of them passes even if an activation is missing elsewhere.

    ## References
    Saxe et al., "Exact solutions to the nonlinear dynamics of learning in deep linear neural
    networks" (2014). CS231n, "Neural Networks Part 1", on why a nonlinearity is needed.
    """
    for seen in observations(run, "affine-test"):
        curvature = run.at("probe.curvature", seen.site._replace(fqn=""))
        if curvature is not None and curvature.last < rounding and _is_stack(seen):
            left = run.at("probe.overfit_fraction", curvature.site)
            missed = left is not None and left.last > unlearned
            yield _evidence(seen, curvature.last, Severity.ERROR if missed else None)


def _is_stack(seen: Observation) -> bool:
    narrow = seen.number("narrowest") < min(seen.number("given"), seen.number("made"))
    return seen.number("stacked") >= 1 and not narrow


def _evidence(seen: Observation, curvature: float, severity: Severity | None) -> Evidence:
    found = seen.detail.get("layers")
    layers = [str(fqn) for fqn in found] if isinstance(found, list) else []
    return Evidence(
        site=seen.site,
        step=STEP,
        message=say(
            "{layers} layers up to `{module}` of {model} are together one affine map: it bends by "
            "{curvature:.1g} of its slope",
            layers=len(layers),
            module=seen.site.fqn,
            model=seen.site.model,
            curvature=curvature,
        ),
        numbers={"layers": len(layers), "curvature": curvature},
        cause=say("No nonlinear function stands between the layers."),
        fix=say("Put `nn.ReLU()` or another nonlinear function between the layers."),
        excluded=(say("a narrow layer on purpose"), say("a single linear layer")),
        severity=severity,
        layers=first_layers(layers),
    )
