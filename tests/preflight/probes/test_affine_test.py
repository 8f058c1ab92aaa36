"""Whether networks are affine in their input."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.preflight.cases import case_of, classifier, codes, labelled, probed, reason

NAME = "affine-test"
X, Y = labelled()


def run_of(model: nn.Module, x: torch.Tensor = X):
    return probed(case_of(model, (x, Y[: len(x)]), F.cross_entropy), NAME)


@pytest.mark.parametrize(
    "between",
    [
        (nn.Linear(32, 32),),
        (nn.Dropout(0.5), nn.Linear(32, 32), nn.BatchNorm1d(32)),
        (nn.Identity(),),
    ],
)
def test_layers_without_a_nonlinearity_are_told(between: tuple[nn.Module, ...]) -> None:
    assert codes(run_of(classifier(*between))) == ["S001"]


def test_a_softmax_at_the_end_hides_nothing() -> None:
    model = nn.Sequential(classifier(nn.Linear(32, 32)), nn.LogSoftmax(1))
    assert codes(run_of(model)) == ["S001"]


def test_convolutions_and_average_pooling_alone_are_affine() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        *(nn.Conv2d(3, 8, 3), nn.AvgPool2d(2), nn.Conv2d(8, 8, 3)),
        *(nn.Flatten(), nn.Linear(8 * 25, 10)),
    )
    assert codes(run_of(model, torch.randn(8, 3, 16, 16))) == ["S001"]


@pytest.mark.parametrize(
    "between",
    [
        (nn.ReLU(),),
        (nn.Tanh(), nn.Linear(32, 32)),
        (nn.LayerNorm(32),),
        (nn.Softplus(beta=0.1, threshold=1000.0),),
        (nn.Linear(32, 4), nn.Linear(4, 32)),
    ],
)
def test_a_bend_and_a_narrow_layer_are_not_told(between: tuple[nn.Module, ...]) -> None:
    assert not codes(run_of(classifier(*between)))


def test_one_layer_is_meant_to_be_linear() -> None:
    assert not codes(run_of(nn.Linear(20, 10)))


def test_two_heads_side_by_side_are_no_stack() -> None:
    class Heads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(20, 5), nn.Linear(20, 5)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cat([self.a(x), self.b(x)], 1)

    assert not codes(run_of(Heads()))


class Words(nn.Module):
    """Words, and layers behind their embeddings."""

    def __init__(self, between: nn.Module, narrow: int = 32) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.hidden = nn.Embedding(50, narrow), nn.Linear(narrow, 32)
        self.between, self.out = between, nn.Linear(32, 10)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.out(self.between(self.hidden(self.embed(words).mean(1))))


def test_layers_behind_embeddings_are_moved_by_them() -> None:
    words = torch.randint(0, 50, (16, 4))
    assert codes(run_of(Words(nn.Identity()), words)) == ["S001"]
    assert not codes(run_of(Words(nn.ReLU()), words))
    assert not codes(run_of(Words(nn.Identity(), narrow=4), words))  # a factorized embedding


def test_an_embedding_before_one_layer_is_no_stack() -> None:
    model = nn.Sequential(nn.Embedding(50, 8), nn.Flatten(), nn.Linear(32, 10))
    assert not codes(run_of(model, torch.randint(0, 50, (16, 4))))


def test_words_that_are_counted_are_no_real_numbers() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = classifier(nn.Linear(32, 32))

        def forward(self, words: torch.Tensor) -> torch.Tensor:
            return self.layers(F.one_hot(words, 20).sum(1).float())

    run = run_of(Counting(), torch.randint(0, 20, (16, 4)))
    assert reason(run) == "the input is not made of real numbers"


def test_data_far_from_every_kink_hide_no_nonlinearity() -> None:
    class Far(nn.Module):
        """A column of thousands, which decides alone which units are on."""

        def __init__(self, bend: bool) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.hidden, self.out, self.bend = nn.Linear(21, 32), nn.Linear(32, 10), bend

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            h = self.hidden(torch.cat([x, torch.full((len(x), 1), 2000.0)], 1))
            return self.out(h.relu() if self.bend else h)

    assert not codes(run_of(Far(bend=True)))
    assert codes(run_of(Far(bend=False))) == ["S001"]


# -- several inputs --------------------------------------------------------------------------------


class Graph(nn.Module):
    """Message passing, along edges that are given, too."""

    def __init__(self, between: nn.Module) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(4, 16), nn.Linear(16, 16)
        self.out, self.between = nn.Linear(16, 10), between

    def forward(self, nodes: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        h = self.between(edges @ self.first(nodes))
        return self.out(self.between(edges @ self.second(h)).mean(1))


def graphs(model: nn.Module):
    nodes, edges = torch.randn(16, 6, 4), torch.rand(6, 6)
    return probed(case_of(model, (nodes, edges, Y[:16]), F.cross_entropy), NAME)


def test_messages_along_edges_are_no_nonlinearity() -> None:
    assert codes(graphs(Graph(nn.Identity()))) == ["S001"]
    assert not codes(graphs(Graph(nn.ELU())))


class Parts(nn.Module):
    """Two inputs by name."""

    def __init__(self, join: str, bend: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b = nn.Linear(20, 32), nn.Linear(20, 32)
        self.join, self.bend, self.out = join, bend, nn.Linear(32, 10)

    def forward(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        a, b = self.a(inputs["a"]), self.b(inputs["b"])
        if self.bend:
            a = a.relu()
        return self.out(a + b if self.join == "sum" else a * b)


@pytest.mark.parametrize(
    ("join", "bend", "told"),
    [
        ("sum", False, ["S001"]),
        ("sum", True, []),
        ("product", False, []),  # a bilinear model, as in low-rank pooling
        ("product", True, []),  # features that condition others
    ],
)
def test_two_inputs_of_a_dict(join: str, bend: bool, told: list[str]) -> None:
    inputs = {"a": X, "b": X.flip(0)}
    run = probed(case_of(Parts(join, bend), (inputs, Y), F.cross_entropy), NAME)
    assert codes(run) == told


def test_a_wide_path_beside_a_deep_one_is_no_stack() -> None:
    class Wide(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.deep = classifier(nn.ReLU())
            self.wide = nn.Linear(20, 10)

        def forward(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
            return self.deep(inputs["a"]) + self.wide(inputs["b"])

    run = probed(case_of(Wide(), ({"a": X, "b": X.flip(0)}, Y), F.cross_entropy), NAME)
    assert not codes(run)


# -- weights that are no modules -------------------------------------------------------------------


class Recurrence(nn.Module):
    """A recurrence by hand, of parameters."""

    def __init__(self, bend: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.inwards = nn.Parameter(torch.randn(4, 32) / 2)
        self.onwards = nn.Parameter(torch.randn(32, 32) / 6)
        self.out, self.bend = nn.Linear(32, 10), bend

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x.new_zeros(len(x), 32)
        for step in x.unflatten(1, (5, 4)).unbind(1):
            h = step @ self.inwards + h @ self.onwards.T
            h = h.tanh() if self.bend else h
        return self.out(h)


def test_a_recurrence_of_bare_parameters_is_seen() -> None:
    assert codes(run_of(Recurrence(bend=False))) == ["S001"]
    assert not codes(run_of(Recurrence(bend=True)))


def test_weights_that_are_computed_are_weights() -> None:
    def normed() -> nn.Module:
        return nn.utils.parametrizations.weight_norm(nn.Linear(32, 32))

    assert codes(run_of(classifier(normed()))) == ["S001"]
    assert not codes(run_of(classifier(normed(), nn.ReLU())))


def test_a_recurrent_layer_bends_what_is_behind_two_linear_ones() -> None:
    class Last(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.into, self.gru = classifier(nn.Linear(32, 32)), nn.GRU(10, 10)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.gru(self.into(x)[None])[0][0]

    assert not codes(run_of(Last()))


class Gated(nn.Module):
    """A branch that begins times zero."""

    def __init__(self, bend: bool, trained: bool = True) -> None:
        super().__init__()
        self.layer, self.bend = nn.Linear(32, 32), bend
        self.gate = nn.Parameter(torch.zeros(()), requires_grad=trained)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.layer(x)
        return x + self.gate * (h.relu() if self.bend else h)


def test_a_branch_that_begins_times_zero_bends_once_it_is_trained() -> None:
    assert not codes(run_of(classifier(Gated(bend=True))))
    assert codes(run_of(classifier(Gated(bend=False)))) == ["S001"]
    assert codes(run_of(classifier(Gated(bend=True, trained=False)))) == ["S001"]
