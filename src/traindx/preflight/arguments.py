"""How a loss function is called besides its pair: what stands in which place, and its options."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, cast

from torch import Tensor

from traindx.capture.nodes import name_of
from traindx.facts import Json
from traindx.preflight.case import Compared
from traindx.preflight.tape import Entry

_CLASSES = ("cross_entropy", "nll_loss")
_LOGITS = "binary_cross_entropy_with_logits"
_FEWEST = 16
"""Targets from which on it is said how frequent classes are."""
_SUMS = ("Add", "Sub")
_DISCOUNTED = range(4)
"""Products that a discounted value may stand in, masks among them."""
_DISCOUNTS = (0.5, 1.0)


def arguments_of(compared: Compared) -> dict[str, Json]:
    """What a table of pairings reads of one call besides the pair's numbers."""
    prediction, target = compared.prediction, compared.target
    return {
        "prediction_learned": prediction.requires_grad,
        "target_learned": target.requires_grad,
        "bootstrapped": prediction.requires_grad and _is_bootstrapped(target),
        "most_of_a_row": _most_of_a_row(compared),
        "label_smoothing": float(compared.options.get("label_smoothing", 0.0)),
        **_weights(compared),
        **_alignment(compared),
    }


def _most_of_a_row(compared: Compared) -> float:
    """The greatest sum of a row with several classes in it; 0 without such a row."""
    target = compared.target.detach()
    if compared.function != "cross_entropy" or target.shape != compared.prediction.shape:
        return 0.0
    if target.dim() < 2 or not target.numel():
        return 0.0
    several = (target != 0).sum(1) > 1
    return float(target.sum(1)[several].max()) if bool(several.any()) else 0.0


# -- weights of classes ----------------------------------------------------------------------------


def _weights(compared: Compared) -> dict[str, Json]:
    """How the weights of classes grow with how frequent these are, from class to class.

    `weight_slope` is the power of the frequency: -1 where each class counts as much as any other,
    0 without weights, 1 where weights are the frequencies. `class_ratio` is that of the most to the
    least frequent.
    """
    pairs = list(_counted(compared))
    if len(pairs) < 2:
        return {}
    frequency = [math.log(count) for count, _ in pairs]
    weight = [math.log(value) for _, value in pairs]
    spread = _product(frequency, frequency)
    if not spread:
        return {}
    return {
        "weight_slope": _product(frequency, weight) / spread,
        "class_ratio": math.exp(max(frequency) - min(frequency)),
    }


def _product(a: list[float], b: list[float]) -> float:
    middle = sum(a) / len(a), sum(b) / len(b)
    return sum((x - middle[0]) * (y - middle[1]) for x, y in zip(a, b, strict=True))


def _counted(compared: Compared) -> Iterator[tuple[float, float]]:
    """Of each class, how often it is a target, half a time added, and its weight."""
    target = compared.target.detach()
    if target.numel() < _FEWEST:
        return
    positive, weight = (compared.options.get(name) for name in ("pos_weight", "weight"))
    if compared.function == _LOGITS and isinstance(positive, Tensor) and positive.numel() == 1:
        yes, value = float((target > 0.5).sum()), float(positive)
        if value > 0:
            yield yes + 0.5, value
            yield target.numel() - yes + 0.5, 1.0
    if compared.function in _CLASSES and weight is not None and not target.is_floating_point():
        for label, value in enumerate(cast("list[float]", weight.tolist())):
            if value > 0:
                yield float((target == label).sum()) + 0.5, value


# -- alignment -------------------------------------------------------------------------------------


def _alignment(compared: Compared) -> dict[str, Json]:
    """Of a CTC loss: symbols that are the blank, and texts longer than their frames."""
    if compared.function != "ctc_loss":
        return {}
    target, options = compared.target.detach(), compared.options
    frames, symbols = (_numbers(options.get(n)) for n in ("input_lengths", "target_lengths"))
    rows = (
        [*target] if target.dim() > 1 else [*cast("list[Tensor]", cast(Any, target).split(symbols))]
    )
    texts = [row[:n] for row, n in zip(rows, symbols, strict=True)]
    return {
        "symbols": sum(symbols),
        "blanks": sum(int((text == int(options.get("blank", 0))).sum()) for text in texts),
        "too_long": sum(_needs(text) > n for text, n in zip(texts, frames, strict=True)),
        "texts": len(texts),
    }


def _needs(text: Tensor) -> int:
    """Frames: one for each symbol, and a blank between two that are the same."""
    return len(text) + int((text[1:] == text[:-1]).sum())


def _numbers(lengths: Any) -> list[int]:
    found: Any = cast(Any, lengths).tolist() if isinstance(lengths, Tensor) else lengths
    return [found] if isinstance(found, int) else [int(n) for n in found]


# -- what a target is made of ----------------------------------------------------------------------


def _is_bootstrapped(target: Tensor) -> bool:
    """Whether it is a number plus a discounted output of a model, with its graph.

    A forcing in a differential equation is a number plus a multiple of derivatives, whose factor
    is seldom a discount, from 0.5 on and below 1.
    """
    node: Any = target.grad_fn
    while node is not None and name_of(node).partition("Backward")[0] in ("Unsqueeze", "View"):
        node = node.next_functions[0][0]
    if node is None or name_of(node).partition("Backward")[0] not in _SUMS:
        return False
    inputs = [before for before, _ in node.next_functions]
    if len(inputs) != 2 or inputs.count(None) != 1:
        return False
    node = next(before for before in inputs if before is not None)
    for _ in _DISCOUNTED:
        if name_of(node).partition("Backward")[0] != "Mul":
            return False
        if any(_is_discount(getattr(node, name)) for name in ("_saved_other", "_saved_self")):
            return True
        node = next((before for before, _ in node.next_functions if before is not None), None)
        if node is None:
            return False
    return False


def _is_discount(factor: Tensor | None) -> bool:
    if factor is None or factor.dim() or not factor.is_floating_point():
        return False
    return _DISCOUNTS[0] <= float(factor) < _DISCOUNTS[1]


# -- similarities ----------------------------------------------------------------------------------


def similarities(entries: list[Entry]) -> list[tuple[Entry, Tensor, Tensor]]:
    """Each cosine similarity of something learned with something that is not."""
    found: list[tuple[Entry, Tensor, Tensor]] = []
    for entry in entries:
        given = [t for t in entry.args[:2] if isinstance(t, Tensor)]
        if entry.name != "cosine_similarity" or len(given) != 2:
            continue
        learned = [t for t in given if t.requires_grad]
        told = [t for t in given if not t.requires_grad]
        if learned and told and isinstance(entry.result, Tensor):
            found.append((entry, learned[0], told[0]))
    return found
