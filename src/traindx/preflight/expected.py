"""A model in training without its noise: every dropout replaced by what it is on average.

`F.dropout` and its like are the identity on average. A mask that a program draws itself and
multiplies with is replaced by its mean, or by ones: the two tell whether what it drops is made up
for, there or in evaluation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import (
    _SpectralNorm,  # pyright: ignore[reportPrivateUsage]
)
from torch.nn.utils.spectral_norm import SpectralNorm

from traindx.preflight.calls import Call, Calls
from traindx.preflight.structures import tensors

DROPOUTS = {
    *("dropout", "dropout_", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout"),
    *("alpha_dropout_", "feature_dropout", "feature_dropout_", "feature_alpha_dropout"),
    *("feature_alpha_dropout_",),
}
_DRAWING = {
    *("rand", "rand_like", "bernoulli", "bernoulli_", "randint", "randint_like", "uniform_"),
    *("randn", "randn_like"),
}
_EMPTY = {
    *("full_like", "ones_like", "zeros_like", "empty_like", "new_empty", "new_full", "new_ones"),
    *("new_zeros", "new_tensor"),
}
"""Functions that take of a tensor no more than its shape and kind."""
_TIMES = {"mul", "__mul__", "__rmul__", "__imul__", "mul_", "multiply"}
_SURE = 5.0
"""Standard errors within which the mean of a mask is taken for 1."""
_MANY = 256
"""Elements of a mask from which on its mean is known well."""

Mask = Literal["mean", "ones"]


class Expected(Calls):
    """Inside, dropouts do on average what they do.

    Args:
        masks: What stands for a mask that a program draws itself.

    Attributes:
        dropped: The part of its elements that each such mask has dropped.
        sure: Whether all of them have so many elements that their means are known.
    """

    def __init__(self, masks: Mask) -> None:
        super().__init__()
        self.dropped: list[float] = []
        self.sure = True
        self._masks = masks
        self._held: list[Tensor] = []  # so that no id is used twice
        self._drawn: set[int] = set()
        self._learned: set[int] = set()

    def answer(self, call: Call) -> Any:
        """What it returns on average."""
        if call.name in DROPOUTS:
            result = call.argument("input", 0)
            self._follow(call.name, [result], [result])
            return result
        call, given = _quiet(call), call.given()
        result = self._on_average(call.name, call.args, given)
        if result is None:
            result = call.run()
        self._follow(call.name, given, tensors(result))
        return result

    def _follow(self, name: str, given: list[Tensor], made: list[Tensor]) -> None:
        """What is made of random numbers alone is drawn; what is made of parameters is learned."""
        self._held += made
        ids = set(map(id, made))
        if name in _DRAWING:
            self._drawn |= ids
            self._learned -= ids
        elif name in _EMPTY:
            return
        elif any(id(t) in self._learned or isinstance(t, nn.Parameter) for t in given):
            self._learned |= ids
            self._drawn -= ids
        elif any(id(t) in self._drawn for t in given):
            self._drawn |= ids

    def _on_average(self, name: str, args: tuple[Any, ...], given: list[Tensor]) -> Any:
        """What a product with a drawn mask is on average; None of anything else."""
        masks = [t for t in given if id(t) in self._drawn]
        rest = [t for t in given if id(t) in self._learned]
        if len(masks) != 1 or len(rest) != 1:
            return None
        (mask,), (learned,) = masks, rest
        if name in _TIMES and _is_mask(mask):
            kept = mask != 0
        elif name in ("masked_fill", "masked_fill_") and mask.dtype is torch.bool:
            if len(args) < 3 or args[2] != 0:
                return None
            kept, mask = ~mask, (~mask).to(learned.dtype)
        elif name == "where" and mask.dtype is torch.bool and len(args) == 3:
            if args[1] is not learned or (isinstance(args[2], Tensor) and bool(args[2].any())):
                return None
            kept, mask = mask, mask.to(learned.dtype)
        else:
            return None
        self.dropped.append(1 - float(kept.double().mean()))
        self.sure = self.sure and mask.numel() >= _MANY
        return learned * (_mean(mask) if self._masks == "mean" else 1.0)


def _quiet(call: Call) -> Call:
    """A call that draws no noise of its own."""
    if call.name == "multi_head_attention_forward":
        return replace(call, kwargs={**call.kwargs, "training": False})
    if call.name in ("rrelu", "rrelu_"):
        return replace(call, args=call.args[:3], kwargs={**call.kwargs, "training": False})
    if call.name == "scaled_dot_product_attention":
        return replace(call, args=call.args[:4], kwargs={**call.kwargs, "dropout_p": 0.0})
    return call


def _is_mask(drawn: Tensor) -> bool:
    """Whether its elements are 0 or one other number."""
    if drawn.dtype is torch.bool:
        return True
    kept = drawn[drawn != 0]
    return bool(kept.numel()) and bool((kept == kept.reshape(-1)[0]).all())


def _mean(mask: Tensor) -> float:
    """Of a mask: 1 if that is what it should be, within the error of the mean."""
    values = mask.double()
    found = float(values.mean())
    if mask.dtype is torch.bool:
        return found
    error = float(values.std(correction=0)) / math.sqrt(values.numel())
    most = float(values.max())
    scaled = most > 1 and (abs(found - 1) <= _SURE * error or values.numel() < _MANY)
    return 1.0 if scaled else found


def without_noise(model: nn.Module) -> None:
    """Switch off the dropout of recurrent layers and power iterations; the caller puts it back."""
    for module in model.modules():
        if isinstance(module, nn.RNNBase):
            module.dropout = 0.0
        if iterates(module):
            module.eval()


def iterates(module: nn.Module) -> bool:
    """Whether it is torch's spectral norm, whose vectors take a step in every pass in training."""
    hooks = cast("Iterable[object]", cast(Any, module)._forward_pre_hooks.values())
    return any(type(one) in (_SpectralNorm, SpectralNorm) for one in (module, *hooks))


def random_dropouts(model: nn.Module) -> list[str]:
    """The dotted paths of modules that drop in training."""
    named = cast("Iterable[tuple[str, Any]]", cast(Any, model).named_modules())
    return [
        fqn
        for fqn, module in named
        if "dropout" in type(module).__name__.lower() and float(getattr(module, "p", 0) or 0) > 0
    ]
