"""BatchNorm's running statistics against the batches that made them, from its buffers alone.

It works under torch.compile, too; `traindx.capture.running` has the formulas.
"""

from __future__ import annotations

import weakref

import numpy as np
import torch
from torch.nn.modules.batchnorm import _BatchNorm  # pyright: ignore[reportPrivateUsage]

from traindx.capture.collectors import Collector
from traindx.capture.models import TrackedModel
from traindx.capture.recorder import Recorder
from traindx.capture.running import Layers, Setting, Snapshot, Values, running_mean
from traindx.records import Point

_CHANNELS = 512
"""Most channels of a layer whose own statistics are written."""

_Found = tuple[dict[int, str], list[tuple[str, weakref.ref[_BatchNorm]]]]
_Taken = list[tuple[Layers, Snapshot]]


class Norms(Collector):
    """Modes, updates and gaps of every normalization with running statistics."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self._taken: dict[TrackedModel, tuple[int, _Taken]] = {}
        self._found: dict[TrackedModel, _Found] = {}
        self._known: dict[tuple[TrackedModel, torch.device, torch.dtype], Layers] = {}

    def round_starts(self, model: TrackedModel) -> None:
        """Copy the buffers before the step, unless the last one, just ended, has copied them."""
        taken = self._taken.get(model)
        if taken is None or taken[0] != self.recorder.step:
            self._taken[model] = self.recorder.step, self._take(model)

    def before_backward(self, model: TrackedModel) -> None:
        """Note the modes in which the forward pass ran."""
        self.recorder.scalar(model, "", "mode.training", float(model.training))
        for fqn, norm in self._tracking(model):
            self.recorder.scalar(model, fqn, "norm.training", float(norm.training))

    def round_ends(self, model: TrackedModel) -> None:
        """Compare the buffers with those before the step."""
        _, before = self._taken.pop(model, (0, []))
        now = self._take(model)
        with np.errstate(all="ignore"):  # the user may have made errors of what NumPy ignores
            for layers, new in now:
                self._note(model, layers, "tracked", new.tracked)
                self._note(model, layers, "initial_weight", layers.initial_weight(new))
                for others, old in before:
                    if others.setting.comparable(layers.setting):
                        self._compare(model, layers, old, new)
                if self.recorder.wants_vectors:
                    self._note_channels(model, layers, "running_mean", new.mean)
                    self._note_channels(model, layers, "running_var", new.var)
        # The next round begins as this one ends, with no training between them.
        self._taken[model] = self.recorder.step + 1, now

    def _tracking(self, model: TrackedModel) -> list[tuple[str, _BatchNorm]]:
        """The BatchNorm layers of a model that keep running statistics.

        They are looked for again when its modules are others than when last asked.
        """
        fqns, found = self._found.get(model, ({}, []))
        norms = [(fqn, norm) for fqn, ref in found if (norm := ref()) is not None]
        if not fqns or fqns != model.fqns or len(norms) < len(found):
            norms = [(fqn, part) for fqn, part in model.modules() if isinstance(part, _BatchNorm)]
            self._found[model] = model.fqns, [(fqn, weakref.ref(norm)) for fqn, norm in norms]
        return [pair for pair in norms if pair[1].running_mean is not None]

    def _take(self, model: TrackedModel) -> _Taken:
        """The statistics of its layers, by the device and type of their buffers."""
        alike: dict[tuple[torch.device, torch.dtype], list[tuple[str, _BatchNorm]]] = {}
        for fqn, norm in self._tracking(model):
            mean = running_mean(norm)
            if self.recorder.measurable((model, f"{fqn}.running_mean", Point.PARAM), mean):
                alike.setdefault((mean.device, mean.dtype), []).append((fqn, norm))
        taken: _Taken = []
        for (device, dtype), norms in alike.items():
            setting, key = Setting.of(norms), (model, device, dtype)
            layers = self._known.get(key)
            if layers is None or layers.setting != setting:
                layers = self._known[key] = Layers.of(setting, running_mean(norms[0][1]))
            taken.append((layers, layers.snapshot(norms)))
        return taken

    def _compare(self, model: TrackedModel, layers: Layers, old: Snapshot, new: Snapshot) -> None:
        step = layers.compared(old, new)
        for quantity, values in step.by_layer.items():
            self._note(model, layers, quantity, values)
        if self.recorder.wants_vectors:
            for quantity, values in layers.by_channel(step.batch).items():
                self._note_channels(model, layers, quantity, values)

    def _note_channels(
        self, model: TrackedModel, layers: Layers, quantity: str, values: Values
    ) -> None:
        start = 0
        for fqn, size in zip(layers.setting.layers, layers.setting.sizes, strict=True):
            channels = values[start : start + size : -(-size // _CHANNELS)]
            self.recorder.vector(model, fqn, f"norm.{quantity}", layers.tensor(channels))
            start += size

    def _note(self, model: TrackedModel, layers: Layers, quantity: str, values: Values) -> None:
        for fqn, value in zip(layers.setting.layers, layers.numbers(values), strict=True):
            self.recorder.scalar(model, fqn, f"norm.{quantity}", value)
