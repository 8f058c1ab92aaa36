"""What BatchNorm layers in evaluation meet: how far from normal their statistics leave it."""

from __future__ import annotations

import math

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm  # pyright: ignore[reportPrivateUsage]

from traindx.capture.models import TrackedModel
from traindx.capture.running import running_var
from traindx.capture.transfer import Lists, Numbers, Unread
from traindx.facts import Json
from traindx.records import Event, EventKind, Item, Site
from traindx.stats import unmeasurable

_VALUES = 4096
"""Values of a channel that are looked at, from all samples."""
_STILL = 10.0
"""Times `eps`: a channel that varies less is left out, as constant."""
_TINY = 1e-6
"""Weights of channels that are shut, of which nothing can be read."""


class Met:
    """One evaluation of a copy of a model: of each BatchNorm in it, the gap that its output shows.

    What a BatchNorm gives out, less its bias and over its weight, has mean 0 and deviation 1 in
    each channel where its running statistics are those of what it is given.
    """

    def __init__(self, copy: TrackedModel, model: TrackedModel, step: int) -> None:
        self._copy, self._of, self._step = copy, model.name, step
        self._gaps: dict[str, Tensor] = {}
        self._values = 0
        self._fqns = {id(part): fqn for fqn, part in copy.modules() if _keeps(part)}

    @property
    def heard(self) -> bool:
        """Whether anything was heard."""
        return bool(self._gaps)

    def hear(self, module: nn.Module, output: object) -> None:
        """A module of the copy has returned."""
        fqn = self._fqns.get(id(module))
        if fqn is None or not isinstance(module, _BatchNorm) or not isinstance(output, Tensor):
            return
        if unmeasurable(output) or output.dim() < 2 or not output.numel():
            return
        self._gaps[fqn], self._values = _gap(module, output)

    def unread(self) -> Unread:
        """What will tell the greatest of the gaps."""
        names, values = [*self._gaps], self._values
        site, of, step = Site(self._copy.name), self._of, self._step

        def items(numbers: Numbers, _lists: Lists) -> list[Item]:
            known = [i for i, gap in enumerate(numbers) if math.isfinite(gap)]
            if not known:
                return []
            worst = max(known, key=lambda i: numbers[i])
            detail: dict[str, Json] = {
                "of": of,
                "gap": numbers[worst],
                "norm": names[worst],
                "values": values,
            }
            return [Event(step, EventKind.MET, site, detail)]

        return Unread([*self._gaps.values()], [], items)


def _keeps(module: nn.Module) -> bool:
    return isinstance(module, _BatchNorm) and module.running_var is not None


def _gap(norm: _BatchNorm, output: Tensor) -> tuple[Tensor, int]:
    """RMS over channels of how far the mean lies from 0 and the deviation from 1; and values."""
    values = output.detach().transpose(0, 1).flatten(1)  # (channels, values)
    values = values[:, :: max(1, values.shape[1] // _VALUES)].float()
    moves = running_var(norm) > _STILL * norm.eps
    if norm.affine:
        weight, bias = norm.weight.detach().float(), norm.bias.detach().float()
        values = (values - bias[:, None]) / weight[:, None]
        moves = moves & (weight.abs() > _TINY)
    var = values.var(1, correction=0)
    squares = values.mean(1).square() + (var.sqrt() - 1).square()
    kept = squares.where(moves, 0.0)
    return (kept.sum() / moves.sum()).sqrt(), values.shape[1]
