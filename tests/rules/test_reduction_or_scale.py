"""L011 reduction-or-scale: a sum over a batch or batches, with the learning rate of a mean."""

from __future__ import annotations

import pytest

from tests.rules.before_training import Probing
from tests.rules.recording import Recording, chain
from traindx.facts import LossFacts, OptimizerFacts
from traindx.findings import Severity
from traindx.records import RUN, Scalar


def probed(slope: float, first_step: float | None) -> Probing:
    probing = Probing().number("probe.loss_slope", slope)
    return probing if first_step is None else probing.number("probe.first_step", first_step)


def test_fires_for_a_sum_whose_first_step_is_long():
    (finding,) = probed(1.0, 12.0).findings("L011")
    assert "would move the weights by 12 of their norm" in finding.evidence.message
    assert 'reduction="mean"' in finding.evidence.fix


def test_silent_for_a_mean():
    assert not probed(0.0, 12.0).findings("L011")


def test_silent_for_a_learning_rate_made_for_the_sum():
    assert not probed(1.0, 0.004).findings("L011")


def test_silent_where_the_optimizer_normalizes_its_steps():
    assert not probed(1.0, None).findings("L011")


# -- over batches ----------------------------------------------------------------------------------


def accumulating(
    passes: float = 8,
    moved: float = 0.1,
    *,
    kind: str = "SGD",
    operation: str = "NllLossBackward0",
) -> Recording:
    net = chain(3)
    recording = Recording(
        net,
        OptimizerFacts("SGD", kind, ({"lr": 0.1},), 3),
        LossFacts("net", operation, "NllLossBackward0", None, None),
    )
    for step in range(6):
        recording.items.append(Scalar(step, "backwards", passes, RUN))
        for param in net.params:
            recording.scalar(step, "update.ratio", moved, param.fqn)
        recording.measured(step)
    return recording


def test_fires_for_batches_that_are_summed():
    (finding,) = accumulating().findings("L011")
    assert finding.severity is Severity.WARNING
    assert finding.evidence.site == ("net", "")
    assert "the sum of 8 losses, which nothing divides" in finding.evidence.message
    assert finding.evidence.fix == "(loss / 8).backward()"


def test_a_step_of_a_third_of_the_weights_is_an_error():
    (finding,) = accumulating(64, 0.5).findings("L011")
    assert finding.severity is Severity.ERROR


@pytest.mark.parametrize(
    "recording",
    [
        accumulating(1),
        accumulating(2),  # the two losses of a discriminator
        accumulating(4),  # no more than a rate may be chosen too large by
        accumulating(operation="DivBackward0"),
        accumulating(operation="MulBackward0"),
        accumulating(kind="AdamW"),
        accumulating(moved=0.01),
        accumulating(moved=0.9),  # divided it would still be too far: it is another cause
    ],
)
def test_silent_on_losses_that_are_divided_and_on_steps_of_a_usual_length(recording: Recording):
    assert not recording.findings("L011")
