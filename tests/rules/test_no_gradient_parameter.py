"""G003: parameters without gradient."""

from collections.abc import Callable
from dataclasses import replace

from tests.rules.recording import Recording, linear, weight
from traindx.facts import ModelFacts, ModuleFacts, ParamFacts, PathFacts
from traindx.findings import Severity
from traindx.records import Description, Point, Record, Scalar, Site, TensorStats

STEPS = (*range(10), *range(16, 80, 8))
Gradient = Callable[[str, int], float | None]
"""The RMS of a parameter's gradient at a step; None where it has none."""


def model_of(*modules: ModuleFacts, params: tuple[ParamFacts, ...] | None = None) -> ModelFacts:
    owners = [module.fqn for module in modules if module.kind == "Linear"]
    own = params or tuple(weight(fqn, name=name) for fqn in owners for name in ("weight", "bias"))
    return ModelFacts("net", "Net", (ModuleFacts("", "Net", 0, 1), *modules), own)


def run_of(model: ModelFacts, gradient: Gradient, steps: tuple[int, ...] = STEPS) -> Recording:
    recording = Recording(model)
    for step in steps:
        for param in model.params:
            rms = gradient(param.fqn, step)
            if param.trainable and param.optimizers:
                recording.scalar(step, "grad.absent", rms is None, param.fqn)
            if rms is not None:
                recording.grad(step, param.fqn, rms)
        recording.measured(step)
    return recording


def without(*prefixes: str) -> Gradient:
    """No gradient for the parameters whose paths begin so, a healthy one for all others."""
    return lambda fqn, step: None if fqn.startswith(prefixes) else 0.1


ENCODER_DECODER = model_of(
    ModuleFacts("encoder", "Sequential", 1, 1),
    linear("encoder.0", 2),
    linear("encoder.1", 3),
    ModuleFacts("decoder", "Sequential", 4, 1),
    linear("decoder.0", 5),
    linear("decoder.1", 6),
)


def test_fires_as_an_error_on_the_root_of_a_subtree_cut_from_the_loss():
    (finding,) = run_of(ENCODER_DECODER, without("encoder")).findings("G003")
    assert finding.severity is Severity.ERROR
    assert finding.evidence.site == ("net", "encoder")
    assert finding.evidence.numbers["parameters"] == 4
    assert "over 72 steps" in finding.evidence.message
    assert "`.detach()`" in finding.evidence.fix


def test_fires_as_one_finding_on_modules_in_a_row_behind_one_cut():
    model = model_of(linear("conv1", 1), linear("conv2", 2), linear("conv3", 3), linear("head", 4))
    (finding,) = run_of(model, without("conv1", "conv2")).findings("G003")
    assert finding.evidence.site.fqn == "conv2"
    assert finding.evidence.layers == ("conv1", "conv2")
    assert "`conv2` and 1 module before it" in finding.evidence.message


def test_fires_on_a_model_that_gets_no_gradient_at_all():
    (finding,) = run_of(ENCODER_DECODER, without("")).findings("G003")
    assert finding.evidence.site == ("net", "")
    assert finding.severity is Severity.ERROR


def test_fires_as_a_warning_on_a_branch_that_is_never_called():
    model = model_of(linear("used", 1), linear("unused", None), linear("spare", None))
    findings = run_of(model, without("unused", "spare")).findings("G003")
    assert [it.severity for it in findings] == [Severity.WARNING] * 2
    assert [it.evidence.site.fqn for it in findings] == ["unused", "spare"]
    assert "never called" in findings[0].evidence.cause


def test_fires_as_a_warning_on_a_last_head_whose_output_is_not_used():
    model = model_of(linear("body", 1), linear("head", 2), linear("auxiliary", 3))
    (finding,) = run_of(model, without("auxiliary")).findings("G003")
    assert finding.severity is Severity.WARNING
    assert finding.evidence.site.fqn == "auxiliary"


def test_fires_as_a_warning_where_backward_brings_exact_zeros():
    """Every unit of the layer is dead: no gradient, but nothing is cut."""
    dead = run_of(ENCODER_DECODER, lambda fqn, step: 0.0 if fqn.startswith("encoder") else 0.1)
    (finding,) = dead.findings("G003")
    assert finding.severity is Severity.WARNING
    assert "exactly 0" in finding.evidence.message
    assert "dead units" in finding.evidence.cause


def test_fires_as_an_error_on_zeros_where_the_walked_graph_does_not_reach():
    path = PathFacts(0, 0, 0.0)
    params = (weight("cut"), weight("head", path=path))
    model = model_of(linear("cut", 1), linear("head", 2), params=params)
    zeros = run_of(model, lambda fqn, step: 0.0 if fqn.startswith("cut") else 0.1)
    (finding,) = zeros.findings("G003")
    assert finding.severity is Severity.ERROR


def test_fires_on_one_tensor_of_a_module_that_otherwise_trains():
    (finding,) = run_of(ENCODER_DECODER, without("encoder.0.bias")).findings("G003")
    assert finding.evidence.site.fqn == "encoder.0"
    assert finding.evidence.numbers["parameters"] == 1


def test_silent_before_fifty_steps_have_passed():
    assert run_of(ENCODER_DECODER, without("encoder"), tuple(range(50))).findings("G003") == ()
    assert len(run_of(ENCODER_DECODER, without("encoder"), tuple(range(51))).findings("G003")) == 1


def test_silent_on_an_adapter_that_is_zero_in_the_first_step():
    def lora(fqn: str, step: int) -> float:
        return 0.0 if fqn.startswith("encoder") and step == 0 else 0.1

    assert run_of(ENCODER_DECODER, lora).findings("G003") == ()


def test_silent_on_frozen_parameters_and_on_those_that_no_optimizer_holds():
    modules = (linear("frozen", 1), linear("unheld", 2), linear("head", 3))
    params = (weight("frozen", trainable=False), weight("unheld", held=False), weight("head"))
    recording = run_of(model_of(*modules, params=params), without("frozen", "unheld"))
    verdict = recording.verdict("G003")
    assert verdict.evaluated == ("G003",)
    assert verdict.findings == ()


def test_fires_as_an_error_on_a_branch_cut_in_the_middle():
    model = model_of(linear("stem", 1), linear("branch", 2), linear("head", 3))
    (finding,) = run_of(model, without("branch")).findings("G003")
    assert finding.severity is Severity.ERROR
    assert finding.evidence.site.fqn == "branch"


def test_two_cuts_are_two_findings():
    model = model_of(*(linear(fqn, i) for i, fqn in enumerate(("a", "b", "c", "d"))))
    findings = run_of(model, without("a", "c")).findings("G003")
    assert [finding.evidence.site.fqn for finding in findings] == ["a", "c"]


def test_silent_on_what_was_frozen_after_it_had_no_gradient_for_long():
    recording = run_of(ENCODER_DECODER, without("encoder"))
    frozen = tuple(
        replace(param, trainable=not param.fqn.startswith("encoder"))
        for param in ENCODER_DECODER.params
    )
    recording.items[0] = Description(0, replace(ENCODER_DECODER, params=frozen))
    assert recording.findings("G003") == ()


def test_silent_on_a_gradient_that_is_never_positive():
    recording = run_of(ENCODER_DECODER, without("encoder.0.bias"), STEPS)
    recording.items = [
        replace(item, value=0.0) if isinstance(item, Scalar) else item for item in recording.items
    ]
    one_sided = TensorStats(count=10, mean=-0.1, m2=0.1, min=-0.3, max=0.0)
    site = Site("net", "encoder.0.bias")
    recording.items[1:1] = [Record(step, site, Point.GRAD, one_sided) for step in STEPS]
    assert recording.findings("G003") == ()


def test_silent_on_parameters_with_a_gradient_at_every_other_step():
    def alternating(fqn: str, step: int) -> float | None:
        return None if fqn.startswith("encoder") and step % 2 else 0.1

    assert run_of(ENCODER_DECODER, alternating).findings("G003") == ()


def test_silent_on_a_gradient_that_is_zero_at_all_measured_steps_but_one():
    """An embedding whose rows a batch rarely touches."""

    def rare(fqn: str, step: int) -> float:
        return 0.0 if fqn.startswith("encoder") and step != 16 else 0.1

    assert run_of(ENCODER_DECODER, rare).findings("G003") == ()


def test_silent_on_a_bias_before_a_normalization():
    tiny = run_of(ENCODER_DECODER, lambda fqn, step: 1e-30 if fqn == "encoder.0.bias" else 0.1)
    assert tiny.findings("G003") == ()


def test_silent_on_a_gradient_that_is_there_but_could_not_be_measured():
    recording = Recording(ENCODER_DECODER)
    for step in STEPS:
        for param in ENCODER_DECODER.params:
            recording.scalar(step, "grad.absent", 0.0, param.fqn)
        recording.measured(step)
    assert recording.findings("G003") == ()


def test_silent_on_the_bias_of_a_layer_of_whose_output_the_loss_sees_differences_only():
    model = model_of(linear("embed", 1), linear("head", 2))
    run = run_of(model, lambda fqn, step: 0.0 if fqn == "head.bias" else 0.1)
    assert run.findings("G003") == ()


def test_fires_on_a_bias_of_zeros_whose_weight_has_none_either():
    model = model_of(linear("embed", 1), linear("head", 2))
    run = run_of(model, lambda fqn, step: 0.0 if fqn.startswith("head") else 0.1)
    (finding,) = run.findings("G003")
    assert finding.evidence.numbers["parameters"] == 2


def test_fires_on_a_weight_of_zeros_whose_bias_has_a_gradient():
    model = model_of(linear("embed", 1), linear("head", 2))
    run = run_of(model, lambda fqn, step: 0.0 if fqn == "head.weight" else 0.1)
    (finding,) = run.findings("G003")
    assert finding.evidence.site.fqn == "head"
