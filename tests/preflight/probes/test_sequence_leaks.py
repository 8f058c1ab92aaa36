"""Whether the future reaches the past, and padding what is real."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.preflight.cases import case_of, codes, finding, labelled, probed, reason
from tests.preflight.cases import classifier as plain
from traindx.findings import Severity
from traindx.run import Run

VOCABULARY, SAMPLES, STEPS = 20, 8, 12


def above(steps: int, diagonal: int) -> Tensor:
    return torch.triu(torch.ones(steps, steps, dtype=torch.bool), diagonal)


class Language(nn.Module):
    """Predicts the next token by one of several layers."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.kind = kind
        self.embedding = nn.Embedding(VOCABULARY, 16)
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.gru = nn.GRU(16, 8 if "both" in kind else 16, batch_first=True,
                          bidirectional="both" in kind)  # fmt: skip
        self.conv = nn.Conv1d(16, 24, 3, padding=1 if kind == "conv centred" else 0)
        self.head = nn.LazyLinear(VOCABULARY)
        self(torch.zeros(1, 4, dtype=torch.long))

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        if "attention" in self.kind:
            diagonal = {"attention": 1, "attention off by one": 2}.get(self.kind)
            mask = None if diagonal is None else above(tokens.shape[1], diagonal)
            x = x + self.attention(x, x, x, attn_mask=mask)[0]
        elif "gru" in self.kind:
            x = self.gru(x)[0]
        elif self.kind == "conv centred":
            x = self.conv(x.transpose(1, 2)).transpose(1, 2)
        else:
            x = self.conv(F.pad(x.transpose(1, 2), (2, 0))).transpose(1, 2)
        return self.head(x)


def of_tokens(output: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(output.flatten(0, 1), target.flatten())


def text(samples: int = SAMPLES) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(VOCABULARY, (samples, STEPS + 1), generator=generator)


def look(model: nn.Module, batch: Any, loss: Any = of_tokens) -> Run:
    return probed(case_of(model, batch, loss), "sequence-leaks")


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        ("attention without mask", "attention"),
        ("attention off by one", "attention"),
        ("gru both ways", "gru"),
        ("conv centred", "conv"),
    ],
)
def test_a_leak_of_the_future_is_found_where_it_begins(kind: str, place: str):
    data = text()
    found = finding(look(Language(kind), (data[:, :-1], data[:, 1:])), "F011")
    assert found.severity is Severity.ERROR
    assert found.evidence.site.fqn == place


@pytest.mark.parametrize("kind", ["attention", "gru", "conv"])
def test_a_causal_model_is_not_reported(kind: str):
    data = text()
    run = look(Language(kind), (data[:, :-1], data[:, 1:]))
    assert codes(run) == []
    (series,) = run.series("probe.future_leak")
    assert series.last == 0


def test_a_leak_to_positions_that_the_loss_ignores_is_none():
    data = text()
    target = data[:, 1:].clone()
    target[:, : STEPS // 2] = -100  # a prefix that is read both ways

    class Prefix(Language):
        def forward(self, tokens: Tensor) -> Tensor:
            x, half = self.embedding(tokens), tokens.shape[1] // 2
            mask = above(tokens.shape[1], 1)
            mask[:half, :half] = False
            return self.head(x + self.attention(x, x, x, attn_mask=mask)[0])

    assert codes(look(Prefix("attention"), (data[:, :-1], target))) == []


def test_a_loss_that_shifts_the_target_itself_counts_as_well():
    def shifting(output: Tensor, tokens: Tensor) -> Tensor:
        return of_tokens(output[:, :-1], tokens[:, 1:])

    data = text()[:, :-1]
    found = finding(look(Language("attention without mask"), (data, data), shifting), "F011")
    assert found.evidence.site.fqn == "attention"
    assert codes(look(Language("attention"), (data, data), shifting)) == []


def test_an_encoder_may_look_both_ways():
    data = text()[:, :-1]
    run = look(Language("attention without mask"), (data, data))
    assert codes(run) == []
    assert reason(run) == "no target is the next input, and no mask says what is padding"


def test_of_features_nothing_is_said():
    assert reason(look(plain(), labelled(), nn.CrossEntropyLoss())).startswith("no target is the")


# -- padding ---------------------------------------------------------------------------------------


class Sentences(nn.Module):
    """Classifies sentences that are padded with 0."""

    def __init__(self, fault: str = "") -> None:
        super().__init__()
        torch.manual_seed(0)
        self.fault = fault
        self.embedding = nn.Embedding(VOCABULARY, 16)
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.head = nn.Linear(16, 3)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        x = self.embedding(tokens)
        ignored = None if self.fault == "attention" else mask == 0
        x = self.attention(x, x, x, key_padding_mask=ignored)[0]
        if self.fault == "pooling":
            return self.head(x.mean(1))
        weight = mask[..., None].to(x.dtype)
        return self.head((x * weight).sum(1) / weight.sum(1))


def sentences(*, true_is_padding: bool = False) -> dict[str, Tensor]:
    tokens, lengths = text()[:, :-1].clamp(min=1), torch.arange(3, 3 + SAMPLES)
    real = torch.arange(STEPS) < lengths[:, None]
    return {"tokens": tokens * real, "mask": ~real if true_is_padding else real.long()}


@pytest.mark.parametrize(("fault", "place"), [("attention", "attention"), ("pooling", "")])
def test_padding_that_reaches_the_answer_is_found(fault: str, place: str):
    found = finding(look(Sentences(fault), sentences(), None), "F011")
    assert found.severity is Severity.WARNING
    assert found.evidence.site.fqn == place


def test_padding_that_is_masked_is_not_reported():
    run = look(Sentences(), sentences(), None)
    assert codes(run) == []
    (series,) = run.series("probe.padding_leak")
    assert series.last == 0


def test_a_mask_that_is_true_at_padding_is_understood_as_well():
    class Other(Sentences):
        def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
            return super().forward(tokens, ~mask)

    batch = sentences(true_is_padding=True)
    assert codes(look(Other(), batch, None)) == []
    assert codes(look(Other("pooling"), batch, None)) == ["F011"]


class Headed(nn.Module):
    """Classifies sentences by what attention makes of a query that stands before them."""

    def __init__(self, *, upside_down: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.upside_down = upside_down
        self.embedding = nn.Embedding(VOCABULARY, 16)
        self.query = nn.Parameter(torch.randn(1, 1, 16))
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.head = nn.Linear(16, 3)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        x = torch.cat([self.query.expand(len(tokens), -1, -1), self.embedding(tokens)], 1)
        ignored = mask.bool() ^ self.upside_down
        ignored = torch.cat([torch.zeros_like(ignored[:, :1]), ignored[:, 1:]], 1)
        return self.head(self.layer(x, src_key_padding_mask=ignored)[:, 0])


@pytest.mark.parametrize(("upside_down", "told"), [(True, ["F011"]), (False, [])])
def test_a_mask_with_a_position_for_the_whole_sequence_is_understood(
    upside_down: bool, told: list[str]
):
    batch = sentences(true_is_padding=True)
    batch["mask"] = torch.cat([torch.zeros(SAMPLES, 1, dtype=torch.bool), batch["mask"]], 1)
    run = look(Headed(upside_down=upside_down), batch, None)
    assert codes(run) == told
    if told:
        assert finding(run, "F011").evidence.site.fqn.startswith("layer")
