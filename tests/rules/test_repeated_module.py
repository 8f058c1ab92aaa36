"""S015: a list that holds one module several times."""

from tests.rules.recording import Recording, chain
from traindx.findings import Severity


def run_of(*times: int, fqn: str = "blocks") -> Recording:
    recording = Recording(chain(2))
    for step, value in enumerate(times):
        recording.scalar(step, "model.repeated", value, fqn)
        recording.measured(step)
    return recording


def test_fires_on_one_block_six_times():
    (finding,) = run_of(6, 6).findings("S015")
    assert finding.severity is Severity.WARNING
    assert finding.evidence.site == ("net", "blocks")
    assert finding.evidence.message == (
        "`blocks` holds the same module 6 times, so that its parameters exist once"
    )
    assert finding.evidence.fix == "nn.ModuleList([make() for _ in range(6)])"


def test_names_the_model_that_is_the_list():
    (finding,) = run_of(3, fqn="").findings("S015")
    assert finding.evidence.message.startswith("`net` holds the same module 3 times")


def test_silent_where_nothing_is_repeated():
    recording = Recording(chain(2))
    recording.measured(0)
    assert recording.findings("S015") == ()


def test_silent_before_anything_was_looked_at():
    assert Recording(chain(2)).findings("S015") == ()
