"""L003: the output, the loss and the target do not belong together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, cast

from traindx.findings import Evidence, Severity
from traindx.messages import Message, say
from traindx.records import Point, Site
from traindx.rules.probed import STEP, Observation, observations
from traindx.rules.rule import rule
from traindx.run import Run

_ELEMENTWISE = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
_DISTANCES = (*_ELEMENTWISE, "")
_PROBABILITIES = "binary_cross_entropy"
_LOGITS = "binary_cross_entropy_with_logits"
_BINARY = (_PROBABILITIES, _LOGITS)
_CLASSES = ("cross_entropy", "nll_loss")
_SQUASHING = ("Sigmoid", "Softmax")
_MOST_CLASSES = 20
"""Different whole numbers that are still taken for classes."""


class _Fault(NamedTuple):
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


class _Seen(NamedTuple):
    """What one loss function is given."""

    observation: Observation
    unreachable: float

    @property
    def function(self) -> str:
        return self.observation.text("function")

    @property
    def prediction(self) -> tuple[int, ...]:
        return _integers(self.observation, "prediction_shape")

    @property
    def target(self) -> tuple[int, ...]:
        return _integers(self.observation, "target_shape")

    @property
    def made_by(self) -> str:
        """The last operation that changed elements."""
        return self.operations[0] if self.operations else ""

    @property
    def operations(self) -> tuple[str, ...]:
        found = self.observation.detail.get("made_by")
        return tuple(map(str, found)) if isinstance(found, list) else ()

    def axes(self, name: str) -> tuple[int, ...]:
        """Axes along which it is a distribution."""
        return _integers(self.observation, name)

    def number(self, name: str) -> float:
        """One of the numbers."""
        return self.observation.number(name)


def _integers(observation: Observation, name: str) -> tuple[int, ...]:
    found = observation.detail.get(name)
    return tuple(cast("list[int]", found)) if isinstance(found, list) else ()


@rule("L003", severity=Severity.ERROR, reads=("probe.comparisons",), source="probe")
def output_loss_mismatch(run: Run, *, unreachable: float = 0.05) -> Iterator[Evidence]:
    """The activation of the output, the loss and the target do not belong together.

    ## Why it matters
    A loss function expects its output in one form: scores, probabilities or their logarithms; and
    its target likewise. What is given in another form is seldom refused. The loss is then a number
    like any other, training goes on, and the model learns slowly, to a wrong optimum, or nothing:
    an (N, 1) output compared with N targets teaches each sample the mean of all.

    ## How it is measured
    On one batch, before training: shapes, ranges and whole numbers of what each known loss function
    is given, and the last two operations in the autograd graph that change elements before it.
    Errors: each element meets every other because (N, 1) is compared with (N,), also in a
    difference that is written by hand; a sigmoid or softmax before a loss that applies one, or two
    in a row; logarithms expected and none taken; a softmax over an axis that is not the classes'
    or over a single score; a class loss over one class; targets of a binary loss outside of 0 to 1;
    more than the fraction `unreachable` of the targets outside of what a sigmoid, tanh or ReLU at
    the end can give. Warnings: ReLU or tanh right before a loss of classes. For information: a
    distance to few whole numbers from 0 on, which may be classes. A softmax before cross-entropy
    with class numbers as targets is L002's.

    ## How to fix
    Give each loss what it takes: `cross_entropy` and `binary_cross_entropy_with_logits` raw scores,
    `nll_loss` and `kl_div` logarithms of probabilities, `binary_cross_entropy` probabilities. End a
    regression with a plain linear layer, and compare tensors of one shape: `output.squeeze(1)`.

    ## False alarms
    A sigmoid with arithmetic after it is not seen as such, nor is a soft cap of scores by a scaled
    tanh. All pairs of a batch on purpose (`x[:, None] - x[None]`) have operands of equally many
    axes. A few targets beyond a sigmoid's range are taken for noise. Counts and returns are whole
    numbers too, which is why those are no more than information.

    ## References
    PyTorch documentation, `torch.nn.CrossEntropyLoss`, `BCELoss`, `BCEWithLogitsLoss`, `NLLLoss`,
    `KLDivLoss`, on what each expects. Humbatova et al., "Taxonomy of real faults in deep learning
    systems" (ICSE 2020), in which wrong outputs and losses are among the most frequent.
    """
    worst: dict[Site, tuple[_Seen, _Fault]] = {}
    for observation in observations(run, "output-and-target"):
        seen = _Seen(observation, unreachable)
        fault = next((found for judge in _TABLE if (found := judge(seen))), None)
        known = worst.get(observation.site)
        if fault and (known is None or fault.severity.rank < known[1].severity.rank):
            worst[observation.site] = seen, fault
    for seen, fault in worst.values():
        yield _evidence(seen, fault)


def _evidence(seen: _Seen, fault: _Fault) -> Evidence:
    site = seen.observation.site
    return Evidence(
        site=site,
        step=STEP,
        message=say(
            "the output, the loss and the target of {model} do not belong together: {what}",
            model=site.model,
            what=fault.what,
        ),
        numbers=_numbers(seen),
        point=Point.OUTPUT,
        cause=fault.cause,
        fix=fault.fix,
        severity=fault.severity,
    )


def _numbers(seen: _Seen) -> dict[str, float]:
    names = ("prediction_min", "prediction_max", "target_min", "target_max")
    return {name: seen.number(name) for name in names if name in seen.observation.detail}


# -- the table -------------------------------------------------------------------------------------


def _broadcast(seen: _Seen) -> _Fault | None:
    prediction, target = seen.prediction, seen.target
    if seen.function not in _DISTANCES or prediction == target or not (prediction and target):
        return None
    pairs = len(prediction) != len(target) and prediction[0] == target[0] > 1
    if not pairs or {prediction[-1], target[-1]} != {1, prediction[0]}:
        return None
    return _Fault(
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


def _one_class(seen: _Seen) -> _Fault | None:
    shape = seen.prediction
    if seen.function not in _CLASSES or len(shape) < 2 or shape[1] != 1:
        return None
    return _Fault(
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


def _softmax_of_one(seen: _Seen) -> _Fault | None:
    if not seen.observation.detail.get("single_softmax"):
        return None
    return _Fault(
        say("the output is a softmax over a single score, which is 1 whatever the score"),
        say("A softmax compares scores along its axis, and there is only one."),
        say("Use a sigmoid for a single score, or take the softmax over the axis of the classes."),
    )


def _softmax_axis(seen: _Seen) -> _Fault | None:
    logarithm = seen.made_by == "LogSoftmax"
    if seen.made_by != "Softmax" and not logarithm:
        return None
    over = seen.axes("exp_sums_over" if logarithm else "sums_over")
    classes = 1 if seen.function in _CLASSES else len(seen.prediction) - 1
    if not over or classes in over or len(seen.prediction) < 2 or 0 not in over:
        return None
    return _Fault(
        say(
            "its softmax is over axis {axis} of {shape}, the samples of the batch",
            axis=over[0],
            shape=_shape(seen.prediction),
        ),
        say("What a sample is told then depends on its neighbours in the batch."),
        say("Take it over the classes: `dim={axis}`.", axis=classes),
    )


def _two_in_a_row(seen: _Seen) -> _Fault | None:
    if len(seen.operations) < 2 or seen.operations[1] not in _SQUASHING:
        return None
    last, before = seen.operations[:2]
    if last == "LogSoftmax" and seen.function == "nll_loss":  # the same as cross-entropy: L002's
        return None
    if last not in (*_SQUASHING, "LogSoftmax"):
        return None
    return _Fault(
        say("`{first}` is followed by `{second}`", first=before.lower(), second=_spelled(last)),
        say("The second is given numbers from 0 to 1, and its own answer hardly varies."),
        say("Take one of the two out."),
    )


def _spelled(operation: str) -> str:
    return {"LogSoftmax": "log_softmax"}.get(operation, operation.lower())


def _squashed_scores(seen: _Seen) -> _Fault | None:
    """A sigmoid or softmax before a loss that applies its own."""
    soft = seen.function == "cross_entropy" and not seen.observation.detail.get("target_is_integer")
    doubled = seen.made_by == "Softmax" and (seen.function == _LOGITS or soft)
    if seen.made_by == "Sigmoid" and seen.function in (_LOGITS, "cross_entropy"):
        doubled = True
    if not doubled:
        return None
    return _Fault(
        say(
            "`{loss}` takes scores, and is given what a {activation} has made of them",
            loss=seen.function,
            activation=seen.made_by.lower(),
        ),
        say("The loss applies its own, so that its gradient is small and its best value far off."),
        say("Leave the {activation} out at the end of the model.", activation=seen.made_by.lower()),
    )


def _no_logarithm(seen: _Seen) -> _Fault | None:
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
    return _Fault(
        say(
            "`{loss}` takes logarithms of probabilities, which are never above 0, and is given "
            "numbers up to {largest:.4g}",
            loss=seen.function,
            largest=seen.number("prediction_max"),
        ),
        say("The loss has no lower bound then, or falls without any answer getting better."),
        say("Put `F.log_softmax(scores, dim=1)` before it."),
    )


def _binary_target(seen: _Seen) -> _Fault | None:
    outside = seen.number("outside_unit")
    if seen.function not in _BINARY or not outside:
        return None
    return _Fault(
        say(
            "`{loss}` takes targets from 0 to 1, and is given {low:.4g} to {high:.4g}",
            loss=seen.function,
            low=seen.number("target_min"),
            high=seen.number("target_max"),
        ),
        say("Beyond 0 and 1 the loss has no lower bound, and pays for ever larger scores."),
        say("Make the targets 0 and 1, or use `cross_entropy` for several classes."),
    )


_REACH: dict[str, tuple[str, Message]] = {
    "Sigmoid": ("outside_unit", say("0 to 1")),
    "Softmax": ("outside_unit", say("0 to 1")),
    "Tanh": ("outside_symmetric", say("-1 to 1")),
    "Relu": ("below_zero", say("0 and more")),
}


def _out_of_reach(seen: _Seen) -> _Fault | None:
    if seen.function not in _ELEMENTWISE or seen.made_by not in _REACH:
        return None
    name, reach = _REACH[seen.made_by]
    fraction = seen.number(name)
    if fraction <= seen.unreachable:
        return None
    return _Fault(
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


def _rectified_scores(seen: _Seen) -> _Fault | None:
    if seen.function not in ("cross_entropy", _LOGITS) or seen.made_by not in ("Relu", "Tanh"):
        return None
    return _Fault(
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


def _distance_to_classes(seen: _Seen) -> _Fault | None:
    values, low = seen.number("target_values"), seen.number("target_min")
    whole = bool(seen.observation.detail.get("target_whole"))
    counted = low == 0 and seen.number("target_max") < _MOST_CLASSES
    single = not seen.prediction[1:] or seen.prediction[-1] == 1
    if seen.function not in _ELEMENTWISE or not (whole and counted and single) or values < 3:
        return None
    return _Fault(
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


_TABLE: tuple[Callable[[_Seen], _Fault | None], ...] = (
    _broadcast,
    _one_class,
    _softmax_of_one,
    _softmax_axis,
    _two_in_a_row,
    _squashed_scores,
    _no_logarithm,
    _binary_target,
    _out_of_reach,
    _rectified_scores,
    _distance_to_classes,
)
