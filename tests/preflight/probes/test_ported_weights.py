"""Weights that fit a batch in the order of another framework."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.preflight.cases import case_of, classifier, codes, finding, labelled, probed, reason
from traindx.findings import Severity
from traindx.run import Run

SQUARE = nn.Linear(32, 32)


def look(model: nn.Module, batch: Any, loss: Any = None) -> Run:
    return probed(case_of(model, batch, loss or nn.MSELoss()), "ported-weights")


def body() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 2)
    )


def learnt(model: nn.Module, rows: int = 40) -> tuple[Tensor, Tensor]:
    """A batch that a model knows."""
    x = 2 * torch.randn(rows, 16, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        return x, model(x)


def transposed(model: nn.Sequential) -> nn.Sequential:
    with torch.no_grad():
        for layer in model:
            if isinstance(layer, nn.Linear) and layer.in_features == layer.out_features:
                layer.weight.copy_(layer.weight.detach().t().clone())
    return model


def test_square_matrices_that_were_not_transposed_are_found():
    batch = learnt(body())
    run = look(transposed(body()), batch)
    found = finding(run, "E019")
    assert found.severity is Severity.ERROR
    assert found.evidence.site.fqn == "0"
    assert found.evidence.layers == ("0", "2")
    assert found.evidence.numbers["reread"] < 1e-3 < 0.8 < found.evidence.numbers["before"]


def test_the_same_weights_in_their_own_order_are_not():
    run = look(body(), learnt(body()))
    assert codes(run) == []
    assert reason(run) == "the model fits its batch as it is"


class Recurrent(nn.Module):
    """The last state of a layer, of sequences of 4 steps and 4 features."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        return 3 * self.layer(x.unflatten(1, (4, 4)))[0][:, -1]


def recurrent(kind: type[nn.LSTM] | type[nn.GRU], scale: float = 3.0) -> Recurrent:
    torch.manual_seed(0)
    model = Recurrent(kind(4, 6, batch_first=True))
    with torch.no_grad():
        for param in model.parameters():
            param.mul_(scale)
    return model


@pytest.mark.parametrize(
    ("kind", "own", "foreign"),
    [(nn.LSTM, "ifgo", "iofg"), (nn.LSTM, "ifgo", "igfo"), (nn.GRU, "rzn", "zrn")],
)
def test_gates_in_a_foreign_order_are_found_and_named(
    kind: type[nn.LSTM] | type[nn.GRU], own: str, foreign: str
):
    batch = learnt(recurrent(kind))
    model = recurrent(kind)
    with torch.no_grad():
        for param in model.parameters():
            blocks = dict(zip(own, param.chunk(len(own)), strict=True))
            param.copy_(torch.cat([blocks[gate] for gate in foreign]))
    found = finding(look(model, batch), "E019")
    assert found.evidence.site.fqn == "layer"
    assert f"read as {foreign}" in found.evidence.message
    assert f"zip('{foreign}'" in found.evidence.fix
    assert f"for gate in '{own}'" in found.evidence.fix


@pytest.mark.parametrize("model", [body(), recurrent(nn.LSTM), recurrent(nn.GRU)])
def test_new_weights_fit_in_no_order(model: nn.Module):
    x = torch.randn(40, 16)
    with torch.no_grad():
        y = torch.randn_like(model(x))
    run = look(model, (x, y))
    assert codes(run) == []
    assert run.series("probe.reread_loss")


def test_a_new_classifier_fits_in_no_order():
    assert codes(look(classifier(nn.ReLU(), SQUARE), labelled(), nn.CrossEntropyLoss())) == []


def test_a_model_without_such_weights_is_not_judged():
    run = look(classifier(), labelled(), nn.CrossEntropyLoss())
    assert reason(run) == "no weights could be read in another order"


def test_a_few_samples_are_not_judged():
    run = look(body(), learnt(transposed(body()), 8))
    assert reason(run) == "the batch has fewer than 16 samples"
