"""Some samples of a batch, in whatever form it comes: their outputs are theirs among all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from tests.preflight.cases import case_of, codes, probed, reason
from traindx.preflight.case import Case
from traindx.preflight.runner import Preflight

SAMPLES, STEPS, WORDS = 24, 9, 30
GENERATOR = torch.Generator().manual_seed(0)
LABELS = torch.arange(SAMPLES) % 5
SIGNALS = torch.randn(STEPS, SAMPLES, 6, generator=GENERATOR)
TOKENS = torch.randint(WORDS, (STEPS + 1, SAMPLES), generator=GENERATOR)
LENGTHS = torch.randint(2, STEPS, (SAMPLES,), generator=GENERATOR)


class Recurrent(nn.Module):
    """Classifies sequences whose first axis is time."""

    def __init__(self, *, batch_first: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.lstm = nn.LSTM(6, 16, batch_first=batch_first)
        self.head = nn.Linear(16, 5)

    def forward(self, x: Tensor | PackedSequence) -> Tensor:
        _, (hidden, _) = self.lstm(x)
        return self.head(hidden[-1])


class Language(nn.Module):
    """Predicts the next token of sequences whose first axis is time."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(WORDS, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, 0.0)
        self.head = nn.Linear(16, WORDS)

    def forward(self, tokens: Tensor) -> Tensor:
        mask = torch.triu(torch.ones(len(tokens), len(tokens), dtype=torch.bool), 1)
        return self.head(self.layer(self.embedding(tokens), mask))


class Bags(nn.Module):
    """Classifies bags of words."""

    def __init__(self, *, closed: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.bags = nn.EmbeddingBag(WORDS, 16, include_last_offset=closed)
        self.head = nn.Linear(16, 5)

    def forward(self, words: Tensor, offsets: Tensor) -> Tensor:
        return self.head(self.bags(words, offsets))


class Tagger(nn.Module):
    """Classifies each position of a sequence, or each pixel of a picture, by itself."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 5))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


def of_positions(output: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(output.reshape(-1, output.shape[-1]), target)


def tagger(*positions: int) -> Case:
    """With targets that were never in the shape of the output."""
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(SAMPLES, *positions, 6, generator=generator)
    count = x[..., 0].numel()
    return case_of(Tagger(), (x, torch.arange(count) % 5), of_positions)


def of_tokens(output: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(output.reshape(-1, WORDS), target.reshape(-1))


def bags(*, closed: bool = False) -> Case:
    words = torch.randint(WORDS, (int(LENGTHS.sum()),), generator=torch.Generator().manual_seed(1))
    ends = torch.cat([torch.zeros(1, dtype=torch.long), LENGTHS.cumsum(0)])
    offsets = ends if closed else ends[:-1]
    return case_of(Bags(closed=closed), (words, offsets, LABELS), F.cross_entropy)


def packed() -> Case:
    pack = pack_padded_sequence(SIGNALS, LENGTHS, enforce_sorted=False)
    return case_of(Recurrent(), (pack, LABELS), F.cross_entropy)


CASES: dict[str, Callable[[], Case]] = {
    "time first, a class each": lambda: case_of(Recurrent(), (SIGNALS, LABELS), F.cross_entropy),
    "time first, the next token": lambda: case_of(Language(), (TOKENS[:-1], TOKENS[1:]), of_tokens),
    "time first, flattened": lambda: case_of(
        Language(), (TOKENS[:-1], TOKENS[1:].reshape(-1)), of_tokens
    ),
    "batch first": lambda: case_of(
        Recurrent(batch_first=True), (SIGNALS.transpose(0, 1), LABELS), F.cross_entropy
    ),
    "flattened targets of sequences": lambda: tagger(STEPS),
    "flattened targets of pictures": lambda: tagger(3, 4),
    "bags": bags,
    "bags, closed": lambda: bags(closed=True),
    "packed": packed,
}


def rows(case: Case) -> Tensor:
    """What the model makes of each sample, in evaluation."""
    case.model.eval()
    with torch.no_grad():
        output: Tensor = case.output()
    return output.transpose(0, 1) if case.axis and output.dim() == 3 else output


@pytest.mark.parametrize("name", CASES)
def test_some_samples_give_what_they_give_among_all(name: str):
    case = Preflight(CASES[name]()).case
    assert case.batch_size == SAMPLES
    index = torch.tensor([3, 0, 7, 3])
    few = case.take(index)
    assert few.batch_size == 4
    torch.testing.assert_close(rows(few), rows(case)[index])


@pytest.mark.parametrize("name", CASES)
def test_the_loss_of_some_samples_is_theirs(name: str):
    case = Preflight(CASES[name]()).case
    case.model.eval()
    with torch.no_grad():
        halves = [case.take(torch.arange(SAMPLES)[i : i + 12]).loss() for i in (0, 12)]
        torch.testing.assert_close((halves[0] + halves[1]) / 2, case.loss())


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_few_of_them_can_be_learned_by_heart(name: str):
    run = probed(CASES[name](), "overfit-tiny-subset", "batch-composition")
    assert codes(run) == []
    (fraction,) = run.series("probe.overfit_fraction")
    assert fraction.last < 0.1


def test_a_batch_of_sequences_is_read_back_from_its_pack():
    few = packed().take(torch.tensor([1, 5]))
    (pack,) = few.args
    padded, lengths = pad_packed_sequence(pack)
    assert lengths.tolist() == LENGTHS[[1, 5]].tolist()
    torch.testing.assert_close(padded[:2, 1], SIGNALS[:2, 5])


class Sums(nn.Module):
    """Makes something of a number for each sample and one for each of something else."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 5)

    def forward(self, x: Tensor, others: Any) -> Tensor:
        return self.layer(x) + others.sum()


def test_an_input_of_another_length_is_told():
    batch = (torch.randn(SAMPLES, 6), torch.randn(SAMPLES + 1), LABELS)
    case = case_of(Sums(), batch, F.cross_entropy)
    told = reason(probed(case, "overfit-tiny-subset"))
    assert told == f"an input has no row for each of the {SAMPLES} samples"
