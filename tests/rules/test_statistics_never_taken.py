"""N022: a trained model evaluated with untouched running statistics."""

from __future__ import annotations

from dataclasses import replace

from tests.rules.recording import Recording, chain
from traindx.facts import Json, ModelFacts
from traindx.records import EventKind

UNTOUCHED: list[Json] = ["1", "2"]


def run_of(
    *passes: dict[str, Json], model: ModelFacts | None = None, trained: str = "net"
) -> Recording:
    """A run of 20 steps, with an evaluation pass before each of the last ones."""
    recording = Recording(model or chain(3))
    for step in range(20):
        recording.scalar(step, "loss", 1.0, model=trained)
        recording.scalar(step, "mode.training", 1, model=trained)
        number = step - (20 - len(passes))
        if number >= 0:
            told: dict[str, Json] = {"forwards": 2, "training": False, **passes[number]}
            recording.event(step, EventKind.EVALUATION, "net", **told)
        recording.measured(step)
    recording.ended(20)
    return recording


def test_fires_when_a_trained_model_is_evaluated_with_untouched_statistics():
    (finding,) = run_of({"initial": UNTOUCHED}).findings("N022")
    assert finding.evidence.site == ("net", "1")
    assert finding.evidence.numbers == {"layers": 2}
    assert finding.evidence.message == (
        "in eval mode 2 trained layers of net used the running statistics they began with, 0 and "
        "1, first `1`"
    )


def test_silent_when_statistics_were_taken():
    assert run_of({}).findings("N022") == ()


def test_silent_in_train_mode_which_uses_none():
    assert run_of({"initial": UNTOUCHED, "training": True}).findings("N022") == ()


def test_clears_when_the_next_evaluation_is_as_it_should_be():
    assert all(not it.active for it in run_of({"initial": UNTOUCHED}, {}).findings("N022"))


def test_silent_on_a_copy_that_is_not_trained():
    assert run_of({"initial": UNTOUCHED}, trained="student").findings("N022") == ()


def test_silent_on_frozen_layers_and_on_those_never_called():
    model = chain(3)
    frozen = tuple(replace(param, trainable=param.module == "0") for param in model.params)
    assert (
        run_of({"initial": UNTOUCHED}, model=replace(model, params=frozen)).findings("N022") == ()
    )
    idle = tuple(replace(m, order=None) if m.fqn in "12" else m for m in model.modules)
    assert run_of({"initial": UNTOUCHED}, model=replace(model, modules=idle)).findings("N022") == ()
