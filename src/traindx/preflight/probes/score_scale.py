"""Probe: how large the similarities that a loss compares can become.

The product of two vectors of given length is at most the product of their lengths, times whatever
constant it is multiplied by: a temperature. Nothing that is trained can carry a score further.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from torch import Tensor, nn

from traindx.messages import say
from traindx.preflight.calls import Call, Calls
from traindx.preflight.case import Case, DoesNotApplyError
from traindx.preflight.comparing import seeded
from traindx.preflight.inside import Inside
from traindx.preflight.probe import STEP, observed, probe
from traindx.preflight.structures import tensors
from traindx.records import Item, Scalar, Site

_EVEN = 1e-3
"""By how much the lengths of vectors may differ that are of one length."""
_NORMS = {"norm", "linalg_norm", "vector_norm", "linalg_vector_norm", "rsqrt", "sqrt"}
_MATRICES = {"matmul", "__matmul__", "mm", "bmm"}
_TIMES = {"mul", "__mul__", "__rmul__", "multiply", "mul_", "__imul__"}
_OVER = {"div", "__truediv__", "true_divide", "div_", "__itruediv__"}
_KEPT = {
    *("cat", "concat", "stack", "view", "reshape", "flatten", "squeeze", "unsqueeze", "t", "mT"),
    *("transpose", "permute", "contiguous", "__getitem__", "masked_fill", "masked_fill_", "where"),
    *("roll", "index_select", "gather", "take_along_dim", "narrow", "select"),
    *("masked_select", "float", "double", "to", "clone", "neg", "__neg__", "diagonal", "__get__"),
}
"""Functions that leave scores as they are, or leave some of them out."""
_COMPARED = {"cross_entropy", "log_softmax", "logsumexp"}
"""Functions that compare scores with each other; so does a loss that takes `exp` of them."""


class _Scores(NamedTuple):
    """Similarities that a loss compares with each other.

    Attributes:
        bound: Their greatest size.
        choices: How many are compared at once.
        least: The least value of cross-entropy on such scores.
    """

    bound: float
    choices: int
    least: float

    @property
    def flatness(self) -> float:
        """What is left of the loss of a guess at least."""
        return self.least / math.log(self.choices)


@probe(needs=("loss",), writes=("probe.score_bound", "probe.least_loss"), passes=1.1)
def score_scale(case: Case) -> Iterator[Item]:
    """The greatest size of the similarities in the loss, and the least loss that they allow."""
    inside = Inside(case.model)
    watching = _Watching(case.model.parameters(), inside)
    seeded(0)
    with inside, watching:
        case.loss()
    if not watching.found:
        raise DoesNotApplyError(say("the loss compares no similarities of vectors of one length"))
    site = Site(case.name)
    one = max(watching.found, key=lambda scores: scores.flatness)
    steepest = max(watching.found, key=lambda scores: scores.bound)
    yield Scalar(STEP, "probe.score_bound", steepest.bound, site)
    yield Scalar(STEP, "probe.least_loss", one.flatness, site)
    yield observed(
        "score-scale",
        site,
        bound=one.bound,
        steepest=steepest.bound,
        choices=one.choices,
        least=one.least,
        chance=math.log(one.choices),
    )


class _Watching(Calls):
    """Follows vectors of one length, their products, and the losses of those."""

    def __init__(self, params: Iterable[nn.Parameter], inside: Inside) -> None:
        super().__init__()
        self._inside = inside
        self.found: list[_Scores] = []
        self._held: list[Tensor] = []  # so that no id is used twice
        self._made: set[int] = {id(param) for param in params}
        self._lengths: set[int] = set()
        self._even: set[int] = set()
        self._bounds: dict[int, float] = {}

    def answer(self, call: Call) -> Any:
        """See what it means."""
        result, given = call.run(), call.given()
        made = tensors(result)
        self._held += made
        if any(id(t) in self._made for t in given):
            self._made.update(map(id, made))
        if isinstance(result, Tensor):
            self._see(call, given, result)
        return result

    def _see(self, call: Call, given: list[Tensor], result: Tensor) -> None:
        self._measure(call.name, given, result)
        compared = call.name in _COMPARED or (call.name == "exp" and not self._inside.is_called)
        if compared and given and id(given[0]) in self._bounds:
            self._compared(call, given[0])
            return
        bound = self._bound(call, given)
        if bound is not None:
            self._bounds[id(result)] = bound

    # -- vectors of one length -------------------------------------------------------------------

    def _measure(self, name: str, given: list[Tensor], result: Tensor) -> None:
        """Lengths, what is divided by them, and what is made of either."""
        ids = set(map(id, given))
        if name in _NORMS or (ids & self._lengths and not ids & self._even and len(given) == 1):
            self._lengths.add(id(result))
        divided = name in (*_OVER, *_TIMES) and bool(ids & self._lengths)
        if name == "normalize" or divided or ids & self._even:
            self._even.add(id(result))

    def _length(self, vectors: Tensor, axis: int) -> float | None:
        """The length of vectors along an axis, if they are made to have one."""
        given = id(vectors) not in self._made and not vectors.requires_grad
        if not given and id(vectors) not in self._even:
            return None  # a parameter, or a normalization with a weight of its own: it can grow
        if not vectors.is_floating_point() or vectors.dim() < 2 or vectors.shape[axis] < 2:
            return None
        lengths = vectors.detach().double().square().sum(axis).sqrt()
        longest = float(lengths.max()) if lengths.numel() else 0.0
        even = longest > 0 and float(lengths.min()) >= (1 - _EVEN) * longest
        return longest if even else None

    # -- scores ----------------------------------------------------------------------------------

    def _bound(self, call: Call, given: list[Tensor]) -> float | None:
        """The greatest size of what a function makes, if that is known."""
        name = call.name
        if name == "cosine_similarity":
            return 1.0
        if name in _MATRICES and len(given) == 2 and given[1].dim() > 1:
            return self._product(self._length(given[0], -1), self._length(given[1], -2))
        if name == "linear" and len(given) == 2:
            return self._product(self._length(given[0], -1), self._length(given[1], -1))
        if name == "einsum" and len(given) == 2:
            axes = _contracted(call.args)
            return axes and self._product(*map(self._length, given, axes))
        known = [t for t in given if id(t) in self._bounds]
        if not known:
            return None
        if name in _KEPT:
            others = [t for t in given if id(t) not in self._bounds and t.requires_grad]
            return None if others else max(self._bounds[id(t)] for t in known)
        if name in _TIMES or name in _OVER:
            return self._scaled(name, call.args, known)
        return None

    def _product(self, one: float | None, other: float | None) -> float | None:
        return None if one is None or other is None else one * other

    def _scaled(self, name: str, args: tuple[Any, ...], known: list[Tensor]) -> float | None:
        """Scores times a constant, or over one; what is trained may take any value."""
        if len(args) != 2 or len(known) != 1 or (name in _OVER and args[0] is not known[0]):
            return None
        by: Any = args[1] if args[0] is known[0] else args[0]
        if isinstance(by, Tensor):
            if by.numel() != 1 or by.requires_grad:
                return None
            by = float(by)  # copied from the device
        if not isinstance(by, int | float) or not by:
            return None
        bound = self._bounds[id(known[0])]
        return bound / abs(by) if name in _OVER else bound * abs(by)

    def _compared(self, call: Call, scores: Tensor) -> None:
        axis = {"cross_entropy": 1, "exp": -1}.get(call.name, call.argument("dim", 1, -1))
        if not isinstance(axis, int) or scores.dim() < 2:
            return
        bound = self._bounds[id(scores)]
        values = scores.detach().double().abs()
        choices = int((values <= bound * (1 + _EVEN)).sum(axis).max()) if values.numel() else 0
        if choices >= 2:
            least = math.log1p((choices - 1) * math.exp(-2 * min(bound, 300.0)))
            self.found.append(_Scores(bound, choices, least))


def _contracted(args: tuple[Any, ...]) -> tuple[int, int] | None:
    """The one axis of each operand that an `einsum` sums over."""
    if not args or not isinstance(args[0], str) or "." in args[0]:
        return None
    ins, _, out = args[0].replace(" ", "").partition("->")
    names = ins.split(",")
    summed = [letter for letter in dict.fromkeys(names[0]) if letter not in out]
    if len(names) != 2 or not out or len(summed) != 1 or summed[0] not in names[1]:
        return None
    return names[0].index(summed[0]), names[1].index(summed[0])
