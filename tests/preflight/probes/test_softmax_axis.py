"""Whether softmax weights average over the axis along which they sum to 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.preflight.cases import case_of, codes, finding, probed, reason
from traindx.findings import Severity
from traindx.run import Run

SAMPLES, STEPS, WIDTH, HEADS = 6, 7, 16, 4

Mixing = Callable[["Layer", Tensor, Tensor, Tensor], Tensor]


class Layer(nn.Module):
    """Attention over a sequence, computed by a function of queries, keys and values."""

    def __init__(self, mixing: Mixing) -> None:
        super().__init__()
        self.mixing = mixing
        self.q, self.k, self.v = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.clusters = nn.Linear(WIDTH, 5)
        self.slots = nn.Parameter(torch.randn(3, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        return self.mixing(self, self.q(x), self.k(x), self.v(x))


class Net(nn.Module):
    """A classifier of sequences."""

    def __init__(self, mixing: Mixing) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = Layer(mixing)
        self.head = nn.LazyLinear(5)
        self(torch.randn(2, STEPS, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layer(x).reshape(len(x), -1))


def look(mixing: Mixing) -> Run:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(SAMPLES, STEPS, WIDTH, generator=generator)
    labels = torch.arange(SAMPLES) % 5
    return probed(case_of(Net(mixing), (x, labels), nn.CrossEntropyLoss()), "softmax-axis")


def scores(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.transpose(-2, -1) / WIDTH**0.5


def heads(x: Tensor) -> Tensor:
    return x.unflatten(-1, (HEADS, -1)).transpose(1, 2)


def over(axis: int) -> Mixing:
    return lambda layer, q, k, v: scores(q, k).softmax(axis) @ v


def over_of_heads(axis: int) -> Mixing:
    return lambda layer, q, k, v: (
        F.dropout(scores(heads(q), heads(k)).softmax(axis), 0.1, layer.training) @ heads(v)
    )


def flattened_heads(layer: Layer, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    q, k, v = (heads(part).flatten(0, 1) for part in (q, k, v))
    return torch.bmm(torch.softmax(torch.bmm(q, k.mT), 1), v)


def causal_over_queries(layer: Layer, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    mask = torch.triu(torch.ones(STEPS, STEPS, dtype=torch.bool), 1)
    return F.softmax(scores(q, k).masked_fill(mask, -torch.inf), dim=-2).nan_to_num() @ v


def by_einsum(layer: Layer, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    weights = torch.einsum("bqd,bkd->bqk", q, k).softmax(1)
    return torch.einsum("bqk,bkd->bqd", weights, v)


def additive(layer: Layer, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    pairs = F.leaky_relu(q[..., :1] + k[..., :1].mT)  # of graph attention
    return pairs.softmax(1) @ v


def pooled(axis: int) -> Mixing:
    return lambda layer, q, k, v: (q.tanh()[..., :1].softmax(axis) * v).sum(1)


WRONG: dict[str, tuple[Mixing, int]] = {
    "queries": (over(-2), 1),
    "batch": (over(0), 0),
    "heads": (over_of_heads(1), 1),
    "queries of each head": (over_of_heads(2), 2),
    "heads in the batch": (flattened_heads, 1),
    "queries with a causal mask": (causal_over_queries, 1),
    "queries by einsum": (by_einsum, 1),
    "additive scores": (additive, 1),
    "a single score": (pooled(-1), 2),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_softmax_over_another_axis_than_the_keys_is_found_in_its_module(name: str):
    mixing, axis = WRONG[name]
    found = finding(look(mixing), "F012")
    assert found.severity is Severity.ERROR
    assert found.evidence.site.fqn == "layer"
    assert found.evidence.numbers["axis"] == axis


def causal(layer: Layer, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    mask = torch.triu(torch.ones(STEPS, STEPS, dtype=torch.bool), 1)
    return scores(q, k).masked_fill(mask, -torch.inf).softmax(-1) @ v


def transposed(layer: Layer, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return scores(k, q).softmax(-2).mT @ v


def efficient(layer: Layer, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return q.softmax(-1) @ (k.softmax(1).mT @ v)  # Shen et al. 2018


def slots(layer: Layer, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    found = layer.slots.expand(len(q), -1, -1) + q.mean(1, keepdim=True)
    weights = scores(found, k).softmax(1)
    return (weights / weights.sum(-1, keepdim=True)) @ v


def vlad(layer: Layer, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return layer.clusters(k).softmax(-1).mT @ v


def diff_pool(layer: Layer, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    assigned = (scores(q, k) @ layer.clusters(k)).softmax(-1)  # after a product with weights
    return assigned.mT @ v


def capsules(layer: Layer, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    said = v.unflatten(-1, (2, -1)).transpose(1, 2)  # N, parents, children, features
    agreed = torch.zeros(*said.shape[:3], 1)
    for _ in range(3):
        found = (agreed.softmax(1) * said).sum(2, keepdim=True)
        agreed = agreed + said @ found.mT
    return found


def gates(layer: Layer, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return v * q.softmax(-1) + v * k.mean(1, keepdim=True).softmax(-1)


def selected(layer: Layer, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    weights = torch.stack([q, k], 1).softmax(1)  # which of two branches, channel by channel
    return (weights * torch.stack([v, q], 1)).sum(1)


def experts(layer: Layer, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    chosen, which = layer.clusters(q).softmax(-1).topk(2, -1)
    made = torch.stack([v * (i + 1) for i in range(5)], 2)
    kept = made.gather(2, which[..., None].expand(-1, -1, -1, WIDTH))
    return (chosen[..., None] * kept).sum(2)


def codebook(layer: Layer, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.gumbel_softmax(layer.clusters(q), hard=True) @ layer.clusters.weight


def places(layer: Layer, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    heat = q.mT.softmax(-1)  # the expected place of each channel
    return (heat * torch.arange(STEPS)).sum(-1) + heat @ torch.linspace(-1, 1, STEPS)


def talking(layer: Layer, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    weights = scores(heads(q), heads(k)).softmax(-1)
    mixed = F.linear(weights.movedim(1, -1), torch.eye(HEADS) + 0.1).movedim(-1, 1)
    return mixed @ heads(v)


RIGHT: dict[str, Mixing] = {
    "keys": over(-1),
    "keys of each head": over_of_heads(-1),
    "keys with a causal mask": causal,
    "keys first": transposed,
    "efficient attention": efficient,
    "attention pooling": pooled(1),
    "slots": slots,
    "NetVLAD": vlad,
    "DiffPool": diff_pool,
    "capsules": capsules,
    "gates": gates,
    "branches": selected,
    "experts": experts,
    "places": places,
    "talking heads": talking,
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_softmax_that_is_meant_is_not_reported(name: str):
    run = look(RIGHT[name])
    assert codes(run) == []
    assert all(series.last >= 0 for series in run.series("probe.softmax_weights"))


def test_what_is_looked_at_is_counted():
    (series,) = look(efficient).series("probe.softmax_weights")
    assert series.last == 2


@pytest.mark.parametrize(
    "mixing",
    [
        codebook,
        lambda layer, q, k, v: F.scaled_dot_product_attention(q, k, v),
        lambda layer, q, k, v: q,
    ],
)
def test_a_model_whose_weights_average_nothing_in_the_open_says_so(mixing: Any):
    assert reason(look(mixing)) == "no weights of a softmax average anything in the open"
