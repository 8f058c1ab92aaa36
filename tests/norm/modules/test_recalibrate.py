"""Recalibration: the statistics of a population, whatever the batches and ranks."""

import copy
from collections.abc import Sequence
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn

from traindx.errors import UsageError
from traindx.norm.modules.population import Moments
from traindx.norm.modules.recalibrate import Recalibration, recalibrate


def _data(count: int = 200) -> Tensor:
    return 3 + 2 * torch.randn(count, 4, 5, generator=torch.Generator().manual_seed(0))


def _model() -> nn.Sequential:
    torch.manual_seed(1)
    layers = (nn.BatchNorm1d(4), nn.Conv1d(4, 6, 3), nn.BatchNorm1d(6), nn.Dropout(0.5))
    return nn.Sequential(*layers)


def test_the_first_layer_gets_the_exact_statistics_of_all_data() -> None:
    data, model = _data().double(), _model().double()
    result = recalibrate(model, data.split([64, 64, 64, 8]))
    channels = data.movedim(1, 0).flatten(1)
    torch.testing.assert_close(model[0].running_mean, channels.mean(1), rtol=1e-13, atol=0)
    torch.testing.assert_close(model[0].running_var, channels.var(1), rtol=1e-12, atol=0)
    assert int(cast(Any, model[0]).num_batches_tracked) == 4
    assert (result.batches, result.skipped, result.uncalled) == (4, 0, ())
    assert [change.fqn for change in result.layers] == ["0", "2"]
    assert result.layers[0].elements == 200 * 5


def test_how_the_data_are_cut_does_not_matter() -> None:
    data = _data().double()
    whole = Moments.of(data)
    for sizes in ([1] * 200, [199, 1], [0, 100, 100]):
        parts = [Moments.of(part) for part in data.split(sizes)]
        merged = Moments.none(4, data.device)
        for part in parts:
            merged = merged.merged(part)
        torch.testing.assert_close(merged.mean, whole.mean, rtol=1e-12, atol=0)
        torch.testing.assert_close(merged.m2, whole.m2, rtol=1e-12, atol=0)


def test_a_large_mean_does_not_spoil_the_variance() -> None:
    data = 1e6 + _data()
    model = cast(Any, nn.BatchNorm1d(4))
    recalibrate(model, data.split(50))
    exact = data.double().movedim(1, 0).flatten(1).var(1)
    torch.testing.assert_close(model.running_var.double(), exact, rtol=1e-6, atol=0)


def test_statistics_that_are_right_have_no_gap_and_stale_ones_do() -> None:
    data, model = _data(), _model()
    first = recalibrate(model, data.split(50))
    assert first.layers[0].gap > 1
    again = recalibrate(model, data.split(50))
    assert all(change.gap < 1e-3 for change in again.layers)


def test_nothing_else_of_the_model_is_changed() -> None:
    model = _model()
    model.train()
    model[1].eval()
    before, modes = copy.deepcopy(model.state_dict()), [m.training for m in model.modules()]
    random = torch.get_rng_state()
    recalibrate(model, _data().split(50))
    assert [m.training for m in model.modules()] == modes
    assert torch.equal(torch.get_rng_state(), random)
    changed = {name for name, value in model.state_dict().items() if not value.equal(before[name])}
    statistics = {f"{i}.{n}" for i in (0, 2) for n in ("running_mean", "running_var")}
    assert changed == statistics | {"0.num_batches_tracked", "2.num_batches_tracked"}
    assert not any(m._forward_pre_hooks for m in model.modules())


def test_a_batch_that_is_not_finite_is_left_out() -> None:
    data, model, clean = _data(), _model(), _model()
    poisoned = data[:50].clone()
    poisoned[0, 0, 0] = float("nan")
    result = recalibrate(model, [poisoned, *data.split(50)])
    recalibrate(clean, data.split(50))
    assert (result.batches, result.skipped) == (4, 1)
    for name, value in model.state_dict().items():
        assert value.equal(clean.state_dict()[name])


@pytest.mark.parametrize("sizes", [[100, 100], [30, 170], [0, 200], [50, 0, 150]])
def test_every_rank_gets_the_same_bits_and_those_of_all_data(sizes: list[int]) -> None:
    data = _data()
    parts = data.split(sizes)
    models, results = _on_ranks(parts)
    for model in models[1:]:
        for name, value in model.state_dict().items():
            assert value.equal(models[0].state_dict()[name])
    exact = data.double().movedim(1, 0).flatten(1).var(1)
    torch.testing.assert_close(models[0][0].running_var.double(), exact, rtol=1e-6, atol=0)
    assert {change.elements for change in results[0].layers} == {200 * 5, 200 * 3}


def _on_ranks(parts: Sequence[Tensor]) -> tuple[list[nn.Sequential], list[Recalibration]]:
    """Each rank's model; what the others send is taken from a first round that only listens."""
    sent: dict[int, list[Tensor]] = {}

    def run(rank: int, receive: bool) -> tuple[nn.Sequential, Recalibration | None]:
        calls = iter(range(2))

        def gather(tensor: Tensor) -> list[Tensor]:
            call = next(calls)
            if not receive:
                sent.setdefault(rank, []).append(tensor)
                return [tensor]
            return [sent[other][call] for other in range(len(parts))]

        model = _model()
        batches = list(parts[rank].split(40)) if len(parts[rank]) else []
        try:
            return model, recalibrate(model, batches, gather=gather)
        except UsageError:
            assert not receive, "alone, a rank without data has nothing"
            sent[rank].append(torch.tensor(0.0))
            return model, None

    for rank in range(len(parts)):
        run(rank, receive=False)
    done = [run(rank, receive=True) for rank in range(len(parts))]
    return [model for model, _ in done], [result for _, result in done if result is not None]


def test_a_layer_that_is_not_reached_stays_as_it_was() -> None:
    class Half(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.unused = nn.BatchNorm1d(4), nn.BatchNorm1d(4)

        def forward(self, x: Tensor) -> Tensor:
            return self.used(x)

    model = cast(Any, Half())
    result = recalibrate(model, _data().split(50))
    assert result.uncalled == ("unused",)
    assert model.unused.running_var.tolist() == [1.0] * 4


@pytest.mark.parametrize(
    "batch", [(_data(50), torch.zeros(50)), [_data(50)], {"input": _data(50)}, _data(50)]
)
def test_a_batch_may_be_what_loaders_give(batch: Any) -> None:
    assert recalibrate(nn.BatchNorm1d(4), [batch]).batches == 1


def test_a_limit_takes_only_so_many_batches() -> None:
    assert recalibrate(_model(), _data().split(10), limit=3).batches == 3


@pytest.mark.parametrize(
    ("model", "batches", "words"),
    [
        (nn.LayerNorm(4), [torch.ones(2, 4)], "Recalibration needs BatchNorm layers"),
        (nn.BatchNorm1d(4), [], "No statistics came of 0 batches"),
        (nn.BatchNorm1d(4), [torch.full((2, 4), float("inf"))], "of which 1 held numbers"),
        (nn.BatchNorm1d(4), [torch.ones(2, 5)], "The model fails on its batch: RuntimeError"),
        (nn.BatchNorm1d(4), [torch.ones(1, 4)], "The model fails on its batch: ValueError"),
    ],
)
def test_what_cannot_be_done_is_told_and_changes_nothing(
    model: nn.Module, batches: list[Tensor], words: str
) -> None:
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(UsageError, match=words):
        recalibrate(model, batches)
    assert all(value.equal(before[name]) for name, value in model.state_dict().items())
