"""Weights that are loaded and then initialized anew, before anything is computed with them."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from traindx.capture.arrays import sample
from traindx.capture.models import TrackedModel
from traindx.capture.transfer import Lists, Numbers, Unread
from traindx.records import Scalar, Site
from traindx.stats import unmeasurable

_FAR = 0.5
"""Part of its size by which a weight must have changed: pruning or rounding changes less."""


class _Loaded(NamedTuple):
    """A module that was just loaded into.

    Attributes:
        module: The module.
        step: The step then.
        entries: A sample of each weight, by name.
    """

    module: weakref.ref[nn.Module]
    step: int
    entries: dict[str, Tensor]


class Overwritten:
    """Compares what was loaded with what is there when the module is first called."""

    def __init__(self) -> None:
        self._fresh: list[_Loaded] = []
        self._found: list[Unread] = []

    def loaded(self, module: nn.Module, given: Mapping[str, Tensor], step: int) -> None:
        """A state was loaded into a module; what was loaded at one time before counts no more."""
        entries = {
            name: sample(param).clone()
            for name, param in module.named_parameters()
            if name in given and param.dim() > 1 and not unmeasurable(param)
        }
        self._fresh = [_Loaded(weakref.ref(module), step, entries)] if entries else []

    def called(self, models: Iterable[TrackedModel], step: int) -> None:
        """Some model is called: look at what was loaded, if no step has been taken since."""
        if not self._fresh:
            return
        (module, at, entries), self._fresh = self._fresh[0], []
        root = module()
        if root is None or at != step:
            return
        params = dict(root.named_parameters())
        distances = [
            _distance(params[name], kept)
            for name, kept in entries.items()
            if name in params
            and not unmeasurable(params[name])
            and sample(params[name]).shape == kept.shape
        ]
        sites = (
            Site(model.name, fqn)
            for model in models
            for fqn, part in model.modules()
            if part is root
        )
        site = next(sites, None)
        if site is None or not distances:
            return

        def items(numbers: Numbers, _lists: Lists) -> list[Scalar]:
            share = sum(far > _FAR for far in numbers) / len(numbers)
            return [Scalar(step, "load.overwritten", share, site)]

        self._found.append(Unread([*distances], [], items))

    def take(self) -> list[Unread]:
        """What was found and has not been told."""
        found, self._found = self._found, []
        return found


def _distance(param: Tensor, kept: Tensor) -> Tensor:
    """The norm of the change over that of what was loaded."""
    entries, before = sample(param).float(), kept.to(param.device).float()
    size = before.square().sum().clamp_min(torch.finfo(torch.float32).tiny)
    return ((entries - before).square().sum() / size).sqrt()
