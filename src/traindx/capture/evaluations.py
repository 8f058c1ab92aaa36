"""Forward passes that train nothing: counted, and their mode noted; never measured."""

from __future__ import annotations

from traindx.capture.models import TrackedModel
from traindx.records import Event, EventKind, Site


class Evaluations:
    """Evaluation passes since they were last reported."""

    def __init__(self) -> None:
        self._counts: dict[tuple[TrackedModel, bool], int] = {}
        self._eval_mode: dict[TrackedModel, int] = {}

    @property
    def pending(self) -> bool:
        """Whether there is something to report."""
        return bool(self._counts)

    @property
    def undecided(self) -> bool:
        """Whether calls in eval mode await the backward that tells what they were."""
        return bool(self._eval_mode)

    def without_gradient(self, model: TrackedModel) -> None:
        """A model was called with gradients disabled."""
        self._count(model, model.training, 1)

    def with_gradient(self, model: TrackedModel) -> bool:
        """A model was called with gradients enabled.

        True if earlier such calls, in eval mode, turn out not to belong to this training step.
        """
        if model.training:
            return bool(self._eval_mode.get(model))
        self._eval_mode[model] = self._eval_mode.get(model, 0) + 1
        return False

    def backward_starts(self) -> None:
        """Calls in eval mode that no backward followed were evaluations after all."""
        if not self._eval_mode:
            return
        for model, count in self._eval_mode.items():
            self._count(model, False, count - (not model.training))
        self._eval_mode = {}

    def ends(self) -> None:
        """No backward will follow: all that is left were evaluations."""
        for model, count in self._eval_mode.items():
            self._count(model, False, count)
        self._eval_mode = {}

    def _count(self, model: TrackedModel, training: bool, forwards: int) -> None:
        if forwards > 0:
            key = (model, training)
            self._counts[key] = self._counts.get(key, 0) + forwards

    def events(self, step: int) -> list[Event]:
        """An event for each model and mode; those of models not yet known to train are kept."""
        known = {key: count for key, count in self._counts.items() if key[0].confirmed}
        self._counts = {key: n for key, n in self._counts.items() if key not in known}
        return [
            Event(
                step,
                EventKind.EVALUATION,
                Site(model.name),
                {"forwards": forwards, "training": training},
            )
            for (model, training), forwards in known.items()
        ]
