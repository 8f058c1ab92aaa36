"""Probe: what each loss function is given: the output, what made it, and the target."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, cast

import torch
from torch import Tensor

from traindx.capture.nodes import name_of
from traindx.facts import Json
from traindx.messages import say
from traindx.preflight.arguments import arguments_of, similarities
from traindx.preflight.case import Case, Compared, DoesNotApplyError
from traindx.preflight.marks import units_of
from traindx.preflight.pairs import pairs_of
from traindx.preflight.probe import STEP, observed, probe
from traindx.preflight.tape import Entry, Tape, losses_among
from traindx.records import Item, Scalar, Site

_ARRANGING = {
    "View", "UnsafeView", "Reshape", "ReshapeAlias", "Squeeze", "Unsqueeze", "Permute", "T",
    "Transpose", "ToCopy", "Clone", "Alias", "Select", "Contiguous",
}  # fmt: skip
"""Operations, by the name before `Backward`, that leave the elements as they are."""
_MOVING = {"Permute", "T", "Transpose"}
"""Those that move axes."""
_LINEAR = {"Addmm", "Mm", "Bmm", "Baddbmm"}
_CUTTING = {"clamp", "clamp_", "clamp_min", "relu", "relu_", "maximum"}
_TIMES = {"mul", "__mul__", "__rmul__"}
_MINUS = {"__rsub__", "rsub", "sub", "__sub__"}
_ARITHMETIC = {"sub", "__sub__", "__rsub__", "mul", "__mul__", "__rmul__", "subtract"}
_DISTINCT = 64
"""Different values of a target that are counted, at most."""
_SUM = 1e-3
"""How far a sum of probabilities may lie from 1."""


@probe(needs=("loss",), writes=("probe.comparisons", "loss"), passes=0.6)
def output_and_target(case: Case) -> Iterator[Item]:
    """What the loss functions are given: shapes, ranges, and what made the output."""
    output = case.output()
    tape = Tape()
    with tape:
        loss = case.loss_of(output)
    compared = case.compared(output)
    by_hand = not losses_among(tape.entries)
    written = {*_ARITHMETIC, "cosine_similarity"}
    if not compared and not any(entry.name in written for entry in tape.entries):
        raise DoesNotApplyError(say("no comparison of an output with a target was seen"))
    site = Site(case.name)
    yield Scalar(STEP, "probe.comparisons", len(compared), site)
    yield Scalar(STEP, "loss", float(loss.detach()), site)
    for one in compared:
        yield observed("output-and-target", site, **_facts(one), **_units(case, one))
    for score, label in _hinges(tape.entries) if by_hand else ():
        yield observed(
            "output-and-target", site, **_facts(Compared("hinge", score, label, {}, loss))
        )
    for one in _grows_with_likeness(tape, loss) if by_hand else ():
        yield observed("output-and-target", site, **one)
    for prediction, target in _crossed(tape.entries) if by_hand else ():
        shapes: dict[str, Json] = {
            "function": "",
            "prediction_shape": list(prediction.shape),
            "target_shape": list(target.shape),
        }
        yield observed("output-and-target", site, **shapes)


def _grows_with_likeness(tape: Tape, loss: Tensor) -> Iterator[dict[str, Json]]:
    """A loss written by hand of nothing but similarities to targets, all of which raise it."""
    found = similarities(tape.entries)
    if not found:
        return
    results = [entry.result for entry, _, _ in found]
    slopes = cast(
        "tuple[Tensor | None, ...]",
        torch.autograd.grad(loss, results, retain_graph=True, allow_unused=True),
    )
    if all(slope is not None and bool((slope > 0).all()) for slope in slopes):
        _, output, target = found[0]
        yield {
            "function": "cosine_similarity",
            "prediction_shape": list(output.shape),
            "target_shape": list(target.shape),
        }


def _crossed(entries: list[Entry]) -> Iterator[tuple[Tensor, Tensor]]:
    """Operands of a loss written by hand of which each element meets every other by mistake.

    A deliberate table of all pairs has operands of equally many axes, `x[:, None] - x[None]`.
    """
    for entry in entries:
        given = entry.args[:2]
        if entry.name not in _ARITHMETIC or len(given) != 2 or not isinstance(entry.result, Tensor):
            continue
        a, b = given
        if not (isinstance(a, Tensor) and isinstance(b, Tensor)) or not (a.dim() and b.dim()):
            continue
        output, target = (a, b) if a.grad_fn is not None else (b, a)
        learned = output.grad_fn is not None and target.grad_fn is None
        by_mistake = a.dim() != b.dim() and a.shape[0] == b.shape[0]
        if learned and by_mistake and entry.result.numel() > max(a.numel(), b.numel()):
            yield output, target


def _hinges(entries: list[Entry]) -> Iterator[tuple[Tensor, Tensor]]:
    """Score and label of each max(0, 1 - label * score) that is written by hand."""
    makers = {id(entry.result): entry for entry in entries}
    for entry in entries:
        margin = makers.get(id(entry.args[0])) if entry.args else None
        if entry.name not in _CUTTING or margin is None or margin.name not in _MINUS:
            continue
        product = next((made for a in margin.args if (made := makers.get(id(a)))), None)
        given = [a for a in product.args if isinstance(a, Tensor)] if product is not None else []
        if product is None or product.name not in _TIMES or len(given) != 2:
            continue
        score, label = given if given[0].grad_fn is not None else given[::-1]
        if score.grad_fn is not None and label.grad_fn is None and score.shape == label.shape:
            yield score, label


def _facts(compared: Compared) -> dict[str, Json]:
    prediction, target = compared.prediction, compared.target
    values, wanted = prediction.detach().double(), target.detach().double()
    made = _made_by(prediction)
    return {
        "function": compared.function,
        "prediction_shape": list(prediction.shape),
        "target_shape": list(target.shape),
        "target_is_integer": not target.is_floating_point(),
        "made_by": list(made),
        "features_last": _features_last(prediction),
        "prediction_min": _least(values),
        "prediction_max": -_least(-values),
        "target_min": _least(wanted),
        "target_max": -_least(-wanted),
        "prediction_rms": _rms(values),
        "target_mean": float(wanted.mean()) if wanted.numel() else math.nan,
        "target_std": float(wanted.std(correction=0)) if wanted.numel() else math.nan,
        "target_whole": bool((wanted == wanted.round()).all()),
        "target_values": _distinct(wanted),
        "outside_unit": _outside(wanted, 0.0, 1.0),
        "outside_symmetric": _outside(wanted, -1.0, 1.0),
        "below_zero": _outside(wanted, 0.0, math.inf),
        "sums_over": _sums_over(values),
        "exp_sums_over": _sums_over(values.exp()),
        "single_softmax": _softmax_of_one(prediction),
        "target_zeros": float((wanted == 0).double().mean()) if wanted.numel() else 0.0,
        **arguments_of(compared),
        "log_target": bool(compared.options.get("log_target", False)),
        "log_input": bool(compared.options.get("log_input", True)),
    }


def _units(case: Case, compared: Compared) -> dict[str, Json]:
    """Marks among labels of the data, as no reward is that is seldom given, and their units."""
    told = units_of(compared.target)
    computed = "mark" in told and pairs_of(case) is None
    return {name: value for name, value in told.items() if not (computed and "mark" in name)}


def _least(values: Tensor) -> float:
    return float(values.min()) if values.numel() else math.nan


def _rms(values: Tensor) -> float:
    return float(values.square().mean().sqrt()) if values.numel() else math.nan


def _distinct(values: Tensor) -> int:
    """How many different values there are, up to a limit that says many."""
    return (
        min(_DISTINCT, cast(Tensor, cast(Any, values).unique()).numel())
        if values.numel() <= 1_000_000
        else _DISTINCT
    )


def _outside(values: Tensor, low: float, high: float) -> float:
    """Fraction of the elements beyond a range, rounding aside."""
    out = (values < low - 1e-6) | (values > high + 1e-6)
    return float(out.double().mean()) if values.numel() else 0.0


def _sums_over(values: Tensor) -> list[Json]:
    """The axes of more than one element along which it is a distribution."""
    if not values.numel() or bool((values < 0).any()) or not bool(values.isfinite().all()):
        return []
    axes = (axis for axis, extent in enumerate(values.shape) if extent > 1)
    return [axis for axis in axes if bool(((values.sum(axis) - 1).abs() < _SUM).all())]


# -- what made a prediction --------------------------------------------------------------------


def _made_by(prediction: Tensor) -> tuple[str, ...]:
    """The last two operations before it that change elements, the last one first."""
    last = _changing(prediction.grad_fn)
    if last is None:
        return ()
    before = _changing(_first_input(last))
    return (_word(last),) if before is None else (_word(last), _word(before))


def _features_last(prediction: Tensor) -> bool:
    """Whether a linear layer made it, and no axis was moved since: its features are the last."""
    node = _unmoved(prediction.grad_fn)
    if node is not None and _word(node) == "LogSoftmax":
        node = _unmoved(_first_input(node))
    if node is not None and _word(node) == "Add":  # of a bias, where the input is no plain matrix
        biased = any(_is_leaf(other) for other, _ in node.next_functions)
        node = _unmoved(_first_input(node)) if biased else None
    return node is not None and _word(node) in _LINEAR


def _is_leaf(node: Any) -> bool:
    return node is not None and _word(node).endswith("AccumulateGrad")


def _unmoved(node: Any) -> Any:
    """What made a tensor, seen through what leaves elements and axes as they are."""
    while node is not None and (_word(node) in _ARRANGING - _MOVING or _stays(node)):
        node = _first_input(node)
    return node


def _stays(node: Any) -> bool:
    """Whether it is a permutation that leaves every axis where it is."""
    order = [*node._saved_dims] if _word(node) == "Permute" else [-1]
    return order == [*range(len(order))]


def _softmax_of_one(prediction: Tensor) -> bool:
    """Whether it is the softmax of a single score, which is 1 whatever the score."""
    node = _changing(prediction.grad_fn)
    if node is None or _word(node) not in ("Softmax", "LogSoftmax"):
        return False
    result = cast(Tensor, node._saved_result).detach()
    return bool((result == (1.0 if _word(node) == "Softmax" else 0.0)).all())


def _changing(node: Any) -> Any:
    while node is not None and _word(node) in _ARRANGING:
        node = _first_input(node)
    return node


def _first_input(node: Any) -> Any:
    return next((before for before, _ in node.next_functions if before is not None), None)


def _word(node: Any) -> str:
    """`Softmax` of `SoftmaxBackward0`."""
    return name_of(node).partition("Backward")[0]
