"""O011: the optimizer holds parameters twice, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from traindx.findings import Evidence, Severity, first_layers
from traindx.messages import Message, counted, in_turn, listed, say
from traindx.records import Site
from traindx.rules.probed import STEP, Observation, observations
from traindx.rules.rule import rule
from traindx.run import Run

_SHOWN = 4


@rule(
    "O011",
    severity=Severity.WARNING,
    reads=("probe.outside_optimizer",),
    source="probe",
    explained_by=("O003",),
)
def optimizer_coverage(run: Run) -> Iterator[Evidence]:
    """Parameters that the loss reaches are in no optimizer, or in one twice.

    ## Why it matters
    What no optimizer holds stays as it was initialized, while backward goes on computing its
    gradient: a head that was added after the optimizer was made, a part that was left out of a
    list. What is held twice is stepped twice with one gradient, at twice the learning rate, and
    with momentum or Adam its state is updated twice as well.

    ## How it is measured
    Exactly, by identity, after one backward pass on the batch: of every trainable parameter that
    has a gradient, how often the optimizer that is about to step holds it. What another living
    optimizer holds is held. If parameters are missing that come after some that are held, it is a
    warning; if all that are missing come before, it is information, since a backbone is often left
    out on purpose. A parameter that is held twice is a warning.

    ## How to fix
    Make the optimizer after the model is complete, of `model.parameters()`, or add what is missing
    with `optimizer.add_param_group({"params": module.parameters()})`. Turn off the gradient of what
    is not to be trained with `requires_grad_(False)`, which also saves its cost. For groups with
    different settings, choose the parameters so that each is in one.

    ## False alarms
    Two optimizers that share a model, one of which is made later than the first step, look like
    parts without one. A tied parameter is one parameter, not two. Frozen parameters, and those that
    the gradient does not reach on this batch, are not counted.

    ## References
    PyTorch documentation, `torch.optim`, "Per-parameter options" and "Constructing it". Nikanjam et
    al., "Faults in deep reinforcement learning programs" (2021) and Jiang et al., "Training with
    confidence" (OSDI 2025), on parameters that are never updated.
    """
    for seen in observations(run, "optimizer-coverage"):
        outside, twice = seen.number("num_outside"), seen.number("num_twice")
        if outside or twice:
            yield _evidence(seen, int(outside), int(twice))


def _evidence(seen: Observation, outside: int, twice: int) -> Evidence:
    missing, doubled = _names(seen, "outside"), _names(seen, "twice")
    harmless = not twice and not seen.number("after_held")
    parts = _parts(seen, missing, outside, doubled, twice)
    first = (missing or doubled)[0]
    return Evidence(
        site=Site(seen.site.model, first.rpartition(".")[0]),
        step=STEP,
        message=in_turn(parts),
        numbers={"outside": outside, "twice": twice},
        cause=say("The optimizer was given a list that is not the model's."),
        fix=say(
            "optimizer = {kind}({model}.parameters(), …)  # once the model is complete",
            kind=seen.text("optimizer"),
            model=seen.site.model,
        ),
        excluded=(say("parameters of another optimizer"), say("frozen parameters")),
        severity=Severity.INFO if harmless else Severity.WARNING,
        layers=first_layers(name.rpartition(".")[0] for name in (*missing, *doubled)),
    )


def _parts(
    seen: Observation, missing: list[str], outside: int, doubled: list[str], twice: int
) -> Iterator[Message]:
    if outside:
        yield say(
            "no optimizer holds {params} of {model} that the loss reaches: {names}",
            params=counted(outside, "{n} parameter", "{n} parameters"),
            model=seen.site.model,
            names=_shown(missing, outside),
        )
    if twice:
        yield say(
            "{optimizer} holds {params} of {model} twice: {names}",
            optimizer=seen.text("optimizer"),
            params=counted(twice, "{n} parameter", "{n} parameters"),
            model=seen.site.model,
            names=_shown(doubled, twice),
        )


def _shown(names: list[str], count: int) -> Message:
    shown = listed(f"`{name}`" for name in names[:_SHOWN])
    rest = count - _SHOWN
    return say("{names} and {rest} more", names=shown, rest=rest) if rest > 0 else shown


def _names(seen: Observation, name: str) -> list[str]:
    found = seen.detail.get(name)
    return cast("list[str]", found) if isinstance(found, list) else []
