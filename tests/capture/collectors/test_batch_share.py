"""How much of an output depends on the sample."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from tests.capture.watched import batch, mlp, train, watched
from traindx.stats import batch_share

SHARE = "output.batch_share"


def share(tensor) -> float:
    values = tensor.detach().double().numpy()
    return float(values.var(axis=0).mean() / np.square(values).mean())


def test_every_output_of_a_batch_has_its_share():
    net = mlp()
    x = batch(32)[0]
    outputs = [net[: i + 1](x) for i in range(3)]
    with watched() as recording:
        train(net, steps=1, data=batch(32))
    for i, output in enumerate(outputs):
        assert recording.values(SHARE, str(i)) == pytest.approx([share(output)], rel=1e-9)
    assert "" not in recording.sites(SHARE)  # a container that returns its last child's output


@pytest.mark.parametrize("true", [1e-4, 1e-10])
def test_a_tiny_share_is_seen_as_it_is(true):
    class Blind(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(6, 3)

        def forward(self, x):
            return 1 + true**0.5 * self.layer(x)

    with watched() as recording:
        net = Blind()
        output = net(batch(64)[0])
        train(net, steps=1, data=batch(64))
    assert recording.values(SHARE, "") == pytest.approx([share(output)], rel=1e-9)
    assert 0.1 * true < recording.values(SHARE, "")[0] < 10 * true


def test_a_layer_behind_a_dead_one_has_none():
    net = mlp(sizes=(6, 8, 8, 3))
    with torch.no_grad():
        net[2].bias.fill_(-50.0)
    with watched() as recording:
        train(net, steps=1)
    assert recording.values(SHARE, "4") == [0.0]
    assert np.isnan(recording.values(SHARE, "3")).all()


@pytest.mark.parametrize(
    ("every", "taken"),
    [
        (1, [0, 1, 2, 3, 16, 32]),
        (2, [0, 2, 4, 6, 16, 32]),
        (5, [0, 5, 10, 15, 20]),  # every fourth measured step
    ],
)
def test_it_is_taken_in_the_first_four_measured_steps_and_more_rarely_after_them(every, taken):
    with watched(every=every) as recording:
        train(mlp(), steps=36)
    assert recording.series(SHARE, "0").steps.tolist() == taken


class Reshaping(nn.Module):
    """Outputs whose first axis is the batch, and others."""

    def __init__(self):
        super().__init__()
        self.layer, self.outer = nn.Linear(6, 6), nn.Identity()
        self.merged, self.squeezed = nn.Flatten(0, 1), nn.Flatten(0)
        self.head = nn.Linear(6, 1)

    def forward(self, x):
        hidden = self.layer(x)
        self.merged((hidden * 1).reshape(5, 2, 3))
        out = self.squeezed(self.head(hidden))
        return self.outer(hidden.t() * 1).sum() + out


def test_an_output_without_the_batch_as_its_first_axis_has_none():
    with watched() as recording:
        train(Reshaping(), loss=lambda out, _: out.mean())
    assert recording.sites(SHARE) == {"layer", "head", "squeezed", ""}


class Recurrent(nn.Module):
    """A recurrent layer between two others, time first or not."""

    def __init__(self, *, batch_first: bool):
        super().__init__()
        self.before = nn.Linear(6, 6)
        self.lstm = nn.LSTM(6, 4, batch_first=batch_first)
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        out, _ = self.lstm(self.before(x))
        return self.head(out).mean((0, 1))


@pytest.mark.parametrize("batch_first", [True, False])
def test_sequences_with_time_first_are_left_out(batch_first):
    with watched() as recording:
        data = torch.randn(5, 7, 6), torch.tensor(1)
        train(Recurrent(batch_first=batch_first), data=data)
    assert recording.sites(SHARE) == ({"before", "lstm", "head"} if batch_first else set())


def test_packed_sequences_are_left_out():
    class Packed(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(6, 4, batch_first=True)
            self.head = nn.Linear(4, 3)

        def forward(self, x):
            packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([4, 3]), batch_first=True)
            _, (hidden, _) = self.lstm(packed)
            return self.head(hidden[0])

    with watched() as recording:
        train(Packed(), data=(torch.randn(2, 4, 6), torch.tensor([0, 1])))
    assert "lstm" not in recording.sites(SHARE)
    assert "head" in recording.sites(SHARE)


def test_a_single_sample_has_none():
    with watched() as recording:
        train(mlp(), data=batch(1))
    assert recording.sites(SHARE) == set()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_outputs_of_half_precision_are_measured_in_full(dtype):
    class Half(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(6, 3)

        def forward(self, x):
            return 100 + self.layer(x).to(dtype)

    net = Half()
    expected = share(net(batch(32)[0]))
    with watched() as recording:
        train(net, steps=1, data=batch(32), loss=lambda out, _: out.float().mean())
    assert recording.values(SHARE, "") == pytest.approx([expected], rel=1e-9)


def test_channels_last_images_have_the_share_of_their_pixels():
    net = nn.Conv2d(3, 8, 3)
    images = torch.randn(6, 3, 5, 5).to(memory_format=torch.channels_last)
    with torch.no_grad():
        output = net(images)
    with watched() as recording:
        train(net, steps=1, data=(images, batch()[1]), loss=lambda out, _: out.mean())
    assert not output.is_contiguous()
    assert recording.values(SHARE, "") == [float(batch_share(output))]
    assert recording.values(SHARE, "") == pytest.approx([share(output)], rel=0.3)


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_checkpointed_block_has_it_once(reentrant):
    class Checkpointed(nn.Module):
        def __init__(self):
            super().__init__()
            self.block, self.head = mlp(sizes=(6, 8, 6)), nn.Linear(6, 3)

        def forward(self, x):
            return self.head(checkpoint(self.block, x, use_reentrant=reentrant))

    with watched() as recording:
        net = Checkpointed()
        x, y = batch(16)
        expected = share(net.block(x))
        train(net, steps=1, data=(x.requires_grad_(), y))
    assert recording.values(SHARE, "block.2") == pytest.approx([expected], rel=1e-9)


@pytest.mark.slow
def test_a_compiled_model_has_none():
    with watched() as recording:
        net = mlp()
        fast: Any = torch.compile(net, backend="eager")
        train(fast)
    assert recording.sites(SHARE) == set()
    assert recording.sites("input.mean") == {""}
