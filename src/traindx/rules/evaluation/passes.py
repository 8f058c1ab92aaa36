"""Passes without gradient as the rules see them: how their model was set, and what they did."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

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
    """

    step: int
    forwards: float
    training: bool
    dropping: int
    batch_norms: int
    first: str
    drawing: float
    written: tuple[str, ...]

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
            written = told.get("written")
            yield Passes(
                event.step,
                _number(told.get("forwards")),
                bool(told.get("training")),
                int(_number(told.get("dropping"))),
                int(_number(told.get("batch_norms"))),
                str(told.get("first", "")),
                _number(told.get("drawing")),
                tuple(map(str, written)) if isinstance(written, list) else (),
            )


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def no_evaluation(run: Run) -> str:
    """Why rules on evaluation passes do not apply: none was seen after training began."""
    seen = any(passes_of(run, model) for model in run.models)
    return "" if seen else say("no pass without gradient was seen after training began")
