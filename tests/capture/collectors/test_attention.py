"""How sharply attention attends, against the softmax written out in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tests.capture.watched import Recording, train, watched

B, H, L, E = 2, 3, 7, 4
"""Few enough for every row to be looked at."""
CAUSAL = torch.ones(L, L, dtype=torch.bool).tril()
NAMES = ("entropy", "entropy_min", "logit_min", "logit_max")

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]


class Attending(nn.Module):
    """Heads of `E` in a width of `H * E`, between two linear layers."""

    def __init__(self, attend: Attend, *, kv_heads: int = H, gain: float = 1.0) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.query = nn.Linear(H * E, H * E)
        self.key, self.value = (nn.Linear(H * E, kv_heads * E) for _ in range(2))
        self.out = nn.Linear(H * E, H * E)
        self._attend, self._gain = attend, gain

    def heads(self, x: Tensor) -> list[Tensor]:
        made = (self._gain * self.query(x), self.key(x), self.value(x))
        return [part.unflatten(-1, (-1, E)).transpose(1, 2) for part in made]

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self._attend(*self.heads(x)).transpose(1, 2).flatten(2))


def batch() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(2, B, L, H * E, generator=generator)
    return x, y


def twin(logits: Any, allowed: Any = None, bias: Any = 0.0) -> dict[str, float]:
    """The four numbers, row by row in float64: logits (B, H, L, S)."""
    logits = np.asarray(logits, dtype=np.float64)
    allowed = np.broadcast_to(True if allowed is None else np.asarray(allowed), logits.shape)
    bias = np.broadcast_to(np.asarray(bias, dtype=np.float64), logits.shape)
    by_head: dict[int, list[float]] = {}
    for b, h, row in np.ndindex(logits.shape[:3]):
        keys = allowed[b, h, row]
        if keys.sum() < 2:
            continue
        values = (logits + bias)[b, h, row][keys]
        weights = np.exp(values - values.max())
        weights /= weights.sum()
        entropy = -sum(w * math.log(w) for w in weights if w > 0)
        by_head.setdefault(h, []).append(entropy / math.log(keys.sum()))
    seen = logits[allowed]
    every = [value for values in by_head.values() for value in values]
    means = [float(np.mean(values)) for values in by_head.values()]
    measured = (np.mean(every), min(means), seen.min(), seen.max())
    return cast(Any, dict(zip(NAMES, measured, strict=True)))


def logits_of(net: Attending, x: Tensor, scale: float = E**-0.5) -> Tensor:
    query, key, _ = (part.detach().double() for part in net.heads(x))
    return scale * query @ key.repeat_interleave(H // key.shape[1], 1).transpose(-1, -2)


def measured(recording: Recording, fqn: str = "") -> dict[str, float]:
    return {name: recording.values(f"attention.{name}", fqn)[0] for name in NAMES}


def recorded(net: nn.Module, steps: int = 1, **options: Any) -> Recording:
    with watched(**options) as recording:
        train(net, steps=steps, data=batch(), loss=F.mse_loss)
    return recording


# -- ways to attend ------------------------------------------------------------------------------


def fused(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(query, key, value)


def causal(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(query, key, value, is_causal=True)


def masked(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(query, key, value, attn_mask=CAUSAL)


def least_numbers(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    mask = torch.zeros(L, L).masked_fill(~CAUSAL, torch.finfo(torch.float32).min)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask[None, None])


def with_dropout(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(query, key, value, dropout_p=0.3)


def causal_with_dropout(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(query, key, value, dropout_p=0.3, is_causal=True)


def grouped(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(query, key, value, enable_gqa=True)


def written_out(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    scores = query @ key.transpose(-2, -1) / math.sqrt(E)
    return F.dropout(scores.masked_fill(~CAUSAL, -math.inf).softmax(-1), 0.1) @ value


def by_einsum(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    scores = torch.einsum("bhie,bhje->bhij", query, key) * E**-0.5
    return torch.einsum("bhij,bhje->bhie", scores.softmax(-1), value)


def with_a_mask_added(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    mask = torch.zeros(L, L).masked_fill(~CAUSAL, -math.inf)
    return ((query * E**-0.5) @ key.mT + mask).softmax(-1) @ value


FREE = [fused, with_dropout, by_einsum, grouped]
CHAINED = [causal, masked, least_numbers, causal_with_dropout, written_out, with_a_mask_added]


@pytest.mark.parametrize("attend", FREE + CHAINED)
def test_every_way_to_attend_is_as_its_softmax_written_out(attend: Attend):
    net = Attending(attend, kv_heads=1 if attend is grouped else H)
    expected = twin(logits_of(net, batch()[0]), CAUSAL if attend in CHAINED else None)
    recording = recorded(net)
    assert measured(recording) == pytest.approx(expected, rel=1e-5)
    assert recording.sites("attention.entropy") == {""}
    assert recording.skips() == {}


def test_a_bias_counts_for_the_entropy_and_a_scale_for_the_logits():
    slopes = -torch.arange(L).float() * 0.5

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(query, key, value, attn_mask=slopes[None], scale=0.9)

    net = Attending(attend)
    expected = twin(logits_of(net, batch()[0], 0.9), bias=slopes)
    assert measured(recorded(net)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_every_type_is_measured_as_the_numbers_it_holds(dtype: torch.dtype):
    seen: list[Tensor] = []

    def attend(*parts: Tensor) -> Tensor:
        query, key, value = (part.to(dtype) for part in parts)
        seen[:] = [query.detach().double(), key.detach().double()]
        return F.scaled_dot_product_attention(query, key, value).float()

    recording = recorded(Attending(attend))
    expected = twin(seen[0] @ seen[1].mT / math.sqrt(E))
    assert measured(recording) == pytest.approx(expected, rel=1e-5)


# -- whose it is ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_the_layers_of_a_transformer_have_their_own(dropout: float):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(H * E, H, 16, dropout, batch_first=True)
    net = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    recording = recorded(net)
    assert recording.sites("attention.entropy") == {f"layers.{i}.self_attn" for i in range(2)}


def test_weights_that_are_wanted_are_measured_as_well():
    class Net(nn.Module):
        def __init__(self, *, weights: bool) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.attention = nn.MultiheadAttention(H * E, H, batch_first=True)
            self._weights = weights

        def forward(self, x: Tensor) -> Tensor:
            mask = ~CAUSAL
            return self.attention(x, x, x, attn_mask=mask, need_weights=self._weights)[0]

    with_weights, without = (recorded(Net(weights=weights)) for weights in (True, False))
    found, expected = (measured(each, "attention") for each in (with_weights, without))
    # Heads of several samples are not told apart where they share an axis.
    assert found.pop("entropy_min") <= expected.pop("entropy_min")
    assert found == pytest.approx(expected, rel=1e-5)


def test_it_belongs_to_the_module_that_calls_it_whatever_runs_beside_it():
    class Core(nn.Module):
        def forward(self, *parts: Tensor) -> Tensor:
            return fused(*parts)

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.before, self.inner = nn.Linear(H * E, H * E), Attending(Core())
            self.plain = Attending(causal)
            self.after = nn.Sequential(nn.Linear(H * E, H * E), nn.Dropout(0.0))

        def forward(self, x: Tensor) -> Tensor:
            hidden = self.before(x)
            mixed = self.after(self.plain(self.inner(hidden)))
            return self.after(fused(mixed, mixed, mixed))

    recording = recorded(Outer(), steps=2)
    assert recording.sites("attention.entropy") == {"", "inner._attend", "plain"}
    assert len(recording.values("attention.entropy", "plain")) == 2


def test_several_calls_at_a_place_are_one():
    def twice(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return fused(query, key, value) + causal(query, key, value)

    net = Attending(twice)
    logits = logits_of(net, batch()[0])
    both = [twin(logits), twin(logits, CAUSAL)]
    found = measured(recorded(net))
    assert found["entropy"] == pytest.approx(np.mean([each["entropy"] for each in both]), rel=1e-5)
    assert found["entropy_min"] == pytest.approx(
        min(each["entropy_min"] for each in both), rel=1e-5
    )
    assert found["logit_max"] == pytest.approx(max(each["logit_max"] for each in both), rel=1e-5)


# -- what it shows -------------------------------------------------------------------------------


@pytest.mark.parametrize("attend", [fused, causal, masked, with_dropout, by_einsum])
def test_collapse_is_seen_and_a_head_that_is_only_sharp_is_none(attend: Attend):
    x = batch()[0]
    allowed = None if attend in FREE else CAUSAL
    for gain, lowest, highest in ((1e4, 0.0, 1e-3), (8.0, 0.2, 0.8)):
        net = Attending(attend, gain=gain)
        expected = twin(logits_of(net, x), allowed)
        found = measured(recorded(net))
        assert found == pytest.approx(expected, rel=1e-4, abs=1e-6)
        assert lowest <= found["entropy"] <= highest


@pytest.mark.parametrize("attend", [causal_with_dropout, written_out, with_a_mask_added])
def test_collapse_is_seen_behind_a_mask_that_autograd_does_not_keep(attend: Attend):
    net = Attending(attend, gain=1e4)
    expected = twin(logits_of(net, batch()[0]), CAUSAL)
    found = measured(recorded(net))
    # A forbidden key whose weight would be zero in any case passes for one that is let through.
    assert found.pop("logit_min") <= expected.pop("logit_min")
    assert 0.5 * expected["entropy"] <= found.pop("entropy") <= expected.pop("entropy")
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-3)


def test_one_collapsed_head_shows_in_the_lowest_only():
    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return fused(query * torch.tensor([1.0, 1.0, 1e4])[:, None, None], key, value)

    found = measured(recorded(Attending(attend)))
    assert found["entropy_min"] < 1e-3
    assert found["entropy"] > 0.5


def test_a_query_with_a_single_key_has_no_choice():
    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return fused(query, key[:, :, :1], value[:, :, :1])

    found = measured(recorded(Attending(attend)))
    assert math.isnan(found["entropy"])
    assert math.isnan(found["entropy_min"])
    assert math.isfinite(found["logit_max"])


def test_a_nan_in_a_query_is_shown():
    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return fused(query * math.nan, key, value)

    found = measured(recorded(Attending(attend)))
    assert all(map(math.isnan, found.values()))


# -- what is looked at, and when -----------------------------------------------------------------


def test_of_many_rows_a_sample_is_looked_at_that_moves_on():
    torch.manual_seed(0)
    x = torch.randn(8, 20, 64, 4)
    net = nn.Linear(4, 4)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = net

        def forward(self, x: Tensor) -> Tensor:
            query = self.layer(x)
            return F.scaled_dot_product_attention(query, x, x)

    optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
    with watched() as recording:
        train(Net(), steps=33, optimizer=optimizer, data=(x, x), loss=F.mse_loss)
    assert recording.series("attention.entropy", "").steps.tolist() == [0, 1, 2, 3, 8, 16, 24, 32]
    entropies = recording.values("attention.entropy", "")
    logits = net(x).detach() @ x.mT / 2
    assert len(set(entropies)) == 8
    assert entropies == pytest.approx([np.mean(entropies)] * 8, rel=0.02)
    assert entropies == pytest.approx([twin(logits)["entropy"]] * 8, rel=0.05)
    assert max(recording.values("attention.logit_max", "")) <= float(logits.max()) * (1 + 1e-5)


def test_a_model_without_attention_is_searched_ever_more_rarely(monkeypatch: pytest.MonkeyPatch):
    searched: list[object] = []
    monkeypatch.setattr(
        "traindx.capture.collectors.attention.attentions", lambda node: searched.append(node) or []
    )
    recorded(nn.Linear(H * E, H * E), steps=40)
    assert len(searched) == 4  # 0, 1, 16, 32


def test_attention_without_a_gradient_is_none():
    net = Attending(fused).requires_grad_(False)
    net.out.requires_grad_()
    with watched() as recording:
        optimizer = torch.optim.SGD(net.out.parameters(), lr=0.1)
        train(net, steps=2, optimizer=optimizer, data=batch(), loss=F.mse_loss)
    assert recording.sites("attention.entropy") == set()


@pytest.mark.parametrize("reentrant", [False, True])
def test_what_a_checkpoint_keeps_elsewhere_is_left_alone(reentrant: bool):
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.into, self.part = nn.Linear(H * E, H * E), Attending(fused)

        def forward(self, x: Tensor) -> Any:
            return checkpoint(self.part, self.into(x), use_reentrant=reentrant)

    recording = recorded(Net(), steps=2)
    assert recording.sites("attention.entropy") == set()
    told = recording.skips().get(("part", "attention"), "")
    assert told.startswith("" if reentrant else "its operands are kept elsewhere")


def test_micro_batches_are_one_step():
    net = Attending(fused)
    (x, y), other = batch(), 3 * batch()[0]
    expected = [twin(logits_of(net, each)) for each in (x, other)]
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with watched() as recording:
        for each in (x, other):
            F.mse_loss(net(each), y).backward()
        optimizer.step()
    found = measured(recording)
    assert found["entropy"] == pytest.approx(
        np.mean([each["entropy"] for each in expected]), rel=1e-5
    )
    assert found["logit_max"] == pytest.approx(max(e["logit_max"] for e in expected), rel=1e-5)


# -- harmless ------------------------------------------------------------------------------------


@pytest.mark.parametrize("attend", [fused, causal_with_dropout, written_out])
def test_losses_and_random_numbers_are_the_same_to_the_bit(attend: Attend):
    def trained() -> tuple[list[float], Tensor]:
        net = Attending(attend)
        torch.manual_seed(3)
        return train(net, steps=6, data=batch(), loss=F.mse_loss), torch.get_rng_state()

    losses, state = trained()
    with watched():
        watched_losses, watched_state = trained()
    assert watched_losses == losses
    assert torch.equal(state, watched_state)
