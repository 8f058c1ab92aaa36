"""O015: an optimizer that is made again and again."""

from tests.rules.recording import Recording, chain
from traindx.facts import OptimizerFacts
from traindx.findings import Severity


def run_of(replaced: int, life: float, memory: float = 10.0) -> Recording:
    facts = OptimizerFacts("SGD", "Adam", ({"lr": 0.1},), 4)
    recording = Recording(chain(2), facts)
    for count in range(1, replaced + 1):
        step = round(count * life)
        recording.scalar(step, "optimizer.replaced", count)
        recording.scalar(step, "optimizer.life", life)
        recording.scalar(step, "optimizer.memory", memory)
        recording.measured(step)
    return recording


def test_fires_when_it_is_made_at_each_step():
    (finding,) = run_of(40, life=1).findings("O015")
    assert finding.severity is Severity.WARNING
    assert finding.evidence.site == ("net", "")
    assert finding.evidence.message == (
        "Adam was made anew for the same parameters 40 times, after 1.0 steps on average, though "
        "it averages over 10"
    )


def test_silent_when_a_few_phases_have_one_each():
    assert run_of(9, life=5).findings("O015") == ()


def test_silent_when_each_epoch_of_many_steps_has_one():
    assert run_of(40, life=30).findings("O015") == ()


def test_silent_of_plain_sgd_which_has_nothing_to_forget():
    assert run_of(40, life=1, memory=0).findings("O015") == ()


def test_silent_when_each_goes_on_with_weights_that_were_loaded():
    def loaded(count: int) -> Recording:
        recording = run_of(20, life=5)
        for number in range(count):
            recording.scalar(100, "optimizer.forgotten", 5, f"Adam#{number}", model="Adam")
        recording.measured(101)
        return recording

    assert not [finding for finding in loaded(15).findings("O015") if finding.active]
    assert loaded(1).findings("O015")
