"""F006 on runs written by hand: an origin is named only where what was measured leaves no doubt."""

from __future__ import annotations

import math

import pytest

from tests.rules.recording import Recording, chain
from traindx.facts import ModelFacts, ModuleFacts
from traindx.findings import Finding, Severity
from traindx.records import Event, EventKind, Point, Record, Site, TensorStats

FINE = TensorStats(10, 0.0, 10.0, -1.0, 1.0)
BAD = TensorStats(10, math.nan, math.nan, math.nan, math.nan, nonfinite=4)
MASK = TensorStats(10, math.nan, math.nan, -math.inf, 1.0, nonfinite=4)
NAN, INF = math.nan, math.inf


class Net(Recording):
    """A run of one model, a step at a time."""

    def put(self, step: int, point: Point, fqn: str, stats: TensorStats = FINE) -> None:
        self.items.append(Record(step, Site("net", fqn), point, stats))

    def step(
        self,
        step: int,
        loss: float = 1.0,
        *,
        outputs: dict[str, TensorStats] | None = None,
        gradients: dict[str, TensorStats] | None = None,
        grads: dict[str, TensorStats] | None = None,
        given: TensorStats = FINE,
        params: float = 1.0,
        measured: bool = True,
    ) -> None:
        if measured:
            self.put(step, Point.INPUT, "", given)
            for fqn in ("0", "1", "2"):
                self.put(step, Point.OUTPUT, fqn, (outputs or {}).get(fqn, FINE))
                self.put(step, Point.OUTPUT_GRAD, fqn, (gradients or {}).get(fqn, FINE))
                self.put(step, Point.GRAD, f"{fqn}.weight", (grads or {}).get(fqn, FINE))
                self.scalar(step, "param.rms", params, f"{fqn}.weight")
        self.scalar(step, "loss", loss)
        if measured:
            self.measured(step)

    def origin(self, step: int, fqn: str, **detail: object) -> None:
        self.items.append(Event(step, EventKind.ORIGIN, Site("net", fqn), detail))  # pyright: ignore

    @property
    def finding(self) -> Finding:
        (finding,) = self.findings("F006")
        return finding

    @property
    def place(self) -> str:
        return self.finding.evidence.site.fqn


def names(finding: Finding) -> bool:
    """Whether it says where it was born."""
    return "--trap-nan" not in finding.evidence.fix or "was born" in finding.evidence.message


def custom() -> ModelFacts:
    """The same three layers in a model with a forward of its own."""
    model = chain(3)
    root = ModuleFacts("", "Net", 3, 1)
    return ModelFacts("net", "Net", (root, *model.modules[1:]), model.params)


LATE = {"1": BAD, "2": BAD}


def test_silent_on_a_run_that_stays_finite():
    net = Net(chain(3))
    for step in range(4):
        net.step(step)
    assert net.findings("F006") == ()


def test_fires_on_a_layer_of_a_chain_if_the_step_before_was_measured():
    net = Net(chain(3))
    net.step(0)
    net.step(1, NAN, outputs=LATE)
    assert net.place == "1"
    assert net.finding.severity is Severity.ERROR
    assert net.finding.first_step == 1
    assert "the first that is not finite (4 values)" in net.finding.evidence.message


def test_no_layer_is_named_if_a_step_before_went_unmeasured():
    net = Net(chain(3))
    net.step(0)
    net.step(1, measured=False)
    net.step(2, NAN, outputs=LATE)
    assert net.place == ""
    assert not names(net.finding)
    assert net.finding.evidence.message == "the loss is NaN from step 2 on"


def test_no_layer_is_named_if_the_first_bad_loss_went_unmeasured():
    net = Net(chain(3))
    net.step(0)
    net.step(1, NAN, measured=False)
    net.step(2, NAN, outputs=LATE)
    assert net.place == ""
    assert not names(net.finding)
    assert net.finding.first_step == 1


def test_no_layer_is_named_if_a_parameter_was_broken_before():
    net = Net(chain(3))
    net.step(0)
    net.step(1, NAN, outputs=LATE, params=NAN)
    assert net.place == ""
    assert net.finding.evidence.message == "a parameter is already not finite at step 1"


def test_in_a_forward_of_one_s_own_the_model_is_named_with_the_layers_around():
    net = Net(custom())
    net.step(0)
    net.step(1, NAN, outputs=LATE)
    assert net.place == ""
    message = net.finding.evidence.message
    assert "born in `1` or in what `net` does ahead of it, after `0`" in message


def test_a_module_called_twice_is_not_named():
    model = chain(3)
    twice = ModuleFacts("1", "Linear", 2, 2)
    modules = (*model.modules[:2], twice, model.modules[3])
    net = Net(ModelFacts("net", "Sequential", modules, model.params))
    net.step(0, NAN, outputs=LATE)
    assert not names(net.finding)


def test_an_output_of_minus_infinity_may_be_a_mask_and_is_not_named():
    net = Net(chain(3))
    net.step(0)
    net.step(1, NAN, outputs={"1": MASK, "2": BAD})
    assert not names(net.finding)


def test_silent_on_masks_alone():
    net = Net(chain(3))
    for step in range(3):
        net.step(step, outputs={"1": MASK})
    assert net.findings("F006") == ()


def test_the_data_is_named_wherever_it_is_seen():
    net = Net(chain(3))
    net.step(0)
    net.step(1, measured=False)
    net.step(2, NAN, given=BAD, outputs={"0": BAD, **LATE})
    assert net.place == ""
    assert "batch of step 2 holds 4 values" in net.finding.evidence.message


def test_fires_on_the_loss_function_if_every_output_is_finite():
    net = Net(chain(3))
    net.step(0)
    net.step(1, measured=False)
    net.step(2, INF)
    assert net.place == ""
    message = net.finding.evidence.message
    assert "the loss is infinite: it was born in the loss function" in message


def test_a_layer_that_breaks_the_gradient_is_named():
    net = Net(chain(3))
    net.step(0)
    net.step(1, gradients={"0": BAD}, grads={"0": BAD})
    assert net.place == "1"
    assert "finite at the output of `1` and not at that of `0`" in net.finding.evidence.message


def test_a_loss_function_that_breaks_the_gradient_is_named():
    net = Net(chain(3))
    every = dict.fromkeys("012", BAD)
    net.step(0, gradients=every, grads=every)
    assert net.place == ""
    assert "backward of the loss function" in net.finding.evidence.message


def test_a_gradient_of_a_parameter_alone_is_its_module_s():
    net = Net(chain(3))
    net.step(0, grads={"1": BAD})
    assert net.place == "1"
    assert "the gradient of `1.weight` is not finite" in net.finding.evidence.message


def test_silent_on_a_step_that_a_grad_scaler_skipped():
    net = Net(chain(3))
    for step in range(3):
        if step == 1:
            net.event(1, EventKind.AMP_SKIPPED)
        net.step(step, grads={"1": BAD} if step == 1 else None)
        assert net.findings("F006") == ()


def test_a_loss_that_is_finite_again_is_a_warning():
    net = Net(chain(3))
    net.step(0)
    net.step(1, INF, measured=False)
    net.step(2)
    assert net.finding.severity is Severity.WARNING
    assert "finite again later" in net.finding.evidence.message


def test_a_finite_loss_over_broken_parameters_is_an_error():
    net = Net(chain(3))
    net.step(0, INF)
    net.step(1, params=NAN)
    assert net.finding.severity is Severity.ERROR


FORWARD = {
    "phase": "forward",
    "operation": "log",
    "index": [3, 1],
    "inputs": [[0.0, 2.5]],
    "input_min": 0.0,
    "input_max": 2.5,
    "count": 2,
}


def test_what_a_replay_has_shown_is_told():
    net = Net(chain(3))
    net.step(0)
    net.origin(57, "1", **FORWARD)
    net.step(57, NAN, measured=False)
    net.step(64, NAN, outputs=dict.fromkeys("012", BAD), params=NAN)
    evidence = net.finding.evidence
    assert (evidence.site.fqn, evidence.step) == ("1", 57)
    assert evidence.message == (
        "at step 57 `log` in `1` makes the first value that is not finite, at index [3, 1], from "
        "values between 0 and 2.5"
    )
    assert "logarithm of 0" in evidence.cause
    assert "clamp_min" in evidence.fix
    assert evidence.numbers["input_max"] == 2.5


@pytest.mark.parametrize(
    ("detail", "words"),
    [
        ({"phase": "input", "index": [2, 1], "count": 3}, "holds 3 values"),
        ({"phase": "parameter", "operation": "weight"}, "the update made it so"),
        ({"phase": "loss", "operation": "div", "inputs": [[1, 2], [0, 0]]}, "others between 0 and"),
        ({"phase": "backward", "operation": "sqrt", "index": []}, "gradient of `sqrt` in `1`"),
        ({"phase": "backward", "operation": "sqrt", "in_loss": True}, "in the loss function is"),
        ({"phase": "forward", "operation": "softmax", "inputs": [["-inf", 1.0]]}, "between -inf"),
        ({"phase": 3, "operation": [], "inputs": "x", "count": "y", "index": 0}, "at index []"),
    ],
)
def test_every_phase_of_a_replay_has_its_words(detail: dict[str, object], words: str):
    net = Net(chain(3))
    net.origin(0, "1", **detail)
    net.step(0, NAN)
    assert words in net.finding.evidence.message
    assert net.finding.evidence.fix


def test_a_replay_that_did_not_show_it_is_told_honestly():
    net = Net(chain(3))
    net.origin(0, "", reason="the replay of the batch gave finite outputs")
    net.step(0, NAN, outputs=LATE)
    evidence = net.finding.evidence
    assert "The replay of the batch did not show it: the replay" in evidence.cause
    assert "--trap-nan" not in evidence.fix


def test_a_compiled_model_names_no_loss_function():
    net = Recording(ModelFacts("net", "Net", (), (), compiled=True))
    net.scalar(0, "loss", NAN)
    net.measured(0)
    (finding,) = net.findings("F006")
    assert not names(finding)


def test_an_infinite_rms_may_be_an_overflow_of_squares_and_proves_nothing():
    net = Net(chain(3))
    net.step(0)
    net.step(1, params=INF)
    assert net.findings("F006") == ()
    net.step(2, NAN, outputs=LATE, params=INF)
    assert not names(net.finding)
