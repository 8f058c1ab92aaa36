"""Whether a sample's output depends on its neighbours, and where that begins."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

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
from traindx.records import Site
from traindx.run import Run

NET = Site("net")


def look(model: nn.Module, batch: Any, loss: Any = None) -> Run:
    return probed(case_of(model, batch, loss or nn.CrossEntropyLoss()), "batch-composition")


class Softmax(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        return x.softmax(self.dim)


class Attends(nn.Module):
    """Classifies sequences (sample, position)."""

    def __init__(self, *, batch_first: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(20, 16)
        self.attention = nn.MultiheadAttention(16, 2, batch_first=batch_first)
        self.head = nn.Linear(16, 4)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        return self.head(self.attention(x, x, x)[0].mean(1))


def test_a_softmax_over_the_samples_is_found_where_it_stands():
    run = look(classifier(nn.ReLU(), Softmax(0)), labelled())
    found = finding(run, "E007")
    assert found.severity is Severity.ERROR
    assert found.evidence.site == Site("net", "2")
    assert "(Softmax)" in found.evidence.message


def test_the_same_softmax_over_the_classes_is_not():
    assert codes(look(classifier(nn.ReLU(), Softmax(1)), labelled())) == []


def test_attention_that_takes_the_batch_for_time_is_found():
    batch = torch.randint(20, (12, 7)), torch.randint(4, (12,))
    found = finding(look(Attends(batch_first=False), batch), "E007")
    assert found.evidence.site.fqn == "attention"
    assert "batch_first=True" in found.evidence.fix
    assert codes(look(Attends(batch_first=True), batch)) == []


class Recurrent(nn.Module):
    """Classifies sequences (sample, step, feature)."""

    def __init__(self, *, batch_first: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.lstm = nn.LSTM(3, 16, batch_first=batch_first)
        self.head = nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.lstm(x)[0][:, -1])


def test_a_layer_that_reads_on_from_sample_to_sample_is_found():
    batch = torch.randn(12, 7, 3), torch.randint(4, (12,))
    found = finding(look(Recurrent(batch_first=False), batch), "E007")
    assert found.evidence.site.fqn == "lstm"
    assert codes(look(Recurrent(batch_first=True), batch)) == []


def test_a_normalization_that_keeps_no_statistics_uses_the_batch_in_evaluation():
    layer = nn.BatchNorm1d(32, track_running_stats=False)
    run = look(classifier(layer, nn.ReLU()), labelled())
    assert codes(run) == ["N020"]
    assert finding(run, "N020").evidence.site.fqn == "1"


def test_batch_normalization_mixes_in_training_only_as_it_should():
    run = look(classifier(nn.BatchNorm1d(32), nn.ReLU()), labelled())
    assert codes(run) == []
    evaluation, training = (
        run.at(quantity, NET) for quantity in ("probe.batch_mixing", "probe.batch_mixing_training")
    )
    assert evaluation is not None
    assert training is not None
    assert evaluation.last == 0 < 1e-3 < training.last


class Centred(nn.Module):
    """Takes the batch's mean away, in training."""

    def forward(self, x: Tensor) -> Tensor:
        return x - x.mean(0) if self.training else x


def test_what_mixes_in_training_besides_batch_normalization_is_told_as_information():
    found = finding(look(classifier(nn.BatchNorm1d(32), Centred()), labelled()), "E007")
    assert found.severity is Severity.INFO
    assert found.evidence.site.fqn == "2"


def test_a_batch_normalization_written_by_hand_may_write_its_statistics_in_training_only():
    assert codes(look(classifier(NormByHand(follows_mode=True)), labelled())) == []
    run = look(classifier(NormByHand(follows_mode=False)), labelled())
    assert codes(run) == ["E010"]
    assert finding(run, "E010").evidence.site.fqn == "1"
    assert finding(run, "E010").evidence.numbers == {"buffers": 2}


def test_dropout_and_noise_are_not_neighbours():
    assert codes(look(classifier(nn.Dropout(0.5), nn.ReLU()), labelled())) == []


class OfGraph(nn.Module):
    """Nodes of one graph: their rows are meant to depend on each other."""

    def __init__(self, nodes: int) -> None:
        super().__init__()
        self.register_buffer("adjacency", torch.full((nodes, nodes), 1 / nodes))
        self.layer = nn.Linear(20, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.adjacency @ self.layer(x)


def test_of_the_nodes_of_a_graph_nothing_is_said():
    run = look(OfGraph(32), labelled())
    assert codes(run) == []
    assert "axis 0 of the batch counts samples" in reason(run)


def test_of_time_along_axis_0_nothing_is_said():
    torch.manual_seed(0)
    lstm = nn.LSTM(20, 10)

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = lstm

        def forward(self, x: Tensor) -> Tensor:
            return self.lstm(x)[0]

    x, y = torch.randn(12, 8, 20), torch.randn(12, 8, 10)
    # Earlier steps do not depend on later ones: the first half may even be unmoved.
    assert codes(look(Model(), (x.flip(0), y), nn.MSELoss())) == []


def test_outputs_that_compare_samples_are_passed_over():
    class Pairs(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(20, 8)

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(x) @ self.layer(x).T

    run = look(Pairs(), (labelled()[0], torch.arange(32)))
    assert reason(run) == "no output has a row for each sample"


@pytest.mark.parametrize("samples", [1])
def test_a_single_sample_has_no_neighbours(samples: int):
    assert reason(look(classifier(), labelled(samples))) == "the batch has a single sample"
