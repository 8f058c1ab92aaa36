"""L018 data-order: data sorted by class and read in that order, or read at their beginning only."""

from __future__ import annotations

from tests.rules.before_training import Probing
from tests.rules.recording import Recording, chain
from traindx.findings import Finding


def probed(alike: float, chance: float) -> Probing:
    return Probing().number("probe.neighbours_alike", alike).number("probe.any_two_alike", chance)


def test_fires_for_classes_in_order():
    (finding,) = probed(0.97, 0.1).findings("L018")
    assert "in 97% of the cases, and any two samples in 10%" in finding.evidence.message
    assert "shuffle=True" in finding.evidence.fix


def test_silent_for_data_that_are_mixed():
    assert not probed(0.12, 0.1).findings("L018")


def test_silent_where_nearly_all_are_of_one_class():
    assert not probed(0.95, 0.94).findings("L018")


def test_silent_for_groups_that_are_shorter_than_a_batch():
    assert not probed(0.5, 0.1).findings("L018")


def passes(
    count: int, *, repeats: int | None = None, reached: float = 0.1, each: int = 1, more: int = 0
) -> tuple[Finding, ...]:
    recording = Recording(chain(2))
    steps = count * each + more
    told = {
        "passes": count,
        "repeats": count - 1 if repeats is None else repeats,
        "reached": reached,
        "batches": count * each,
    }
    for name, value in told.items():
        recording.scalar(steps - 1, f"data.{name}", value, model="")
    recording.measured(steps - 1)
    return recording.findings("L018")


def test_fires_for_the_first_batch_at_each_step():
    (finding,) = passes(10)
    assert finding.evidence.site == ("", "")
    assert finding.evidence.message == (
        "all 10 passes over the data began with the same batch and were ended after 1 batches on "
        "average: what comes later in the data is never seen"
    )


def test_fires_for_epochs_that_are_cut_short():
    (finding,) = passes(8, each=5, reached=0.2)
    assert "after 5 batches" in finding.evidence.message


def test_silent_after_a_few_passes():
    assert not passes(7)


def test_silent_for_passes_that_begin_otherwise():
    assert not passes(20, repeats=18)


def test_silent_for_passes_that_come_to_the_end():
    assert not passes(20, reached=1.0, each=5)


def test_silent_where_other_data_are_trained_on():
    assert not passes(10, more=5)
