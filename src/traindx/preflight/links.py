"""From a module's input back to the modules that made it, through functions that are no modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from torch import Tensor

from traindx.capture.nodes import accumulates, name_of, saved
from traindx.messages import Message, say
from traindx.preflight.measures import signal_of
from traindx.signal.activations import activation
from traindx.signal.layers import (
    Elementwise,
    Given,
    Joined,
    Junction,
    Layer,
    Masked,
    Scaled,
    Signal,
    Summed,
)
from traindx.signal.profile import Passage

_PASSING = {
    *("ViewBackward0", "UnsafeViewBackward0", "ReshapeAliasBackward0", "TransposeBackward0"),
    *("TBackward0", "PermuteBackward0", "UnsqueezeBackward0", "SqueezeBackward0"),
    *("SqueezeBackward1", "SqueezeBackward2", "CloneBackward0", "AliasBackward0"),
    *("ToCopyBackward0", "ExpandBackward0"),
}
"""Nodes of functions that keep every element as it is."""

_LIMIT = 64
"""Functions between two modules that are followed."""


def _elu(node: Any) -> Layer:
    if node._saved_scale != 1:
        return Elementwise(activation("SELU"))
    return Elementwise(activation("ELU", {"alpha": node._saved_alpha}))


def _plain(name: str, **saved: str) -> Callable[[Any], Layer]:
    """An activation whose options are what its node has saved."""

    def make(node: Any) -> Layer:
        options = {key: getattr(node, f"_saved_{operand}") for key, operand in saved.items()}
        return Elementwise(activation(name, options))

    return make


def _divided(node: Any) -> Layer:
    divisor = saved(node, "other")
    if node.next_functions[1][0] is None and divisor is not None and not divisor.dim():
        number = complex(divisor)
        if number and not number.imag:
            return Scaled(1 / number.real)
    raise _UnknownError(_comes_from(name_of(node)))


_FUNCTIONS: dict[str, tuple[str, Callable[[Any], Layer]]] = {
    "CeluBackward0": ("celu", _plain("CELU", alpha="alpha")),
    "DivBackward0": ("/", _divided),
    "EluBackward0": ("elu", _elu),
    "GeluBackward0": ("gelu", _plain("GELU", approximate="approximate")),
    "HardsigmoidBackward0": ("hardsigmoid", _plain("Hardsigmoid")),
    "HardswishBackward0": ("hardswish", _plain("Hardswish")),
    "HardtanhBackward0": ("hardtanh", _plain("Hardtanh", min_val="min_val", max_val="max_val")),
    "LeakyReluBackward0": ("leaky_relu", _plain("LeakyReLU", negative_slope="negative_slope")),
    "LogSigmoidBackward0": ("logsigmoid", _plain("LogSigmoid")),
    "MishBackward0": ("mish", _plain("Mish")),
    "NegBackward0": ("-", lambda _: Scaled(-1.0)),
    "ReluBackward0": ("relu", _plain("ReLU")),
    "SigmoidBackward0": ("sigmoid", _plain("Sigmoid")),
    "SiluBackward0": ("silu", _plain("SiLU")),
    "SoftplusBackward0": ("softplus", _plain("Softplus", beta="beta", threshold="threshold")),
    "TanhBackward0": ("tanh", _plain("Tanh")),
}
"""What a function is called, and what theory takes it for."""


class _UnknownError(Exception):
    """A way cannot be followed; its argument says why."""


class Links:
    """Knows who made what, by autograd's nodes; adds the functions between to the passages."""

    def __init__(self, passages: list[Passage]) -> None:
        self._passages = passages
        self._made: dict[object, int] = {}
        self._sizes: dict[int, int] = {}
        self._outputs: dict[object, int] = {}
        self._entered: set[object] = set()
        self._inputs: dict[object, Tensor] = {}
        self._raw: set[int] = set()
        self._unknown: set[object] = set()

    def starts(self, tensor: Tensor) -> None:
        """A tensor that is given to the network."""
        self._inputs[tensor.grad_fn] = tensor

    def enters(self, tensor: Tensor) -> None:
        """A copy of an input, of which the module makes its output."""
        self._entered.add(tensor.grad_fn)

    def made(self, index: int, output: Tensor) -> None:
        """The passage of this index has made an output."""
        if output.grad_fn is not None:
            self._made[output.grad_fn] = self._outputs[output.grad_fn] = index
            self._sizes[index] = output.numel()

    def sources(self, given: Tensor) -> tuple[tuple[int, ...], str]:
        """The passage that a tensor is the output of; none, and why, if nobody's is known."""
        length, known = len(self._passages), dict(self._made)
        try:
            index = self._at(given.grad_fn, 0)
        except _UnknownError as error:
            self._unknown.add(given.grad_fn)
            broken = cast(Message, error.args[0])
        else:
            if index not in self._raw:
                return (index,), ""
            broken = ""  # it is measured as it arrives, whatever was done to it
        del self._passages[length:]
        self._made = known
        self._raw = {raw for raw in self._raw if raw < length}
        return (), broken

    def open(self, root: object) -> set[int]:
        """The passages whose outputs go elsewhere, too, on the way to a network's output."""
        found: set[int] = set()
        starts = [node for made in self._outputs for node, _ in cast(Any, made).next_functions]
        waiting: list[Any] = [root, *self._unknown, *starts]
        seen: set[object] = {None, *self._entered}
        while waiting:
            node = waiting.pop()
            if node in seen:
                continue
            seen.add(node)
            if node in self._outputs:
                found.add(self._outputs[node])
            else:
                waiting += [before for before, _ in node.next_functions]
        return found

    def _at(self, node: Any, depth: int) -> int:
        """The passage whose output a node's is."""
        if node is None:
            raise _UnknownError(say("its input takes no gradient"))
        if depth > _LIMIT:
            raise _UnknownError(say("too many functions lie between it and the layer before"))
        if node not in self._made:
            self._made[node] = self._new(node, depth)
        return self._made[node]

    def _new(self, node: Any, depth: int) -> int:
        name = name_of(node)
        if node in self._inputs:
            index = self._start(self._inputs[node], signal_of(self._inputs[node]))
            self._raw.add(index)
            return index
        if _is_parameter(node):  # a parameter: the same for every sample
            signal = signal_of(node.variable).as_common()
            return self._start(node.variable, signal, mixes=True)
        before = [function for function, _ in node.next_functions]
        if name in _PASSING:
            return self._at(before[0], depth + 1)
        if name in _FUNCTIONS:
            called, make = _FUNCTIONS[name]
            return self._function(called, make(node), before[:1], depth)
        if name in ("AddBackward0", "SubBackward0"):
            if None in before:
                raise _UnknownError(say("something is added to its input that takes no gradient"))
            sign = -1.0 if name.startswith("Sub") else 1.0
            return self._function("+", Summed((1.0, sign * node._saved_alpha)), before, depth)
        if name == "MulBackward0":
            operand, layer = _factor(node, before)
            return self._function("*", layer, [operand], depth)
        if name == "CatBackward0":
            return self._joined(before, depth)
        raise _UnknownError(_comes_from(name))

    def _start(self, tensor: Tensor, signal: Signal, *, mixes: bool = False) -> int:
        if not tensor.is_floating_point() or not tensor.numel():
            raise _UnknownError(say("its input is not made of real numbers"))
        kind = "parameter" if mixes else "input"
        return self._appended(kind, Given(signal), (), tensor.numel(), mixes=mixes)

    def _joined(self, before: list[Any], depth: int) -> int:
        each = [self._at(node, depth + 1) for node in before]
        sizes = [self._sizes[index] for index in each]
        layer = Joined(tuple(size / sum(sizes) for size in sizes))
        return self._appended("cat", layer, tuple(each), sum(sizes))

    def _function(self, called: str, layer: Layer | Junction, before: list[Any], depth: int) -> int:
        each = tuple(self._at(node, depth + 1) for node in before)
        index = self._appended(called, layer, each, max(self._sizes[index] for index in each))
        if all(source in self._raw for source in each) and not isinstance(layer, Junction):
            self._raw.add(index)
        return index

    def _appended(
        self,
        kind: str,
        layer: Layer | Junction | Given,
        sources: tuple[int, ...],
        size: int,
        *,
        mixes: bool = False,
    ) -> int:
        index = len(self._passages)
        self._passages.append(Passage("", kind, 1, layer, "", None, None, sources, mixes=mixes))
        self._sizes[index] = size
        return index


def _is_parameter(node: Any) -> bool:
    return accumulates(node)


def _factor(node: Any, before: list[Any]) -> tuple[Any, Layer]:
    """The operand of a product that comes from a module, and what it is multiplied by."""
    for operand, other, name in (
        (before[0], before[1], "other"),
        (before[1], before[0], "self"),
    ):
        value = saved(node, name)
        if operand is None or value is None or not value.is_floating_point():
            continue
        if other is None or _is_parameter(other):
            if not value.dim():
                return operand, Scaled(float(value))
            signal = signal_of(value)
            alike = other is not None or value.shape[0] == 1
            return operand, Masked(signal.as_common() if alike else signal)
    raise _UnknownError(_comes_from(name_of(node)))


def _comes_from(name: str) -> Message:
    operation = name.rpartition(":")[2].removesuffix("0").removesuffix("Backward")
    return say("its input comes out of a function, {name}", name=operation)
