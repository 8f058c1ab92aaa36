"""Schedules that never bring the learning rate to where it was meant to be."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from traindx.facts import OptimizerFacts
from traindx.findings import Evidence
from traindx.messages import Message, say
from traindx.records import EventKind, Site
from traindx.run import Run, Series

_FIRST = 10
"""Steps at the start that are all measured."""
_ROUNDING = 1e-6


def never_arrived(run: Run, *, part: float, steps: float) -> Iterator[Evidence]:
    """One for each optimizer whose rate stayed below a part of what its scheduler started from.

    Args:
        run: The run; nothing is said before it has ended.
        part: Of the rate that the optimizer was made with, or of the highest one planned.
        steps: Fewest steps of the training.
    """
    if not run.ended or run.step + 1 < steps or run.events(EventKind.LOADED):
        return
    for optimizer in run.optimizers.values():
        rate = run.at("lr", Site("", optimizer.name))
        meant, planned = _number(optimizer, "initial_lr"), _number(optimizer, "max_lr")
        if rate is None or not meant or rate.step - rate.first_step + 1 < steps:
            continue
        peak, aim = float(rate.values.max()), max(meant, planned)
        if meant < part and _is_square(rate.first, meant) and peak <= rate.first:
            yield _evidence(rate, meant, peak, *_twice())
        elif peak < part * aim and _is_in_stairs_upwards(rate) and (planned or meant != 1):
            yield _evidence(rate, aim, peak, *_too_seldom())


def _number(optimizer: OptimizerFacts, name: str) -> float:
    """A setting of the first group; 0 if it has none."""
    value = optimizer.groups[0].get(name) if optimizer.groups else None
    return float(value) if isinstance(value, int | float) else 0.0


def _is_square(rate: float, meant: float) -> bool:
    return rate > 0 and math.isclose(rate, meant * meant, rel_tol=_ROUNDING)


def _is_in_stairs_upwards(rate: Series) -> bool:
    """Whether it never fell, and was the same throughout the first steps."""
    values = rate.values.tolist()
    first = values[:_FIRST]
    rises = all(one <= other for one, other in itertools.pairwise(values))
    return rises and len(first) == _FIRST and len(set(first)) == 1


def _twice() -> tuple[Message, Message]:
    return say(
        "The function that `LambdaLR` was given returns a rate; what it returns is multiplied with "
        "the optimizer's."
    ), say("Let the function return a factor: 1 for the rate that the optimizer was made with.")


def _too_seldom() -> tuple[Message, Message]:
    return say(
        "The scheduler counts steps, and its `step()` is called once an epoch or not at all: the "
        "warmup never ends."
    ), say("optimizer.step(); scheduler.step()  # both after each batch")


def _evidence(rate: Series, meant: float, peak: float, cause: Message, fix: Message) -> Evidence:
    return Evidence(
        site=rate.site,
        step=rate.step,
        message=say(
            "the learning rate of {optimizer} was never above {peak:.3g} in {steps} steps, though "
            "it was to be {meant:.3g}",
            optimizer=rate.site.fqn,
            peak=peak,
            steps=rate.step - rate.first_step + 1,
            meant=meant,
        ),
        numbers={"peak": peak, "meant": meant, "lr": rate.last},
        cause=cause,
        fix=fix,
        excluded=(say("a training that goes on late in its schedule"),),
        series=("lr", "loss"),
    )
