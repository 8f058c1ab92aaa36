"""S004: layers that the model does not hold."""

from tests.rules.recording import Recording, chain
from traindx.findings import Severity


def run_of(*steps: int, fqn: str = "body.hidden") -> Recording:
    recording = Recording(chain(2))
    for step in steps:
        recording.scalar(step, "model.unregistered", 6, fqn)
    for step in range(4):
        recording.measured(step)
    return recording


def test_fires_on_layers_in_a_list():
    (finding,) = run_of(1, 2, 3).findings("S004")
    assert finding.severity is Severity.ERROR
    assert finding.active
    assert finding.evidence.site == ("net", "body.hidden")
    assert finding.evidence.message == (
        "`hidden` of body holds 6 tensors with a gradient that are in no optimizer and not among "
        "the parameters of net"
    )
    assert "self.hidden = nn.ModuleList(self.hidden)" in finding.evidence.fix


def test_names_the_model_that_holds_the_list_itself():
    (finding,) = run_of(1, 2, fqn="hidden").findings("S004")
    assert finding.evidence.message.startswith("`hidden` of net holds")


def test_silent_of_a_model_that_holds_its_layers():
    assert run_of().findings("S004") == ()


def test_silent_of_what_was_left_out_once():
    assert run_of(1).findings("S004") == ()
