"""Targets among the inputs: features, and sequences that are not shifted."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.preflight.cases import case_of, codes, labelled, probed, reason

X, Y = labelled()
TEXT = torch.randint(0, 9, (32, 13), generator=torch.Generator().manual_seed(4))
WORDS, NEXT = TEXT[:, :-1], TEXT[:, 1:]
NAME = "target-in-input"


class Reader(nn.Module):
    """Scores for each word, from what stands before it, or from all words."""

    def __init__(self, bidirectional: bool = False, recurrent: bool = True) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed = nn.Embedding(9, 8)
        self.rnn = nn.GRU(8, 16, batch_first=True, bidirectional=bidirectional)
        self.alone = None if recurrent else nn.Linear(8, 16)
        self.out = nn.Linear(32 if bidirectional else 16, 9)

    def forward(self, words: Tensor) -> Tensor:
        seen = self.embed(words)
        return self.out(self.alone(seen) if self.alone is not None else self.rnn(seen)[0])


class Forced(Reader):
    """Is given the answer, of which it reads at each place what stands before."""

    def forward(self, words: Tensor) -> Tensor:
        return super().forward(F.pad(words[:, :-1], (1, 0)))


def each(output: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(output.reshape(-1, 9), target.reshape(-1))


def shifting(output: Tensor, target: Tensor) -> Tensor:
    return each(output[:, :-1], target[:, 1:])


def test_a_target_that_is_not_shifted_is_told():
    assert codes(probed(case_of(Reader(), (WORDS, WORDS.clone()), each), NAME)) == ["L017"]


def test_positions_that_the_loss_ignores_do_not_count():
    labels = torch.where(torch.arange(12) < 3, -100, WORDS)
    assert codes(probed(case_of(Reader(), (WORDS, labels), each), NAME)) == ["L017"]


@pytest.mark.parametrize(
    ("model", "target", "loss"),
    [
        (Reader(), NEXT, each),
        (Reader(), WORDS.clone(), shifting),
        (Reader(bidirectional=True), WORDS.clone(), each),
        (Reader(recurrent=False), WORDS.clone(), each),
        (Forced(), WORDS.clone(), each),
    ],
)
def test_shifted_targets_and_models_that_see_all_or_one_word_are_not(
    model: nn.Module, target: Tensor, loss: Callable[[Tensor, Tensor], Tensor]
):
    run = probed(case_of(model, (WORDS, target), loss), NAME)
    assert (reason(run), codes(run)) == ("", [])


def regressed(target: Tensor) -> list[str]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 8), nn.ReLU(), nn.Linear(8, 1))
    return codes(probed(case_of(model, (X, target), F.mse_loss), NAME))


def test_a_feature_that_is_the_target_in_other_units_is_told():
    assert regressed(3 * X[:, 4:5] - 2) == ["L017"]


def test_a_feature_that_goes_with_the_target_is_not():
    assert regressed(3 * X[:, 4:5] + 0.1 * X[:, 5:6]) == []


@pytest.mark.parametrize(("last", "expected"), [(12, ["L017"]), (11, [])])
def test_a_window_that_holds_its_answer_is_told(last: int, expected: list[str]):
    series = torch.randn(60, generator=torch.Generator().manual_seed(5)).cumsum(0)
    windows = series.unfold(0, 13, 1)
    x, answer = windows[:, last - 11 : last + 1].unsqueeze(2), windows[:, 12:]
    model = nn.Sequential(nn.Flatten(), nn.Linear(12, 1))
    assert codes(probed(case_of(model, (x, answer), F.mse_loss), NAME)) == expected


def test_a_sparse_input_beside_the_target_is_passed_over():
    class OfGraph(nn.Module):
        """Scores of nodes, of which the edges are given as a sparse matrix."""

        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.layer = nn.Linear(6, 3)

        def forward(self, x: Tensor, edges: Tensor) -> Tensor:
            return self.layer(torch.sparse.mm(edges, x))

    x, y = torch.randn(32, 6), torch.arange(32) % 3
    run = probed(case_of(OfGraph(), (x, torch.eye(32).to_sparse(), y), F.cross_entropy), NAME)
    assert codes(run) == []
    assert "failed" not in reason(run)
