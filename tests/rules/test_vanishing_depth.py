"""G001: gradients along the depth."""

import math
from collections.abc import Iterable
from dataclasses import replace

import pytest

from tests.rules.recording import Recording, chain, linear, weight
from traindx.facts import ModelFacts, ModuleFacts
from traindx.findings import Severity
from traindx.rules.catalog import find
from traindx.rules.engine import judge

DEPTH = 8


def run_of(
    decades_per_layer: float,
    *,
    steps: Iterable[int] = range(5),
    loss: float = 2.3,
    model: ModelFacts | None = None,
    zero_at: dict[int, set[str]] | None = None,
) -> Recording:
    """Gradients that fall by so many decades a layer, from 1 at the last to the first."""
    model = model or chain(DEPTH)
    recording = Recording(model)
    for step in steps:
        recording.scalar(step, "loss", loss)
        for i, param in enumerate(model.params):
            rms = 10 ** (decades_per_layer * (i + 1 - len(model.params)))
            is_zero = param.fqn in (zero_at or {}).get(step, set())
            recording.grad(step, param.fqn, 0.0 if is_zero else rms)
        recording.measured(step)
    return recording


def test_fires_when_each_layer_takes_two_thirds_of_a_decade():
    (finding,) = run_of(0.65).findings("G001")
    assert finding.severity is Severity.ERROR
    assert finding.evidence.site == ("net", "0")
    assert finding.evidence.layers == tuple(map(str, range(8)))
    assert finding.evidence.profiles == ("grad.rms",)
    assert finding.evidence.numbers["slope"] == pytest.approx(0.65)
    assert finding.evidence.numbers["ratio"] == pytest.approx(10 ** (-0.65 * 7))
    assert "threshold 0.001" in finding.evidence.message
    assert "threshold 0.3" in finding.evidence.message
    assert "over 8 Linear weights" in finding.evidence.message


def test_fires_when_the_first_gradients_are_exactly_zero():
    zero = {step: {"0.weight", "1.weight"} for step in range(5)}
    (finding,) = run_of(0.1, zero_at=zero).findings("G001")
    assert finding.evidence.numbers["first"] == 2.0**-149


def test_fires_on_a_slow_decay_that_adds_up_to_nothing():
    """Thirty linear layers with tanh as torch initializes them: 0.24 decades a layer."""
    slope = math.log10(4e-8) / -29
    (finding,) = run_of(slope, model=chain(30)).findings("G001")
    assert finding.evidence.numbers["slope"] == pytest.approx(0.255, abs=0.001)
    assert finding.evidence.numbers["ratio"] == pytest.approx(4e-8)
    assert "a ratio of 4e-08 (threshold 1e-06)" in finding.evidence.message
    assert "0.26 decades per layer (threshold 0.05)" in finding.evidence.message
    assert run_of(slope, model=chain(30)).findings("G001", vanished=1e-8) == ()


@pytest.mark.parametrize(("depth", "decades"), [(400, 0.24), (400, 1.0), (400, 20.0), (8, 40.0)])
def test_fires_when_the_gradients_of_most_layers_have_underflowed(depth: int, decades: float):
    """Only the layers with a gradient tell the slope, however many zeros stand in front."""
    model = chain(depth)
    recording = Recording(model)
    for step in range(3):
        for i, param in enumerate(model.params):
            exponent = decades * (i + 1 - depth)
            recording.grad(step, param.fqn, 10**exponent if exponent > -22 else 0.0)
        recording.measured(step)
    (finding,) = recording.findings("G001")
    assert finding.evidence.numbers["first"] == 2.0**-149
    assert finding.evidence.numbers["slope"] > 0.24


def test_silent_at_a_ratio_of_a_ten_thousandth_with_a_slow_decay():
    assert run_of(0.2, model=chain(21)).findings("G001") == ()


def test_silent_on_a_tiny_ratio_whose_slope_is_almost_flat():
    """One dead layer at the bottom of a deep even net: 10^-7, but 0.04 decades a layer."""
    model = chain(32)
    recording = Recording(model)
    for step in range(4):
        for param in model.params:
            recording.grad(step, param.fqn, 10**-7.0 if param.fqn == "0.weight" else 1.0)
        recording.measured(step)
    assert recording.findings("G001") == ()


def test_silent_when_every_gradient_is_exactly_zero():
    zero = {step: {f"{i}.weight" for i in range(DEPTH)} for step in range(5)}
    assert run_of(0.65, zero_at=zero).findings("G001") == ()


def test_silent_on_a_steep_slope_over_few_layers():
    # 0.9 decades a layer, but 10^-2.7 in all.
    assert run_of(0.9, model=chain(4)).findings("G001") == ()


def test_silent_on_a_small_ratio_that_no_slope_explains():
    # One tiny layer at the bottom of an even net: 10^-3.1, but 0.26 decades a layer.
    model = chain(DEPTH)
    recording = Recording(model)
    for step in range(5):
        for param in model.params:
            recording.grad(step, param.fqn, 10**-3.1 if param.fqn == "0.weight" else 1.0)
        recording.measured(step)
    assert recording.findings("G001") == ()


def test_silent_at_the_slope_of_a_healthy_deep_net():
    assert run_of(0.2, model=chain(20)).findings("G001") == ()


def test_silent_when_the_loss_has_fallen_all_the_same():
    def late(loss: float) -> Recording:
        """Healthy gradients at first, small ones at the first layers when the loss has fallen."""
        recording = run_of(0.05, steps=range(5))
        recording.items += run_of(0.05, steps=range(5, 20), loss=loss).items
        recording.items += run_of(0.65, steps=range(20, 30), loss=loss).items
        return recording

    assert late(0.11).findings("G001") == ()
    assert len(late(0.12).findings("G001")) == 1


def test_silent_when_branches_start_at_zero_in_the_first_step_only():
    half = {f"{i}.weight" for i in range(4)}
    assert run_of(0.05, zero_at={0: half}).findings("G001") == ()
    assert run_of(0.05, zero_at={0: half, 1: half}).findings("G001") == ()


def test_silent_on_frozen_layers_whose_gradients_were_last_measured_long_ago():
    recording = run_of(0.65, steps=range(2))
    for step in range(2, 10):
        for i in range(4, DEPTH):
            recording.grad(step, f"{i}.weight", 1.0)
        recording.measured(step)
    assert recording.findings("G001") == ()


@pytest.mark.parametrize(("layer", "value"), [(3, float("nan")), (DEPTH - 1, float("inf"))])
def test_silent_on_gradients_that_are_not_finite(layer: int, value: float):
    recording = run_of(0.65, steps=())
    for step in range(5):
        for i in range(DEPTH):
            recording.grad(step, f"{i}.weight", value if i == layer else 10.0 ** (i - DEPTH))
        recording.measured(step)
    verdict = recording.verdict("G001")
    assert verdict.findings == ()
    (reason,) = [it.reason for it in verdict.not_evaluated]
    assert reason == "the gradients of net are not finite"


def test_is_evaluated_once_its_gradients_were_finite():
    recording = run_of(0.05, steps=range(3))
    for step in range(3, 6):
        for i in range(DEPTH):
            recording.grad(step, f"{i}.weight", float("nan"))
        recording.measured(step)
    assert recording.verdict("G001").evaluated == ("G001",)


def test_silent_when_fewer_than_three_measured_steps_show_it():
    assert run_of(0.65, steps=range(2)).findings("G001") == ()


def test_layers_stand_in_the_order_of_their_calls_not_of_their_registration():
    fqns = [f"layer{i}" for i in range(DEPTH)]
    modules = tuple(linear(fqn, DEPTH - i) for i, fqn in enumerate(fqns))
    model = ModelFacts("net", "Net", modules, tuple(weight(fqn) for fqn in fqns))
    recording = Recording(model)
    for step in range(3):
        for i, fqn in enumerate(fqns):
            recording.grad(step, f"{fqn}.weight", 10.0**-i)  # layer7 is called first
        recording.measured(step)
    (finding,) = recording.findings("G001")
    assert finding.evidence.site.fqn == "layer7"


def test_kinds_are_not_mixed():
    """Four small convolutions under four large linear layers are no slope."""
    convs = tuple(ModuleFacts(f"conv{i}", "Conv2d", i, 1) for i in range(4))
    linears = tuple(linear(f"fc{i}", 4 + i) for i in range(4))
    params = tuple(weight(module.fqn) for module in (*convs, *linears))
    model = ModelFacts("net", "Net", (*convs, *linears), params)
    recording = Recording(model)
    for step in range(4):
        for param in params:
            recording.grad(step, param.fqn, 1e-5 if "conv" in param.fqn else 1.0)
        recording.measured(step)
    assert recording.findings("G001") == ()


def test_silent_on_small_gradients_of_biases_and_embeddings():
    linears = tuple(linear(f"fc{i}", i) for i in range(5))
    tables = tuple(ModuleFacts(f"table{i}", "Embedding", 5 + i, 1) for i in range(5))
    params = (
        *(weight(module.fqn, name="bias") for module in linears),
        *(weight(module.fqn) for module in (*linears, *tables)),
    )
    recording = Recording(ModelFacts("net", "Net", (*linears, *tables), params))
    for step in range(4):
        for param in params:
            falls = param.fqn.endswith("bias") or "table" in param.fqn
            layer = int(param.module[-1])
            recording.grad(step, param.fqn, 10.0 ** (layer - 5) if falls else 1.0)
        recording.measured(step)
    assert recording.findings("G001") == ()


@pytest.mark.parametrize("frozen", [False, True])
def test_is_not_evaluated_on_a_shallow_net_or_one_that_is_mostly_frozen(frozen: bool):
    model = chain(8 if frozen else 3)
    params = tuple(replace(p, trainable=i > 4 or not frozen) for i, p in enumerate(model.params))
    verdict = run_of(0.65, model=replace(model, params=params)).verdict("G001")
    (reason,) = [it.reason for it in verdict.not_evaluated]
    assert reason == "needs at least 4 trainable weight matrices of one kind in a model"


def test_a_model_that_trains_no_more_keeps_its_finding():
    """In a cross-validation the first fold's fault does not clear because the second one trains."""
    recording = run_of(0.65, steps=range(4))
    for step in range(4, 12):
        recording.scalar(step, "loss", 1.0, model="other")
        recording.measured(step)
    (finding,) = recording.findings("G001")
    assert finding.active
    assert finding.count == 4


def test_a_model_that_shows_it_once_and_trains_no_more_has_no_finding():
    recording = run_of(0.65, steps=range(1))
    for step in range(1, 12):
        recording.scalar(step, "loss", 1.0, model="other")
        recording.measured(step)
    assert judge(recording.items, [find("G001")]).findings == ()
