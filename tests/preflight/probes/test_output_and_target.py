"""What a loss function is given, on real models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.preflight.cases import case_of, classifier, codes, finding, labelled, probed, reason
from traindx.preflight.case import Loaders

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


def backwards(loss: Callable[[Tensor, Tensor], Tensor]) -> Loss:
    return lambda output, target: loss(target, output)


RARE = (torch.arange(32) < 3).float()[:, None]
COUNTS = torch.arange(32).remainder(5).float()[:, None]
SIGNS = 2 * YES[:, 0] - 1
WORTH = F.one_hot(Y, 10).float() + F.one_hot((Y + 3) % 10, 10).float()


def weighted(weight: float) -> Loss:
    return nn.BCEWithLogitsLoss(pos_weight=torch.tensor(weight))


def alike(output: Tensor, target: Tensor) -> Tensor:
    return F.cosine_similarity(output, target).mean()


def written(blank: int, *, length: int = 2) -> Loss:
    def loss(output: Tensor, text: Tensor) -> Tensor:
        scores = output.log_softmax(2)
        lengths = torch.full((32,), 5), torch.full((32,), length)
        return F.ctc_loss(scores, text[:, :length], *lengths, blank=blank, zero_infinity=True)

    return loss


def twins(output: Tensor, target: Tensor) -> Tensor:
    return F.cosine_embedding_loss(output[:, :5], output[:, 5:], target)


def paired(output: Tensor, target: Tensor) -> Tensor:
    return F.margin_ranking_loss(output[:, 0], output[:, 1], target)


def looking_ahead(*, detached: bool) -> Loss:
    def loss(output: Tensor, reward: Tensor) -> Tensor:
        best = output[:, :5].max(1).values
        aim = reward[:, 0] + 0.9 * (best.detach() if detached else best)
        return F.mse_loss(output[:, 5], aim)

    return loss


@pytest.mark.parametrize(
    ("model", "target", "loss", "words"),
    [
        (Ending(torch.sigmoid, 1), YES, backwards(F.binary_cross_entropy), "the target first"),
        (Ending(lambda x: F.log_softmax(x, 1)), X[:, :10].softmax(1).log(),
         backwards(divergence), "the target first"),
        (Ending(F.softplus, 1), COUNTS, F.poisson_nll_loss, "what a softplus has made positive"),
        (Ending(lambda x: x, 1), COUNTS, nn.PoissonNLLLoss(log_input=False), "they go down to"),
        (Ending(lambda x: F.log_softmax(x, 1)), X[:, :10].log_softmax(1), divergence, "as its"),
        (Ending(lambda x: x), WORTH, F.cross_entropy, "that sum to up to 2"),
        (Ending(lambda x: x), X[:, :10], alike, "nothing but a cosine similarity"),
        (Tags((1, 0, 2)), WORDS, written(blank=2), "symbols that `ctc_loss` is to find are its"),
        (Tags((1, 0, 2)), WORDS, written(blank=0, length=5), "are longer than the frames"),
        (Ending(lambda x: x), YES[:, 0], twins, "takes targets of -1 and 1"),
        (Ending(lambda x: x), YES[:, 0], paired, "takes targets of -1 and 1"),
        (Ending(lambda x: x), VALUES, looking_ahead(detached=False), "the gradient goes through"),
        (Ending(lambda x: x), Y, nn.CrossEntropyLoss(label_smoothing=0.9), "smoothing of 0.9"),
        (Ending(lambda x: x, 1), RARE, weighted(0.1), "the largest weights"),
        (Ending(lambda x: x, 1), (0.6 * VALUES).trunc(), F.mse_loss, "of them are 0"),
    ],
)  # fmt: skip
def test_a_loss_that_is_called_wrongly_is_told(
    model: nn.Module, target: Tensor, loss: Loss, words: str
) -> None:
    run = probed(case_of(model, (X, target), loss), NAME)
    assert words in finding(run, "L003").evidence.message


@pytest.mark.parametrize(
    ("model", "target", "loss"),
    [
        (Ending(lambda x: x, 1), VALUES, backwards(F.mse_loss)),
        (Ending(lambda x: x, 1), COUNTS, F.poisson_nll_loss),
        (Ending(F.softplus, 1), COUNTS, nn.PoissonNLLLoss(log_input=False)),
        (Ending(lambda x: F.log_softmax(x, 1)), X[:, :10].log_softmax(1),
         nn.KLDivLoss(reduction="batchmean", log_target=True)),
        (Ending(lambda x: x), WORTH / 2, F.cross_entropy),
        (Ending(lambda x: x), 7 * F.one_hot(Y, 10).float(), F.cross_entropy),  # with a weight
        (Ending(lambda x: x), X[:, :10], lambda a, b: 1 - alike(a, b)),
        (Ending(lambda x: x), X[:, :10], lambda a, b: alike(a, b) - alike(a, b.roll(1, 0))),
        (Ending(lambda x: x), X[:, :10], lambda a, b: alike(a, b) + F.mse_loss(a, b)),
        (Tags((1, 0, 2)), WORDS, written(blank=0)),
        (Ending(lambda x: x), SIGNS, twins),
        (Ending(lambda x: x), SIGNS, paired),
        (Ending(lambda x: x), VALUES, looking_ahead(detached=True)),
        (Ending(lambda x: x), Y, nn.CrossEntropyLoss(label_smoothing=0.1)),
        (Ending(lambda x: x, 1), RARE, weighted(9.7)),
        (Ending(lambda x: x, 1), YES, weighted(0.1)),  # no class is rare
        (Ending(lambda x: x, 1), SIGNS[:, None], F.mse_loss),
        (Ending(lambda x: x), Y, nn.CrossEntropyLoss(weight=torch.arange(1.0, 11.0))),
    ],
)  # fmt: skip
def test_a_loss_that_is_called_as_it_should_be_is_not(
    model: nn.Module, target: Tensor, loss: Loss
) -> None:
    assert not codes(probed(case_of(model, (X, target), loss), NAME))


@pytest.mark.parametrize("inverted", [False, True])
def test_weights_of_classes_are_told_where_they_follow_the_frequency(inverted: bool) -> None:
    labels = torch.arange(32).sqrt().long() // 2  # 4, 12 and 16 samples
    counts = labels.bincount().float()
    weight = counts if inverted else 1 / counts
    case = case_of(Ending(lambda x: x, 3), (X, labels), nn.CrossEntropyLoss(weight=weight))
    assert codes(probed(case, NAME)) == (["L003"] if inverted else [])


def test_a_number_for_what_is_missing_is_told_of_a_target() -> None:
    missing = torch.where(RARE > 0, -99.0, VALUES)
    case = case_of(Ending(lambda x: x, 1), (X, missing), F.mse_loss)
    assert not codes(probed(case, NAME))  # not known to be of the data: a reward that is seldom
    run = probed(replace(case, loaders=Loaders(tensors=(X, missing))), NAME)
    assert "3 targets of net are -99" in finding(run, "L016").evidence.message


def test_targets_in_units_of_their_own_are_told() -> None:
    both = X[:, :2] * torch.tensor([300.0, 1.0])
    for target, expected in ((both, ["L016"]), (both / 100, ["L016"]), (X[:, :2], [])):
        case = case_of(Ending(lambda x: x, 2), (X, target), F.mse_loss)
        assert codes(probed(case, NAME)) == expected


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
