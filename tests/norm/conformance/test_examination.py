"""Every fault that is put into a layer is named, and a layer without one has none."""

from functools import cache

import pytest

from tests.norm.conformance.twin import DEFAULTS, Twin
from traindx.findings import Severity
from traindx.norm.conformance.examine import studied
from traindx.norm.conformance.study import Study, Verdict

# Fault: the kinds that can have it, the name it is found by, words of its sentence.
FAULTS: dict[str, tuple[tuple[str, ...], str, str]] = {
    "eps 1e-3": (
        ("batch_norm", "layer_norm", "group_norm", "rms_norm"),
        "eps",
        "eps is 0.001, and not",
    ),
    "ignores eps": (("layer_norm", "batch_norm"), "eps", "eps is 1e-05, and not 0.02"),
    "eps outside": (("batch_norm", "layer_norm"), "eps-placement", "outside the root"),
    "momentum 0.01": (("batch_norm",), "momentum", "weighs 0.01, not 0.1"),
    "momentum of the old": (("batch_norm",), "momentum-swapped", "weight of the old value"),
    "frozen": (("batch_norm",), "running-frozen", "do not move"),
    "running biased": (("batch_norm",), "running-variance", "biased, not unbiased"),
    "divides by n - 1": (("batch_norm", "layer_norm"), "variance", "unbiased variance"),
    "channels last": (("batch_norm",), "axis", "axis -1, not 1"),
    "axis 1": (("layer_norm", "rms_norm"), "axis", "axis 1 instead of -1"),
    "one group": (("group_norm",), "groups", "groups are 1, and not 2"),
    "interleaved": (("group_norm",), "group-order", "groups are interleaved, and not blocked"),
    "keeps the mean": (("layer_norm",), "not-centered", "mean is not subtracted"),
    "divides by rms": (("layer_norm",), "rms", "root mean square divides"),
    "1 + weight": (("rms_norm", "layer_norm"), "weight-offset", "1 + weight"),
    "one pass": (("batch_norm", "layer_norm", "group_norm"), "one-pass-variance", "NaN where"),
    "one pass clipped": (("batch_norm", "layer_norm"), "one-pass-variance", "0 where"),
    "float64 in float32": (("layer_norm", "batch_norm"), "narrower-type", "float64 in float32"),
    "options in float32": (("layer_norm",), "short-options", "in float32"),
    "gradient of constants": (("batch_norm", "rms_norm"), "gradient-of-constants", "constants"),
    "gradient without mean": (("layer_norm",), "gradient-without-mean", "through the mean"),
    "gradient without variance": (
        ("group_norm",),
        "gradient-without-variance",
        "through the variance",
    ),
    "evaluates by the batch": (("batch_norm",), "evaluation-by-batch", "the batch's statistics"),
    "moves before evaluating": (("batch_norm",), "evaluation-moves", "and then uses them"),
    "reads the base": (("layer_norm", "batch_norm"), "memory", "sliced input"),
    "nan spreads": (("layer_norm",), "spreads", "share no statistic"),
    "one sample passes": (("batch_norm",), "one-sample", "the output is the input"),
    "empty poisons": (("batch_norm",), "empty", "NaN"),
    "raises": (("layer_norm",), "raises", "ZeroDivisionError: by the framework"),
    "wrong shape": (("layer_norm",), "raises", "an output of shape (2, 6, 4, 1)"),
    "something else": (("layer_norm",), "unexplained", "no specification"),
    "late window": (("local_response_norm",), "window", "before and"),
    "whole alpha": (("local_response_norm",), "alpha-divided", "not divided by the size"),
    "k 2": (("local_response_norm",), "k", "k is 2, and not 1"),
    "loops over samples": (("local_response_norm",), "loops-over-samples", "as many channels"),
    "sliding sum": (("local_response_norm",), "sliding-sum", "slides"),
}
CASES = [(fault, kind) for fault, (kinds, _, _) in FAULTS.items() for kind in kinds]
# What also shows where a fault is: the same thing from another side.
CONSEQUENCES = {
    "one pass": {"constant", "negative-variance"},
    "one pass clipped": {"constant"},
    "sliding sum": {"spreads"},
    "divides by n - 1": {"one-sample"},
    "keeps the mean": {"one-sample"},
    "divides by rms": {"one-sample"},
}


@cache
def study(kind: str, fault: str = "") -> Study:
    return studied(Twin(kind, fault), "Layer")


def serious(found: Study) -> list[str]:
    return [
        f"{one.difference.name}: {one.difference.text}"
        for one in found.findings
        if one.severity is not Severity.INFO
    ]


@pytest.mark.parametrize("kind", [*DEFAULTS, "local_response_norm"])
def test_a_right_layer_is_exact_or_off_by_rounding_alone(kind: str) -> None:
    found = study(kind)
    assert serious(found) == []
    assert found.verdicts[Verdict.ROUNDING] > 30
    names = {one.difference.name for one in found.findings}
    # torch refuses a lone sample in GroupNorm, and counts an empty batch as we do.
    assert names <= {"overflow", "constant-rounding", "poisons", "empty", "one-sample"}


@pytest.mark.parametrize(("fault", "kind"), CASES)
def test_a_fault_is_named(fault: str, kind: str) -> None:
    _, name, words = FAULTS[fault]
    found = study(kind, fault)
    named = [one for one in found.findings if one.difference.name == name]
    assert [one.difference.text for one in named if words in one.difference.text], found.findings


@pytest.mark.parametrize(("fault", "kind"), CASES)
def test_nothing_else_is_found_than_the_fault(fault: str, kind: str) -> None:
    _, name, _ = FAULTS[fault]
    right = {one.difference.name for one in study(kind).findings}
    found = {one.difference.name for one in study(kind, fault).findings}
    assert found - right - {name} <= CONSEQUENCES.get(fault, set())


@pytest.mark.parametrize("fault", ["raises", "wrong shape", "something else"])
def test_a_layer_whose_defaults_are_not_understood_is_asked_no_further(fault: str) -> None:
    twin = Twin("layer_norm", fault)
    assert studied(twin, "Layer").unexplained
    assert twin.asked < 10
