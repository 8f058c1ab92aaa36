"""O009: a training goes on from saved weights without the state of its optimizer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean, pstdev

from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.records import Site
from traindx.rules.rule import rule
from traindx.run import Run, Series

_LAST = 20
"""Losses before the break that say what its level was."""
_FIRST = 3
"""Losses after it, before which a new optimizer has hardly moved anything."""


@dataclass(frozen=True, slots=True)
class _Break:
    """The losses around the place where a training goes on.

    Attributes:
        start: Of the first training, at its beginning.
        before: Mean of its last ones.
        spread: Their standard deviation.
        first: Mean of the first ones of what goes on.
    """

    start: float
    before: float
    spread: float
    first: float


@rule("O009", severity=Severity.WARNING, reads=("optimizer.forgotten",), lasting=True)
def momentum_stale(
    run: Run, *, deviations: float = 4.0, fallen: float = 0.7, rounds: float = 4
) -> Iterator[Evidence]:
    """A training goes on from saved weights, and its optimizer begins anew.

    ## Why it matters
    Momentum and Adam's moments are averages over past steps. Without them Adam divides the first
    gradients by their own size, so that each weight moves by the whole learning rate, whatever the
    gradient says: the loss jumps up after every resume, and the training needs a while to get back
    to where it was.

    ## How it is measured
    By calls of `load_state_dict`. A module was loaded into, and an optimizer that averages over at
    least two steps has taken its first steps with that module's parameters without having been
    given a state itself. Besides, one of two must be so. Either an optimizer of this run with the
    same class, shapes of parameters and learning rate had stepped before, and the loss goes on at
    its level: the mean of the first three losses is within `deviations` standard deviations of the
    last twenty before, which were below `fallen` of the start. Or a file that was read with
    `torch.load` holds the state of an optimizer of as many parameters, and no optimizer was given
    any. Where `rounds` optimizers or more of the run began so, it is how the program trains.

    ## How to fix
    Save `optimizer.state_dict()` with the model's, and load both; so with scheduler and GradScaler.

    ## False alarms
    Fine-tuning from a file is no resume, but looks like one if the file holds an optimizer's state,
    too; ignore the rule for it. Within a run another task, or another learning rate, tells it
    apart. Folds and clients begin with weights that are not loaded, or at another level; in the
    rounds of a federated training one after another begins with the weights of all, to which no
    former state belongs. Plain SGD has nothing to forget.

    ## References
    PyTorch documentation, "Saving and loading a general checkpoint". Kingma and Ba, "Adam" (2015),
    section 3, on the bias of the averages at the start.
    """
    forgotten = run.series("optimizer.forgotten")
    for series in forgotten if len(forgotten) < rounds else ():
        former, name = series.site
        if not former:
            yield _evidence(series, name, None)
            continue
        around = _break(run, former, name)
        if around is None or around.before > fallen * around.start:
            continue
        if abs(around.first - around.before) <= deviations * around.spread:
            yield _evidence(series, name, around)


def _break(run: Run, former: str, name: str) -> _Break | None:
    """The losses of the models of two optimizers, before the one began and after."""
    rate = run.at("lr", Site("", name))
    before, after = _losses(run, former), _losses(run, name)
    if rate is None or before is None or after is None:
        return None
    steps = before.steps < rate.first_step
    old, new = before.values[steps].tolist(), after.values[after.steps >= rate.first_step].tolist()
    if len(old) < 2 * _LAST or len(new) < _FIRST:
        return None
    last = old[-_LAST:]
    return _Break(fmean(old[:_FIRST]), fmean(last), pstdev(last), fmean(new[:_FIRST]))


def _losses(run: Run, optimizer: str) -> Series | None:
    """The losses of the last model that an optimizer is known to have held."""
    held = [
        model.name
        for model in run.models.values()
        if any(optimizer in param.optimizers for param in model.params)
    ]
    return run.loss_of(held[-1]) if held else _any_loss(run)


def _any_loss(run: Run) -> Series | None:
    """The only loss there is: the model that an optimizer held may be described without it."""
    losses = run.series("loss")
    return losses[0] if len(losses) == 1 else None


def _evidence(series: Series, name: str, around: _Break | None) -> Evidence:
    if around is None:
        message = say(
            "the weights that {optimizer} trains were loaded, and a file that was read holds the "
            "state of such an optimizer, but it was given none",
            optimizer=name,
        )
        numbers: dict[str, float] = {}
    else:
        message = say(
            "{optimizer} goes on with loaded weights, at a loss of {first:.3g} after {before:.3g} "
            "before, without the averages of the {steps:.0f} steps that the one before it had "
            "taken",
            optimizer=name,
            first=around.first,
            before=around.before,
            steps=series.last,
        )
        numbers = {"steps": series.last, "before": around.before, "first": around.first}
    return Evidence(
        site=Site("", name),
        step=series.step,
        message=message,
        numbers=numbers,
        cause=say("Only the model was loaded; the state of the optimizer was left out."),
        fix=say('optimizer.load_state_dict(checkpoint["optimizer"])'),
        excluded=(
            say("an optimizer without state"),
            say("another task or learning rate"),
        ),
        series=("loss",),
    )
