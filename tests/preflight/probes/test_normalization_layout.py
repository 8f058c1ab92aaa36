"""What normalization layers take their mean over, and the biases that they undo."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.preflight.cases import case_of, classifier, codes, finding, labelled, probed, reason

NAME = "normalization-layout"
X, Y = labelled()


def convolutional(norm: nn.Module, *, bias: bool = False) -> nn.Module:
    torch.manual_seed(0)
    conv = nn.Conv1d(1, 8, 5, bias=bias)
    return nn.Sequential(
        *(nn.Unflatten(1, (1, 20)), conv, norm, nn.ReLU()),
        *(nn.Flatten(), nn.Linear(8 * 16, 10)),
    )


def run_of(model: nn.Module, samples: int = 32):
    return probed(case_of(model, (X[:samples], Y[:samples]), F.cross_entropy), NAME)


def test_a_layer_norm_along_space_behind_a_convolution_is_told() -> None:
    found = finding(run_of(convolutional(nn.LayerNorm(16))), "S009")
    assert "8x16 with the channels on axis 1" in found.evidence.message
    assert found.severity == "warning"


def test_groups_of_few_numbers_are_told() -> None:
    found = finding(run_of(classifier(nn.GroupNorm(16, 32), nn.ReLU())), "S009")
    assert found.severity == "warning"
    assert found.evidence.numbers == {"group": 2}


def test_single_numbers_are_told_as_what_they_are() -> None:
    run = run_of(classifier(nn.GroupNorm(32, 32), nn.ReLU()))
    assert codes(run) == ["N012"]
    assert finding(run, "N012").evidence.site.fqn == "1"


def test_a_batch_of_two_is_told_where_batch_norm_trains() -> None:
    model = classifier(nn.BatchNorm1d(32), nn.ReLU())
    assert "S009" in codes(run_of(model, samples=2))
    assert "S009" not in codes(run_of(model.eval(), samples=2))


@pytest.mark.parametrize(
    "norm",
    [nn.LayerNorm([8, 16]), nn.GroupNorm(2, 8), nn.BatchNorm1d(8), nn.InstanceNorm1d(8)],
)
def test_usual_layers_are_not(norm: nn.Module) -> None:
    assert not codes(run_of(convolutional(norm)))


def test_channels_that_are_moved_to_the_end_are_not() -> None:
    class Moving(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(8)

        def forward(self, x: Tensor) -> Tensor:
            return self.norm(x.movedim(1, -1)).movedim(-1, 1)

    assert not codes(run_of(convolutional(Moving())))


@pytest.mark.parametrize("norm", [nn.BatchNorm1d(8), nn.InstanceNorm1d(8), nn.GroupNorm(8, 8)])
def test_a_bias_that_is_subtracted_again_is_told(norm: nn.Module) -> None:
    found = finding(run_of(convolutional(norm, bias=True)), "S011")
    assert found.evidence.site.fqn == "1"
    assert found.evidence.numbers == {"layers": 1, "elements": 8}


@pytest.mark.parametrize("norm", [nn.BatchNorm1d(8).eval(), nn.GroupNorm(2, 8), nn.RMSNorm(16)])
def test_a_bias_that_counts_is_not(norm: nn.Module) -> None:
    model = convolutional(norm, bias=True)
    run = probed(case_of(model.eval(), (X, Y), F.cross_entropy), NAME)
    assert "S011" not in codes(run)


def test_a_bias_that_also_goes_another_way_is_not() -> None:
    class Forked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.fc, self.norm, self.head = nn.Linear(20, 32), nn.BatchNorm1d(32), nn.Linear(32, 10)

        def forward(self, x: Tensor) -> Tensor:
            h = self.fc(x)
            return self.head(torch.relu(self.norm(h)) + torch.relu(h))

    assert not codes(run_of(Forked()))


def test_a_model_without_normalization_has_none_to_look_at() -> None:
    assert reason(run_of(classifier())) == "the model has no normalization layer"
