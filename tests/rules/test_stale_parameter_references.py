"""O003: an optimizer that steps tensors nobody uses."""

from tests.rules.recording import Recording, chain, evaluated
from traindx.facts import OptimizerFacts
from traindx.findings import Severity

OLD = ((10, 10), (10,))


def run_of(*, stale: tuple[tuple[int, ...], ...], unheld: tuple[str, ...]) -> Recording:
    optimizer = OptimizerFacts("SGD", "SGD", ({"lr": 0.1},), 2, stale, unheld)
    recording = Recording(chain(3), optimizer)
    for step in range(3):
        recording.measured(step)
    return recording


def test_fires_when_the_model_was_rebuilt_after_the_optimizer():
    (finding,) = run_of(stale=OLD, unheld=("net/1.weight", "net/2.weight")).findings("O003")
    assert finding.severity is Severity.ERROR
    assert finding.evidence.site == ("net", "1.weight")
    assert finding.evidence.numbers == {"stale": 2, "unheld": 2, "matching": 1}
    assert "SGD holds 2 tensors that belong to no model" in finding.evidence.message
    assert "shapes match for `1.weight`" in finding.evidence.message
    assert "SGD(net.parameters(), …)" in finding.evidence.fix


def test_fires_when_the_replaced_layer_has_another_shape():
    (finding,) = run_of(stale=((1000, 10),), unheld=("net/2.weight",)).findings("O003")
    assert finding.evidence.numbers["matching"] == 0
    assert "shapes match" not in finding.evidence.message


def test_silent_when_a_backbone_is_left_untrained_on_purpose():
    assert run_of(stale=(), unheld=("net/0.weight", "net/1.weight")).findings("O003") == ()


def test_silent_when_the_optimizer_also_holds_a_tensor_not_used_yet():
    assert run_of(stale=OLD, unheld=()).findings("O003") == ()


def test_silent_when_the_references_are_stale_at_the_first_step_only():
    recording = Recording(chain(3), OptimizerFacts("SGD", "SGD", (), 2, OLD, ("net/1.weight",)))
    recording.measured(0)
    recording.items.extend(Recording(OptimizerFacts("SGD", "SGD", (), 2)).items)
    recording.measured(1)
    recording.measured(2)
    assert recording.findings("O003") == ()


def test_is_not_evaluated_without_an_optimizer():
    recording = Recording(chain(3))
    recording.measured(0)
    verdict = recording.verdict("O003")
    assert not evaluated(verdict, "O003")
    assert verdict.not_evaluated[0].reason == "no optimizer was seen"
