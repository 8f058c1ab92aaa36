"""BatchNorm's batch statistics recovered from its buffers, against the batches themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from tests.capture.watched import Recording, train, watched
from traindx.capture.collectors.norms import Norms
from traindx.capture.models import TrackedModel
from traindx.capture.recorder import Recorder
from traindx.records import Point


def data(seed: int, rows: int = 64, mean: float = 3.0, std: float = 2.0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return mean + std * torch.randn(rows, 5, generator=generator, dtype=torch.float64)


class Direct:
    """The running statistics of a BatchNorm in float64 by its documented update, and its gaps."""

    def __init__(self, momentum: float | None, eps: float) -> None:
        self.mean, self.var = np.zeros(5), np.ones(5)
        self.momentum, self.eps = momentum, eps
        self.count = 0

    def step(self, batches: list[np.ndarray]) -> float:
        """Update by each batch; the gap between the step's mean batch and what is running then."""
        means, variances, weights = [], [], []
        for batch in batches:
            self.count += 1
            weight = 1 / self.count if self.momentum is None else self.momentum
            mean, var = batch.mean(0), batch.var(0, ddof=1)
            self.mean = (1 - weight) * self.mean + weight * mean
            self.var = (1 - weight) * self.var + weight * var
            weights = [(1 - weight) * w for w in weights] + [weight]
            means.append(mean)
            variances.append(var)
        total = sum(weights)
        mean = sum(w * m for w, m in zip(weights, means, strict=True)) / total
        var = sum(w * v for w, v in zip(weights, variances, strict=True)) / total
        a = np.sqrt((var + self.eps) / (self.var + self.eps))
        b = (mean - self.mean) / np.sqrt(self.var + self.eps)
        return float(np.sqrt(np.mean(b * b + (a - 1) ** 2)))


@pytest.mark.parametrize("updates", [1, 3])
@pytest.mark.parametrize("momentum", [0.1, 0.5, 1.0, None])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_gap_equals_a_direct_computation(updates, momentum, dtype):
    norm = nn.BatchNorm1d(5, momentum=momentum).to(dtype)
    direct = Direct(momentum, norm.eps)
    optimizer = torch.optim.SGD(norm.parameters(), lr=0.0)
    expected = []
    with watched() as recording:
        for step in range(5):
            optimizer.zero_grad()
            batches = [data(10 * step + i) for i in range(updates)]
            for part in batches:
                norm(part.to(dtype)).square().mean().backward()
            optimizer.step()
            expected.append(direct.step([part.to(dtype).double().numpy() for part in batches]))
    gaps = recording.series("norm.running_gap", "")
    tolerance = 1e-4 if dtype is torch.float32 else 1e-11
    # Before the first step of a model nobody knows that it will train: no snapshot was taken.
    assert gaps.values[-4:] == pytest.approx(expected[1:], rel=tolerance, abs=tolerance)
    assert recording.values("norm.updates", "")[-4:] == [updates] * 4
    assert recording.values("norm.tracked", "")[-1] == 5 * updates


@pytest.mark.parametrize("momentum", [0.1, 0.01, None])
def test_the_weight_of_the_initial_statistics_is_exact(momentum):
    norm = nn.BatchNorm1d(5, momentum=momentum)
    optimizer = torch.optim.SGD(norm.parameters(), lr=0.0)
    with watched() as recording:
        for step in range(6):
            norm(data(step).float()).square().mean().backward()
            optimizer.step()
    expected = [0.0 if momentum is None else (1 - momentum) ** n for n in range(1, 7)]
    assert recording.values("norm.initial_weight", "") == pytest.approx(expected, rel=1e-12)


def test_the_gap_is_unknown_where_rounding_would_dominate():
    norm = nn.BatchNorm1d(5, momentum=1e-4)
    optimizer = torch.optim.SGD(norm.parameters(), lr=0.0)
    with watched() as recording:
        for step in range(4):
            norm(data(step).float()).square().mean().backward()
            optimizer.step()
    assert all(math.isnan(gap) for gap in recording.values("norm.running_gap", ""))


def test_a_large_mean_makes_the_gap_unknown_rather_than_wrong():
    norm = nn.BatchNorm1d(5)
    optimizer = torch.optim.SGD(norm.parameters(), lr=0.0)
    with watched() as recording:
        for step in range(200):
            norm(data(step, mean=3e4, std=1.0).float()).square().mean().backward()
            optimizer.step()
    assert math.isnan(recording.series("norm.running_gap", "").last)


def test_statistics_that_have_settled_have_a_small_gap_and_little_change():
    norm = nn.BatchNorm1d(5)
    optimizer = torch.optim.SGD(norm.parameters(), lr=0.0)
    with watched() as recording:
        for step in range(100):
            norm(data(step, rows=512).float()).square().mean().backward()
            optimizer.step()
    assert recording.series("norm.running_gap", "").last < 0.2
    assert recording.series("norm.running_change", "").last < 0.02
    assert recording.values("norm.running_gap", "")[1] > 1


def test_a_norm_in_eval_mode_makes_no_updates_and_has_no_gap():
    net = nn.Sequential(nn.BatchNorm1d(5), nn.Linear(5, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
    net[0].eval()
    with watched() as recording:
        for step in range(4):
            net(data(step).float()).square().mean().backward()
            optimizer.step()
    assert recording.values("norm.training", "0") == [0.0] * 4
    assert recording.values("mode.training") == [1.0] * 4
    assert recording.values("norm.updates", "0")[-1] == 0
    assert math.isnan(recording.series("norm.running_gap", "0").last)


def test_the_mode_of_the_training_forward_counts_not_that_of_an_evaluation():
    net = nn.Sequential(nn.BatchNorm1d(5), nn.Linear(5, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
    with watched() as recording:
        for step in range(3):
            net.train()
            loss = net(data(step).float()).square().mean()
            loss.backward()
            optimizer.step()
            net.eval()
            with torch.no_grad():
                net(data(step).float())
    assert recording.values("norm.training", "0") == [1.0] * 3


def test_a_norm_without_running_statistics_is_left_out():
    net = nn.Sequential(nn.BatchNorm1d(5, track_running_stats=False), nn.Linear(5, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
    with watched() as recording:
        for step in range(2):
            net(data(step).float()).square().mean().backward()
            optimizer.step()
    assert recording.sites("norm.updates") == set()


def test_half_precision_buffers_are_compared_in_full_precision():
    norm = nn.BatchNorm1d(5).bfloat16()
    optimizer = torch.optim.SGD(norm.parameters(), lr=0.0)
    with watched() as recording:
        for step in range(3):
            norm(data(step).bfloat16()).float().square().mean().backward()
            optimizer.step()
    assert len(recording.values("norm.updates", "")) >= 2


def test_batch_statistics_follow_from_two_snapshots_alone():
    """Momentum 0.1, one update: batch = old + 10 (new - old), so a known gap must come out."""
    norm = nn.BatchNorm1d(2).double()
    model, recorder = TrackedModel(norm, "norm"), Recorder()
    model.confirmed = True
    norms = Norms(recorder)
    norms.round_starts(model)
    batch = torch.tensor([[1.0, 10.0], [3.0, 14.0]], dtype=torch.float64)
    norm(batch)
    norms.round_ends(model)
    ((_, names, numbers),) = recorder._later
    gap = dict(zip(names, numbers(), strict=True))["", "norm.running_gap"]
    mean, var = np.array([2.0, 12.0]), np.array([2.0, 8.0])
    running_mean, running_var = 0.1 * mean, 0.9 + 0.1 * var
    a = np.sqrt((var + 1e-5) / (running_var + 1e-5))
    b = (mean - running_mean) / np.sqrt(running_var + 1e-5)
    assert gap == pytest.approx(np.sqrt(np.mean(b**2 + (a - 1) ** 2)), rel=1e-12)


def steps_of(norm: nn.Module, steps: int, rows: int = 64, patience: float = 0.0) -> Recording:
    """A norm that sees a batch of its own in every step, watched."""
    dtype = next(norm.parameters()).dtype
    optimizer = torch.optim.SGD(norm.parameters(), lr=0.0)
    with watched(patience=patience) as recording:
        for step in range(steps):
            norm(data(step, rows=rows).to(dtype)).square().mean().backward()
            optimizer.step()
    return recording


def test_steps_that_are_written_together_have_the_numbers_of_steps_written_each_for_itself():
    together, alone = (steps_of(nn.BatchNorm1d(5), 21, patience=patience) for patience in (60, 0))
    for quantity in ("tracked", "initial_weight", "updates", "running_gap", "variance_noise"):
        found, expected = (
            run.series(f"norm.{quantity}", "").values.tolist() for run in (together, alone)
        )
        assert found == expected
        assert len(found) >= 20


def vectors(recording: Recording, quantity: str) -> dict[int, tuple[float, ...]]:
    """The only site's, by step."""
    (found,) = recording.run.vectors(quantity).values()
    return {vector.step: tuple(vector.values) for vector in found}


@pytest.mark.parametrize("momentum", [0.1, 1.0, None])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_statistics_of_each_channel_are_those_of_batch_and_buffers(momentum, dtype):
    recording = steps_of(nn.BatchNorm1d(5, momentum=momentum).to(dtype), 10)
    running = Direct(momentum, 1e-5)
    tolerance = 1e-4 if dtype is torch.float32 else 1e-11
    means, variances = (vectors(recording, f"norm.batch_{which}") for which in ("mean", "var"))
    assert [*means] == [*variances] == [1, 2, 3, 4, 6, 8]  # before the first it was not known
    assert [*vectors(recording, "norm.running_mean")] == [0, 1, 2, 3, 4, 6, 8]
    for step in range(10):
        batch = data(step).to(dtype).double().numpy()
        running.step([batch])
        if step in means:
            for name, expected in (
                ("batch_mean", batch.mean(0)),
                ("batch_var", batch.var(0, ddof=1)),
                ("running_mean", running.mean),
                ("running_var", running.var),
            ):
                found = vectors(recording, f"norm.{name}")[step]
                assert found == pytest.approx(expected, rel=tolerance, abs=tolerance)


def test_channels_whose_batch_cannot_be_recovered_are_unknown():
    recording = steps_of(nn.BatchNorm1d(5, momentum=1e-4), 4)
    assert all(np.isnan(values).all() for values in vectors(recording, "norm.batch_var").values())
    assert np.isfinite([*vectors(recording, "norm.running_var").values()]).all()


def test_of_many_channels_at_most_512_evenly_spaced_ones_are_written():
    norms = [nn.BatchNorm1d(channels) for channels in (512, 513, 1500)]
    for norm in norms:
        norm.running_var = torch.arange(float(norm.num_features))
    net = nn.Sequential(norms[0], nn.Linear(512, 513), norms[1], nn.Linear(513, 1500), norms[2])
    net.eval()
    with watched() as recording:
        optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
        net(torch.randn(4, 512)).square().mean().backward()
        optimizer.step()
    written = {
        site.fqn: list(found[0].values)
        for site, found in recording.run.vectors("norm.running_var").items()
    }
    expected = {"0": range(512), "2": range(0, 513, 2), "4": range(0, 1500, 3)}
    assert written == {fqn: list(channels) for fqn, channels in expected.items()}


@pytest.mark.parametrize("momentum", [0.1, 1.0, None])
def test_variance_noise_is_the_batchs_variance_against_the_running_one_before_it(momentum):
    recording = steps_of(nn.BatchNorm1d(5, momentum=momentum).double(), 6)
    running, expected = Direct(momentum, 1e-5), []
    for step in range(6):
        before, batch = running.var, data(step).numpy()
        running.step([batch])
        noise = (batch.var(0, ddof=1) - before) / (before + 1e-5)
        expected.append(np.sqrt(np.mean(noise**2)))
    assert recording.values("norm.variance_noise", "") == pytest.approx(expected[1:], rel=1e-9)


def test_the_fewer_samples_in_a_batch_the_more_variance_noise():
    noises = [
        np.mean(steps_of(nn.BatchNorm1d(5), 60, rows).series("norm.variance_noise").values[-20:])
        for rows in (4, 64)
    ]
    # A variance of n normal samples varies by sqrt(2 / (n - 1)), the running one by less.
    for rows, noise in zip((4, 64), noises, strict=True):
        assert noise == pytest.approx((2 / (rows - 1) * (1 + 0.1 / 1.9)) ** 0.5, rel=0.3)


def test_variance_noise_is_unknown_without_an_update():
    recording = steps_of(nn.BatchNorm1d(5).eval(), 3)
    assert np.isnan(recording.values("norm.variance_noise", "")).all()


def called(*passes: torch.Tensor, again: bool = False) -> Recording:
    """Three steps of a model of one BatchNorm, with these forward passes in each."""
    with watched() as recording:
        net = nn.Sequential(nn.BatchNorm1d(5, dtype=torch.float64), nn.Linear(5, 1).double())
        optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
        for _ in range(3):
            optimizer.zero_grad()
            if again:
                outputs = [checkpoint(net, x, use_reentrant=False) for x in passes]
            else:
                outputs = [net(x) for x in passes]
            torch.cat([output for output in outputs if output is not None]).mean().backward()
            optimizer.step()
    return recording


def test_the_batches_of_two_passes_are_told_apart():
    first, second = data(1), data(2, mean=8.0)
    recording = called(first, second)
    shared = (first.var(0) + second.var(0)) / 2 + 1e-5
    apart = ((first.mean(0) - second.mean(0)) ** 2 / shared).mean().sqrt().item()
    assert recording.values("norm.pass_gap", "0") == pytest.approx([apart, apart])


def test_only_the_first_two_passes_are_compared_and_one_alone_is_with_nothing():
    first, second, third = data(1), data(2, mean=8.0), data(3, mean=100.0)
    expected = called(first, second).values("norm.pass_gap", "0")
    more = called(first, second, third, third).values("norm.pass_gap", "0")
    assert more == pytest.approx(expected, nan_ok=True)
    assert called(first).values("norm.pass_gap", "0") == []


def test_calls_are_counted_without_those_of_recomputation():
    assert called(data(1), data(2)).values("norm.calls", "0") == [2, 2, 2]
    recording = called(data(1), again=True)
    assert recording.values("norm.calls", "0") == [1, 1, 1]
    assert recording.values("norm.updates", "0") == [2, 2]


@pytest.mark.parametrize("affine", [True, False])
def test_frozen_statistics_are_compared_with_the_data(affine: bool):
    x = data(4)
    with watched() as recording:
        norm = nn.BatchNorm1d(5, dtype=torch.float64, affine=affine).eval()
        if affine:
            nn.init.constant_(norm.weight, -2.0)
            nn.init.constant_(norm.bias, 0.5)
        net = nn.Sequential(norm, nn.Linear(5, 1).double())
        optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
        for _ in range(2):
            net(x).mean().backward()
            optimizer.step()
    spread = x.var(0, correction=0).sqrt() / math.sqrt(1 + 1e-5)
    gap = (x.mean(0) ** 2 / (1 + 1e-5) + (spread - 1) ** 2).mean().sqrt().item()
    assert recording.values("norm.frozen_gap", "0") == pytest.approx([gap, gap], rel=1e-5)
    assert called(x).values("norm.frozen_gap", "0") == []


@pytest.mark.parametrize("shape", [(8, 5), (8, 5, 4)])
def test_vectors_of_zeros_are_counted(shape: tuple[int, ...]):
    x = torch.randn(shape).double()
    x[:2] = 0.0
    x[3, 0] = 0.0
    with watched() as recording:
        net = nn.Sequential(nn.BatchNorm1d(5, dtype=torch.float64))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
        for _ in range(2):
            net(x).square().mean().backward()
            optimizer.step()
    assert recording.values("norm.zero_rows", "0") == [0.25, 0.25]


def test_vectors_of_zeros_are_found_behind_a_reshape_and_a_mask():
    class Masked(nn.BatchNorm1d):
        def forward(self, input: torch.Tensor) -> torch.Tensor:
            rows = super().forward(input.flatten(0, 1))
            return rows.view_as(input) * (input != 0).any(2, keepdim=True)

    x = torch.randn(6, 4, 5)
    x[:, 1:] = 0.0
    with watched() as recording:
        net = nn.Sequential(Masked(5))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
        net(x).square().mean().backward()
        optimizer.step()
    assert recording.values("norm.zero_rows", "0") == [0.75]


@pytest.mark.parametrize("name", ["running_var", "num_batches_tracked"])
def test_a_layer_whose_statistics_differ_in_size_is_left_out_with_the_reason(name):
    with watched() as recording:
        net = nn.Sequential(nn.BatchNorm1d(5).eval(), nn.Linear(5, 6), nn.BatchNorm1d(6))
        net[0].forward = lambda input: input
        setattr(net[0], name, torch.ones(1000))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            net(data(0).float()).square().mean().backward()
            optimizer.step()
    assert len(recording.values("norm.running_gap", "2")) == 2
    assert recording.series("norm.training", "0").last == 0
    reason = "its running statistics differ in size or device"
    assert recording.skips() == {("0.running_mean", Point.PARAM): reason}


@pytest.mark.parametrize("name", ["running_var", "num_batches_tracked"])
def test_a_layer_whose_statistics_lie_on_several_devices_is_left_out_with_the_reason(name):
    with watched() as recording:
        net = nn.Sequential(nn.BatchNorm1d(5).eval(), nn.Linear(5, 6), nn.BatchNorm1d(6))
        net[0].forward = lambda input: input
        setattr(net[0], name, getattr(net[0], name).to("meta"))
        train(net, steps=3, data=(data(0).float(), torch.zeros(len(data(0)), dtype=torch.long)))
    assert len(recording.values("norm.running_gap", "2")) == 2
    reason = "its running statistics differ in size or device"
    assert recording.skips() == {("0.running_mean", Point.PARAM): reason}
