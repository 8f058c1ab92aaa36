"""What half precision loses beside a shadow in float64."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.preflight.cases import case_of, classifier, codes, finding, labelled, probed, reason
from traindx.findings import Severity
from traindx.preflight.case import Replayed
from traindx.preflight.tape import Score, Tape, leading_to
from traindx.run import Run


def small(times: float) -> Any:
    """A loss so small that its gradients are, too."""

    def loss(output: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(output.float(), target) * times

    return loss


def look(
    *hidden: nn.Module,
    dtype: torch.dtype = torch.float16,
    times: float = 1.0,
) -> Run:
    case = case_of(classifier(*hidden), labelled(), small(times))
    return probed(replace(case, autocast=(("cpu", dtype),)), "half-precision")


def test_gradients_that_float16_flushes_are_found():
    found = finding(look(times=1e-6), "P001")
    assert found.severity is Severity.WARNING
    assert found.evidence.numbers["parameters"] == 4
    assert "GradScaler" in found.evidence.fix


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_gradients_in_range_are_not_reported(dtype: torch.dtype):
    run = look(nn.ReLU(), nn.Dropout(0.3), dtype=dtype)
    assert codes(run) == []
    assert max(series.last for series in run.series("probe.half_error")) < 0.02


def test_bfloat16_holds_what_float16_flushes():
    assert codes(look(dtype=torch.bfloat16, times=1e-6)) == []


def test_numbers_beyond_float16_are_found_at_their_first_layer():
    found = finding(look(Times(1e5), nn.Tanh()), "P008")
    assert found.severity is Severity.ERROR
    assert found.evidence.site.fqn == "1"
    assert found.evidence.numbers["largest"] > 65_504
    assert codes(look(Times(1e5), nn.Tanh(), dtype=torch.bfloat16)) == []
    assert codes(look(Times(1e3), nn.Tanh())) == []


class Times(nn.Module):
    """Makes everything larger."""

    def __init__(self, times: float) -> None:
        super().__init__()
        self.times = times

    def forward(self, x: Tensor) -> Tensor:
        return x * self.times


class Masked(nn.Module):
    """Puts in an infinity on purpose."""

    def forward(self, x: Tensor) -> Tensor:
        return x.masked_fill(x < 0, float("-inf"))


def test_an_infinity_on_purpose_is_none_of_half_precision():
    run = look(Masked(), nn.Softmax(1))
    assert "P008" not in codes(run)


def test_a_loss_scale_lifts_gradients_into_range():
    x, y = labelled()
    model = classifier()
    case = case_of(model, (x, y), small(1e-6))
    with Tape() as tape, torch.autocast("cpu", dtype=torch.float16):
        output = model(x)
    with tape:
        tape.note(model, (x,), {}, output, None)
        loss = small(1e-6)(output, y) * 65536
    entries = tuple(leading_to(tape.entries, loss))
    replayed = Replayed.of_score(Score(entries, loss, scale=65536.0))
    half = replace(case, autocast=(("cpu", torch.float16),))
    assert codes(probed(half, "half-precision")) == ["P001"]
    assert codes(probed(replace(half, loss_found=replayed), "half-precision")) == []


def test_in_float32_there_is_nothing_to_see():
    run = probed(case_of(classifier(), labelled(), nn.CrossEntropyLoss()), "half-precision")
    assert reason(run) == "nothing is computed in half precision"
