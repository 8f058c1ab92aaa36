"""Units that a ReLU never lets through, whether it is a module or a function.

A ReLU is recognized as a module of this kind, by an output that autograd says came from one, and,
from the graph behind a model's first outputs, where a module's output goes straight into one. The
first two are looked at after the ReLU, the third before it, where "active" means above zero just
as well. What cannot be seen is a ReLU behind an addition whose sum no module returns, and one
inside a part that is compiled or, as a function, checkpointed by the reentrant method.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from traindx.capture.arrays import Array, array, on_host
from traindx.capture.collectors import Collector
from traindx.capture.models import TrackedModel
from traindx.capture.nodes import name_of
from traindx.capture.recorder import Recorder
from traindx.records import Point

LOOKS = 1024
"""Values of each unit to see before one that was always zero is called dead."""
SAMPLES = 64
"""And samples of the batches: the positions of one image are much alike."""

_RECTIFIERS = (nn.ReLU, nn.ReLU6, nn.Hardsigmoid)
"""Zero, with no gradient, for every input low enough, and above zero for all others. So is
`nn.Threshold` from zero, or a higher threshold, to zero.

Not LeakyReLU, PReLU, RReLU, ELU, GELU, SiLU, which go on having a gradient; nor Hardswish and the
shrinking ones, which are active below zero, too.
"""
_RECTIFYING = (nn.Threshold, *_RECTIFIERS)
_PASSING = (nn.Dropout, nn.Identity)
"""Their output may be their input."""
_CHANNELS_FIRST = ("Conv", "BatchNorm", "GroupNorm", "InstanceNorm", "Pool")
_CHANNELS_LAST = ("Linear", "LayerNorm", "RMSNorm", "Embedding")
_DENSE, _OPENED_EVERY = 4, 4
"""Measured steps at the start in all of which windows may be opened; then in one of so many."""
_FORGOTTEN = 64
"""Measured steps after which a window that nothing was added to is dropped."""
_FEW = 32
"""Values of each unit that are looked at first."""
_WALKED = 2
"""Measured steps in which the graph behind a model's output is read."""
_LIMIT = 20_000
_RELU = "ReluBackward0"

_Key = tuple[TrackedModel, str, str, int, torch.device]
"""Model, fqn, fqn of the module that ran before (a ReLU may serve several), number of units."""


@dataclass(slots=True)
class _Window:
    """Which units have been active since it was opened, (units,), and over how much.

    That all of them have been is known only where nothing has to be waited for.
    """

    active: Array | Tensor
    all_active: bool = False
    looks: int = 0
    samples: int = 0
    forward: int = -1
    round: int = -1

    @property
    def complete(self) -> bool:
        return self.looks >= LOOKS and self.samples >= SAMPLES


class Units(Collector):
    """`units.dead_fraction` of every ReLU, each time it has been seen often enough.

    It must come after the collector of activations, which tells measurable outputs from others and
    a container's from its last child's.
    """

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self._windows: dict[_Key, _Window] = {}
        self._forward = 0
        self._before = ("", "")
        self._feeding: dict[TrackedModel, set[str]] = {}
        self._nodes: dict[Any, str] | None = None

    def forward_starts(self, model: TrackedModel, inputs: tuple[object, ...]) -> None:
        """Begin to note what runs after what."""
        self._forward += 1
        self._before = ("", "")
        self._nodes = {} if self.recorder.round < _WALKED else None

    def output(
        self, model: TrackedModel, fqn: str, module: nn.Module, tensor: Tensor | None
    ) -> None:
        """Look at an output that was measured, if it is a ReLU's or goes into one."""
        if tensor is None:
            return
        if not isinstance(module, _PASSING) and self.recorder.has((model, fqn, Point.OUTPUT)):
            before, self._before = self._before, (fqn, type(module).__name__)
            if _is_rectified(module, tensor):
                self._look(model, fqn, before, tensor)
            elif fqn in self._feeding.get(model, ()):
                self._look(model, fqn, ("", self._before[1]), tensor)
            if self._nodes is not None and tensor.grad_fn is not None:
                self._nodes.setdefault(tensor.grad_fn, fqn)
        if fqn == "" and self._nodes is not None:
            nodes, self._nodes = self._nodes, None
            self._feeding.setdefault(model, set()).update(_feeding(tensor.grad_fn, nodes))

    def before_backward(self, model: TrackedModel) -> None:
        """Let go of the graph: the model may be used without ever being called itself."""
        self._nodes = None

    def let_go(self) -> None:
        """Let go of the graph: the forward pass has failed."""
        self._nodes = None

    def round_ends(self, model: TrackedModel) -> None:
        """Write the ReLUs that have been seen often enough, and begin anew with them."""
        self._nodes = None
        seen: dict[tuple[str, torch.device], list[_Key]] = {}
        for key, window in self._windows.items():
            if key[0] is model and window.round == self.recorder.round:
                seen.setdefault((key[1], key[4]), []).append(key)
        for (fqn, _), keys in seen.items():
            if all(self._windows[key].complete for key in keys):
                self._write(model, fqn, [self._windows.pop(key) for key in keys])
        # A part that is not used any more, or a tensor of ever changing width.
        oldest = self.recorder.round - _FORGOTTEN
        self._windows = {k: window for k, window in self._windows.items() if window.round > oldest}

    def _write(self, model: TrackedModel, fqn: str, windows: list[_Window]) -> None:
        dead = [_dead_fraction(window.active) for window in windows]
        tensors = [fraction for fraction in dead if isinstance(fraction, Tensor)]
        worst = torch.stack(tensors).max() if tensors else max(cast("list[float]", dead))
        self.recorder.scalar(model, fqn, "units.dead_fraction", worst)
        looks = float(min(window.looks for window in windows))
        self.recorder.scalar(model, fqn, "units.samples", looks)

    def _look(self, model: TrackedModel, fqn: str, source: tuple[str, str], tensor: Tensor) -> None:
        """Look at the units of a module whose axis is that of another, of this fqn and class."""
        place, kind = source
        axis = _unit_axis(tensor.dim(), kind)
        if axis is None or not self.recorder.measured((model, fqn, Point.OUTPUT), tensor):
            return
        units, device = tensor.shape[axis], tensor.device
        window = self._windows.get(key := (model, fqn, place, units, device))
        if window is None:
            if self.recorder.round >= _DENSE and self.recorder.round % _OPENED_EVERY:
                return
            window = self._windows[key] = _Window(_none_active(tensor, units))
        if window.forward != self._forward:  # called again in one forward: the same samples
            window.samples += model.batch_size or tensor.shape[0]
        window.forward, window.round = self._forward, self.recorder.round
        window.looks += tensor.numel() // units
        if not window.all_active:
            window.all_active = _note_active(window.active, tensor.detach(), axis)


def _is_rectified(module: nn.Module, tensor: Tensor) -> bool:
    """Whether an output comes straight from a ReLU."""
    if isinstance(module, _RECTIFYING):
        return not isinstance(module, nn.Threshold) or module.value == 0 <= module.threshold
    return type(tensor.grad_fn).__name__ == _RELU


@lru_cache(maxsize=1024)
def _unit_axis(dims: int, kind: str) -> int | None:
    """The axis of the units: of channels after a convolution, the last one after a linear layer.

    Where nothing tells, the last of up to three axes and the second of more. The wrong one can hide
    dead units, since positions are hardly ever zero in every channel, but not make up any.
    """
    if dims < 2:
        return None
    if dims == 2 or any(part in kind for part in _CHANNELS_LAST):
        return dims - 1
    first = dims > 3 or any(part in kind for part in _CHANNELS_FIRST)
    return 1 if first else dims - 1


def _none_active(tensor: Tensor, units: int) -> Array | Tensor:
    """Where to note the active ones: an array for a tensor on the CPU."""
    if on_host(tensor):
        return np.zeros(units, dtype=np.bool_)
    return torch.zeros(units, dtype=torch.bool, device=tensor.device)


def _dead_fraction(active: Array | Tensor) -> float | Tensor:
    if isinstance(active, Tensor):
        return 1 - active.to(torch.float32).mean()
    return 1 - np.count_nonzero(active) / active.size


def _note_active(active: Array | Tensor, values: Tensor, axis: int) -> bool:
    """Add the units of `values` that are above zero somewhere, or at least not zero.

    On the CPU a few values of each show most units to be active, and only the rest is read further.

    Returns:
        Whether all units are known to have been active.
    """
    if isinstance(active, Tensor):
        # A NaN is not known to be zero.
        active.logical_or_(values.amax(_others(values, axis)).le(0).logical_not())
        return False
    samples = values.shape[0]
    some = -(-samples // 8)
    few = min(some, -(-_FEW * samples * active.size // values.numel()))
    for part in dict.fromkeys((few, some, samples)):
        idle = np.flatnonzero(~active)
        if not idle.size:
            return True
        looked_at = values[:part]
        if 2 * idle.size < active.size:
            looked_at = looked_at.index_select(axis, cast(Any, torch).from_numpy(idle))
            active[idle] = _ever_active(looked_at, axis)
        else:
            active |= _ever_active(looked_at, axis)
    return bool(active.all())


@np.errstate(all="ignore")
def _ever_active(values: Tensor, axis: int) -> Array:
    """The same of a tensor on the CPU."""
    others = _others(values, axis)
    half = values.element_size() < 4  # to widen all of it would cost more than to look at it
    most = array(values.amax(others)) if half else array(values).max(axis=others)
    return ~(most <= 0)


def _others(values: Tensor, axis: int) -> tuple[int, ...]:
    return tuple(dim for dim in range(values.dim()) if dim != axis)


def _feeding(root: Any, nodes: dict[Any, str]) -> set[str]:
    """The modules whose output goes straight into a ReLU that is not a module itself.

    Args:
        root: Where the graph begins, at the model's output.
        nodes: The operations that made the modules' outputs, and the modules.
    """
    found: set[str] = set()
    for node in _graph(root):
        if name_of(node) == _RELU and node not in nodes:
            source = node.next_functions[0][0]
            if source in nodes:
                found.add(nodes[source])
    return found


def _graph(root: Any) -> Iterator[Any]:
    """Every operation behind one, up to a limit."""
    seen, waiting = {root}, [root]
    while waiting and len(seen) < _LIMIT:
        node = waiting.pop()
        if node is not None:
            yield node
            new = {before for before, _ in node.next_functions} - seen
            seen |= new
            waiting.extend(new)
