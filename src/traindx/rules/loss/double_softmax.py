"""L002: probabilities are given to a loss that expects scores."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from traindx.facts import LossFacts, TensorFacts
from traindx.findings import Evidence, Severity
from traindx.messages import Message, say
from traindx.records import Point, Site
from traindx.rules.rule import rule
from traindx.run import Run, Series

_SOFTMAX = "SoftmaxBackward0"
_ROUNDING = 1e-3
"""How far, of its value, a loss may fall below its floor by rounding."""


@dataclass(frozen=True, slots=True)
class _Suspect:
    """A classification loss that is given probabilities.

    Attributes:
        facts: The loss.
        prediction: The probabilities.
        series: The values of the loss.
        lowest: The least of them that is finite.
    """

    facts: LossFacts
    prediction: TensorFacts
    series: Series
    lowest: float

    @property
    def classes(self) -> int:
        return self.prediction.shape[1]

    @property
    def floor(self) -> float:
        """The loss of a perfect answer: one probability is 1, the others are 0."""
        return math.log1p((self.classes - 1) / math.e)

    @property
    def is_softmax(self) -> bool:
        return self.prediction.operation == _SOFTMAX

    @property
    def without_logarithm(self) -> bool:
        """Whether the probabilities went into the likelihood as they are: minus one of them."""
        return self.lowest < 0


def no_classification(run: Run) -> str:
    """Why the rule does not apply: no loss over classes was seen."""
    if any(_is_over_classes(facts) for facts in run.losses.values()):
        return ""
    return say("no cross-entropy or likelihood over classes was seen")


def _is_over_classes(facts: LossFacts) -> bool:
    return facts.loss.startswith("NllLoss")


@rule(
    "L002",
    severity=Severity.ERROR,
    reads=(),
    hits=2,
    applies=no_classification,
    remedies=("remove-softmax",),
    lasting=True,
)
def double_softmax(run: Run) -> Iterator[Evidence]:
    """Probabilities are given to a loss that expects scores, and softens them a second time.

    ## Why it matters
    `nn.CrossEntropyLoss` takes raw scores (logits) and applies the softmax itself. Given
    probabilities, which lie between 0 and 1, it can never be sure: even for a perfect answer its
    own softmax gives the right one of C classes no more than e/(e + C - 1), so that the loss
    cannot fall below ln(1 + (C - 1)/e). That is 0.31 for 2 classes, 1.46 for 10, 3.62 for 100.
    The gradient is small everywhere and passes two softmaxes; training crawls, although accuracy
    may rise all the same, which is why nobody looks. `nn.NLLLoss` given probabilities fails the
    other way: it expects their logarithms, and its loss becomes negative.

    ## How it is measured
    Exactly, on the first batches: the prediction that the loss is given has no negative element,
    and sums to 1 over the classes (axis 1) in every row; both must hold at two measured steps. If
    the softmax itself is found in the graph right before the loss, that is proof. If not (as for
    probabilities that a script has normalized itself), a loss that ever falls below the floor by
    more than rounding refutes it. The finding tells the floor for your number of classes, and the
    lowest loss so far beside it.

    ## How to fix
    Return the scores: leave out `nn.Softmax` or `softmax` at the end of the model, and apply it
    only where probabilities are to be read, behind the loss. With `nn.NLLLoss`, put
    `F.log_softmax(scores, dim=1)` in the place of the softmax.

    ## False alarms
    `log_softmax` before cross-entropy is not reported: doing it twice changes nothing. Nor is the
    logarithm of a softmax before `nn.NLLLoss`, which is the same but for rounding. A sigmoid before
    cross-entropy gives rows that do not sum to 1, and is another fault. Class weights and
    `ignore_index` change neither the rows nor the floor; label smoothing only raises it. A mean
    that is divided further, as for accumulation, or a sum, has another floor, which is why the
    loss refutes nothing where the softmax was seen. Not seen: predictions in compiled parts, soft
    targets (they take another path through the loss), and a softmax with arithmetic after it.

    ## References
    PyTorch documentation, `torch.nn.CrossEntropyLoss`, "input is expected to contain the
    unnormalized logits", and `torch.nn.NLLLoss`. Bridle, "Training stochastic model recognition
    algorithms as networks can lead to maximum mutual information estimation of parameters" (NIPS
    1989), on softmax and its loss.
    """
    for facts in run.losses.values():
        if suspect := _suspect(run, facts):
            yield _evidence(run, suspect)


def _suspect(run: Run, facts: LossFacts) -> _Suspect | None:
    prediction = facts.prediction
    if prediction is None or not prediction.rows_sum_to_one or not _is_over_classes(facts):
        return None
    if len(prediction.shape) < 2 or prediction.shape[1] < 2:  # a single class is always certain
        return None
    series = run.at("loss", Site(facts.models))
    if series is None:
        return None
    finite = series.values[abs(series.values) < math.inf]
    lowest = float(finite.min()) if finite.size else math.nan
    suspect = _Suspect(facts, prediction, series, lowest)
    refuted = not suspect.is_softmax and not lowest >= suspect.floor * (1 - _ROUNDING)
    return None if refuted else suspect


def _evidence(run: Run, suspect: _Suspect) -> Evidence:
    model = run.models.get(suspect.facts.models.partition("+")[0])
    name = model.name if model else suspect.facts.models
    return Evidence(
        site=Site(name),
        step=suspect.series.step,
        message=_negative(name, suspect) if suspect.without_logarithm else _told(name, suspect),
        numbers={
            "classes": suspect.classes,
            "floor": suspect.floor,
            "lowest_loss": suspect.lowest,
            "softmax_seen": float(suspect.is_softmax),
        },
        point=Point.OUTPUT,
        cause=_cause(suspect),
        fix=_fix(suspect),
        excluded=(
            say("rows that sum to 1 by chance"),
            say("a second `log_softmax`, which changes nothing"),
        ),
        series=("loss",),
    )


def _told(name: str, suspect: _Suspect) -> Message:
    return say(
        "the cross-entropy of {model} is given probabilities: {what}; over {classes} classes its "
        "loss cannot fall below ln(1 + ({classes} - 1)/e) = {floor:.4g}, and the lowest so far is "
        "{lowest:.4g}",
        model=name,
        what=_what(suspect),
        classes=suspect.classes,
        floor=suspect.floor,
        lowest=suspect.lowest,
    )


def _negative(name: str, suspect: _Suspect) -> Message:
    return say(
        "the likelihood loss of {model} is given probabilities where it expects their logarithms: "
        "{what}; so the loss is negative, the lowest so far {lowest:.4g} (of {classes} classes)",
        model=name,
        what=_what(suspect),
        lowest=suspect.lowest,
        classes=suspect.classes,
    )


def _what(suspect: _Suspect) -> Message:
    if suspect.is_softmax:
        return say("a softmax stands right before it, and each row sums to 1")
    return say("no element is negative and each row sums to 1, on two batches")


def _cause(suspect: _Suspect) -> Message:
    if suspect.without_logarithm:
        return say("`nn.NLLLoss` takes no logarithm itself, and none stands before it.")
    return say("`nn.CrossEntropyLoss` applies a softmax itself, so that there are two of them.")


def _fix(suspect: _Suspect) -> Message:
    if suspect.without_logarithm:
        return say(
            "loss = F.nll_loss(F.log_softmax(scores, dim=1), target)  # scores: before the softmax"
        )
    return say(
        "loss = F.cross_entropy(scores, target)  # scores: the model's output before the softmax"
    )
