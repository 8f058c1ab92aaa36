"""What batches hold, and what first layers are given."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.preflight.cases import case_of, classifier, codes, finding, labelled, probed, reason

NAME = "input-values"
X, Y = labelled()


def run_of(x: Any, model: nn.Module | None = None):
    return probed(case_of(model or classifier(), (x, Y), F.cross_entropy), NAME)


def _with(x: Tensor, place: Any, value: float) -> Tensor:
    x = x.clone()
    x[place] = value
    return x


@pytest.mark.parametrize(
    ("x", "code"),
    [
        (_with(X, (3, 4), math.nan), "L008"),
        (_with(X, (3, 4), math.inf), "L008"),
        (X[:1].expand(32, 20), "L008"),
        (X[torch.arange(32) % 8], "L008"),
        (
            torch.randint(0, 256, (32, 20), generator=torch.Generator().manual_seed(0)).float(),
            "L007",
        ),
        (_with(X, (slice(None), 3), 0.0) + 5000 * F.one_hot(torch.tensor(3), 20) * X, "L007"),
        (X + 40, "L007"),
        (X * 1e-5, "L007"),
    ],
)
def test_damaged_and_unscaled_batches_are_told(x: Tensor, code: str) -> None:
    assert codes(run_of(x)) == [code]


def test_scaled_states_of_a_small_world_repeat_and_copies_of_other_numbers_do_not() -> None:
    generator = torch.Generator().manual_seed(0)
    states = torch.randint(0, 11, (64, 2), generator=generator)
    world = torch.stack([states[:, 0] / 5 - 1, (states[:, 0] % 2) * 2.0 - 1], 1)
    y = torch.zeros(64, dtype=torch.long)
    model = nn.Linear(2, 10)
    assert not codes(probed(case_of(model, (world, y), F.cross_entropy), NAME))
    copies = torch.randn(9, 2, generator=generator)[states[:, 0] % 9]
    assert codes(probed(case_of(model, (copies, y), F.cross_entropy), NAME)) == ["L008"]
    two = torch.randn(2, 2, generator=generator)[states[:, 0] % 2]
    assert codes(probed(case_of(model, (two, y), F.cross_entropy), NAME)) == ["L008"]
    pixels = torch.randint(0, 256, (8, 40), generator=generator)[states[:, 0] % 8] / 255
    told = probed(case_of(nn.Linear(40, 10), (pixels, y), F.cross_entropy), NAME)
    assert codes(told) == ["L008"]


@pytest.mark.parametrize(
    "x",
    [X, X.sigmoid(), (X > 1).float(), X * 3 + 1, _with(X, (slice(None), slice(0, 6)), 0.0)],
)
def test_usual_batches_are_not(x: Tensor) -> None:
    assert not codes(run_of(x))


def test_pixels_are_told_unless_the_model_scales_them() -> None:
    class Scaling(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = classifier()

        def forward(self, x: Tensor) -> Tensor:
            return self.body(x / 255)

    pixels = torch.randint(0, 256, (32, 20), generator=torch.Generator().manual_seed(0)).float()
    assert finding(run_of(pixels), "L007").evidence.site.fqn == "0"
    assert not codes(run_of(pixels, Scaling()))
    assert not codes(run_of(pixels, nn.Sequential(nn.BatchNorm1d(20), classifier())))
    assert not codes(run_of(pixels, classifier(nn.BatchNorm1d(32), nn.ReLU())))


def test_tokens_and_a_mask_of_infinities_are_no_defect() -> None:
    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.head = nn.Embedding(5, 8), nn.Linear(8, 10)

        def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
            return self.head((self.table(tokens) * mask.exp()[..., None]).sum(1))

    mask = torch.zeros(32, 4)
    mask[:, 2:] = -math.inf
    tokens = torch.randint(0, 5, (32, 4), generator=torch.Generator().manual_seed(0))
    assert not codes(probed(case_of(Masked(), (tokens, mask, Y), F.cross_entropy), NAME))


def test_a_mask_of_ones_that_comes_first_is_no_batch_of_copies() -> None:
    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = classifier()

        def forward(self, mask: Tensor, x: Tensor) -> Tensor:
            return self.body(mask * x)

    assert not codes(probed(case_of(Masked(), (torch.ones(32, 20), X, Y), F.cross_entropy), NAME))


def test_a_model_without_tensors_has_no_batch_to_look_at() -> None:
    class Drawing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = classifier()

        def forward(self, samples: int) -> Tensor:
            return self.body(torch.randn(samples, 20))

    run = probed(case_of(Drawing(), (8,), lambda output: output.square().mean()), NAME)
    assert reason(run) == "the batch holds no tensors"


@pytest.mark.parametrize("broken", [False, True])
def test_sparse_tensors_are_looked_at_where_they_hold_something(broken: bool) -> None:
    class OfGraph(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(20, 10)

        def forward(self, x: Tensor, edges: Tensor) -> Tensor:
            return self.layer(torch.sparse.mm(edges, x))

    edges = torch.eye(32) / (0.0 if broken else 2.0)
    sparse = torch.where(torch.eye(32) > 0, edges, 0.0).to_sparse()
    run = probed(case_of(OfGraph(), (X, sparse, Y), F.cross_entropy), NAME)
    assert not reason(run)
    (series,) = run.series("probe.input_nonfinite")
    assert series.last == (32 if broken else 0)


def test_bytes_divided_as_whole_numbers_are_nearly_empty() -> None:
    generator = torch.Generator().manual_seed(0)
    pixels = (torch.randn(32, 100, generator=generator) * 50 + 130).clamp(0, 255).byte()
    left = (pixels // 255).float()
    run = probed(case_of(classifier(features=100), (left, Y), F.cross_entropy), NAME)
    assert "nothing but zeros" in finding(run, "L008").evidence.message
    whole = pixels.float() / 255
    assert not codes(probed(case_of(classifier(features=100), (whole, Y), F.cross_entropy), NAME))
