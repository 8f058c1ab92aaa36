"""Probe: whether the weights that a softmax makes average over the axis along which they sum to 1.

Attention's weights multiply values and are summed over the keys: put ones in the place of the
values, and every result must be 1. Where it is not, and the weights do sum to 1 along another
axis, the softmax was taken over the wrong one. That is exact, whatever views lie between.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from traindx.messages import say
from traindx.preflight.calls import Call, Calls
from traindx.preflight.case import Case, DoesNotApplyError
from traindx.preflight.comparing import run
from traindx.preflight.inside import Inside
from traindx.preflight.probe import STEP, observed, probe
from traindx.preflight.structures import tensors
from traindx.records import Item, Scalar, Site

_SAMPLES = 4
"""Samples that are looked at: with one, an axis of the batch would not show."""
_SOFTMAX = ("softmax", "_softmax")
_PRODUCTS = ("matmul", "__matmul__", "__rmatmul__", "bmm", "mm", "einsum")
_TIMES = ("mul", "__mul__", "__rmul__", "multiply")
_PLUS = ("add", "__add__", "__radd__", "sub", "__sub__", "__rsub__")
_MIXING = (*_PRODUCTS, "linear", "sum", "mean", "max", "amax", "topk", "layer_norm", "bilinear")
"""Functions after which scores are scores, and weights weights, no more."""
_KEEPING = ("relu", "gelu", "silu", "tanh", "dropout", "contiguous", "to", "float", *_TIMES, *_PLUS)
"""Functions after which the last axis is what it was."""
_FAR = 1e-3
"""How far from 1 a sum must lie that is called wrong."""


@probe(writes=("probe.softmax_weights", "probe.softmax_off"), passes=0.3)
def softmax_axis(case: Case) -> Iterator[Item]:
    """Whether the weights that a softmax makes average over the axis along which they sum to 1."""
    few = _few(case)
    few.model.eval()
    inside = Inside(few.model)
    found = _Watching(few, inside)
    with inside, found:
        run(few)
    if not found.averages:
        raise DoesNotApplyError(say("no weights of a softmax average anything in the open"))
    site = Site(case.name)
    yield Scalar(STEP, "probe.softmax_weights", len(found.averages), site)
    yield Scalar(STEP, "probe.softmax_off", max(one.off for one in found.averages), site)
    wrong = {one.made.place: one for one in reversed(found.averages) if one.axis is not None}
    for one in reversed(wrong.values()):
        yield observed(
            "softmax-axis",
            Site(case.name, one.made.place),
            kind=one.made.kind,
            axis=one.axis,
            over=one.over,
            shape=[*one.shape],
            lowest=one.lowest,
            highest=one.highest,
            single=one.made.extent == 1,
        )


def _few(case: Case) -> Case:
    plain = replace(case, loss_found=None)  # the loss is not asked for
    try:
        return plain.subset(_SAMPLES)
    except DoesNotApplyError:
        return plain


# -- what is kept of a pass ------------------------------------------------------------------------


class _Made(NamedTuple):
    """A softmax.

    Attributes:
        place: The innermost module that it was called in.
        kind: That module's class.
        extent: Of the axis it was taken over.
        paired: Whether its scores say how one thing that was computed suits another.
    """

    place: str
    kind: str
    extent: int
    paired: bool


@dataclass(frozen=True, slots=True)
class _Average:
    """Weights of a softmax that were multiplied with something and summed.

    Attributes:
        made: The softmax.
        off: How far from 1 the weights of one result sum at most.
        axis: Of the weights, along which they do sum to 1, by mistake; None if all is well.
        over: Of the weights, the axis summed over; None if it is not known.
        shape: Of the weights.
        lowest: Least sum of the weights of one result.
        highest: Greatest.
    """

    made: _Made
    off: float
    axis: int | None = None
    over: int | None = None
    shape: tuple[int, ...] = ()
    lowest: float = 1.0
    highest: float = 1.0


class _Factor(NamedTuple):
    """A product of weights with something, element by element."""

    weights: Tensor
    other: Tensor
    shape: tuple[int, ...]


@dataclass
class _Known:
    """What is known of tensors, by their ids; all are held, so that no id is used twice."""

    held: list[Tensor] = field(default_factory=list[Tensor])
    computed: set[int] = field(default_factory=set[int])
    scores: set[int] = field(default_factory=set[int])
    features: set[int] = field(default_factory=set[int])
    weights: dict[int, _Made] = field(default_factory=dict[int, _Made])
    factors: dict[int, _Factor] = field(default_factory=dict[int, _Factor])


class _Watching(Calls):
    """Follows scores, the softmax of them, and what is done with its weights."""

    def __init__(self, case: Case, inside: Inside) -> None:
        super().__init__()
        self.averages: list[_Average] = []
        self._inside = inside
        self._known = _Known()
        self._known.computed.update(map(id, tensors([list(case.args), dict(case.kwargs)])))

    def answer(self, call: Call) -> Any:
        """See what it means."""
        result, given = call.run(), call.given()
        if any(id(t) in self._known.computed for t in given):
            made = tensors(result)
            self._known.held += made
            self._known.computed.update(map(id, made))
            if isinstance(result, Tensor):
                self._see(call, given, result)
        return result

    def _see(self, call: Call, given: list[Tensor], result: Tensor) -> None:
        name, known = call.name, self._known
        if name in _SOFTMAX:
            place, kind = self._inside.innermost
            paired = id(given[0]) in known.scores
            known.weights[id(result)] = _Made(place, kind, _extent(call, given[0]), paired)
        elif name in _PRODUCTS and len(given) == 2:
            self._multiplied(call, given, result)
        elif name == "sum" and id(given[0]) in known.factors:
            self._summed(known.factors[id(given[0])], call)
        elif name not in _MIXING:
            self._followed(name, result, given)
        if name == "linear" or (name in _KEEPING and any(id(t) in known.features for t in given)):
            known.features.add(id(result))

    def _followed(self, name: str, result: Tensor, given: list[Tensor]) -> None:
        """A function that keeps scores scores and weights weights, or makes new ones of two."""
        known = self._known
        if any(id(t) in known.scores and t.numel() == result.numel() for t in given):
            known.scores.add(id(result))
        computed = [t for t in given if id(t) in known.computed]
        if name in _PLUS and len(computed) == 2 and all(t.numel() < result.numel() for t in given):
            known.scores.add(id(result))  # additive attention: of each pair the sum
        held = [t for t in given if id(t) in known.weights]
        for one in held:
            if one.numel() == result.numel():
                known.weights[id(result)] = known.weights[id(one)]
        if name in _TIMES and len(held) == 1 and len(computed) == 2:
            other = next(t for t in computed if t is not held[0])
            known.factors[id(result)] = _Factor(held[0], other, tuple(result.shape))

    # -- sums over weights -----------------------------------------------------------------------

    def _multiplied(self, call: Call, given: list[Tensor], result: Tensor) -> None:
        known = self._known
        held = [t for t in given if id(t) in known.weights]
        if len(held) != 1:
            # A layer's output as it comes has features last: a graph's edges times it are no pairs.
            pairs = call.name == "einsum" or id(given[1]) not in known.features
            if not held and pairs and all(id(t) in known.computed for t in given):
                known.scores.add(id(result))
            return
        (weights,) = held
        other = next(t for t in given if t is not weights)

        def ones(value: Any) -> Any:
            if isinstance(value, list):
                return [ones(one) for one in cast("list[Any]", value)]
            return torch.ones_like(other) if value is other else value

        sums: Tensor = call.function(*map(ones, call.args), **call.kwargs)
        extents = _Extents.of_product(call, weights, other)
        self._judge(weights, sums, extents, self._known.weights[id(weights)])

    def _summed(self, factor: _Factor, call: Call) -> None:
        dims = call.argument("dim", 1)
        if not isinstance(dims, int | tuple | list):
            return
        axes = [dims] if isinstance(dims, int) else [*cast("tuple[int, ...]", dims)]
        weights, other, shape = factor
        whole, others = weights.expand(shape), _padded(other, len(shape))
        over = {axis % len(shape) for axis in axes}
        if not over or all(_padded(weights, len(shape))[axis] == 1 for axis in over):
            return  # the weights are not summed over
        shared = {axis for axis, extent in enumerate(others) if extent > 1}
        extents = _Extents(over, shared - over, {*range(len(shape))} - shared)
        lead = len(shape) - weights.dim()
        made = self._known.weights[id(weights)]
        self._judge(weights, whole.sum([*over]), extents.shifted(lead), made)

    def _judge(self, weights: Tensor, sums: Tensor, extents: _Extents, made: _Made) -> None:
        values, sums = weights.detach().double(), sums.detach().double()
        rounding = max(1e-5, 16 * torch.finfo(weights.dtype).eps)
        off = torch.where(sums.abs() <= rounding, 0.0, (sums - 1).abs())  # nothing to attend to
        worst = float(off.max()) if off.numel() else 0.0
        if not worst > max(_FAR, rounding):
            self.averages.append(_Average(made, worst))
            return
        wrong = next(
            (a for a in _ones(values, rounding) if extents.is_wrong(a, values, made)), None
        )
        over = next(iter(extents.summed), None)
        lowest, highest = float(sums.min()), float(sums.max())
        self.averages.append(
            _Average(made, worst, wrong, over, tuple(weights.shape), lowest, highest)
        )


def _extent(call: Call, scores: Tensor) -> int:
    """Of the axis that a softmax is taken over; 0 where it is not said."""
    dim = call.argument("dim", 1)
    return scores.shape[dim] if isinstance(dim, int) and scores.dim() else 0


def _ones(weights: Tensor, rounding: float) -> Iterator[int]:
    """The axes along which weights sum to 1."""
    for axis in range(weights.dim()):
        if bool(((weights.sum(axis) - 1).abs() <= rounding).all()):
            yield axis


def _padded(tensor: Tensor, axes: int) -> tuple[int, ...]:
    """A shape as broadcasting takes it."""
    return (*(1 for _ in range(axes - tensor.dim())), *tensor.shape)


class _Extents(NamedTuple):
    """The axes of weights, by what a sum of products does with them.

    Attributes:
        summed: Over which it sums.
        shared: Which the values have, too, and the results keep: of a batch, or of heads.
        own: Which only the weights have: of queries.
    """

    summed: set[int]
    shared: set[int]
    own: set[int]

    @classmethod
    def of_product(cls, call: Call, weights: Tensor, other: Tensor) -> _Extents:
        """Of a matrix product or `einsum`."""
        left = call.args[0]
        if call.name == "einsum" and isinstance(left, str):
            return cls._of_einsum(left.replace(" ", ""), call.args, weights)
        first = (left is weights) != (call.name == "__rmatmul__")
        summed = weights.dim() - 1 if first else max(weights.dim() - 2, 0)
        own = (
            {weights.dim() - 2 if first else weights.dim() - 1} if weights.dim() > 1 else set[int]()
        )
        batch = {*range(max(weights.dim() - 2, 0))}
        lead = other.dim() - weights.dim()
        alone = {a for a in batch if a + lead < 0 or other.shape[a + lead] == 1}
        return cls({summed}, batch - alone, own | alone)

    @classmethod
    def _of_einsum(cls, equation: str, args: tuple[Any, ...], weights: Tensor) -> _Extents:
        ins, _, out = equation.partition("->")
        names = ins.split(",")
        operands = cast("list[Any]", args[1]) if isinstance(args[1], list) else [*args[1:]]
        if "." in equation or len(names) != 2 or not out:
            return cls(set(), set(), set())
        own, other = names if operands[0] is weights else names[::-1]
        places = {axis: letter for axis, letter in enumerate(own)}
        return cls(
            {axis for axis, letter in places.items() if letter not in out},
            {axis for axis, letter in places.items() if letter in out and letter in other},
            {axis for axis, letter in places.items() if letter in out and letter not in other},
        )

    def shifted(self, lead: int) -> _Extents:
        """In the axes of weights that lack some leading ones."""
        parts = ({a - lead for a in part if a >= lead} for part in self)
        return _Extents(*parts)

    def is_wrong(self, axis: int, weights: Tensor, made: _Made) -> bool:
        """Whether weights that sum to 1 along an axis are there by mistake.

        Clusters that compete for a sample are not: their scores are no pairs of what was computed
        (NetVLAD, DiffPool), or their values are the cluster's own (capsules).
        """
        if axis in self.summed or not self.summed:
            return False
        if made.extent == 1:
            return weights.shape[axis] == 1 and bool((weights == 1).all())
        if not made.paired or weights.shape[axis] < 2:
            return False
        if axis in self.own:
            return True
        queries = any(weights.shape[a] > 1 for a in self.own)
        return queries and all(weights.shape[a] > 1 for a in self.summed)
