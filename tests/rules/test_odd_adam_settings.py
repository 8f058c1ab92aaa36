"""O017: Adam's betas in the wrong order, and an eps that drowns its gradients."""

import pytest

from tests.rules.recording import Recording
from traindx.facts import Json, ModelFacts, ModuleFacts, OptimizerFacts, ParamFacts
from traindx.findings import Severity


def run_of(
    *,
    kind: str = "Adam",
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    gradient: float = 0.01,
    loss: float = 1.0,
    steps: int = 120,
) -> Recording:
    """A training whose last losses are a part `loss` of the first one."""
    param = ParamFacts("0.weight", (4, 4), "float32", True, (kind,))
    model = ModelFacts("net", "Sequential", (ModuleFacts("0", "Linear", 1, 1),), (param,))
    group: dict[str, Json] = {"lr": 1e-3, "betas": [*betas], "eps": eps}
    recording = Recording(model, OptimizerFacts(kind, kind, (group,), 1))
    for step in range(steps):
        recording.scalar(step, "loss", 1.0 if not step else loss)
        recording.grad(step, "0.weight", gradient)
        recording.measured(step)
    return recording


def test_fires_on_swapped_betas():
    (finding,) = run_of(betas=(0.999, 0.9), loss=0.1).findings("O017")
    assert finding.severity is Severity.WARNING
    assert finding.evidence.site == ("", "Adam")
    assert finding.evidence.message == (
        "the betas of Adam are 0.999 and 0.9: gradients of about 1000 steps are divided by the "
        "size of those of the last 10"
    )
    assert finding.evidence.fix == "betas=(0.9, 0.999)"


@pytest.mark.parametrize(
    ("kind", "betas"),
    [("Adam", (0.9, 0.9)), ("AdamW", (0.0, 0.9)), ("Adam", (0.94, 0.9)), ("Lion", (0.99, 0.9))],
)
def test_silent_on_betas_that_adam_can_bear(kind: str, betas: tuple[float, float]):
    assert run_of(kind=kind, betas=betas).findings("O017") == ()


def test_fires_where_eps_drowns_every_gradient():
    (finding,) = run_of(eps=0.2).findings("O017")
    assert finding.first_step == 103  # by then it is asked after every fourth step
    assert finding.evidence.numbers["eps"] == 0.2
    assert finding.evidence.message == (
        "the `eps` of Adam is 0.2, and no weight of net has ever had a gradient above 0.01 RMS"
    )


@pytest.mark.parametrize(
    "run",
    [
        run_of(eps=0.09),
        run_of(eps=0.2, loss=0.6),
        run_of(eps=0.2, steps=90),
        run_of(eps=5e-7, gradient=1e-9),
    ],
    ids=["near", "learns", "too-early", "a-usual-one"],
)
def test_silent_on_an_eps_that_does_no_harm(run: Recording):
    assert run.findings("O017") == ()
