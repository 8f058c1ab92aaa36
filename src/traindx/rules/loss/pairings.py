"""What an output, a loss and a target can have that does not go together: the table behind L003."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, cast

from traindx.findings import Severity
from traindx.messages import Message, say
from traindx.rules.probed import Observation

_ELEMENTWISE = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
_DISTANCES = (*_ELEMENTWISE, "")
_PROBABILITIES = "binary_cross_entropy"
_LOGITS = "binary_cross_entropy_with_logits"
_BINARY = (_PROBABILITIES, _LOGITS)
_CLASSES = ("cross_entropy", "nll_loss")
_SQUASHING = ("Sigmoid", "Softmax")
_SIGNED = (
    *("hinge", "hinge_embedding_loss", "soft_margin_loss"),
    *("cosine_embedding_loss", "margin_ranking_loss"),
)
"""Losses that multiply by a sign; `hinge` is written by hand."""
_MOST_CLASSES = 20
"""Different whole numbers that are still taken for classes."""


class Fault(NamedTuple):
    """What does not belong together, and what to do.

    Attributes:
        what: In one clause.
        cause: Why it is wrong.
        fix: What to change.
        severity: How bad.
    """

    what: Message
    cause: Message
    fix: Message
    severity: Severity = Severity.ERROR


class Seen(NamedTuple):
    """What one loss function is given."""

    observation: Observation
    unreachable: float

    @property
    def function(self) -> str:
        """The loss function's name."""
        return self.observation.text("function")

    @property
    def prediction(self) -> tuple[int, ...]:
        """The extents of what it is given first."""
        return _integers(self.observation, "prediction_shape")

    @property
    def target(self) -> tuple[int, ...]:
        """The extents of the target."""
        return _integers(self.observation, "target_shape")

    @property
    def made_by(self) -> str:
        """The last operation that changed elements."""
        return self.operations[0] if self.operations else ""

    @property
    def operations(self) -> tuple[str, ...]:
        """The last two operations that changed elements, the last one first."""
        found = self.observation.detail.get("made_by")
        return tuple(map(str, found)) if isinstance(found, list) else ()

    def axes(self, name: str) -> tuple[int, ...]:
        """Axes along which it is a distribution."""
        return _integers(self.observation, name)

    def number(self, name: str) -> float:
        """One of the numbers."""
        return self.observation.number(name)

    def flag(self, name: str) -> bool:
        """Whether something is so."""
        return bool(self.observation.detail.get(name))


def _integers(observation: Observation, name: str) -> tuple[int, ...]:
    found = observation.detail.get(name)
    return tuple(cast("list[int]", found)) if isinstance(found, list) else ()


# -- the table -------------------------------------------------------------------------------------


def _broadcast(seen: Seen) -> Fault | None:
    prediction, target = seen.prediction, seen.target
    if seen.function not in _DISTANCES or prediction == target or not (prediction and target):
        return None
    pairs = len(prediction) != len(target) and prediction[0] == target[0] > 1
    crossed = len(prediction) == len(target) == 2 and prediction == target[::-1] != target
    if not (pairs or crossed) or {prediction[-1], target[-1]} != {1, max(prediction)}:
        return None
    return Fault(
        say(
            "the output has the shape {prediction}, the target {target}, so that every output is "
            "compared with every target",
            prediction=_shape(prediction),
            target=_shape(target),
        ),
        say("Broadcasting makes a table of both, and the best answer to it is a constant."),
        say("loss = loss_function(output.reshape(target.shape), target)"),
    )


def _shape(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "()"


def _one_class(seen: Seen) -> Fault | None:
    shape = seen.prediction
    if seen.function not in _CLASSES or len(shape) < 2 or shape[1] != 1:
        return None
    return Fault(
        say(
            "`{loss}` is over a single class, so that it is 0 whatever the output",
            loss=seen.function,
        ),
        say("The softmax of one score is always 1."),
        say(
            "For yes or no use `binary_cross_entropy_with_logits`, or give the model one output "
            "for each class."
        ),
    )


def _softmax_of_one(seen: Seen) -> Fault | None:
    if not seen.observation.detail.get("single_softmax"):
        return None
    return Fault(
        say("the output is a softmax over a single score, which is 1 whatever the score"),
        say("A softmax compares scores along its axis, and there is only one."),
        say("Use a sigmoid for a single score, or take the softmax over the axis of the classes."),
    )


def _softmax_axis(seen: Seen) -> Fault | None:
    logarithm = seen.made_by == "LogSoftmax"
    if seen.made_by != "Softmax" and not logarithm:
        return None
    over = seen.axes("exp_sums_over" if logarithm else "sums_over")
    classes = 1 if seen.function in _CLASSES else len(seen.prediction) - 1
    if not over or classes in over or len(seen.prediction) < 2:
        return None
    fix = say("Take it over the classes: `dim={axis}`.", axis=classes)
    if 0 in over:
        return Fault(
            say(
                "its softmax is over axis {axis} of {shape}, the samples of the batch",
                axis=over[0],
                shape=_shape(seen.prediction),
            ),
            say("What a sample is told then depends on its neighbours in the batch."),
            fix,
        )
    if seen.function not in _CLASSES:  # of others it is not known which axis is the classes'
        return None
    return Fault(
        say(
            "its softmax is over axis {axis} of {shape}, but the classes are axis {classes}",
            axis=over[0],
            shape=_shape(seen.prediction),
            classes=classes,
        ),
        say("The places compete with each other for a class, and not the classes for a place."),
        fix,
    )


def _two_in_a_row(seen: Seen) -> Fault | None:
    if len(seen.operations) < 2 or seen.operations[1] not in _SQUASHING:
        return None
    last, before = seen.operations[:2]
    if last == "LogSoftmax" and seen.function == "nll_loss":  # the same as cross-entropy: L002's
        return None
    if last not in (*_SQUASHING, "LogSoftmax"):
        return None
    return Fault(
        say("`{first}` is followed by `{second}`", first=before.lower(), second=_spelled(last)),
        say("The second is given numbers from 0 to 1, and its own answer hardly varies."),
        say("Take one of the two out."),
    )


def _spelled(operation: str) -> str:
    return {"LogSoftmax": "log_softmax"}.get(operation, operation.lower())


def _squashed_scores(seen: Seen) -> Fault | None:
    """A sigmoid or softmax before a loss that applies its own."""
    soft = seen.function == "cross_entropy" and not seen.observation.detail.get("target_is_integer")
    doubled = seen.made_by == "Softmax" and (seen.function == _LOGITS or soft)
    if seen.made_by == "Sigmoid" and seen.function in (_LOGITS, "cross_entropy"):
        doubled = True
    if not doubled:
        return None
    return Fault(
        say(
            "`{loss}` takes scores, and is given what a {activation} has made of them",
            loss=seen.function,
            activation=seen.made_by.lower(),
        ),
        say("The loss applies its own, so that its gradient is small and its best value far off."),
        say("Leave the {activation} out at the end of the model.", activation=seen.made_by.lower()),
    )


def _no_logarithm(seen: Seen) -> Fault | None:
    """Logarithms of probabilities are expected; L002 tells of plain probabilities before NLL."""
    if seen.function not in ("nll_loss", "kl_div") or len(seen.prediction) < 2:
        return None
    plain = bool(seen.axes("sums_over"))
    if seen.function == "nll_loss":
        scores = not plain and not seen.axes("exp_sums_over") and seen.number("prediction_max") > 0
    else:
        scores = plain or seen.number("prediction_max") > 1e-3
    if not scores:
        return None
    return Fault(
        say(
            "`{loss}` takes logarithms of probabilities, which are never above 0, and is given "
            "numbers up to {largest:.4g}",
            loss=seen.function,
            largest=seen.number("prediction_max"),
        ),
        say("The loss has no lower bound then, or falls without any answer getting better."),
        say("Put `F.log_softmax(scores, dim=1)` before it."),
    )


def _binary_target(seen: Seen) -> Fault | None:
    outside = seen.number("outside_unit")
    if seen.function not in _BINARY or not outside:
        return None
    return Fault(
        say(
            "`{loss}` takes targets from 0 to 1, and is given {low:.4g} to {high:.4g}",
            loss=seen.function,
            low=seen.number("target_min"),
            high=seen.number("target_max"),
        ),
        say("Beyond 0 and 1 the loss has no lower bound, and pays for ever larger scores."),
        say("Make the targets 0 and 1, or use `cross_entropy` for several classes."),
    )


def _alignment(seen: Seen) -> Fault | None:
    """CTC takes its input as logarithms of probabilities; its gradient is right for no other."""
    last = len(seen.prediction) - 1
    if seen.function != "ctc_loss" or last < 1 or last in seen.axes("exp_sums_over"):
        return None
    return Fault(
        say(
            "`ctc_loss` takes logarithms of probabilities that sum to 1 over the symbols, and is "
            "given numbers from {low:.4g} to {high:.4g} that do not",
            low=seen.number("prediction_min"),
            high=seen.number("prediction_max"),
        ),
        say("It does not normalize: larger scores lower it whatever they say, below 0 as well."),
        say("loss = ctc(scores.log_softmax(-1), targets, input_lengths, target_lengths)"),
    )


def _class_axis(seen: Seen) -> Fault | None:
    """Only where two extents agree does nothing fail."""
    shape = seen.prediction
    if seen.function not in _CLASSES or len(shape) < 3 or len(seen.target) != len(shape) - 1:
        return None
    if shape[1] != shape[-1] or not seen.observation.detail.get("features_last"):
        return None
    return Fault(
        say(
            "`{loss}` takes the classes on axis 1 of {shape}, but a linear layer has put them on "
            "the last axis",
            loss=seen.function,
            shape=_shape(shape),
        ),
        say("The places compete with each other for a class, and not the classes for a place."),
        say("loss = loss_function(output.movedim(-1, 1), target)"),
    )


def _no_sign(seen: Seen) -> Fault | None:
    low, high = seen.number("target_min"), seen.number("target_max")
    if seen.function not in _SIGNED or (low, high) != (0, 1) or seen.number("target_values") != 2:
        return None
    return Fault(
        say("`{loss}` takes targets of -1 and 1, and is given 0 and 1", loss=seen.function),
        say("What is multiplied by 0 has no gradient: samples of that class teach nothing."),
        say("target = 2 * target - 1"),
    )


_REACH: dict[str, tuple[str, Message]] = {
    "Sigmoid": ("outside_unit", say("0 to 1")),
    "Softmax": ("outside_unit", say("0 to 1")),
    "Tanh": ("outside_symmetric", say("-1 to 1")),
    "Relu": ("below_zero", say("0 and more")),
}


def _out_of_reach(seen: Seen) -> Fault | None:
    if seen.function not in _ELEMENTWISE or seen.made_by not in _REACH:
        return None
    name, reach = _REACH[seen.made_by]
    fraction = seen.number(name)
    if fraction <= seen.unreachable:
        return None
    return Fault(
        say(
            "a {activation} at the end gives {reach}, but {fraction:.0%} of the targets lie "
            "outside ({low:.4g} to {high:.4g})",
            activation=seen.made_by.lower(),
            reach=reach,
            fraction=fraction,
            low=seen.number("target_min"),
            high=seen.number("target_max"),
        ),
        say("No weights can make the output meet those targets."),
        say("End the model with a plain linear layer, or scale the targets into that range."),
    )


def _rectified_scores(seen: Seen) -> Fault | None:
    if seen.function not in ("cross_entropy", _LOGITS) or seen.made_by not in ("Relu", "Tanh"):
        return None
    return Fault(
        say(
            "`{loss}` takes scores of any size, and is given those that a {activation} lets "
            "through",
            loss=seen.function,
            activation=seen.made_by.lower(),
        ),
        say("The scores cannot be as low, or as far apart, as a sure answer needs."),
        say("Leave the {activation} out at the end of the model.", activation=seen.made_by.lower()),
        Severity.WARNING,
    )


def _distance_to_classes(seen: Seen) -> Fault | None:
    values, low = seen.number("target_values"), seen.number("target_min")
    whole = bool(seen.observation.detail.get("target_whole"))
    counted = low == 0 and seen.number("target_max") < _MOST_CLASSES
    single = not seen.prediction[1:] or seen.prediction[-1] == 1
    if seen.function not in _ELEMENTWISE or not (whole and counted and single) or values < 3:
        return None
    return Fault(
        say(
            "`{loss}` measures the distance to whole numbers from {low:.4g} to {high:.4g}, which "
            "look like classes",
            loss=seen.function,
            low=low,
            high=seen.number("target_max"),
        ),
        say("Between classes there is no distance: class 2 is not nearer to 3 than to 9."),
        say("If they are classes, give the model an output for each and use `cross_entropy`."),
        Severity.INFO,
    )


TABLE: tuple[Callable[[Seen], Fault | None], ...] = (
    _broadcast,
    _one_class,
    _softmax_of_one,
    _softmax_axis,
    _two_in_a_row,
    _squashed_scores,
    _no_logarithm,
    _alignment,
    _class_axis,
    _no_sign,
    _binary_target,
    _out_of_reach,
    _rectified_scores,
    _distance_to_classes,
)
