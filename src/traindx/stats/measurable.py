"""`unmeasurable`: which tensors have statistics, and why the others have none."""

from __future__ import annotations

import torch
from torch import Tensor

from traindx.messages import say

_TYPES = (Tensor, torch.nn.Parameter, torch.nn.Buffer)
_FLOAT8 = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")
FLOAT8 = tuple(getattr(torch, name) for name in _FLOAT8 if hasattr(torch, name))
"""The 8-bit floating types that this torch has."""

_DTYPES = {torch.float32, torch.float64, torch.bfloat16, torch.float16, *FLOAT8}
_STRIDED = torch.strided
_functorch = torch._C._functorch  # pyright: ignore
_is_functorch = _functorch.is_functorch_wrapped_tensor  # pyright: ignore
_transforms = _functorch.maybe_current_level  # pyright: ignore


def unmeasurable(tensor: Tensor) -> str:
    """Why a tensor cannot be summarized, empty if it can."""
    # A subclass may do anything when it is asked something, so its class is asked first.
    if type(tensor) not in _TYPES:
        return say("tensor subclass {name}", name=type(tensor).__name__)
    if tensor.dtype not in _DTYPES:
        return _unmeasurable_dtype(tensor.dtype)
    if tensor.layout is not _STRIDED:
        return say("layout {layout}", layout=str(tensor.layout).removeprefix("torch."))
    if tensor.is_nested:
        return say("a nested tensor has no single shape")
    # While a transform is at work, whatever is made of a plain tensor is wrapped, too.
    if _is_functorch(tensor) or _transforms() is not None:
        return say("inside torch.func")
    # Sharded training frees the storage of parameters: to read them raises an error. The address is
    # 0 where autograd only says that all is zero, and where a tensor stands for what it wraps; but
    # not that of a part of a storage that is gone.
    if tensor.is_cpu or tensor.is_cuda:
        is_there = tensor.data_ptr()
        if is_there and tensor.storage_offset():
            is_there = tensor.untyped_storage().nbytes()
    else:
        is_there = tensor.numel() and not tensor.is_meta
    return "" if is_there else _unmeasurable_memory(tensor)


def in_transform() -> bool:
    """Whether a transform of `torch.func` is at work, `vmap` or `grad`."""
    return _transforms() is not None


def _unmeasurable_memory(tensor: Tensor) -> str:
    if tensor.is_meta:
        return say("a meta tensor holds no data")
    if not tensor.numel():
        return say("empty")
    return say("its memory is not there at present")


def _unmeasurable_dtype(dtype: torch.dtype) -> str:
    name = str(dtype).removeprefix("torch.")
    if dtype.is_complex:
        return say("dtype {dtype} has no order", dtype=name)
    if dtype.is_floating_point:
        return say("dtype {dtype} is too coarse", dtype=name)
    return say("dtype {dtype} is not a floating-point type", dtype=name)
