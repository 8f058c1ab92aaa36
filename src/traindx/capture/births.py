"""Where a number that is not finite is born: operation by operation, forward and backward.

This looks at every value, and waits for the device each time: it is for the one replay only.
"""

from __future__ import annotations

import functools
import math
import re
import threading
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from traindx.capture.nodes import name_of
from traindx.facts import Json

Phase = Literal["forward", "backward", "loss", "input", "parameter"]
Range = tuple[float, float]
_UNFILLED = ("empty", "new_empty", "empty_like", "empty_strided", "new_empty_strided")


@dataclass(frozen=True, slots=True)
class Birth:
    """The first thing that is not finite on the way to what was found not to be.

    Attributes:
        phase: `forward` or `backward`: an operation inside a module; `loss`: one after it, in the
            loss function; `input` and `parameter`: it was there before the call.
        fqn: The innermost module being called, or the owner of the parameter.
        operation: Name of the operation, or of the parameter.
        index: The first element that is not finite.
        shape: Shape of the tensor it is in.
        ranges: Least and greatest element of each tensor that went in.
        count: Elements of the tensor that are not finite.
        in_loss: Whether a backward operation belongs to the loss function.
    """

    phase: Phase
    fqn: str
    operation: str
    index: tuple[int, ...] = ()
    shape: tuple[int, ...] = ()
    ranges: tuple[Range, ...] = ()
    count: int = 0
    in_loss: bool = False

    def detail(self) -> dict[str, Json]:
        """It as the detail of an event."""
        ranges: list[Json] = [[_json(low), _json(high)] for low, high in self.ranges]
        detail: dict[str, Json] = {"phase": self.phase, "operation": self.operation}
        detail |= {"index": list(self.index), "shape": list(self.shape), "inputs": ranges}
        if self.ranges:
            detail["input_min"] = _json(min(low for low, _ in self.ranges))
            detail["input_max"] = _json(max(high for _, high in self.ranges))
        return {**detail, "count": self.count, "in_loss": self.in_loss}


def _json(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


@dataclass(slots=True)
class Calls:
    """Which module is being called, and in which each autograd node was made.

    Attributes:
        stack: Names of the modules whose calls are going on.
    """

    stack: list[str] = field(default_factory=list[str])
    _numbers: list[int] = field(default_factory=list[int])
    _names: list[str] = field(default_factory=list[str])

    @property
    def here(self) -> str:
        """The innermost module being called."""
        return self.stack[-1] if self.stack else ""

    def maker(self, number: int) -> str:
        """The innermost module whose call made the node with this sequence number."""
        i = bisect_right(self._numbers, number) - 1
        return self._names[i] if i >= 0 else ""

    @contextmanager
    def followed(self, name: Callable[[nn.Module], str | None]) -> Generator[None]:
        """Inside, follow the calls of modules in this thread."""
        thread = threading.get_ident()

        def enters(module: nn.Module, _args: object) -> None:
            if threading.get_ident() == thread:
                self.stack.append(name(module) or self.here)
                self._mark()

        def leaves(_module: nn.Module, _args: object, _output: object) -> None:
            if threading.get_ident() == thread:
                self.stack.pop()
                self._mark()

        handles = (
            register_module_forward_pre_hook(enters),
            register_module_forward_hook(leaves, always_call=True),
        )
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _mark(self) -> None:
        self._numbers.append(_next_node())
        self._names.append(self.here)


class Operations(TorchDispatchMode):
    """Follows what is not finite through every operation, back to the one that made it.

    What is put in on purpose is no birth: an infinite constant (a mask of attention scores) and
    what inherits from it, until a NaN comes of it.
    """

    def __init__(self, calls: Calls) -> None:
        cast(Any, super()).__init__()
        self._calls = calls
        self._births: dict[int, tuple[Tensor, Birth | None]] = {}
        self._generators: dict[torch.Generator, Tensor] = {}
        self.ranges: dict[int, tuple[Range, ...]] = {}

    def holds(self, tensor: Tensor, birth: Birth) -> None:
        """A tensor that is there before the first operation."""
        if not is_number(tensor) or not (count := num_bad(tensor)):
            return
        if birth.phase == "parameter" or not _is_mask(tensor):
            index, shape = first_bad(tensor), tuple(tensor.shape)
            found = Birth(birth.phase, birth.fqn, birth.operation, index, shape, (), count)
            self._births[_storage(tensor)] = tensor, found

    def restore_generators(self) -> None:
        """Give the random generators that were passed to operations the state they had before."""
        for generator, state in self._generators.items():
            generator.set_state(state)

    def birth(self, tensors: Iterable[Tensor]) -> Birth | None:
        """Where the first of these that is not finite has it from; None if on purpose."""
        known = (self._births.get(_storage(it), (it, None))[1] for it in tensors if num_bad(it))
        return next((birth for birth in known if birth is not None), None)

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run one operation and look at what goes in and what comes out."""
        kwargs = dict(kwargs or {})
        if (generator := kwargs.get("generator")) is not None and generator not in self._generators:
            self._generators[generator] = generator.get_state()
        leaves = pytree.tree_leaves((args, kwargs))
        inputs = [leaf for leaf in leaves if is_number(leaf)]
        ranges = tuple(range_of(tensor) for tensor in inputs)  # before it may write in place
        bad = [tensor for tensor in inputs if num_bad(tensor)]
        had_nan = any(bool(tensor.isnan().any()) for tensor in bad)
        known = [self._births[key][1] for it in bad if (key := _storage(it)) in self._births]
        self.ranges.setdefault(_next_node() - 1, ranges)
        output = func(*args, **kwargs)
        name: str = func.overloadpacket.__name__
        broken = [it for it in pytree.tree_leaves(output) if is_number(it) and num_bad(it)]
        if not broken or name in _UNFILLED:
            return output
        birth = next((birth for birth in known if birth is not None), None)
        if birth is None and _is_accident(leaves, broken, bool(bad), had_nan):
            birth = self._born(name, broken[0], ranges)
        for tensor in broken:
            self._births[_storage(tensor)] = tensor, birth
        return output

    def _born(self, name: str, tensor: Tensor, ranges: tuple[Range, ...]) -> Birth:
        index, shape = first_bad(tensor), tuple(tensor.shape)
        operation = name.strip("_")
        return Birth("forward", self._calls.here, operation, index, shape, ranges, num_bad(tensor))


def _is_accident(leaves: list[Any], broken: list[Tensor], bad: bool, had_nan: bool) -> bool:
    """Whether what is not finite was made by an operation, and not put in on purpose."""
    if bad:
        return not had_nan and any(bool(tensor.isnan().any()) for tensor in broken)
    return not any(isinstance(leaf, float) and math.isinf(leaf) for leaf in leaves)


def backward_birth(
    outputs: list[Tensor],
    gradients: list[Tensor],
    inputs: list[Tensor],
    calls: Calls,
    operations: Operations,
) -> Birth | None:
    """The first node whose gradients stop being finite, on the way back from the outputs.

    No `.grad` is touched.
    """
    births: list[Birth] = []

    def look(node: str, number: int, grad_inputs: Any, grad_outputs: Any) -> None:
        if not births and (bad := bad_gradient(grad_inputs, grad_outputs)) is not None:
            ranges, fqn = operations.ranges.get(number, ()), calls.maker(number)
            births.append(born_in_backward(node, bad, ranges, fqn=fqn, in_loss=False))

    for node in nodes_behind(outputs):  # a hook that held its node would keep it for good
        node.register_hook(functools.partial(look, name_of(node), node._sequence_nr()))
    torch.autograd.grad(outputs, inputs, gradients, allow_unused=True)
    return births[0] if births else None


def born_in_backward(
    node: str, bad: Tensor, ranges: tuple[Range, ...], *, fqn: str, in_loss: bool
) -> Birth:
    """The birth of what is not finite in the gradient that a node passes on."""
    index, shape, count = first_bad(bad), tuple(bad.shape), num_bad(bad)
    return Birth("backward", fqn, operation_of(node), index, shape, ranges, count, in_loss)


def bad_gradient(grad_inputs: Any, grad_outputs: Any) -> Tensor | None:
    """The gradient a node passes on that is not finite though all it got were; else None."""
    if any(is_number(it) and num_bad(it) for it in grad_outputs):
        return None
    return next((it for it in grad_inputs if is_number(it) and num_bad(it)), None)


def nodes_behind(tensors: Iterable[Tensor]) -> list[Any]:
    """Every node of the graph behind some tensors that stands for an operation."""
    stack: list[Any] = [tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None]
    seen: set[Any] = set(stack)
    while stack:
        for child, _ in stack.pop().next_functions:
            if child is not None and child not in seen and not name_of(child).endswith("Grad"):
                seen.add(child)
                stack.append(child)
    return list(seen)


def operation_of(node: str) -> str:
    """`LinalgVectorNormBackward0` as `linalg_vector_norm`."""
    name = re.sub(r"Backward\d*$", "", node.rpartition("::")[2])
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def range_of(tensor: Tensor) -> Range:
    """Its least and greatest element, leaving out NaN."""
    values = tensor.detach()
    values = values[~values.isnan()]
    if not values.numel():
        return math.nan, math.nan
    low, high = torch.aminmax(values)
    return float(low), float(high)


def num_bad(tensor: Tensor) -> int:
    """Elements that are not finite."""
    return int((~tensor.detach().isfinite()).sum())


def first_bad(tensor: Tensor) -> tuple[int, ...]:
    """The index of the first element that is not finite."""
    places = (~tensor.detach().isfinite()).nonzero()
    return tuple(int(i) for i in places[0])


def _is_mask(tensor: Tensor) -> bool:
    """Whether all that is not finite in it is minus infinity, as nothing but a mask is."""
    return not bool((tensor.isnan() | (tensor == math.inf)).any())


def is_number(value: Any) -> bool:
    """Whether it is a tensor with values that can fail to be finite."""
    if not isinstance(value, Tensor) or value.is_meta or value.layout is not torch.strided:
        return False
    return value.is_floating_point() and value.numel() > 0


def _storage(tensor: Tensor) -> int:
    return cast(Any, tensor.untyped_storage())._cdata


def _next_node() -> int:
    return torch.autograd._get_sequence_nr()  # pyright: ignore
