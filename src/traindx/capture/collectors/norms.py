"""BatchNorm's running statistics against the batches that made them, from its buffers alone.

It works under torch.compile, too; `traindx.capture.running` has the formulas.
"""

from __future__ import annotations

import weakref
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm  # pyright: ignore[reportPrivateUsage]

from traindx.capture.axes import norm_behind
from traindx.capture.collectors import Collector
from traindx.capture.late_norms import LateNorms
from traindx.capture.models import TrackedModel
from traindx.capture.nodes import saved
from traindx.capture.recorder import Recorder
from traindx.capture.running import Layers, OnHost, Running, Setting, Snapshot, Values, running
from traindx.messages import say
from traindx.records import Point

_CHANNELS = 512
"""Most channels of a layer whose own statistics are written."""

_PASSES = 3
"""Forward passes of a step between which buffers are copied, at most."""

_Found = tuple[dict[int, str], list[tuple[str, weakref.ref[_BatchNorm]]]]


class _Group(NamedTuple):
    """Layers whose buffers are of one device and type; on the CPU they are compared later."""

    layers: Layers
    late: LateNorms | None


_Taken = list[tuple[_Group, Snapshot]]


class Norms(Collector):
    """Modes, updates and gaps of every normalization with running statistics."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self._taken: dict[TrackedModel, tuple[int, _Taken]] = {}
        self._found: dict[TrackedModel, _Found] = {}
        self._known: dict[tuple[TrackedModel, torch.device, torch.dtype], _Group] = {}
        self._passes: dict[TrackedModel, list[_Taken]] = {}
        self._calls: dict[TrackedModel, dict[str, int]] = {}

    def forward_starts(self, model: TrackedModel, inputs: tuple[object, ...]) -> None:
        """Copy the buffers between the first passes of a step, to tell their batches apart."""
        passes = self._passes.setdefault(model, [])
        if len(passes) < _PASSES:
            passes.append(self._take(model) if passes else [])

    def output(
        self, model: TrackedModel, fqn: str, module: nn.Module, tensor: Tensor | None
    ) -> None:
        """Count calls, which checkpointing does not add to; compare frozen statistics with data."""
        if not isinstance(module, _BatchNorm) or running(module) is None:
            return
        calls = self._calls.setdefault(model, {})
        calls[fqn] = calls.get(fqn, 0) + 1
        if not self.recorder.wants_vectors or tensor is None or tensor.dim() < 2:
            return
        if not module.training:
            self.recorder.scalar(model, fqn, "norm.frozen_gap", _frozen_gap(module, tensor))
        elif (rows := _zero_rows(tensor)) is not None:
            self.recorder.scalar(model, fqn, "norm.zero_rows", rows)

    def round_starts(self, model: TrackedModel) -> None:
        """Copy the buffers before the step, unless the last one, just ended, has copied them."""
        taken = self._taken.get(model)
        if taken is None or taken[0] != self.recorder.step:
            self._taken[model] = self.recorder.step, self._take(model)

    def before_backward(self, model: TrackedModel) -> None:
        """Note the modes in which the forward pass ran."""
        self.recorder.scalar(model, "", "mode.training", float(model.training))
        for fqn, norm, _ in self._tracking(model):
            self.recorder.scalar(model, fqn, "norm.training", float(norm.training))

    def round_ends(self, model: TrackedModel) -> None:
        """Compare the buffers with those before the step."""
        _, before = self._taken.pop(model, (0, []))
        now = self._take(model)
        between = self._passes.pop(model, [])[1:]
        for group, new in now:
            olds = [old for (others, _), old in before if group.layers.follows(others)]
            old = olds[0] if olds else None
            if old is not None and group.late is not None:
                self.recorder.later(model, group.late.names, group.late.step(old, new))
            else:
                self._compare(model, group.layers, old, new)
            if self.recorder.wants_vectors:
                self._compare_channels(model, group.layers, old, new)
        if between:
            self._compare_passes(model, [before, *between, now][:_PASSES])
        for fqn, calls in self._calls.pop(model, {}).items():
            self.recorder.scalar(model, fqn, "norm.calls", float(calls))
        # The next round begins as this one ends, with no training between them.
        self._taken[model] = self.recorder.step + 1, now

    def _tracking(self, model: TrackedModel) -> list[tuple[str, _BatchNorm, Running]]:
        """The BatchNorm layers of a model that keep running statistics.

        They are looked for again when its modules are others than when last asked.
        """
        if model not in self._found:
            self._forget_those_gone()
        fqns, found = self._found.get(model, ({}, []))
        norms = [(fqn, norm) for fqn, ref in found if (norm := ref()) is not None]
        others = fqns is not model.fqns and fqns != model.fqns
        if others or not fqns or len(norms) < len(found):
            norms = [(fqn, part) for fqn, part in model.modules() if isinstance(part, _BatchNorm)]
            self._found[model] = model.fqns, [(fqn, weakref.ref(norm)) for fqn, norm in norms]
        return [(fqn, norm, of) for fqn, norm in norms if (of := running(norm)) is not None]

    def _forget_those_gone(self) -> None:
        """Let go of the copies of models that are gone, as those of the folds before are."""
        for known in (self._taken, self._found, self._passes, self._calls):
            for gone in [model for model in known if model.root is None]:
                del known[gone]
        self._known = {key: group for key, group in self._known.items() if key[0].root is not None}

    def _take(self, model: TrackedModel) -> _Taken:
        """The statistics of its layers, by the device and type of their buffers."""
        alike: dict[tuple[torch.device, torch.dtype], list[tuple[str, _BatchNorm, Running]]] = {}
        for fqn, norm, of in self._tracking(model):
            place = model, f"{fqn}.running_mean", Point.PARAM
            if not of.fit():
                self.recorder.skip(place, say("its running statistics differ in size or device"))
            elif all(self.recorder.measurable(place, each) for each in (of.mean, of.var)):
                alike.setdefault((of.mean.device, of.mean.dtype), []).append((fqn, norm, of))
        taken: _Taken = []
        for (device, dtype), norms in alike.items():
            setting, key = Setting.of(norms), (model, device, dtype)
            group = self._known.get(key)
            if group is None or group.layers.setting != setting:
                layers = Layers.of(setting, norms[0][2].mean)
                late = LateNorms(layers) if isinstance(layers, OnHost) else None
                group = self._known[key] = _Group(layers, late)
            taken.append((group, group.layers.snapshot(norms)))
        return taken

    @np.errstate(all="ignore")  # the user may have made errors of what NumPy ignores
    def _compare(
        self, model: TrackedModel, layers: Layers, old: Snapshot | None, new: Snapshot
    ) -> None:
        of_step = {} if old is None else layers.compared(old, new).by_layer
        for quantity, values in (layers.counted(new) | of_step).items():
            self._note(model, layers, quantity, values)

    @np.errstate(all="ignore")
    def _compare_channels(
        self, model: TrackedModel, layers: Layers, old: Snapshot | None, new: Snapshot
    ) -> None:
        batch = {} if old is None else layers.by_channel(layers.compared(old, new).batch)
        channels = {**batch, "running_mean": new.mean, "running_var": new.var}
        for quantity, values in channels.items():
            self._note_channels(model, layers, quantity, values)

    @np.errstate(all="ignore")
    def _compare_passes(self, model: TrackedModel, moments: list[_Taken]) -> None:
        """Tell the batches of the first two passes apart, from the buffers around each."""
        for parts in zip(*moments, strict=False):
            layers = parts[0][0].layers
            if all(group.layers.setting == layers.setting for group, _ in parts):
                start, middle, end = (part[1] for part in parts)
                first, second = layers.compared(start, middle), layers.compared(middle, end)
                self._note(model, layers, "pass_gap", layers.apart(first.batch, second.batch))

    def _note_channels(
        self, model: TrackedModel, layers: Layers, quantity: str, values: Values
    ) -> None:
        start = 0
        for fqn, size in zip(layers.setting.layers, layers.setting.sizes, strict=True):
            channels = values[start : start + size : -(-size // _CHANNELS)]
            self.recorder.vector(model, fqn, f"norm.{quantity}", layers.tensor(channels))
            start += size

    def _note(self, model: TrackedModel, layers: Layers, quantity: str, values: Values) -> None:
        name = f"norm.{quantity}"
        for fqn, value in zip(layers.setting.layers, layers.numbers(values), strict=True):
            self.recorder.scalar(model, fqn, name, value)


def _zero_rows(output: Tensor) -> Tensor | None:
    """The fraction of the vectors normalized that were nothing but zeros, as padding is.

    Of an input (B, C) or (B, C, L), from what autograd keeps of it; None of others.
    """
    node = norm_behind(output.grad_fn)
    given = None if node is None else saved(node, "input")
    if given is None or not 2 <= given.dim() <= 3:
        return None
    return (given.detach() == 0).all(1).float().mean()


def _own(norm: _BatchNorm, name: str) -> Tensor | None:
    parameter: Tensor | None = getattr(norm, name)
    return None if parameter is None else parameter.detach().float()


def _frozen_gap(norm: _BatchNorm, output: Tensor) -> Tensor:
    """How far from mean 0 and deviation 1 frozen statistics leave their input: RMS over channels.

    Seen from the output, (B, C, ...), whose weight and bias are taken off; channels whose weight is
    next to nothing tell nothing.
    """
    output = output.detach().float()
    others = [axis for axis in range(output.dim()) if axis != 1]
    var, mean = torch.var_mean(output, others, correction=0)
    weight, bias = (_own(norm, name) for name in ("weight", "bias"))
    weight = torch.ones_like(mean) if weight is None else weight
    bias = torch.zeros_like(mean) if bias is None else bias
    telling = weight.abs() > 1e-2 * weight.abs().max()
    safe = torch.where(telling, weight, 1.0)
    square = ((mean - bias) / safe).square() + (var.sqrt() / safe.abs() - 1).square()
    return (torch.where(telling, square, 0.0).sum() / telling.sum()).sqrt()
