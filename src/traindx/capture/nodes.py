"""Reading autograd's nodes without running anything of the user's."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from traindx.stats import is_freed


def name_of(node: Any) -> str:
    """Its name, asked of its class: the context of a user's own function may have a `name`, too."""
    return type(node).name(node)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


def accumulates(node: Any) -> bool:
    """Whether it adds to the gradient of a leaf, where a graph ends."""
    return name_of(node).endswith("AccumulateGrad")


def identity(tensor: Tensor) -> tuple[int, int] | None:
    """What tells a tensor from all others of its thread, though their ids are used again.

    None of a tensor without a node, which has no such number.
    """
    node: Any = tensor.grad_fn
    return None if node is None else (id(tensor), node._sequence_nr())


def saved(node: Any, operand: str) -> Tensor | None:
    """The tensor a node keeps of an operand; None if there is none, or it is not simply there.

    Under saved-tensor hooks, unpacking runs the user's code: of a checkpointed part, the whole part
    once more, with its random numbers and its BatchNorm updates.
    """
    packed = getattr(node, f"_raw_saved_{operand}", None)
    if getattr(packed, "unpack_hook", None) is not None:  # older versions of torch cannot tell
        return None
    try:
        value = getattr(node, f"_saved_{operand}", None)
    except RuntimeError:  # freed, or changed in place since
        return None
    return value if isinstance(value, Tensor) and not is_freed(value) else None
