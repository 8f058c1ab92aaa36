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
    # Asked of every tensor measured, so a good one is asked no more than it takes to know that. A
    # subclass may do anything when it is asked something, so its class is asked first. While a
    # transform is at work, whatever is made of a plain tensor is wrapped, too.
    plain = type(tensor) in _TYPES and tensor.dtype in _DTYPES and not tensor.is_nested
    if plain and (tensor.is_cpu or tensor.is_cuda) and _transforms() is None:
        # Sharded training frees the storage of parameters: to read them raises an error. The
        # address is 0 then, where autograd only says that all is zero, and where a tensor stands
        # for what it wraps; of a part of such a one only that of the storage is.
        try:
            if tensor.data_ptr() and not (tensor.storage_offset() and _is_nowhere(tensor)):
                return ""
        except RuntimeError:  # it has no address: it is sparse, or stands for what it wraps
            return _reason(tensor)
    return _reason(tensor)


def _reason(tensor: Tensor) -> str:
    """The same, asked one by one."""
    if type(tensor) not in _TYPES:
        return say("tensor subclass {name}", name=type(tensor).__name__)
    if tensor.dtype not in _DTYPES:
        return _unmeasurable_dtype(tensor.dtype)
    if tensor.layout is not _STRIDED:
        return say("layout {layout}", layout=str(tensor.layout).removeprefix("torch."))
    if tensor.is_nested:
        return say("a nested tensor has no single shape")
    if _is_functorch(tensor) or _transforms() is not None:
        return say("inside torch.func")
    if tensor.is_meta:
        return say("a meta tensor holds no data")
    if not tensor.numel():
        return say("empty")
    is_known = tensor.is_cpu or tensor.is_cuda
    return say("its memory is not there at present") if is_known else ""


def is_freed(tensor: Tensor) -> bool:
    """Whether a plain tensor's memory was freed: to read it would end the process."""
    plain = type(tensor) in _TYPES and tensor.layout is _STRIDED and not _is_functorch(tensor)
    on_device = plain and (tensor.is_cpu or tensor.is_cuda)
    return on_device and tensor.numel() > 0 and _is_nowhere(tensor)


def in_transform() -> bool:
    """Whether a transform of `torch.func` is at work, `vmap` or `grad`."""
    return _transforms() is not None


def _is_nowhere(tensor: Tensor) -> bool:
    return not tensor.untyped_storage().data_ptr()


def _unmeasurable_dtype(dtype: torch.dtype) -> str:
    name = str(dtype).removeprefix("torch.")
    if dtype.is_complex:
        return say("dtype {dtype} has no order", dtype=name)
    if dtype.is_floating_point:
        return say("dtype {dtype} is too coarse", dtype=name)
    return say("dtype {dtype} is not a floating-point type", dtype=name)
