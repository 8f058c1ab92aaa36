"""F003: ReLU units that no sample can wake any more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traindx.facts import ModelFacts
from traindx.findings import Evidence, Severity, first_layers
from traindx.messages import Message, say
from traindx.records import Point
from traindx.rules.order import network_order
from traindx.rules.remembered import remembered
from traindx.rules.rule import rule
from traindx.run import Run, Series

_WINDOWS = 3
"""In how many windows in a row units must be dead."""
_VALUES = 1024
"""Values of each unit that a window holds, or more."""


@dataclass(frozen=True, slots=True)
class _Layer:
    """One layer's dead units.

    Attributes:
        series: Their fraction, one value a window.
        lasting: The least of the last windows.
        samples: Values of each unit in the last window.
    """

    series: Series
    lasting: float
    samples: float

    @property
    def risen(self) -> float:
        """By how much it is higher now than in the first window."""
        return self.series.last - self.series.first

    @property
    def died_in_training(self) -> bool:
        """Whether most of the dead units have died since the first window."""
        return self.risen >= 0.5 * self.series.last


def too_few_windows(run: Run) -> str:
    """Why the rule does not apply: no unit was looked at for long enough."""
    seen = max((len(series) for series in run.series("units.dead_fraction")), default=0)
    if not seen:
        return say("no ReLU was seen over {values:,} values of each unit", values=_VALUES)
    if seen < _WINDOWS:
        return say(
            "ReLU units were seen in {seen} of the {windows} windows needed, of {values:,} values "
            "each",
            seen=seen,
            windows=_WINDOWS,
            values=_VALUES,
        )
    return ""


@rule(
    "F003",
    severity=Severity.WARNING,
    reads=("units.dead_fraction",),
    applies=too_few_windows,
    explained_by=(
        "G006",
        "L003",
        "L007",
        "L011",
        "L016",
        "N004",
        "N010",
        "N011",
        "N012",
        "N017",
        "O001",
        "O012",
        "S002",
    ),
    remedies=("use-leaky-relu", "lower-lr"),
)
def dead_units(
    run: Run,
    *,
    dead: float = 0.4,
    error_dead: float = 0.9,
    rise: float = 0.1,
    loss: float = 0.5,
) -> Iterator[Evidence]:
    """Units of a ReLU layer are zero for every sample, and get no gradient that could change it.

    ## Why it matters
    A ReLU unit whose input is below zero puts out 0 and passes no gradient. If that is so for every
    sample, its weights stay as they are for good: the unit is dead, and the network smaller than it
    was built. A step that is far too large kills many at once, by pushing their biases below
    anything the weights can make up for. A layer of which all units are dead passes nothing on:
    everything behind it gets the same input for every sample.

    ## How it is measured
    Over a window of at least 1,024 values of each unit (samples times positions) and 64 samples,
    collected over as many measured steps as that takes: a unit is dead if it was active in none of
    them. (A single small batch would call half of a healthy layer dead.) In each of the last three
    windows the fraction of dead units must be above `dead`, and the last must be higher by `rise`
    than the first of the run, in which training had just begun. Or it must be at least `error_dead`
    in each, risen or not, which is an error. Below that the rule is silent once the loss is at
    `loss` of its first value or less: the model learns all the same, with the units it has left.
    The rule looks at modules such as `nn.ReLU`, and at outputs that go straight into `torch.relu`.
    One finding per model, at its first such layer.

    ## How to fix
    Lower the learning rate or warm it up: dead units are most often those of the first steps. Start
    biases at 0, not below. A normalization layer before the ReLU brings its inputs back around 0,
    and `nn.LeakyReLU` or `nn.GELU` keep a gradient for negative inputs.

    ## False alarms
    Some units are dead from the start in any ReLU layer: they count only if more join them, or if
    hardly any is left alive. In a layer with units to spare half may die within the first hundred
    steps while the loss falls quickly, which is no fault worth a warning: hence `loss`. Sparse
    activations are no dead units: each unit is active for some sample. A frozen or pretrained
    network has the same dead units all along. Rare inputs that alone excite a unit (a rare word)
    may not come up in a window, which is why it takes 40 % of a layer. Not seen: ReLUs in compiled
    parts, and those of short runs: with batches of 64 and the measured steps as they are by
    default, three windows of a linear layer take some 1,200 steps. A convolution fills one in a
    single step.

    ## References
    CS231n, "Neural Networks Part 1", on ReLU units that die, as many as 40 % of a network at a
    learning rate that is too high. Lu, Shin, Su & Karniadakis, "Dying ReLU and Initialization"
    (2019). Maas, Hannun & Ng, "Rectifier nonlinearities improve neural network acoustic models"
    (2013), on the leaky ReLU.
    """
    for model in run.models.values():
        layers = list(_layers(run, model, min(dead, error_dead)))
        learned = bool(layers) and run.loss_fraction(model.name) <= loss
        found = [
            layer
            for layer in layers
            if layer.lasting >= error_dead
            or (layer.lasting > dead and layer.risen >= rise and not learned)
        ]
        if found:
            worst = max(found, key=lambda layer: layer.lasting)
            is_error = worst.lasting >= error_dead
            threshold = error_dead if is_error else dead
            severity = Severity.ERROR if is_error else Severity.WARNING
            yield _evidence(model, found, worst, threshold, severity)


def _any_above(run: Run, model: ModelFacts, threshold: float) -> bool:
    """Whether so many units were dead anywhere in the last window."""

    def find() -> bool:
        return not (run.newest("units.dead_fraction", model=model.name).values < threshold).all()

    state = model, threshold, run.additions("units.dead_fraction")
    return remembered(run, (_any_above, model.name), state, find)


def _layers(run: Run, model: ModelFacts, threshold: float) -> Iterator[_Layer]:
    """The layers with so many dead units in so many windows, in network order."""
    if not _any_above(run, model, threshold):  # as of nearly all: their past need not be looked at
        return
    place = network_order(model)
    measured = run.series("units.dead_fraction", model=model.name)
    least = [(series, min(series.tail(_WINDOWS))) for series in measured if len(series) >= _WINDOWS]
    found = [(series, lasting) for series, lasting in least if lasting >= threshold]
    for series, lasting in sorted(found, key=lambda it: place.get(it[0].site.fqn, len(place))):
        if samples := run.at("units.samples", series.site):
            yield _Layer(series, lasting, samples.last)


def _evidence(
    model: ModelFacts,
    found: Sequence[_Layer],
    worst: _Layer,
    threshold: float,
    severity: Severity,
) -> Evidence:
    series = worst.series
    return Evidence(
        site=found[0].series.site,
        step=max(layer.series.step for layer in found),
        message=say(
            "{dead:.0%} of the units of `{worst}` were active for none of {samples:,.0f} values "
            "(threshold {threshold:.0%}, {windows} windows in a row), {first:.0%} in the first "
            "window of the run; layers of {model} with so many: {layers}",
            dead=series.last,
            worst=series.site.fqn or model.name,
            samples=worst.samples,
            threshold=threshold,
            windows=_WINDOWS,
            first=series.first,
            model=model.name,
            layers=len(found),
        ),
        numbers={
            "dead": series.last,
            "first": series.first,
            "samples": worst.samples,
            "layers": len(found),
        },
        point=Point.OUTPUT,
        cause=_cause(worst),
        fix=_fix(worst),
        excluded=(
            say("units that are active for a few samples"),
            say("units that were dead from the start"),
            say("a batch too small to tell"),
        ),
        series=("units.dead_fraction", "update.ratio", "loss"),
        severity=severity,
        layers=first_layers(layer.series.site.fqn for layer in found),
    )


def _cause(worst: _Layer) -> Message:
    if worst.died_in_training:
        return say(
            "Large steps have pushed the inputs of these units below 0 for every sample, where "
            "ReLU passes no gradient."
        )
    return say("Their inputs were below 0 from the start, where ReLU passes no gradient.")


def _fix(worst: _Layer) -> Message:
    if worst.died_in_training:
        return say(
            "Start again with a learning rate a tenth as large, or raise it slowly over the first "
            "steps; a normalization layer before the ReLU, or `nn.LeakyReLU(0.1)` in its place, "
            "keeps units alive."
        )
    return say(
        "Start biases at 0 (`nn.init.zeros_(layer.bias)`) and weights with "
        "`nn.init.kaiming_normal_(layer.weight, nonlinearity='relu')`."
    )
