"""Which fault has which symptom, each with the reason, and which stand beside each other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.rules.recording import chain
from traindx.findings import Evidence, Finding, Severity
from traindx.records import Site
from traindx.rules.catalog import catalog
from traindx.rules.causes import arrange
from traindx.rules.order import Places
from traindx.run import Run

RUN = Run()
RUN.models = {"net": replace(chain(9), name="net")}
PLACES = Places(RUN)
EDGES = {rule.code: rule.explained_by for rule in catalog().values()}

CAUSED = [
    # Too few numbers or none come through a normalization: bias alone, and no gradient back.
    ("N010", "F001", "divided by the root of eps, the signal is less than what biases add"),
    ("N010", "F002", "the variance that eps takes away is what the probe sees shrink"),
    ("N010", "F003", "a ReLU behind sees the bias alone, below zero for all or for none"),
    ("N010", "G001", "the gradient passes the weight over the root of eps"),
    ("N010", "G002", "near-constant inputs get a gradient 1/sqrt(eps) times as large"),
    ("N010", "N001", "the initial variance of 1 outlasts the batches if theirs is tiny"),
    ("N010", "O002", "small gradients make small steps"),
    ("N011", "F002", "what a weight near 0 lets through is small"),
    ("N011", "G001", "the gradient is multiplied by the weight"),
    ("N011", "O010", "what the probe forecast has come"),
    ("N011", "O002", "small gradients make small steps"),
    ("N012", "F002", "what is left of single numbers is the bias"),
    ("N012", "G001", "no gradient passes"),
    ("N012", "L004", "no batch can be learned that is erased"),
    ("N012", "N001", "a variance of 0 is never reached by an average that began at 1"),
    ("N012", "O002", "no gradient passes"),
    ("N013", "F002", "the stream that grows is the variance that drifts"),
    ("N013", "F006", "what doubles in each block overflows"),
    ("N013", "L001", "scores of a stream that grew are as large"),
    ("N013", "O001", "gradients grow with the stream, and steps with them"),
    ("N013", "P008", "what doubles in each block overflows a half first"),
    ("N018", "L004", "a prediction of unit size cannot reach its targets"),
    # BatchNorm that does not normalize what it is given: as if there were none.
    ("N004", "F001", "a deep network without normalization loses its input"),
    ("N004", "F003", "ReLU inputs are not brought back around 0"),
    ("N004", "F006", "activations grow from layer to layer"),
    ("N004", "G001", "gradients shrink as activations do"),
    ("N004", "G002", "gradients grow as activations do"),
    ("N004", "O001", "the rate was meant for normalized layers"),
    ("N017", "F001", "channels far from their statistics are as good as constant"),
    ("N017", "F003", "ReLU inputs lie all on one side"),
    ("N017", "F006", "a deviation far too small multiplies the signal"),
    ("N017", "G001", "a deviation far too large divides the gradient"),
    ("N017", "G002", "a deviation far too small multiplies the gradient"),
    ("N017", "L001", "scores are as far off as the features"),
    ("N017", "O001", "gradients are as far off as the features"),
    # Running statistics that are not those of the batches, each for a reason of its own.
    ("G006", "N001", "weights that run away leave the averages behind"),
    ("L018", "N001", "the averages are those of the class that came last"),
    ("N005", "N001", "the average of two kinds fits neither"),
    ("N015", "N001", "the average stalls before it is there"),
    ("N019", "N001", "the average is the last batch"),
    ("N021", "N001", "how much is padding changes from batch to batch"),
    # What was forecast by shapes or settings has been measured.
    ("N003", "S009", "the noise of small groups"),
    ("N006", "S009", "the wrong axis"),
    ("E009", "E017", "the shift by dropout"),
    ("O001", "O013", "the rate"),
    ("O002", "O013", "the rate"),
    ("S012", "G003", "no way leads there"),
    # Decay that is stronger than the loss.
    ("O016", "F001", "weights of 0 see nothing"),
    ("O016", "G001", "weights of 0 pass no gradient"),
    ("O016", "N010", "weights before a normalization shrink until eps is larger"),
    ("O016", "N011", "the weights of normalizations are decayed as all others"),
    ("O016", "O010", "the weights of normalizations are decayed as all others"),
    # Weights that are all the same, or all zero.
    ("S002", "F001", "weights of 0 see nothing"),
    ("S002", "F002", "weights of 0 have an output of variance 0"),
    ("S002", "F003", "an output of 0 is a unit at rest"),
    ("S002", "G001", "weights of 0 pass no gradient"),
    ("S002", "G003", "weights of 0 pass no gradient"),
    ("S002", "N010", "an output of 0 has no variance"),
    ("S002", "O002", "small gradients make small steps"),
    # Inputs, targets and losses that are too large multiply gradients, and so steps.
    ("L007", "F001", "where the mean is far above the deviation all samples look alike"),
    ("L007", "F003", "inputs far from 0 keep a ReLU on one side"),
    ("L007", "G001", "inputs that saturate a layer pass no gradient"),
    ("L007", "G002", "the first gradient is multiplied by the input"),
    ("L007", "L004", "as in training"),
    ("L007", "O001", "the gradient is multiplied by the input"),
    ("L007", "P008", "squares of large inputs overflow"),
    ("L008", "F001", "constant inputs have constant outputs"),
    ("L008", "L001", "scores of defect inputs are no guess"),
    ("L010", "E013", "training inputs are in other units than those evaluated"),
    ("L010", "L001", "inputs in other units"),
    ("L010", "O001", "inputs in other units"),
    ("L011", "F003", "a summed loss makes steps as much larger as the batch"),
    ("L011", "F006", "a summed loss makes steps as much larger as the batch"),
    ("L011", "G009", "a summed gradient is always over the norm it is clipped at"),
    ("L016", "F003", "the way to far targets leads over large steps"),
    ("L016", "G009", "a loss of millions has gradients to match"),
    ("L016", "L004", "far targets are not reached in some hundred steps"),
    ("L016", "O001", "a loss of millions has gradients to match"),
    ("L020", "L001", "scores times a factor are as far from a guess"),
    ("F002", "L001", "a variance that has grown is that of the scores"),
    ("G002", "G009", "an exploded gradient is always clipped"),
    # Objectives without a floor.
    ("L003", "F003", "a ReLU at the output is pushed below 0"),
    ("L003", "F006", "a logarithm of what is no probability"),
    ("L003", "G003", "a constant output has no gradient"),
    ("L003", "O012", "a loss of what it is not made for may have no floor"),
    ("L014", "F006", "a penalty that rewards size is followed to infinity"),
    ("L014", "O001", "weights grow without end"),
    ("L014", "O012", "a penalty that rewards size has no floor"),
    ("O012", "F003", "what goes the wrong way does not stop"),
    ("O012", "F006", "what goes the wrong way does not stop"),
    ("O012", "G002", "what goes the wrong way does not stop"),
    ("O012", "O001", "the loss rises at any rate"),
    ("G010", "O001", "a clip that comes too late leaves steps long"),
    # Half precision.
    ("P001", "G001", "what underflows is no gradient"),
    ("P001", "O002", "what underflows is no gradient"),
    ("P008", "F006", "an overflow of a half is infinite"),
]  # fmt: skip


def finding(code: str, layer: str, severity: Severity = Severity.ERROR) -> Finding:
    return Finding(0, code, "x", severity, True, Evidence(Site("net", layer), 0, "", {}), 0, 0, 1)


@pytest.mark.parametrize(("cause", "symptom", "reason"), CAUSED)
def test_a_symptom_is_told_under_its_cause(cause: str, symptom: str, reason: str):
    told = arrange([finding(symptom, "5"), finding(cause, "5")], EDGES, PLACES)
    assert [(it.code, it.caused_by) for it in told] == [(cause, ()), (symptom, (1,))], reason


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("L007", "G003"),  # inputs in another unit, and a part that is cut off
        ("N003", "N016"),  # batches are small, and the backbone is not to see them
        ("N003", "N012"),
        ("N002", "N003"),
        ("O005", "N013"),
        ("L008", "F006"),  # F006 tells itself that the inputs hold NaN
        ("E008", "E009"),  # dropping too much, and before a normalization
        ("E007", "L003"),
        ("F005", "O001"),
        ("L018", "L005"),
    ],
)
def test_independent_faults_hide_each_other_neither_way(one: str, other: str):
    told = arrange([finding(one, "5"), finding(other, "5")], EDGES, PLACES)
    assert [it.caused_by for it in told] == [(), ()]


@pytest.mark.parametrize("cause", ["N010", "N011", "N012", "S002"])
def test_what_lets_no_gradient_back_explains_that_of_the_layers_before(cause: str):
    told = arrange([finding("G001", "2"), finding(cause, "7")], EDGES, PLACES)
    assert [it.code for it in told if it.caused_by] == ["G001"]


@pytest.mark.parametrize("symptom", ["F001", "F003"])
def test_what_lets_no_signal_through_explains_nothing_before_it(symptom: str):
    told = arrange([finding(symptom, "2"), finding("N011", "7")], EDGES, PLACES)
    assert not any(it.caused_by for it in told)


def test_an_optimizer_is_no_layer_that_a_gradient_passes():
    told = arrange([finding("G003", "2"), finding("O001", "7")], EDGES, PLACES)
    assert not any(it.caused_by for it in told)
