"""S001: several layers that are together one affine map."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity, first_layers
from traindx.messages import say
from traindx.rules.probed import STEP, Observation, observations
from traindx.rules.rule import rule
from traindx.run import Run


@rule("S001", severity=Severity.WARNING, reads=("probe.curvature",), source="probe")
def missing_nonlinearity(run: Run, *, rounding: float = 1e-8) -> Iterator[Evidence]:
    """The layers of the network are together one affine map, as if there were only one.

    ## Why it matters
    A linear map of a linear map is a linear map. Without a nonlinear function between them, any
    number of linear layers and convolutions can express no more than a single one, and is harder to
    train. Such a network learns something, which is why the missing activation is not noticed.

    ## How it is measured
    Exactly. An affine function f has f(x + d) + f(x - d) = 2 f(x) for every d. For random d as
    large as the data, the RMS of the difference over that of f(x + d) - f(x - d) is below
    `rounding` in float64, at the output of the last linear layer or convolution, whatever stands
    behind it. It is measured in evaluation mode, in which dropout does nothing and BatchNorm is
    affine, with every trained parameter moved by a tenth, so that a branch that starts times zero
    counts. At least two layers must stand one behind the other.

    ## How to fix
    Put a nonlinear function between the layers: `nn.ReLU()`, `nn.GELU()`. Check that an activation
    that the model makes is also called in `forward`.

    ## False alarms
    A narrow layer between two wider ones restricts the rank, and is a factorization on purpose (a
    linear autoencoder, a low-rank pair): it is not reported. Deep linear networks that are studied
    for their own sake are. LayerNorm, a product of two branches, max-pooling and attention are
    nonlinear, so that a network with one of them passes even if an activation is missing elsewhere.

    ## References
    Saxe et al., "Exact solutions to the nonlinear dynamics of learning in deep linear neural
    networks" (2014). CS231n, "Neural Networks Part 1", on why a nonlinearity is needed.
    """
    for seen in observations(run, "affine-test"):
        curvature = run.at("probe.curvature", seen.site._replace(fqn=""))
        if curvature is not None and curvature.last < rounding and _is_stack(seen):
            yield _evidence(seen, curvature.last)


def _is_stack(seen: Observation) -> bool:
    narrow = seen.number("narrowest") < min(seen.number("given"), seen.number("made"))
    return seen.number("stacked") >= 1 and not narrow


def _evidence(seen: Observation, curvature: float) -> Evidence:
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
        layers=first_layers(layers),
    )
