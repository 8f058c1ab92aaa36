"""L003 output-loss-mismatch: an output, a loss and a target that do not belong together."""

from __future__ import annotations

import pytest

from tests.rules.before_training import Probing
from traindx.facts import Json
from traindx.findings import Severity

SCORES: dict[str, Json] = {
    "function": "cross_entropy",
    "prediction_shape": [32, 10],
    "target_shape": [32],
    "target_is_integer": True,
    "made_by": ["Addmm", "Relu"],
    "prediction_min": -3.0,
    "prediction_max": 3.0,
    "target_min": 0.0,
    "target_max": 9.0,
    "target_whole": True,
    "target_values": 10,
    "outside_unit": 0.8,
    "outside_symmetric": 0.8,
    "below_zero": 0.0,
    "sums_over": [],
    "exp_sums_over": [],
    "single_softmax": False,
}
REGRESSION: dict[str, Json] = {
    **SCORES,
    "function": "mse_loss",
    "prediction_shape": [32, 1],
    "target_shape": [32, 1],
    "target_is_integer": False,
    "target_whole": False,
    "target_min": -2.0,
    "target_max": 2.0,
    "outside_unit": 0.6,
    "outside_symmetric": 0.3,
    "below_zero": 0.5,
}
BINARY: dict[str, Json] = {
    **REGRESSION,
    "function": "binary_cross_entropy_with_logits",
    "target_min": 0.0,
    "target_max": 1.0,
    "target_whole": True,
    "target_values": 2,
    "outside_unit": 0.0,
}
TAGS: dict[str, Json] = {
    **SCORES,
    "prediction_shape": [32, 8, 8],
    "target_shape": [32, 8],
    "features_last": False,
}
ALIGNED: dict[str, Json] = {
    **SCORES,
    "function": "ctc_loss",
    "prediction_shape": [16, 32, 6],
    "target_shape": [32, 4],
    "prediction_max": -0.1,
    "exp_sums_over": [2],
}


def seen(facts: dict[str, Json], **changes: Json) -> Probing:
    return (
        Probing()
        .number("probe.comparisons", 1)
        .seen("output-and-target", "", **{**facts, **changes})
    )


@pytest.mark.parametrize(
    ("facts", "changes", "words"),
    [
        (REGRESSION, {"target_shape": [32]}, "the output has the shape 32x1, the target 32"),
        (REGRESSION, {"prediction_shape": [32], "target_shape": [32, 1]}, "every output"),
        (REGRESSION, {"target_shape": [1, 32]}, "the output has the shape 32x1, the target 1x32"),
        (REGRESSION, {"function": "kl_div", "prediction_learned": False, "target_learned": True},
         "the target first"),
        (REGRESSION, {"function": "poisson_nll_loss", "log_input": True, "made_by": ["Softplus"]},
         "what a softplus has made positive"),
        (REGRESSION, {"function": "poisson_nll_loss", "log_input": False}, "they go down to -3"),
        (REGRESSION, {"function": "kl_div"}, "takes probabilities as its target"),
        (BINARY, {"function": "kl_div", "log_target": True}, "told that its target is logarithms"),
        (SCORES, {"most_of_a_row": 3.0}, "that sum to up to 3"),
        (ALIGNED, {"blanks": 4, "symbols": 128}, "4 of the 128 symbols"),
        (ALIGNED, {"too_long": 20, "texts": 32}, "20 of the 32 texts"),
        (SCORES, {"prediction_shape": [32, 1]}, "over a single class"),
        (SCORES, {"single_softmax": True}, "a softmax over a single score"),
        (SCORES, {"made_by": ["Softmax"], "sums_over": [0]}, "over axis 0 of 32x10, the samples"),
        (SCORES, {"made_by": ["LogSoftmax"], "exp_sums_over": [0]}, "the samples of the batch"),
        (BINARY, {"made_by": ["Sigmoid", "Addmm"]}, "is given what a sigmoid has made"),
        (SCORES, {"made_by": ["Sigmoid"]}, "is given what a sigmoid has made"),
        (BINARY, {"made_by": ["Softmax"], "sums_over": [1]}, "is given what a softmax has made"),
        (BINARY, {"function": "binary_cross_entropy", "made_by": ["Sigmoid", "Sigmoid"]}, "follow"),
        (SCORES, {"made_by": ["LogSoftmax", "Softmax"], "exp_sums_over": [1]}, "`log_softmax`"),
        (SCORES, {"function": "nll_loss"}, "logarithms of probabilities"),
        (SCORES, {"function": "kl_div", "sums_over": [1], "made_by": ["Softmax"]}, "logarithms"),
        (BINARY, {"target_min": -1.0, "outside_unit": 0.5}, "takes targets from 0 to 1"),
        (REGRESSION, {"made_by": ["Sigmoid"]}, "60% of the targets lie outside"),
        (ALIGNED, {"exp_sums_over": []}, "`ctc_loss` takes logarithms of probabilities"),
        (TAGS, {"features_last": True}, "classes on axis 1 of 32x8x8"),
        (BINARY, {"function": "hinge"}, "takes targets of -1 and 1, and is given 0 and 1"),
        (REGRESSION, {"made_by": ["Tanh"]}, "30% of the targets lie outside"),
        (REGRESSION, {"made_by": ["Relu"]}, "50% of the targets lie outside"),
    ],
)  # fmt: skip
def test_fires_for_what_does_not_belong_together(
    facts: dict[str, Json], changes: dict[str, Json], words: str
):
    (finding,) = seen(facts, **changes).findings("L003")
    assert finding.severity is Severity.ERROR
    assert words in finding.evidence.message
    assert finding.evidence.fix


@pytest.mark.parametrize(
    ("facts", "changes", "severity"),
    [
        (SCORES, {"made_by": ["Relu"]}, Severity.WARNING),
        (REGRESSION, {"bootstrapped": True}, Severity.WARNING),
        (REGRESSION, {"function": "cosine_similarity"}, Severity.WARNING),
        (SCORES, {"label_smoothing": 0.9}, Severity.WARNING),
        (SCORES, {"weight_slope": 1.0, "class_ratio": 9.0}, Severity.WARNING),
        (ALIGNED, {"too_long": 2, "texts": 32}, Severity.WARNING),
        (
            REGRESSION,
            {"target_whole": True, "target_zeros": 0.6, "target_values": 5},
            Severity.WARNING,
        ),
        (BINARY, {"made_by": ["Tanh"]}, Severity.WARNING),
        (
            REGRESSION,
            {"target_whole": True, "target_min": 0.0, "target_max": 9.0, "target_values": 10},
            Severity.INFO,
        ),
    ],
)
def test_fires_more_softly_for_what_may_be_meant(
    facts: dict[str, Json], changes: dict[str, Json], severity: Severity
):
    (finding,) = seen(facts, **changes).findings("L003")
    assert finding.severity is severity


@pytest.mark.parametrize(
    ("facts", "changes"),
    [
        (SCORES, {}),
        (REGRESSION, {}),
        (BINARY, {}),
        (SCORES, {"function": "nll_loss", "made_by": ["LogSoftmax"], "prediction_max": -0.1,
                  "exp_sums_over": [1]}),
        (REGRESSION, {"made_by": ["Sigmoid"], "outside_unit": 0.02}),
        (REGRESSION, {"made_by": ["Mul", "Tanh"]}),
        (ALIGNED, {"blanks": 0, "symbols": 128, "too_long": 0, "texts": 32}),
        (REGRESSION, {"prediction_learned": False, "target_learned": True}),  # the same both ways
        (SCORES, {"prediction_learned": True, "target_learned": True}),  # a teacher that learns
        (SCORES, {"most_of_a_row": 1.0, "label_smoothing": 0.2}),
        (SCORES, {"weight_slope": -1.0, "class_ratio": 9.0}),
        (SCORES, {"weight_slope": 1.0, "class_ratio": 1.5}),
        (REGRESSION, {"target_whole": True, "target_zeros": 0.0, "target_values": 2}),
        (TAGS, {}),
        (TAGS, {"features_last": True, "prediction_shape": [32, 7, 8], "target_shape": [32, 8]}),
        (BINARY, {"function": "hinge", "target_min": -1.0}),
        (REGRESSION, {"prediction_shape": [1, 1], "target_shape": [1]}),
        (REGRESSION, {"prediction_shape": [32, 4], "target_shape": [32, 1]}),
        (BINARY, {"function": "binary_cross_entropy", "made_by": ["Sigmoid", "Addmm"]}),
        (SCORES, {"made_by": ["Softmax"], "sums_over": [1]}),  # L002's
        (REGRESSION, {"target_whole": True, "target_max": 400.0, "target_values": 64}),
        (REGRESSION, {"target_whole": True, "target_min": 1.0, "target_max": 5.0,
                      "target_values": 5}),
    ],
)  # fmt: skip
def test_silent_for_what_belongs_together(facts: dict[str, Json], changes: dict[str, Json]):
    assert not seen(facts, **changes).findings("L003")


def test_silent_for_a_softmax_over_a_batch_of_one():
    one = {"made_by": ["Softmax"], "prediction_shape": [1, 10], "sums_over": [1]}
    assert not seen(SCORES, **one).findings("L003")


def test_the_worst_of_several_losses_is_told():
    run = seen(SCORES, made_by=["Relu"]).seen(
        "output-and-target", "", **{**BINARY, "made_by": ["Sigmoid"]}
    )
    (finding,) = run.findings("L003")
    assert finding.severity is Severity.ERROR


def test_it_says_that_it_needs_preflight():
    assert Probing().why_not("L003") == "needs preflight"
