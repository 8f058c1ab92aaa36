"""O016: decay against gradient."""

import pytest

from tests.rules.recording import Recording, chain
from traindx.facts import Json, OptimizerFacts
from traindx.findings import Severity


def run_of(
    *,
    decay: float = 1.0,
    grad: float = 0.01,
    keeps: float = 0.9,
    loss: float = 1.0,
    kind: str = "SGD",
    decoupled: bool = False,
) -> Recording:
    group: dict[str, Json] = {"lr": 0.1, "weight_decay": decay, "decoupled_weight_decay": decoupled}
    recording = Recording(chain(2), OptimizerFacts("SGD", kind, (group,), 2))
    for step in range(40):
        recording.scalar(step, "loss", loss if step else 1.0)
        for fqn in ("0.weight", "1.weight"):
            recording.scalar(step, "param.rms", 0.1 * keeps**step, fqn)
            recording.grad(step, fqn, grad * keeps**step)
        recording.measured(step)
    return recording


def test_fires_when_the_weights_shrink_under_a_decay_that_outweighs_the_gradient():
    (finding,) = run_of().findings("O016")
    assert finding.severity is Severity.ERROR
    assert finding.active
    assert finding.evidence.site == ("", "SGD")
    assert finding.evidence.numbers["pull"] == pytest.approx(10)
    assert finding.evidence.message == (
        "a weight decay of 1 pulls 10 times as hard at the median of 2 weights as the gradient of "
        "the first steps (threshold 5); it has shrunk to 1.6% of its size"
    )
    assert finding.evidence.fix == "SGD(…, weight_decay=1e-03)  # in place of 1"


@pytest.mark.parametrize(
    "changed",
    [{"decay": 5e-4}, {"grad": 0.1}, {"keeps": 0.999}, {"loss": 0.5}, {"kind": "AdamW"},
     {"decay": 0.0}, {"kind": "Adam", "decoupled": True}],
    ids=["usual", "balanced", "pretrained", "learns", "adamw", "none", "decoupled"],
)  # fmt: skip
def test_silent_where_the_decay_does_no_harm(changed):
    assert run_of(**changed).findings("O016") == ()


def test_silent_before_five_steps_are_measured():
    recording = run_of()
    steps = [item for item in recording.items if getattr(item, "step", 0) < 4]
    recording.items[:] = steps
    assert recording.findings("O016") == ()
