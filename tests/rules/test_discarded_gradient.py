"""G011: gradients that are cleared before the step."""

import pytest

from tests.rules.recording import Recording
from traindx.findings import Severity


def run_of(
    lost: float, passes: float, *, steps: int = 8, optimizers: int = 1, inputs: bool = False
) -> Recording:
    recording = Recording()
    for step in range(steps):
        for name in ("SGD", "Adam")[:optimizers]:
            recording.scalar(step, "lr", 0.1, name, model="")
        if lost:
            recording.scalar(step, "grad.discarded", lost, "SGD", model="")
        if inputs:
            recording.scalar(step, "input.differentiated", 1)
        recording.scalar(step, "backwards", passes, model="")
        recording.measured(step)
    return recording


def test_fires_where_the_last_of_four_passes_counts_alone():
    (finding,) = run_of(3, 4).findings("G011")
    assert finding.severity is Severity.WARNING
    assert finding.active
    assert finding.evidence.site == ("", "SGD")
    assert (finding.first_step, finding.count) == (0, 8)
    assert finding.evidence.numbers == {"passes": 4, "lost": 3}
    assert finding.evidence.message == (
        "of 4 backward passes before a step of SGD the gradients of 3 were cleared before it"
    )


@pytest.mark.parametrize(
    "run",
    [
        run_of(0, 4),
        run_of(1, 2),
        run_of(2, 4),
        run_of(3, 4, steps=2),
        run_of(3, 4, optimizers=2),
        run_of(7, 8, inputs=True),
    ],
    ids=["accumulation", "two-passes", "half", "few-steps", "two-optimizers", "adversarial"],
)
def test_silent_on_passes_that_are_meant(run: Recording):
    assert run.findings("G011") == ()


def test_silent_where_another_pass_than_the_last_counts_too():
    assert run_of(2, 4).findings("G011") == ()
