"""What a loss function is given, on real models."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.preflight.cases import case_of, classifier, codes, finding, labelled, probed, reason

Loss = Callable[[Tensor, Tensor], Tensor]
NAME = "output-and-target"
X, Y = labelled()
YES = (Y > 4).float()[:, None]
VALUES = 2 * torch.randn(32, 1, generator=torch.Generator().manual_seed(2))


class Ending(nn.Module):
    """A classifier with a function at its end."""

    def __init__(self, end: Callable[[Tensor], Tensor], classes: int = 10) -> None:
        super().__init__()
        self.body = classifier(classes=classes)
        self.end = end

    def forward(self, x: Tensor) -> Tensor:
        return self.end(self.body(x))


class Tags(nn.Module):
    """Five scores for each of five places of a sample."""

    def __init__(self, order: tuple[int, ...]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.scores, self.order = nn.Linear(4, 5), order

    def forward(self, x: Tensor) -> Tensor:
        return self.scores(x.reshape(-1, 4, 5).transpose(1, 2)).permute(self.order)


WORDS = torch.randint(1, 5, (32, 5), generator=torch.Generator().manual_seed(3))


def hinge(score: Tensor, label: Tensor) -> Tensor:
    return torch.clamp(1 - label * score, min=0).mean()


def aligned(output: Tensor, text: Tensor) -> Tensor:
    lengths = torch.full((32,), 5), torch.full((32,), 2)
    return F.ctc_loss(output, text[:, :2], *lengths)


def nll(output: Tensor, target: Tensor) -> Tensor:
    return F.nll_loss(torch.log(output + 1e-9), target)


def divergence(output: Tensor, target: Tensor) -> Tensor:
    return F.kl_div(output, target, reduction="batchmean")


@pytest.mark.parametrize(
    ("model", "target", "loss", "code"),
    [
        (Ending(lambda x: x, 1), VALUES[:, 0], lambda a, b: ((a - b) ** 2).mean(), "L003"),
        (Ending(lambda x: x[:, 0], 1), VALUES, lambda a, b: (b - a).abs().mean(), "L003"),
        (Ending(lambda x: x.softmax(1)), Y, F.cross_entropy, "L002"),
        (Ending(lambda x: x.softmax(1)), F.one_hot(Y, 10).float(), F.cross_entropy, "L003"),
        (Ending(torch.sigmoid), Y, F.cross_entropy, "L003"),
        (Ending(torch.sigmoid, 1), YES, F.binary_cross_entropy_with_logits, "L003"),
        (Ending(lambda x: x.sigmoid().sigmoid(), 1), YES, F.binary_cross_entropy, "L003"),
        (Ending(lambda x: F.log_softmax(x.softmax(1), 1)), Y, F.nll_loss, "L002"),
        (Ending(lambda x: x.softmax(0)), Y, F.cross_entropy, "L003"),
        (Ending(lambda x: F.log_softmax(x, 0)), Y, F.nll_loss, "L003"),
        (Ending(lambda x: x.softmax(1), 1), YES, F.mse_loss, "L003"),
        (Ending(lambda x: x, 1), Y * 0, F.cross_entropy, "L003"),
        (Ending(lambda x: x), Y, F.nll_loss, "L003"),
        (Ending(lambda x: x, 1), 2 * YES - 1, F.binary_cross_entropy_with_logits, "L003"),
        (Ending(torch.sigmoid, 1), VALUES, F.mse_loss, "L003"),
        (Ending(torch.tanh, 1), VALUES, F.mse_loss, "L003"),
        (Ending(lambda x: x, 1), YES, hinge, "L003"),
        (Tags((0, 1, 2)), WORDS, F.cross_entropy, "L003"),
        (Tags((1, 0, 2)), WORDS, aligned, "L003"),
        (Ending(torch.relu), Y, F.cross_entropy, "L003"),
        (Ending(lambda x: x, 1), Y.float()[:, None], F.mse_loss, "L003"),
    ],
)
def test_a_wrong_pair_is_told(model: nn.Module, target: Tensor, loss: Loss, code: str) -> None:
    run = probed(case_of(model, (X, target), loss), NAME)
    assert codes(run) == [code]


def test_a_table_of_all_pairs_is_told_with_both_shapes() -> None:
    model = Ending(lambda x: x, 1)
    run = probed(case_of(model, (X, VALUES), lambda a, b: ((a - b[:, 0]) ** 2).mean()), NAME)
    assert "32x1, the target 32" in finding(run, "L003").evidence.message


@pytest.mark.parametrize(
    ("model", "target", "loss"),
    [
        (Ending(lambda x: x), Y, F.cross_entropy),
        (Ending(lambda x: x), F.one_hot(Y, 10).float(), F.cross_entropy),
        (Ending(lambda x: x, 1), 2 * YES - 1, hinge),
        (Tags((0, 2, 1)), WORDS, F.cross_entropy),
        (Tags((1, 0, 2)), WORDS, lambda a, b: aligned(a.log_softmax(2), b)),
        (Ending(lambda x: F.log_softmax(x, 1)), Y, F.nll_loss),
        (Ending(lambda x: x.softmax(1)), Y, nll),
        (Ending(torch.sigmoid, 1), YES, F.binary_cross_entropy),
        (Ending(lambda x: x, 1), YES, F.binary_cross_entropy_with_logits),
        (Ending(lambda x: x, 1), VALUES, F.mse_loss),
        (Ending(lambda x: 9 * torch.tanh(x / 9)), Y, F.cross_entropy),
        (Ending(torch.sigmoid, 20), X.sigmoid(), F.mse_loss),
        (Ending(lambda x: x[:, 0], 1), VALUES[:, 0], lambda a, b: ((a - b) ** 2).mean()),
        (Ending(lambda x: x, 4), X[:, :4], lambda a, b: (a[:, None] - b[None]).abs().mean()),
        (Ending(lambda x: F.log_softmax(x, 1)), X[:, :10].softmax(1), divergence),
    ],
)
def test_a_right_pair_is_not(model: nn.Module, target: Tensor, loss: Loss) -> None:
    assert not codes(probed(case_of(model, (X, target), loss), NAME))


def test_a_loss_within_the_model_is_seen() -> None:
    class Whole(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = Ending(torch.sigmoid)

        def forward(self, x: Tensor, labels: Tensor) -> dict[str, Tensor]:
            scores = self.body(x)
            return {"loss": F.cross_entropy(scores, labels), "scores": scores}

    assert codes(probed(case_of(Whole(), {"x": X, "labels": Y}), NAME)) == ["L003"]


def test_without_a_comparison_there_is_nothing_to_see() -> None:
    run = probed(case_of(classifier(), (X,), lambda output: output.logsumexp(1).mean()), NAME)
    assert reason(run) == "no comparison of an output with a target was seen"
