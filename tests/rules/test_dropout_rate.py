"""E008: dropout that drops nearly everything."""

from __future__ import annotations

from dataclasses import replace

from tests.rules.recording import Recording, chain
from traindx.facts import ModuleFacts


def run_of(p: float, *, order: int | None = 9, training: int = 1) -> Recording:
    drop = ModuleFacts("drop", "Dropout", order, 1, {"p": p})
    recording = Recording(replace(chain(2), modules=(*chain(2).modules, drop)))
    for step in range(5):
        recording.scalar(step, "mode.training", training)
        recording.measured(step)
    return recording


def test_fires_on_a_probability_of_keeping():
    (finding,) = run_of(0.9).findings("E008")
    assert finding.evidence.site == ("net", "drop")
    assert finding.evidence.message == (
        "`drop` drops each value with probability 0.9 (threshold 0.75) and multiplies what is left "
        "by 10"
    )
    assert finding.evidence.fix == "nn.Dropout(0.1)  # drops 10%"


def test_fires_where_all_is_dropped():
    assert len(run_of(1.0).findings("E008")) == 1


def test_silent_at_the_threshold():
    assert run_of(0.75).findings("E008") == ()


def test_silent_on_a_layer_that_is_not_called_or_not_in_train_mode():
    assert run_of(0.9, order=None).findings("E008") == ()
    assert run_of(0.9, training=0).findings("E008") == ()
