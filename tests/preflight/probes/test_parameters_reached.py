"""Which parameters are reached, called and held, on real models."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.preflight.cases import case_of, classifier, codes, finding, labelled, probed, reason

NAME = "parameters-reached"
BATCH = labelled()


class Net(nn.Module):
    """An encoder and a head, and ways to connect them badly."""

    def __init__(self, way: str = "") -> None:
        super().__init__()
        torch.manual_seed(0)
        self.encoder = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 32))
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Linear(32, 10)
        self.other = nn.Linear(32, 10) if way in ("unused", "not called") else None
        self.way = way

    def forward(self, x: Tensor) -> Tensor:
        h = self.encoder(x)
        if self.way == "detached":
            h = h.detach()
        if self.way == "unused":
            assert self.other is not None
            self.other(h)
        if self.way == "weight only":
            return F.linear(self.dropout(h), self.head.weight, self.head.bias)
        return self.head(h if self.way == "no dropout" else self.dropout(h))


def run_of(model: nn.Module, params: object = None):
    held = list(model.parameters()) if params is None else params
    optimizer = torch.optim.SGD(held, lr=0.1)  # pyright: ignore[reportArgumentType]
    return probed(case_of(model, BATCH, F.cross_entropy, optimizer), NAME)


def test_a_cut_graph_is_told_with_the_effect_on_the_loss() -> None:
    found = finding(run_of(Net("detached")), "S012")
    assert found.severity == "error"
    assert found.evidence.site.fqn == "encoder.2"
    assert found.evidence.numbers["effect"] > 1e-4


def test_an_output_that_nothing_uses_is_no_cut() -> None:
    found = finding(run_of(Net("unused")), "S012")
    assert (found.severity, found.evidence.numbers["effect"]) == ("info", 0.0)


@pytest.mark.parametrize(
    ("way", "fqn", "severity"),
    [("not called", "other", "warning"), ("no dropout", "dropout", "info")],
)
def test_a_module_that_is_never_called_is_told(way: str, fqn: str, severity: str) -> None:
    found = finding(run_of(Net(way)), "S005")
    assert (found.evidence.site.fqn, found.severity) == (fqn, severity)


class Skipping(nn.Module):
    """A layer that is left out of most passes."""

    def __init__(self, share: float) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(20, 20), nn.Linear(20, 20)
        self.head = nn.Linear(20, 10)
        self.share = share

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu(self.first(x))
        if float(torch.rand(())) >= self.share:
            h = h + F.relu(self.second(h))
        return self.head(h)


def test_a_layer_that_is_left_out_at_random_is_not_told_and_one_that_always_is_is() -> None:
    torch.manual_seed(0)  # as every probe begins
    assert float(torch.rand(())) < 0.5
    assert not codes(run_of(Skipping(0.5)))
    assert finding(run_of(Skipping(1.0)), "S005").evidence.site.fqn == "second"


@pytest.mark.parametrize("way", ["", "weight only"])
def test_a_whole_network_has_no_finding(way: str) -> None:
    assert not codes(run_of(Net(way)))


def test_attention_and_encoder_layers_use_their_parts_without_a_call() -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(20, 2, 32, batch_first=True)
    model = nn.Sequential(nn.Unflatten(1, (1, 20)), layer, nn.Flatten(), nn.Linear(20, 10))
    assert not codes(run_of(model))


def test_a_head_made_after_the_optimizer_is_told() -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.head = nn.Linear(32, 10)
    run = probed(case_of(model, BATCH, F.cross_entropy, optimizer), NAME)
    assert set(codes(run)) == {"O003", "O011"}
    assert "shapes match for `head.weight`, `head.bias`" in finding(run, "O003").evidence.message


def test_a_backbone_that_no_optimizer_holds_is_information() -> None:
    model = Net()
    found = finding(run_of(model, model.head.parameters()), "O011")
    assert found.severity == "info"


def test_two_optimizers_share_a_model() -> None:
    model = Net()
    second = torch.optim.Adam(model.head.parameters())
    assert not codes(run_of(model, model.encoder.parameters()))
    del second


def test_a_parameter_that_is_held_twice_is_told() -> None:
    model = Net()
    with pytest.warns(UserWarning, match="duplicate parameters"):
        run = run_of(model, [*model.parameters(), *model.head.parameters()])
    found = finding(run, "O011")
    assert found.evidence.numbers == {"outside": 0, "twice": 2}


def test_frozen_and_tied_parameters_are_no_fault() -> None:
    model = classifier(nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32))
    first, second = model[2], model[4]
    assert isinstance(first, nn.Linear)
    second.weight = first.weight
    model[0].requires_grad_(False)
    assert not codes(run_of(model, [p for p in model.parameters() if p.requires_grad]))


def test_without_a_loss_nothing_is_told() -> None:
    run = probed(case_of(classifier(), BATCH[0]), NAME)
    assert reason(run) == "no loss was given, and the model returns none"
