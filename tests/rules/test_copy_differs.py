"""E006: copies of a trained model that are evaluated."""

from __future__ import annotations

import pytest

from tests.rules.recording import Recording, chain
from traindx.facts import Json
from traindx.findings import Severity
from traindx.records import Event, EventKind, Site


def run_of(*details: dict[str, Json]) -> Recording:
    """A run in which a copy is evaluated, once for each of these comparisons."""
    recording = Recording(chain(2))
    for step in range(10):
        recording.scalar(step, "loss", 1.0)
        recording.measured(step)
    for detail in details:
        told: dict[str, Json] = {
            "of": "net",
            "parameters": 4,
            "equal": 0,
            "differing": [],
            "distance": 0.05,
        }
        recording.event(9, EventKind.COPY, "ema", **(told | detail))
    recording.ended(10)
    return recording


STALE: dict[str, Json] = {"norms": 2, "gap": 1.4, "norm": "bn1", "counted": 0}


def test_fires_when_the_statistics_were_not_copied():
    (finding,) = run_of(STALE).findings("E006")
    assert finding.severity is Severity.ERROR
    assert finding.evidence.site == ("net", "")
    assert "lie 1.40 standard deviations from those of net" in finding.evidence.message
    assert "No batch has ever updated the statistics of ema" in finding.evidence.cause
    assert "zip(ema.buffers(), net.buffers())" in finding.evidence.fix


def test_a_smaller_gap_is_a_warning_and_a_counted_one_was_left_behind():
    (finding,) = run_of(STALE | {"gap": 0.6, "counted": 40}).findings("E006")
    assert finding.severity is Severity.WARNING
    assert "its statistics were not" in finding.evidence.cause


@pytest.mark.parametrize("detail", [{"gap": 0.5}, {"gap": 0.9, "distance": 0.45}])
def test_silent_when_the_gap_is_small_or_as_far_as_the_weights(detail: dict[str, Json]):
    assert run_of(STALE | detail).findings("E006") == ()


def test_fires_when_a_part_of_the_parameters_was_lost():
    (finding,) = run_of({"equal": 3, "differing": ["0.bias"]}).findings("E006")
    assert finding.severity is Severity.WARNING
    assert finding.evidence.message == (
        "of the 4 parameters of net, 3 are exactly equal in ema, which is evaluated, and 1 are "
        "not: 0.bias"
    )


def test_silent_on_an_average_and_on_an_exact_copy():
    assert run_of({"equal": 0}, {"equal": 1}).findings("E006") == ()
    assert run_of({"equal": 4, "distance": 0.0}).findings("E006") == ()


def test_the_last_comparison_counts():
    assert run_of(STALE, STALE | {"gap": 0.0}).findings("E006") == ()


def test_silent_on_a_copy_of_a_model_that_is_not_known():
    assert run_of(STALE | {"of": "other"}).findings("E006") == ()


def test_fires_when_an_average_of_far_weights_has_the_statistics_of_its_last_member():
    average: dict[str, Json] = {"norms": 2, "gap": 0.0, "distance": 0.6}
    (finding,) = run_of(average).findings("E006")
    assert finding.severity is Severity.WARNING
    assert "differ from those of net by 0.6 of their size" in finding.evidence.message
    assert run_of(average | {"distance": 0.4}).findings("E006") == ()
    assert run_of(average | {"gap": 0.1}).findings("E006") == ()


def test_fires_when_modules_are_built_with_other_numbers():
    settings: dict[str, Json] = {"equal": 4, "settings": ["ln.offset: 1, 0", "ln.eps: 1, 2"]}
    (finding,) = run_of(settings).findings("E006")
    assert finding.evidence.message == (
        "modules of ema, which is evaluated with the parameters of net, are built with other "
        "numbers than those of net: ln.offset: 1, 0; ln.eps: 1, 2"
    )


AVERAGE: dict[str, Json] = {"norms": 2, "gap": 0.0, "distance": 0.25}


def meeting(gap: float, values: int = 800, *, copy: str = "ema") -> Recording:
    """A run in which an average meets what its statistics leave so far from normal."""
    run = run_of(AVERAGE)
    detail: dict[str, Json] = {"of": "net", "gap": gap, "norm": "bn2", "values": values}
    run.items.insert(-1, Event(9, EventKind.MET, Site(copy), detail))
    return run


def test_fires_when_an_average_meets_other_statistics_than_it_has():
    (finding,) = meeting(0.48).findings("E006")
    assert finding.severity is Severity.WARNING
    assert "0.48 standard deviations from normal (threshold 0.2)" in finding.evidence.message
    assert finding.evidence.fix == "torch.optim.swa_utils.update_bn(train_loader, ema)"


@pytest.mark.parametrize(
    "run", [meeting(0.1), meeting(0.48, values=100), meeting(0.48, copy="other")]
)
def test_silent_when_it_is_near_when_few_values_tell_and_of_another_copy(run: Recording):
    assert run.findings("E006") == ()


def test_an_average_that_lags_is_not_judged_before_the_end():
    run = meeting(0.48)
    run.items.pop()
    assert run.findings("E006") == ()


def test_silent_when_the_weights_are_the_models():
    run = meeting(0.48)
    equal: dict[str, Json] = {**AVERAGE, "of": "net", "equal": 4, "distance": 0.0, "parameters": 4}
    run.items.insert(-1, Event(9, EventKind.COPY, Site("ema"), equal))
    assert run.findings("E006") == ()


def after_training(*, distance: float = 1.4, before: bool = False, own: bool = False) -> Recording:
    """Another model is evaluated when ten steps are over, or once before, too."""
    recording = Recording(chain(2))
    told: dict[str, Json] = {"of": "net", "parameters": 4, "equal": 0, "distance": distance}
    for step in range(10):
        recording.scalar(step, "loss", 1.0)
        recording.measured(step)
        if before and step == 5:
            recording.event(step, EventKind.COPY, "other", **told)
    recording.event(10, EventKind.COPY, "other", **told)
    if own:
        recording.evaluated(10)
    recording.items.append(Event(10, EventKind.ENDED, Site(""), {"exit_code": 0, "steps": 10}))
    return recording


def test_fires_when_what_is_tested_was_never_trained():
    (finding,) = after_training().findings("E006")
    assert finding.severity is Severity.WARNING
    assert "no weight of other was trained" in finding.evidence.message
    assert finding.evidence.fix == "other.load_state_dict(net.state_dict())"


@pytest.mark.parametrize(
    "recording",
    [after_training(distance=0.9), after_training(before=True), after_training(own=True)],
    ids=["related", "a-reference", "a-baseline"],
)
def test_silent_where_another_model_is_meant(recording: Recording):
    assert recording.findings("E006") == ()
