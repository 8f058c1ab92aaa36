"""Checkpoints and inputs of evaluation on real training: faults and near misses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import traindx

CODES = {"E006", "E013", "E014"}
Found = Callable[[Callable[[], None]], list[str]]


@pytest.fixture
def found(tmp_path: Path) -> Found:
    """Runs a training watched; what was found of these rules."""

    def run(training: Callable[[], None]) -> list[str]:
        torch.manual_seed(0)
        with traindx.watch(name="training", folder=tmp_path) as session:
            training()
        verdict = session.run.verdict
        assert verdict is not None
        assert [it for it in verdict.not_evaluated if "Error" in it.reason] == []
        return [it.code for it in verdict.findings if it.code in CODES]

    return run


def columns(rows: int = 400, *, shift: float = 0.0) -> Tensor:
    """A table whose columns are in units of their own; `shift` makes it that of another year."""
    generator = torch.Generator().manual_seed(3)
    scales = torch.logspace(-2, 3, 12)
    return scales * (2 + shift + torch.randn(rows, 12, generator=generator))


def build() -> nn.Sequential:
    return nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 3))


def fit(_net: nn.Module, x: Tensor, each: Callable[[Tensor], Tensor] = lambda x: x) -> None:
    optimizer = torch.optim.Adam(_net.parameters(), lr=1e-3)
    labels = torch.arange(len(x)) % 3
    for step in range(30):
        rows = torch.arange(step * 50, step * 50 + 50) % len(x)
        optimizer.zero_grad()
        F.cross_entropy(_net(each(x[rows])), labels[rows]).backward()
        optimizer.step()


def evaluate(_net: nn.Module, x: Tensor) -> None:
    _net.eval()
    with torch.no_grad():
        for batch in x.split(50):
            _net(batch)
    _net.train()


TABLE = columns()
MEAN, STD = TABLE.mean(0), TABLE.std(0)


def standardized(x: Tensor) -> Tensor:
    return (x - MEAN) / STD


def evaluated(x: Tensor, on: Tensor, each: Callable[[Tensor], Tensor] = lambda x: x) -> Any:
    def training() -> None:
        net = build()
        fit(net, x, each)
        evaluate(net, on)

    return training


PIXELS = torch.rand(400, 12, generator=torch.Generator().manual_seed(4)) * torch.linspace(
    0.1, 1, 12
)


@pytest.mark.parametrize(
    "training",
    [
        evaluated(standardized(TABLE), TABLE),
        evaluated(TABLE, standardized(TABLE)),
        evaluated(PIXELS, 255 * PIXELS),
        evaluated(2 * PIXELS - 1, PIXELS),
    ],
)
def test_another_scale_in_evaluation_is_found(training: Callable[[], None], found: Found):
    assert found(training) == ["E013"]


@pytest.mark.parametrize(
    "training",
    [
        evaluated(standardized(TABLE), standardized(columns(200, shift=0.8))),  # another year
        evaluated(PIXELS, PIXELS, lambda x: x + 0.4 * torch.randn_like(x)),  # denoising
        evaluated(PIXELS, PIXELS, lambda x: x * (torch.rand_like(x) > 0.5)),  # masked
        evaluated(PIXELS, PIXELS, lambda x: 0.6 * x + 0.4 * x.flip(0)),  # mixed up
        evaluated(PIXELS, PIXELS, lambda x: x * (0.8 + 0.4 * torch.rand(len(x), 1))),  # brighter
        evaluated(TABLE, TABLE[TABLE[:, 0].argsort()][:100]),  # one kind alone
        evaluated(standardized(TABLE), standardized(TABLE)[:20]),
    ],
)
def test_noise_masks_and_other_data_are_not(training: Callable[[], None], found: Found):
    assert found(training) == []


def finetuned(load: Callable[[nn.Module], object]) -> Callable[[], None]:
    def training() -> None:
        net = build()
        load(net)
        fit(net, standardized(TABLE))

    return training


def parallel(net: nn.Module) -> dict[str, Tensor]:
    return {f"module.{name}": value.clone() for name, value in net.state_dict().items()}


def with_what_fits(net: nn.Module) -> object:
    """As often written: what fits of a checkpoint replaces the model's own, which is nothing."""
    own = net.state_dict()
    own.update({name: value for name, value in parallel(build()).items() if name in own})
    return net.load_state_dict(own)


@pytest.mark.parametrize(
    "load",
    [
        lambda net: net.load_state_dict(parallel(build()), strict=False),
        lambda net: net[0].load_state_dict(parallel(nn.Linear(12, 16)), strict=False),
        lambda net: net.load_state_dict({}, strict=False),
        with_what_fits,
    ],
)
def test_a_checkpoint_that_is_passed_over_is_found(
    load: Callable[[nn.Module], object], found: Found
):
    assert found(finetuned(load)) == ["E014"]


@pytest.mark.parametrize(
    "load",
    [
        lambda net: net.load_state_dict(build().state_dict()),
        lambda net: net[0].load_state_dict(build()[0].state_dict()),
        lambda net: net.load_state_dict(
            {name: value for name, value in build().state_dict().items() if name[0] == "0"},
            strict=False,
        ),
        lambda net: net.load_state_dict({**build().state_dict(), "old.weight": PIXELS}, False),
    ],
)
def test_one_that_is_used_is_not(load: Callable[[nn.Module], object], found: Found):
    assert found(finetuned(load)) == []


def copied(state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in state.items()}


@pytest.mark.parametrize(("keep", "codes"), [(dict, ["E006"]), (copied, [])])
def test_best_weights_that_were_kept_by_reference_are_found(
    keep: Callable[[Any], Any], codes: list[str], found: Found
):
    def training() -> None:
        net = build()
        fit(net, standardized(TABLE))
        best = keep(net.state_dict())
        fit(net, standardized(TABLE))
        net.load_state_dict(best)

    assert found(training) == codes
