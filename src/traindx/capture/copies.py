"""Copies of a trained model that are evaluated in its place: averages of it, and what was loaded.

A copy is another model with parameters of the same names and shapes. It is compared with the model
as it stands when the copy is called without gradients, from a sample of each parameter, and never
on a host that would have to wait for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import median
from typing import NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm  # pyright: ignore[reportPrivateUsage]

from traindx.capture.arrays import sample
from traindx.capture.met import Met
from traindx.capture.models import TrackedModel
from traindx.capture.running import running, running_mean, running_var, tracked
from traindx.capture.transfer import Lists, Numbers, Unread
from traindx.facts import Json
from traindx.records import Event, EventKind, Item, Site
from traindx.stats import unmeasurable

_WRAPPER = "module."
"""What `AveragedModel` and other wrappers put before the names of what they hold."""
_DENSE = 4
"""Evaluations of a copy at the start that are all looked at; then those whose number is 2^k."""
_NAMED = 8
"""Parameters and settings that are named at most."""
_IN_TRAINING = ("training", "momentum", "p", "dropout", "inplace")
"""Settings of modules that change nothing in evaluation."""


class _Norm(NamedTuple):
    """A BatchNorm of the model, and the one of the same name in the copy."""

    fqn: str
    own: _BatchNorm
    copied: _BatchNorm


class Copies:
    """Looks at models that are evaluated but not trained."""

    def __init__(self) -> None:
        self._looks = WeakKeyDictionary[TrackedModel, int]()
        self._found: list[Unread] = []
        self._met: Met | None = None

    def evaluated(self, copy: TrackedModel, trained: Iterable[TrackedModel], step: int) -> bool:
        """A model is called without gradients, while or after those were trained.

        Returns:
            Whether it is a copy whose modules' outputs in this call are to be heard.
        """
        self._met = None
        if copy.confirmed or copy.training:
            return False
        looks = self._looks[copy] = self._looks.get(copy, 0) + 1
        if looks > _DENSE and looks & (looks - 1):
            return False
        for model in trained:
            if (copied := _alike(copy, model)) is not None:
                self._found.append(_compared(copy, copied, model, step, replica=False))
                self._met = Met(copy, model, step)
                return True
        return False

    def hear(self, module: nn.Module, output: object) -> None:
        """A module of that copy has returned."""
        if self._met is not None:
            self._met.hear(module, output)

    def forward_ended(self) -> None:
        """The call has ended in which something may have been heard."""
        if self._met is not None and self._met.heard:
            self._found.append(self._met.unread())
        self._met = None

    def forward_failed(self) -> None:
        """The call has raised."""
        self._met = None

    def has_replicas(self, model: TrackedModel, others: Iterable[TrackedModel], step: int) -> None:
        """A trained model is evaluated: others that are called with gradients may be its replicas.

        Data-parallel training in one process, in which each replica normalizes its own shard.
        """
        if not model.confirmed or model.training:
            return
        looks = self._looks[model] = self._looks.get(model, 0) + 1
        if looks > _DENSE and looks & (looks - 1):
            return
        for other in others:
            if other is not model and other.called and (copied := _alike(other, model)) is not None:
                self._found.append(_compared(other, copied, model, step, replica=True))

    def take(self) -> list[Unread]:
        """What was found and has not been told."""
        found, self._found = self._found, []
        return found


def _alike(copy: TrackedModel, model: TrackedModel) -> dict[str, Tensor] | None:
    """The parameters of a copy by the model's names; None if it is none."""
    copied = dict(_unwrapped(copy.parameters()))
    shapes = {name: param.shape for name, param in copied.items()}
    own = {name: param.shape for name, param in model.parameters()}
    return copied if own and own == shapes else None


def _unwrapped(named: Iterable[tuple[str, Tensor]]) -> list[tuple[str, Tensor]]:
    """Parameters by the names that they have without a wrapper around all of them."""
    pairs = list(named)
    while pairs and all(name.startswith(_WRAPPER) for name, _ in pairs):
        pairs = [(name.removeprefix(_WRAPPER), param) for name, param in pairs]
    return pairs


def _compared(
    copy: TrackedModel,
    copied: dict[str, Tensor],
    model: TrackedModel,
    step: int,
    *,
    replica: bool,
) -> Unread:
    """What will tell how a copy differs from a model: each parameter, each running statistic."""
    pairs = [
        (name, param, copied[name])
        for name, param in model.trainable()
        if not unmeasurable(param) and not unmeasurable(copied[name])
    ]
    norms = _norms(copy, model)
    distances: list[float | Tensor] = [_distance(own, other) for _, own, other in pairs]
    gaps: list[float | Tensor] = [_gap(norm) for norm in norms]
    counts = [_count(norm.copied) for norm in norms]
    names, sites = [name for name, _, _ in pairs], [norm.fqn for norm in norms]
    site, of = Site(copy.name), model.name
    settings = _other_settings(copy, model)

    def items(numbers: Numbers, _lists: Lists) -> list[Item]:
        far, rest = numbers[: len(names)], numbers[len(names) :]
        apart, counted = rest[: len(sites)], rest[len(sites) :]
        detail: dict[str, Json] = {"of": of, **_of_parameters(names, far)}
        if replica:
            detail["replica"] = True
        if settings:
            detail["settings"] = [*settings]
        if sites and (worst := _worst(apart)) is not None:
            detail |= {"norms": len(sites), "gap": apart[worst], "norm": sites[worst]}
            detail["counted"] = counted[worst]
        return [Event(step, EventKind.COPY, site, detail)]

    return Unread([*distances, *gaps, *counts], [], items)


def _of_parameters(names: list[str], distances: list[float]) -> dict[str, Json]:
    """How many are equal, which are not, and how far those are from the model's."""
    differing = [name for name, far in zip(names, distances, strict=True) if far != 0]
    finite = [far for far in distances if far != 0 and math.isfinite(far)]
    return {
        "parameters": len(names),
        "equal": len(names) - len(differing),
        "differing": [*differing[:_NAMED]],
        "distance": median(finite) if finite else 0.0,
    }


def _other_settings(copy: TrackedModel, model: TrackedModel) -> list[str]:
    """Fractions that modules of one class and name are built with, where they are not the same.

    As `norm.eps: 1e-05, 1e-06`, the model's first; only what matters in evaluation.
    """
    parts = dict(copy.modules())
    prefix = "" if parts.keys() & {fqn for fqn, _ in model.modules() if fqn} else _WRAPPER
    found: list[str] = []
    for fqn, own in model.modules():
        other = parts.get(f"{prefix}{fqn}".rstrip("."))
        if other is not None and type(other) is type(own):
            numbers, others = _numbers(own), _numbers(other)
            found += [
                f"{fqn}.{name}: {value:g}, {others[name]:g}".lstrip(".")
                for name, value in numbers.items()
                if name in others and others[name] != value
            ]
    return found[:_NAMED]


def _numbers(module: nn.Module) -> dict[str, float]:
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, float) and not (name.startswith("_") or name in _IN_TRAINING)
    }


def _worst(gaps: list[float]) -> int | None:
    known = [i for i, gap in enumerate(gaps) if math.isfinite(gap)]
    return max(known, key=lambda i: gaps[i], default=None)


def _norms(copy: TrackedModel, model: TrackedModel) -> list[_Norm]:
    """The normalizations of both that keep running statistics of one size."""
    parts = {name: part for name, part in copy.modules() if isinstance(part, _BatchNorm)}
    prefix = _WRAPPER if parts and all(name.startswith(_WRAPPER) for name in parts) else ""
    found: list[_Norm] = []
    for fqn, own in model.modules():
        other = parts.get(prefix + fqn)
        if isinstance(own, _BatchNorm) and other is not None and _comparable(own, other):
            found.append(_Norm(fqn, own, other))
    return found


def _comparable(own: _BatchNorm, other: _BatchNorm) -> bool:
    ours, theirs = running(own), running(other)
    if ours is None or theirs is None or ours.mean.shape != theirs.mean.shape:
        return False
    fit = ours.fit() and theirs.fit()
    return fit and not any(map(unmeasurable, (ours.mean, ours.var, theirs.mean, theirs.var)))


def _distance(own: Tensor, other: Tensor) -> Tensor:
    """The norm of the difference over that of the model's, of a sample; 0 where they are equal."""
    entries, others = sample(own).float(), sample(other).to(own.device).float()
    apart, size = (others - entries).square().sum(), entries.square().sum()
    return (apart / size.clamp_min(torch.finfo(torch.float32).tiny)).sqrt()


def _gap(norm: _Norm) -> Tensor:
    """How far the copy's statistics move what the model's make normal (`norm.running_gap`)."""
    mean, var = running_mean(norm.own).double(), running_var(norm.own).double()
    others = (running_mean(norm.copied), running_var(norm.copied))
    own, theirs = norm.own.eps, norm.copied.eps
    shift, spread = (each.to(mean.device).double() for each in others)
    std = (spread + theirs).sqrt()
    ratio = (var + own).sqrt() / std
    return (((mean - shift) / std).square() + (ratio - 1).square()).mean().sqrt()


def _count(norm: _BatchNorm) -> float | Tensor:
    counter = tracked(norm)
    return 0.0 if counter is None else counter.detach().clone().double()
