"""What in a model behaves otherwise in training than in evaluation, and which way it is set."""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm  # pyright: ignore[reportPrivateUsage]
from torch.nn.modules.dropout import _DropoutNd  # pyright: ignore[reportPrivateUsage]

from traindx.capture.arrays import array, on_host
from traindx.capture.models import TrackedModel
from traindx.stats import unmeasurable

STATISTICS = ("running_", "moving_")
"""How buffers are called that training alone should write."""

Marks = tuple[int, int, bytes]
_Parts = tuple[dict[int, str], list[tuple[str, weakref.ref[nn.Module]]]]


class Mode(NamedTuple):
    """How many modules of a model would act as in training if it were called now.

    Attributes:
        dropping: Modules that drop values at random.
        batch_norms: BatchNorm layers that have running statistics and would not use them.
        first: The first of both, by fqn; empty if there is none.
    """

    dropping: int = 0
    batch_norms: int = 0
    first: str = ""


class Modes:
    """Finds these modules, and looks at them again at every call of their model."""

    def __init__(self) -> None:
        self._parts = weakref.WeakKeyDictionary[TrackedModel, _Parts]()

    def of(self, model: TrackedModel) -> Mode:
        """How a model is set."""
        dropping, norms, first = 0, 0, ""
        for fqn, part in self._of(model):
            drops = part.training and _drops(part)
            by_batch = part.training and isinstance(part, _BatchNorm) and _has_statistics(part)
            dropping, norms = dropping + drops, norms + by_batch
            first = first or (fqn if drops or by_batch else "")
        return Mode(dropping, norms, first)

    def statistics(self, model: TrackedModel) -> dict[str, Marks]:
        """What changes when a running statistic is written, by the buffer's fqn.

        Of torch's own BatchNorm the mode tells as much.
        """
        return {
            f"{fqn}.{name}".removeprefix("."): _marks(buffer)
            for fqn, part in self._of(model)
            if not isinstance(part, _BatchNorm)
            for name, buffer in _buffers(part).items()
            if name.startswith(STATISTICS) and buffer is not None and buffer.is_floating_point()
        }

    def initial(self, model: TrackedModel) -> list[str]:
        """The modules whose running mean is all 0 and variance all 1, as no batch leaves them.

        Of buffers on the host alone: to ask a device would make it wait.
        """
        return [fqn for fqn, part in self._of(model) if _is_initial(_buffers(part))]

    def begins_initial(self, model: TrackedModel) -> bool:
        """Whether this is so of the first module with running statistics: one look, not many."""
        all_of = (_buffers(part) for _, part in self._of(model))
        first = next((buffers for buffers in all_of if _pairs(buffers)), None)
        return first is not None and _is_initial(first)

    def _of(self, model: TrackedModel) -> list[tuple[str, nn.Module]]:
        """Those that matter; looked for again when a model's modules are others than before."""
        fqns, found = self._parts.get(model, ({}, []))
        parts = [(fqn, part) for fqn, ref in found if (part := ref()) is not None]
        if model not in self._parts or fqns != model.fqns or len(parts) < len(found):
            parts = [(fqn, part) for fqn, part in model.modules() if _matters(part)]
            self._parts[model] = model.fqns, [(fqn, weakref.ref(part)) for fqn, part in parts]
        return parts


def _marks(buffer: Tensor) -> Marks:
    """Identity and version, and on the host the values: kernels of BatchNorm raise no version."""
    version = -1 if buffer.is_inference() else buffer._version
    return id(buffer), version, array(buffer).tobytes() if _at_hand(buffer) else b""


def _buffers(module: nn.Module) -> dict[str, Tensor | None]:
    return cast("dict[str, Tensor | None]", vars(module)["_buffers"])


def _pairs(buffers: dict[str, Tensor | None]) -> list[tuple[Tensor, Tensor]]:
    """Running means and variances."""
    named = [(buffers.get(f"{start}mean"), buffers.get(f"{start}var")) for start in STATISTICS]
    return [(mean, var) for mean, var in named if mean is not None and var is not None]


def _is_initial(buffers: dict[str, Tensor | None]) -> bool:
    return any(
        not array(mean).any() and bool((array(var) == 1).all())
        for mean, var in _pairs(buffers)
        if _at_hand(mean) and _at_hand(var)
    )


def _at_hand(buffer: Tensor) -> bool:
    return on_host(buffer) and not unmeasurable(buffer)


def _matters(module: nn.Module) -> bool:
    kinds = (_DropoutNd, _BatchNorm, nn.MultiheadAttention, nn.RNNBase)
    named = any(name.startswith(STATISTICS) for name in _buffers(module))
    return isinstance(module, kinds) or named


def _drops(module: Any) -> bool:
    if isinstance(module, _DropoutNd):
        return module.p > 0
    return isinstance(module, nn.MultiheadAttention | nn.RNNBase) and module.dropout > 0


def _has_statistics(norm: _BatchNorm) -> bool:
    return norm.running_mean is not None


def random_states() -> list[Tensor]:
    """The states of torch's generators; those of devices lie on the host, too."""
    states = [torch.get_rng_state()]
    if torch.cuda.is_initialized():
        states += [generator.get_state() for generator in torch.cuda.default_generators]
    return states


def differ(before: list[Tensor], after: list[Tensor]) -> bool:
    """Whether random numbers were drawn between two looks at the generators."""
    return len(before) != len(after) or not all(map(torch.equal, before, after))
