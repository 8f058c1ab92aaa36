"""O004: an optimizer steps, and nothing that it holds changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx.facts import ModelFacts, OptimizerFacts, ParamFacts
from traindx.findings import Evidence, Severity
from traindx.ledger import NEVER
from traindx.messages import Message, say
from traindx.records import EventKind, Site
from traindx.rules.order import of_facts, optimizers_of
from traindx.rules.rule import rule
from traindx.run import Run, Series

_DIGIT = 2.0**-23
"""The last digit of a float32 number near 1."""


@dataclass(frozen=True, slots=True)
class _Still:
    """An optimizer whose last steps have changed nothing.

    Attributes:
        params: Parameters it holds that are to be trained.
        since: The first of the steps.
        step: The last one.
        measured: Measured ones among them.
        absent: Whether no parameter had a gradient at the last of them.
        gradient: Greatest RMS of a gradient that backward left there.
        too_little: Whether its learning rate alone explains it: what it asks for is lost in the
            last digit of the weights.
    """

    params: int
    since: int
    step: int
    measured: int
    absent: bool
    gradient: float
    too_little: bool


@rule(
    "O004",
    severity=Severity.ERROR,
    reads=("update.ratio",),
    explained_by=("G003", "S013"),
    lasting=True,
)
def step_ineffective(run: Run, *, steps: float = 20, least: float = 6) -> Iterator[Evidence]:
    """The optimizer steps, and every weight stays exactly as it was.

    ## Why it matters
    `zero_grad()` between `backward()` and `step()`, or a step before the backward pass, leaves the
    optimizer without gradients. It skips parameters that have none and says nothing: the loop runs,
    the loss is printed, and the network that is saved is the one that was made.

    ## How it is measured
    Exactly: at each of at least `least` measured steps in a row, over at least `steps` steps, a
    sample of up to 4,096 entries of every parameter that the optimizer holds and that requires a
    gradient is the same after the step as before it, though its learning rate is above 0 and the
    backward passes have left gradients that are not 0. Whether there was a gradient at the moment
    of the step says which of the two causes it is.

    ## How to fix
    In this order: `optimizer.zero_grad()`, `loss.backward()`, `optimizer.step()`. With several
    batches a step, clear once before the first of them.

    ## False alarms
    A learning rate of 0, as at the start of a warmup or the end of a schedule, and steps that a
    GradScaler skips are left out. So are parameters that require no gradient. Where backward never
    reaches the parameters, G003 says so. A learning rate with which no update can reach the last
    digit of the weights is told by O002.

    ## References
    PyTorch documentation, `torch.optim`, "Taking an optimization step", and
    `Optimizer.zero_grad`, on parameters whose gradient is None.
    """
    for model in run.models.values():
        for optimizer in optimizers_of(run, model):
            still = _still(run, model, optimizer)
            long = still and still.measured >= least and still.step - still.since >= steps
            if still and long and still.gradient > 0 and (still.absent or not still.too_little):
                yield _evidence(model, optimizer, still)


@of_facts
def _held(model: ModelFacts) -> dict[str, tuple[list[ParamFacts], tuple[Site, ...]]]:
    """Of each optimizer the parameters that it is to train, and where they are."""
    trained = [param for param in model.params if param.trainable]
    names = {name for param in trained for name in param.optimizers}
    held = {name: [param for param in trained if name in param.optimizers] for name in names}
    return {
        name: (params, tuple(Site(model.name, param.fqn) for param in params))
        for name, params in held.items()
    }


def _still(run: Run, model: ModelFacts, optimizer: OptimizerFacts) -> _Still | None:
    """What is known of an optimizer, None if its last step has changed something."""
    rate = run.at("lr", Site("", optimizer.name))
    held, sites = _held(model).get(optimizer.name, ([], ()))
    newest = run.newest("update.ratio", sites)
    if ((newest.steps > NEVER) & (newest.values != 0)).any():  # of most weights none stands still
        return None
    moved = list(zip(held, (run.at("update.ratio", site) for site in sites), strict=True))
    ratios = [(param, series) for param, series in moved if series is not None]
    if rate is None or rate.last <= 0 or not ratios or len(ratios) < len(held):
        return None
    if any(series.last != 0 for _, series in ratios):
        return None
    since = max(series.unchanged_since for _, series in ratios)
    if rate.unchanged_since > since and not (rate.values[rate.steps >= since] > 0).all():
        return None
    skipped = any(event.step >= since for event in run.events(EventKind.AMP_SKIPPED))
    last = ratios[0][1]
    gradient = max((_gradient(run, model, param) for param, _ in ratios), default=0.0)
    size = max((_size(run, model, param) for param, _ in ratios), default=0.0)
    return (
        None
        if skipped
        else _Still(
            params=len(ratios),
            since=since,
            step=last.step,
            measured=int((last.steps >= since).sum()),
            absent=all(_is_absent(run, model, param) for param, _ in ratios),
            gradient=gradient,
            too_little=rate.last * max(1.0, gradient) < _DIGIT * size,
        )
    )


def _size(run: Run, model: ModelFacts, param: ParamFacts) -> float:
    size = run.at("param.rms", Site(model.name, param.fqn))
    return size.last if size is not None else 0.0


def _is_absent(run: Run, model: ModelFacts, param: ParamFacts) -> bool:
    absent = run.at("grad.absent", Site(model.name, param.fqn))
    return absent is not None and absent.last == 1


def _gradient(run: Run, model: ModelFacts, param: ParamFacts) -> float:
    grad: Series | None = run.at("grad.rms", Site(model.name, param.fqn))
    return grad.last if grad is not None and grad.last > 0 else 0.0


def _evidence(model: ModelFacts, optimizer: OptimizerFacts, still: _Still) -> Evidence:
    cause, fix = _cause_and_fix(still.absent)
    return Evidence(
        site=Site("", optimizer.name),
        step=still.step,
        message=say(
            "since step {since} no step of {optimizer} has changed any of the {count} parameters "
            "of {model} that it is to train, though backward leaves gradients of up to "
            "{gradient:.2g} RMS",
            since=still.since,
            optimizer=optimizer.name,
            count=still.params,
            model=model.name,
            gradient=still.gradient,
        ),
        numbers={
            "parameters": still.params,
            "steps": still.step - still.since + 1,
            "gradient": still.gradient,
        },
        cause=cause,
        fix=fix,
        excluded=(
            say("a learning rate of 0"),
            say("parameters that are frozen"),
            say("steps that a GradScaler skipped"),
        ),
        series=("update.ratio", "loss"),
    )


def _cause_and_fix(absent: bool) -> tuple[Message, Message]:
    if absent:
        return say(
            "At the moment of the step no parameter has a gradient: they are cleared after "
            "backward, or the step comes before it."
        ), say("optimizer.zero_grad(); loss.backward(); optimizer.step()  # in this order")
    return say(
        "The gradients are there, but what they would change is less than the last digit of the "
        "weights, or is undone within the step."
    ), say("Raise the learning rate, or keep the weights in float32.")
