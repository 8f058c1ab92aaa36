"""Passes without gradient as the rules see them: how their model was set, and what they did."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, cast

from traindx.messages import say
from traindx.records import EventKind
from traindx.rules.remembered import remembered
from traindx.run import Run


class Passes(NamedTuple):
    """Forward passes of a model without gradient, before one step, that were set in one way.

    Attributes:
        step: The step that followed.
        forwards: How many.
        training: The model's own flag.
        dropping: Modules that dropped values.
        batch_norms: BatchNorm layers that normalized by the batch.
        first: The first of both, by fqn.
        drawing: Passes that drew random numbers.
        written: Running statistics that were written.
        initial: Modules whose running statistics no batch had touched.
        last: Whether the last pass before the step was one of them, if others were set otherwise.
    """

    step: int
    forwards: float
    training: bool
    dropping: int
    batch_norms: int
    first: str
    drawing: float
    written: tuple[str, ...]
    initial: tuple[str, ...] = ()
    last: bool = False

    @property
    def as_in_training(self) -> bool:
        """Whether some part of the model acted as in training."""
        return bool(self.dropping or self.batch_norms)

    @property
    def samples_dropout(self) -> bool:
        """Whether dropout alone was on in a model in eval mode: nobody does that by oversight."""
        return bool(self.dropping) and not (self.training or self.batch_norms)


def passes_of(run: Run, model: str) -> list[Passes]:
    """Those of a model since its training began, in order."""
    loss = run.loss_of(model)
    began = loss.first_step if loss else 0
    state = began, run.num_events(EventKind.EVALUATION)
    return remembered(run, (passes_of, model), state, lambda: list(_passes(run, model, began)))


def _passes(run: Run, model: str, began: int) -> Iterator[Passes]:
    for event in run.events(EventKind.EVALUATION):
        if event.site.model == model and event.step > began:
            told = event.detail
            yield Passes(
                event.step,
                _number(told.get("forwards")),
                bool(told.get("training")),
                int(_number(told.get("dropping"))),
                int(_number(told.get("batch_norms"))),
                str(told.get("first", "")),
                _number(told.get("drawing")),
                _words(told.get("written")),
                _words(told.get("initial")),
                bool(told.get("last")),
            )


def _words(value: object) -> tuple[str, ...]:
    return tuple(map(str, cast("list[object]", value))) if isinstance(value, list) else ()


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def no_evaluation(run: Run) -> str:
    """Why rules on evaluation passes do not apply: none was seen after training began."""
    any_pass = run.num_events(EventKind.EVALUATION)
    seen = any_pass and any(passes_of(run, model) for model in run.models)
    return "" if seen else say("no pass without gradient was seen after training began")


def is_mistaken(run: Run, copy: str, model: str) -> bool:
    """Whether a copy was evaluated for the first time after training, and a model not any more.

    A reference, a target network or a second member of an ensemble is called while it goes on.
    """
    if not run.ended:
        return False
    copied = [event.step for event in run.events(EventKind.COPY) if event.site.model == copy]
    own = [e.step for e in run.events(EventKind.EVALUATION) if e.site.model == model]
    return bool(copied) and min(copied) >= run.steps > max(own, default=-1)
