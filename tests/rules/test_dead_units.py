"""F003: ReLU units that are never active."""

from __future__ import annotations

import pytest

from tests.rules.recording import Recording, chain, evaluated
from traindx.findings import Severity


def run_of(
    *windows: float, other: float = 0.0, loss: float = 1.0, samples: float = 1024
) -> Recording:
    """A run whose layer "1" has these fractions of dead units, one a window of four steps."""
    recording = Recording(chain(3))
    for i, dead in enumerate(windows):
        for step in range(4 * i, 4 * i + 4):
            recording.scalar(step, "loss", 1.0 if step == 0 else loss)
            if step == 4 * i + 3:
                for fqn, fraction in (("0", other), ("1", dead)):
                    recording.scalar(step, "units.dead_fraction", fraction, fqn)
                    recording.scalar(step, "units.samples", samples, fqn)
            recording.measured(step)
    return recording


def test_fires_when_more_and_more_units_die():
    (finding,) = run_of(0.05, 0.45, 0.6, 0.7).findings("F003")
    assert finding.severity is Severity.WARNING
    assert finding.evidence.site == ("net", "1")
    assert finding.evidence.numbers == {"dead": 0.7, "first": 0.05, "samples": 1024, "layers": 1}
    assert finding.evidence.message == (
        "70% of the units of `1` were active for none of 1,024 values (threshold 40%, 3 windows in "
        "a row), 5% in the first window of the run; layers of net with so many: 1"
    )
    assert "Large steps have pushed" in finding.evidence.cause
    assert "learning rate a tenth as large" in finding.evidence.fix


def test_fires_as_an_error_when_nearly_all_units_are_dead_from_the_start():
    (finding,) = run_of(0.95, 0.95, 0.95).findings("F003")
    assert finding.severity is Severity.ERROR
    assert "from the start" in finding.evidence.cause
    assert "nn.init.zeros_(layer.bias)" in finding.evidence.fix


def test_fires_at_the_first_of_several_layers_and_tells_of_the_worst():
    (finding,) = run_of(0.0, 0.95, 0.95, 0.95, other=0.92).findings("F003")
    assert finding.evidence.site.fqn == "0"
    assert "of `1` were active" in finding.evidence.message
    assert finding.evidence.numbers["layers"] == 2
    assert finding.evidence.layers == ("0", "1")


def test_silent_on_units_that_were_dead_from_the_start():
    assert run_of(0.45, 0.45, 0.5, 0.54).findings("F003") == ()
    assert len(run_of(0.45, 0.45, 0.5, 0.56).findings("F003")) == 1


def test_silent_at_the_threshold():
    assert run_of(0.0, 0.4, 0.4, 0.4).findings("F003") == ()
    assert len(run_of(0.0, 0.41, 0.41, 0.41).findings("F003")) == 1


def test_silent_until_the_third_window_in_a_row():
    assert run_of(0.0, 0.6, 0.6).findings("F003") == ()
    assert run_of(0.0, 0.6, 0.3, 0.6, 0.6).findings("F003") == ()
    assert len(run_of(0.0, 0.6, 0.3, 0.6, 0.6, 0.6).findings("F003")) == 1


def test_silent_when_the_model_has_learned_all_the_same():
    windows = (0.0, *[0.6] * 8)
    assert run_of(*windows, loss=0.5).findings("F003") == ()
    assert len(run_of(*windows, loss=0.51).findings("F003")) == 1


def test_a_layer_of_dead_units_is_told_though_the_loss_has_fallen():
    """A loss that was huge at first falls to that of the average answer."""
    (finding,) = run_of(0.0, *[1.0] * 8, loss=0.001).findings("F003")
    assert finding.severity is Severity.ERROR


def test_a_finding_clears_when_units_come_back():
    (finding,) = run_of(0.0, 0.6, 0.6, 0.6, 0.3).findings("F003")
    assert not finding.active


@pytest.mark.parametrize(
    ("windows", "reason"),
    [
        ((), "no ReLU was seen over 1,024 values of each unit"),
        ((0.9, 0.9), "ReLU units were seen in 2 of the 3 windows needed, of 1,024 values each"),
    ],
)
def test_is_not_evaluated_before_three_windows_are_measured(
    windows: tuple[float, ...], reason: str
):
    recording = run_of(*windows)
    recording.measured(99)
    verdict = recording.verdict("F003")
    assert not evaluated(verdict, "F003")
    assert verdict.not_evaluated[0].reason == reason
