"""How sharply attention attends, and how large its logits are."""

from __future__ import annotations

from bisect import bisect_right
from typing import Protocol

import torch
from torch import Tensor, nn

from traindx.capture.attention_nodes import attentions
from traindx.capture.attention_rows import Sharpness, sharpness
from traindx.capture.collectors import Collector
from traindx.capture.models import TrackedModel
from traindx.capture.recorder import Recorder
from traindx.capture.taps import operations
from traindx.records import Point

_DENSE, _SEARCHED_EVERY = 2, 16
"""Measured steps at the start that are searched for attention; then one of so many, until some is
found, since a search reads the whole graph behind the loss."""

_FIRST, _APART = 4, 8
"""Measured steps at the start in all of which what was found is looked at, and steps from one look
to the next after them."""

_Place = tuple[TrackedModel, str]


class Beginnings(Protocol):
    """What tells when a call began.

    Attributes:
        began: How many operations autograd had noted when the module that has just returned was
            called.
    """

    began: int


class Attentions(Collector):
    """Every attention behind a loss, from a sample of its rows computed again.

    It is found in the autograd graph, and belongs to the innermost module in whose call its
    operation was noted: autograd counts them.

    Args:
        recorder: Where statistics go.
        calls: Tells when a call began.
    """

    def __init__(self, recorder: Recorder, calls: Beginnings) -> None:
        super().__init__(recorder)
        self._calls = calls
        self._found = False
        self._looks = -1
        self._ends: list[int] = []
        self._spans: list[tuple[int, _Place]] = []
        self._sharpness: dict[_Place, list[Sharpness]] = {}

    def watches(self) -> bool:
        """Whether attention is looked for, or at."""
        return self._searches()

    def output(
        self, model: TrackedModel, fqn: str, module: nn.Module, tensor: Tensor | None
    ) -> None:
        """Note which operations were noted during a call."""
        self._ends.append(operations())
        self._spans.append((self._calls.began, (model, fqn)))

    def loss_found(self, loss: Tensor) -> None:
        """Look at every attention behind it."""
        if not self._searches():
            return
        self._looks += 1
        for attention in attentions(loss.grad_fn):
            place = self._place(attention.order)
            if place is None:
                continue
            self._found = True
            rows = attention.rows(self._looks)
            if isinstance(rows, str):
                self.recorder.skip((*place, Point.ATTENTION), rows)
            else:
                self._sharpness.setdefault(place, []).append(sharpness(rows))

    def round_starts(self, model: TrackedModel) -> None:
        """Forget calls without a loss, and models that are not trained after all."""
        self._ends, self._spans, self._sharpness = [], [], {}

    def round_ends(self, model: TrackedModel) -> None:
        """Write all calls at a place as one: their mean, and their extremes."""
        self._ends, self._spans = [], []
        for place in [place for place in self._sharpness if place[0] is model]:
            each = zip(*self._sharpness.pop(place), strict=True)
            calls = Sharpness(*(torch.stack(values) for values in each))
            for name, value in (
                ("entropy", calls.entropy.mean()),
                ("entropy_min", calls.lowest.amin()),
                ("logit_min", calls.least.amin()),
                ("logit_max", calls.greatest.amax()),
            ):
                self.recorder.scalar(*place, f"attention.{name}", value)

    def _searches(self) -> bool:
        if self._found:
            return self.recorder.due(dense=_FIRST, every=1, apart=_APART)
        return self.recorder.round < _DENSE or self.recorder.round % _SEARCHED_EVERY == 0

    def _place(self, order: int) -> _Place | None:
        """The innermost module in whose call the operation was noted.

        Calls stand in the order of their ends: after those that had ended before come those that it
        lies in, from the inside, and between them those that began after it.
        """
        first = bisect_right(self._ends, order)
        return next((place for began, place in self._spans[first:] if began <= order), None)
