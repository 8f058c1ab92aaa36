"""Padding that counts in the loss, and classes that do not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.preflight.cases import case_of, classifier, codes, finding, labelled, probed, reason
from traindx.findings import Severity
from traindx.run import Run

WORDS, STEPS, SAMPLES = 20, 12, 16
Loss = Callable[[Tensor, Tensor], Tensor]


class Tagger(nn.Module):
    def __init__(self, words: int = WORDS) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, 8)
        self.rnn = nn.GRU(8, 8, batch_first=True)
        self.out = nn.Linear(8, words)

    def forward(self, words: Tensor) -> Tensor:
        return self.out(self.rnn(self.embed(words))[0])


def texts(least: int = 4, *, pad: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    words = torch.randint(1, WORDS, (SAMPLES, STEPS), generator=generator)
    lengths = torch.randint(least, STEPS + 1, (SAMPLES, 1), generator=generator)
    return words.masked_fill(torch.arange(STEPS) >= lengths, pad)


def all_count(scores: Tensor, words: Tensor) -> Tensor:
    return F.cross_entropy(scores.transpose(1, 2), words)


def by_index(scores: Tensor, words: Tensor) -> Tensor:
    return F.cross_entropy(scores.flatten(0, 1), words.flatten(), ignore_index=0)


def by_mask(scores: Tensor, words: Tensor) -> Tensor:
    mask = (words != 0).float()
    return (F.cross_entropy(scores.transpose(1, 2), words, reduction="none") * mask).sum()


def run_of(words: Tensor, target: Tensor, loss: Loss) -> Run:
    return probed(case_of(Tagger(), (words, target), loss), "loss-mask")


def test_padding_that_counts_is_told():
    words = texts()
    found = finding(run_of(words, words * 3 % WORDS, all_count), "L019")
    assert found.severity is Severity.WARNING
    assert "100% of those inside it have a gradient" in found.evidence.message


def test_of_the_next_word_the_last_position_has_no_target():
    words = texts()

    def next_word(scores: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(scores[:, :-1].transpose(1, 2), target)

    assert codes(run_of(words, words[:, 1:].clone(), next_word)) == ["L019"]
    assert codes(run_of(words[:, :-1].clone(), words[:, 1:].clone(), all_count)) == ["L019"]


@pytest.mark.parametrize("loss", [by_index, by_mask])
def test_padding_that_is_masked_is_not(loss: Loss):
    words = texts()
    run = run_of(words, words * 3 % WORDS, loss)
    assert (reason(run), codes(run)) == ("", [])


def test_padding_before_the_end_of_the_text_may_count():
    """One position of it ends the text."""
    words = texts()
    ends = (words == 0).int().cumsum(1) > 1

    def until_the_end(scores: Tensor, target: Tensor) -> Tensor:
        loss = F.cross_entropy(scores.transpose(1, 2), target, reduction="none")
        return (loss * ~ends).mean()

    assert codes(run_of(words, words * 3 % WORDS, until_the_end)) == []


@pytest.mark.parametrize(
    "words",
    [
        texts(STEPS),  # nothing is padded
        texts() % 3,  # what pads is a word like others
        torch.cat([texts(STEPS)[:, :8], torch.zeros(SAMPLES, 4, dtype=torch.long)], 1),
    ],
)
def test_what_is_no_padding_may_count(words: Tensor):
    assert codes(run_of(words, words * 3 % WORDS, all_count)) == []


def test_vectors_are_padded_by_zeros():
    lengths = torch.arange(2, 2 + SAMPLES)[:, None].clamp(max=STEPS)
    mask = torch.arange(STEPS) < lengths
    x = torch.randn(SAMPLES, STEPS, 5, generator=torch.Generator().manual_seed(0)) * mask[..., None]
    model = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1), nn.Flatten(1))
    target = x.sum(2)
    run = probed(case_of(model, (x, target), F.mse_loss), "loss-mask")
    assert codes(run) == ["L019"]

    def masked(output: Tensor, target: Tensor) -> Tensor:
        return (F.mse_loss(output, target, reduction="none") * mask).sum()

    assert codes(probed(case_of(model, (x, target), masked), "loss-mask")) == []


def test_an_autoencoder_may_give_empty_rows():
    lengths = torch.arange(2, 2 + SAMPLES)[:, None].clamp(max=STEPS)
    x = torch.randn(SAMPLES, STEPS, 5) * (torch.arange(STEPS) < lengths)[..., None]
    model = nn.Sequential(nn.Linear(5, 3), nn.Tanh(), nn.Linear(3, 5))
    assert codes(probed(case_of(model, (x, x.clone()), F.mse_loss), "loss-mask")) == []


# -- classes ---------------------------------------------------------------------------------------


def ignoring(scores: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(scores, target, ignore_index=0)


def weightless(scores: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(scores, target, weight=torch.tensor([0.0, 1.0, 1.0]))


def masked(scores: Tensor, target: Tensor) -> Tensor:
    return (F.cross_entropy(scores, target, reduction="none") * (target > 0)).mean()


@pytest.mark.parametrize("loss", [ignoring, weightless, masked])
def test_a_class_that_is_left_out_is_told(loss: Loss):
    case = case_of(classifier(classes=3), labelled(classes=3), loss)
    found = finding(probed(case, "loss-mask"), "L019")
    assert found.severity is Severity.ERROR
    assert "class 0 is not learned" in found.evidence.message


def test_a_class_that_is_told_for_sure_has_nothing_to_learn():
    """Of scores as large as those of a bad initialization the gradient is exactly 0."""
    model = classifier(classes=3)
    with torch.no_grad():
        model[-1].bias.copy_(torch.tensor([2000.0, 0.0, 0.0]))  # pyright: ignore
    assert codes(probed(case_of(model, labelled(classes=3), F.cross_entropy), "loss-mask")) == []


def test_samples_without_a_label_are_left_alone():
    x, y = labelled(classes=3)
    y[::3] = -100
    assert codes(probed(case_of(classifier(classes=3), (x, y), F.cross_entropy), "loss-mask")) == []


def test_samples_that_are_left_out_whatever_their_class_are_no_class():
    keep = torch.arange(32) % 2 == 0

    def half(scores: Tensor, target: Tensor) -> Tensor:
        return (F.cross_entropy(scores, target, reduction="none") * keep).mean()

    case = case_of(classifier(classes=3), labelled(classes=3), half)
    assert codes(probed(case, "loss-mask")) == []


def test_a_word_that_is_ignored_is_no_class_of_samples():
    words = texts()

    class Flat(Tagger):
        def forward(self, words: Tensor) -> Tensor:
            return super().forward(words).flatten(0, 1)

    def flat(scores: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(scores, target.flatten(), ignore_index=0)

    assert codes(probed(case_of(Flat(), (words, words), flat), "loss-mask")) == []


def test_of_a_squared_error_there_are_no_classes():
    x, y = labelled(classes=3)

    def by_hand(scores: Tensor, target: Tensor) -> Tensor:
        return (scores[:, 0] - target).square().mean()

    run = probed(case_of(classifier(classes=3), (x, y), by_hand), "loss-mask")
    assert reason(run) == "no comparison of an output with a target was seen"
