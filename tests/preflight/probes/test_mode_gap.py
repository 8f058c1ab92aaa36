"""How far the output in training lies from that in evaluation, and why."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import spectral_norm as older_spectral_norm
from torch.nn.utils.parametrizations import spectral_norm

from tests.preflight.cases import (
    NormByHand,
    case_of,
    classifier,
    codes,
    finding,
    labelled,
    probed,
    reason,
)
from traindx.findings import Severity
from traindx.run import Run


def look(model: nn.Module, samples: int = 64) -> Run:
    return probed(case_of(model, labelled(samples), nn.CrossEntropyLoss()), "mode-gap")


@pytest.mark.parametrize(
    ("hidden", "apart"),
    [
        (nn.ReLU(), False),
        (nn.Dropout(0.5), True),
        (nn.BatchNorm1d(32), True),
        (nn.Dropout(0.0), False),
    ],
)
def test_the_gap_is_that_of_dropout_and_batch_statistics(hidden: nn.Module, apart: bool):
    run = look(classifier(hidden))
    (gap,) = run.series("probe.mode_gap")
    assert (gap.last > 1e-3) is apart
    (left,) = run.series("probe.unexplained_mode_gap")
    assert left.last < 1e-5


@pytest.mark.parametrize("norm", [spectral_norm, older_spectral_norm])
def test_the_steps_of_a_power_iteration_are_no_gap(norm: Callable[[nn.Module], nn.Module]):
    layer = norm(nn.Linear(32, 32))
    for param in layer.parameters():  # other weights than those the vectors are of
        nn.init.normal_(param)
    run = look(classifier(layer))
    assert run.series("probe.mode_gap")[0].last > 1e-3
    assert run.series("probe.unexplained_mode_gap")[0].last < 1e-7


def test_a_model_that_is_trained_in_evaluation_has_none():
    assert reason(look(classifier().eval())) == "the model is trained in evaluation mode"


class Both(nn.Module):
    """What is computed in training, and in evaluation."""

    def __init__(
        self, training: Callable[[Tensor], Tensor], evaluation: Callable[[Tensor], Tensor]
    ) -> None:
        super().__init__()
        self.ways = {True: training, False: evaluation}

    def forward(self, x: Tensor) -> Tensor:
        return self.ways[self.training](x)


def same(x: Tensor) -> Tensor:
    return x


def dropped(x: Tensor, p: float = 0.4) -> Tensor:
    return x * (torch.rand_like(x) > p)


UNSCALED: dict[str, Callable[[Tensor], Tensor]] = {
    "compared": dropped,
    "bernoulli": lambda x: torch.bernoulli(torch.full_like(x, 0.6)) * x,
    "in place": lambda x: x * torch.empty_like(x).bernoulli_(0.6),
    "float": lambda x: (torch.rand(x.shape) < 0.6).float() * x,
    "filled": lambda x: x.masked_fill(torch.rand_like(x) < 0.4, 0.0),
    "where": lambda x: torch.where(torch.rand_like(x) > 0.4, x, 0.0),
}


@pytest.mark.parametrize("name", UNSCALED)
def test_a_dropout_that_is_not_made_up_for_is_found_in_its_module(name: str):
    run = look(classifier(nn.ReLU(), Both(UNSCALED[name], same)))
    found = finding(run, "E016")
    assert codes(run) == ["E016"]
    assert found.severity is Severity.ERROR
    assert found.evidence.site.fqn == "2"
    assert found.evidence.numbers["dropped"] == pytest.approx(0.4, abs=0.05)


def stochastic_depth(x: Tensor) -> Tensor:
    keep = x.new_empty(len(x), 1).bernoulli_(0.8)
    return x * keep.div_(0.8)


SCALED: dict[str, Both] = {
    "in training": Both(lambda x: dropped(x) / 0.6, same),
    "in the mask": Both(lambda x: x * ((torch.rand_like(x) > 0.4) / 0.6), same),
    "in evaluation": Both(dropped, lambda x: x * 0.6),
    "by torch": Both(lambda x: F.dropout(x, 0.4), same),
    "by torch, alpha": Both(lambda x: F.alpha_dropout(x, 0.4, training=True), same),
    "of whole samples": Both(stochastic_depth, same),
}


@pytest.mark.parametrize("name", SCALED)
def test_a_dropout_that_is_made_up_for_is_not_reported(name: str):
    assert codes(look(classifier(nn.ReLU(), SCALED[name]))) == []


@pytest.mark.parametrize(
    "model",
    [
        nn.Sequential(Both(dropped, same), classifier()),  # a denoising autoencoder's
        classifier(Both(lambda x: x + torch.randn_like(x), same)),
        nn.Sequential(
            nn.Unflatten(1, (4, 5)),
            nn.LSTM(5, 10, 2, dropout=0.5, batch_first=True),
            Both(lambda out: out[0][:, -1], lambda out: out[0][:, -1]),
        ),
        classifier(nn.RReLU()),
    ],
)
def test_other_noise_of_training_is_not_reported(model: nn.Module):
    assert codes(look(model)) == []


def test_a_dropout_that_is_made_up_for_twice_is_reported():
    twice = Both(lambda x: dropped(x) / 0.6, lambda x: x * 0.6)
    assert codes(look(classifier(nn.ReLU(), twice))) == ["E015"]


def test_what_differs_within_is_a_warning_at_its_place():
    found = finding(look(classifier(Both(same, lambda x: 2 * x), nn.Dropout(0.5))), "E015")
    assert found.severity is Severity.WARNING
    assert found.evidence.site.fqn == "1"


def test_what_differs_at_the_end_is_information():
    model = nn.Sequential(classifier(), Both(same, lambda x: x.softmax(1)))
    found = finding(look(model), "E015")
    assert found.severity is Severity.INFO
    assert found.evidence.site.fqn == "1"


def test_dropout_that_stays_on_in_evaluation_is_no_gap():
    assert codes(look(classifier(Both(F.dropout, F.dropout)))) == []


@pytest.mark.parametrize(("p", "least", "most"), [(0.6, 1.8, 6.0), (0.05, 1.0, 1.3)])
def test_the_variance_that_dropout_adds_before_a_normalization_is_measured(
    p: float, least: float, most: float
):
    model = classifier(nn.ReLU(), nn.Dropout(p), nn.Linear(32, 32), nn.BatchNorm1d(32), nn.ReLU())
    (shift,) = look(model).series("probe.variance_shift")
    assert shift.site.fqn == "4"
    assert least < shift.last < most


def test_dropout_after_a_normalization_adds_none():
    model = classifier(nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.6))
    assert not [*look(model).series("probe.variance_shift")]


def masked(x: Tensor, dropped: int = 12) -> Tensor:
    """The same units for all samples, the others made up for."""
    mask = torch.ones(x.shape[1])
    mask[:dropped] = 0
    return x * mask / mask.mean()


@pytest.mark.parametrize("before", [nn.ReLU(), nn.Identity()])
def test_a_mask_that_is_made_once_is_found_in_its_module(before: nn.Module):
    run = look(classifier(before, Both(masked, same), nn.ReLU()))
    assert codes(run) == ["E018"]
    found = finding(run, "E018")
    assert found.evidence.site.fqn == "2"
    assert found.evidence.numbers["dropped"] == pytest.approx(12 / 32, abs=0.05)


@pytest.mark.parametrize(
    "training",
    [
        lambda x: torch.where(x > 0.5, 0.0, x),  # other units in each sample
        lambda x: masked(x) + 0.1,
        lambda x: masked(x).square(),
    ],
)
def test_other_zeros_are_no_mask(training: Callable[[Tensor], Tensor]):
    assert codes(look(classifier(nn.Identity(), Both(training, same)))) == ["E015"]


def test_a_batch_normalization_written_by_hand_is_no_gap():
    assert codes(look(classifier(NormByHand(follows_mode=True), nn.ReLU()))) == []
