"""S012: parameters that are to be trained and that no gradient reaches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from traindx.findings import Evidence, Severity, first_layers
from traindx.messages import counted, say
from traindx.rules.probed import STEP, Observation, observations
from traindx.rules.rule import rule
from traindx.run import Run


@rule("S012", severity=Severity.ERROR, reads=("probe.unreached",), source="probe")
def unreached_parameter(run: Run) -> Iterator[Evidence]:
    """The loss depends on parameters that its gradient does not reach.

    ## Why it matters
    Somewhere between them and the loss the graph is cut: by `.detach()`, `.data`, `.item()`, a trip
    through NumPy, an `argmax`, or `torch.no_grad()` around a part of the forward pass. What lies
    before the cut stays at its random start, while what comes after trains around it, so that the
    loss may fall all the same.

    ## How it is measured
    After one backward pass on the batch, the gradient of trainable parameters that the optimizer
    holds is None although their module is called. They are then all changed by a tenth of their
    size, and the loss is computed again with the same random numbers. If it changes by more than
    rounding, the loss depends on them and the graph is cut: an error. If not, their output is not
    used in this loss: information. What another backward pass of the script reaches is left out:
    one before its first step, or, if the first step leaves something without gradient, one of up
    to 8 further steps, for which the script goes on for up to 10 seconds; then everything is put
    back to where it was at the first step.

    ## How to fix
    Find what cuts the graph behind the named module and take it out. If the part is not meant to be
    trained, set `requires_grad_(False)` or leave it out of the optimizer. A choice that has no
    gradient (`argmax`, rounding) needs a straight-through estimator.

    ## False alarms
    Parameters that the optimizer does not hold are not looked at: a teacher, a target network, the
    other player of an adversarial pair. Parts that are trained in turn by one optimizer and losses
    that detach each other are reported if the turn changes only after more than 8 steps, or where
    preflight is given a model and not a script. A module that is never called is S005's.

    ## References
    PyTorch documentation, "Autograd mechanics", on `requires_grad`, `detach` and `no_grad`. van den
    Oord et al., "Neural discrete representation learning" (2017), on straight-through gradients.
    """
    for seen in observations(run, "parameters-reached"):
        yield _evidence(seen)


def _evidence(seen: Observation) -> Evidence:
    count, effect = int(seen.number("count")), seen.number("effect")
    found = seen.detail.get("parameters")
    names = cast("list[str]", found) if isinstance(found, list) else []
    params = counted(count, "{n} parameter", "{n} parameters")
    if effect:
        message = say(
            "no gradient reaches {params} up to `{module}`, though changing them changes the loss "
            "by {effect:.2g} of its value",
            params=params,
            module=seen.site.fqn or seen.site.model,
            effect=effect,
        )
    else:
        message = say(
            "no gradient reaches {params} up to `{module}`, and changing them does not change the "
            "loss",
            params=params,
            module=seen.site.fqn or seen.site.model,
        )
    return Evidence(
        site=seen.site,
        step=STEP,
        message=message,
        numbers={"parameters": count, "effect": effect},
        cause=say("The graph is cut between them and the loss.")
        if effect
        else say("Their output does not go into this loss."),
        fix=say(
            "Look behind `{module}` for `.detach()`, `.data`, `.item()`, `.numpy()`, `argmax` or "
            "`torch.no_grad()`, and take it out.",
            module=seen.site.fqn or seen.site.model,
        )
        if effect
        else say("Add it to the loss, or leave these parameters out of the optimizer."),
        excluded=(say("frozen parameters"), say("parameters that the optimizer does not hold")),
        severity=Severity.ERROR if effect else Severity.INFO,
        layers=first_layers(name.rpartition(".")[0] for name in names),
    )
