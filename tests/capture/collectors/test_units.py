"""Units that are never active, of ReLUs that are modules or functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from tests.capture.watched import batch, mlp, train, watched
from traindx.capture.collectors.units import Units, _note_active
from traindx.capture.models import TrackedModel
from traindx.capture.recorder import Recorder
from traindx.records import Point

DEAD = "units.dead_fraction"


def killing(layer: Any, count: int) -> None:
    """Make the first units of a layer negative whatever comes."""
    with torch.no_grad():
        layer.bias[:count] = -1e3


class Functional(nn.Module):
    """A hidden layer with a ReLU that is a function."""

    def __init__(self, relu=F.relu, norm: type[nn.Module] = nn.Identity):
        super().__init__()
        torch.manual_seed(0)
        self.hidden, self.norm, self.head = nn.Linear(6, 8), norm(8), nn.Linear(8, 3)
        self.relu = relu

    def forward(self, x):
        return self.head(self.relu(self.norm(self.hidden(x))))


def test_units_that_were_never_active_over_enough_samples_are_counted():
    net = mlp()
    killing(net[0], 3)
    with watched() as recording:
        train(net, steps=8, data=batch(128))
    assert recording.values(DEAD, "1") == [3 / 8]
    assert recording.series(DEAD, "1").steps.tolist() == [7]
    assert recording.values("units.samples", "1") == [1024.0]
    assert recording.sites(DEAD) == {"1"}


def test_too_few_samples_say_nothing():
    net = mlp()
    killing(net[0], 3)
    with watched() as recording:
        train(net, steps=7, data=batch(128))
    assert recording.sites(DEAD) == set()


def test_a_unit_that_was_active_once_in_the_stretch_is_not_dead():
    net = mlp()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
    with watched() as recording:
        for step in range(16):
            if step == 1:
                killing(net[0], 3)
            train(net, steps=1, optimizer=optimizer, data=batch(128))
    assert recording.values(DEAD, "1") == [0.0, 3 / 8]
    assert recording.series(DEAD, "1").steps.tolist() == [7, 15]


def test_the_positions_of_an_image_count_but_64_samples_are_wanted_besides():
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 16, 3))
    killing(net[0], 1)
    with watched() as recording:
        train(net, steps=4, data=(torch.randn(16, 1, 6, 6), batch(16)[1]))
    assert recording.values(DEAD, "1") == [1 / 4]
    assert recording.values("units.samples", "1") == [4 * 16 * 16]


@pytest.mark.parametrize("relu", [F.relu, torch.relu, F.relu_], ids=["F", "torch", "in place"])
def test_a_relu_that_is_a_function_is_seen_at_the_module_before_it(relu):
    net = Functional(relu)
    killing(net.hidden, 2)
    with watched() as recording:
        train(net, steps=9, data=batch(128))
    assert recording.sites(DEAD) == {"hidden"}
    assert recording.values(DEAD, "hidden") == [2 / 8]


def test_between_a_layer_and_its_relu_may_stand_a_norm():
    net = Functional(norm=nn.BatchNorm1d)
    killing(net.norm, 2)
    with watched() as recording:
        train(net, steps=9, data=batch(128))
    assert recording.values(DEAD, "norm") == [2 / 8]
    assert recording.sites(DEAD) == {"norm"}


class Block(nn.Module):
    """A residual block that returns what its last ReLU, a function, makes of the sum."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)) + x)


def test_a_block_that_returns_a_relus_output_is_seen_itself():
    net = nn.Sequential(nn.Conv2d(1, 4, 3), Block(), nn.Identity(), nn.Flatten(), nn.Linear(64, 3))
    killing(net[1].norm, 1)
    with watched() as recording:
        train(net, steps=5, data=(torch.randn(16, 1, 6, 6), batch(16)[1]))
    assert recording.values(DEAD, "1") == [1 / 4]
    assert recording.sites(DEAD) == {"1"}


class Shared(nn.Module):
    """One ReLU module behind two layers."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second, self.head = nn.Linear(6, 8), nn.Linear(8, 8), nn.Linear(8, 3)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.head(self.relu(self.second(self.relu(self.first(x)))))


def test_of_a_relu_that_serves_two_layers_the_worst_counts():
    net = Shared()
    killing(net.first, 2)
    killing(net.second, 5)
    with watched() as recording:
        train(net, steps=8, data=batch(128))
    assert recording.values(DEAD, "relu") == [5 / 8]


class Unrolled(nn.Module):
    """A recurrent layer by hand: the same units at every time."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.cell, self.relu, self.head = nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 3)

    def forward(self, x):
        hidden = -torch.ones_like(x)  # at the first time no unit is active
        for time in range(3):
            hidden = self.relu(self.cell(hidden) - (100 if time == 0 else 0) + x)
        return self.head(hidden)


def test_a_unit_that_is_active_at_one_time_of_a_sequence_is_not_dead():
    with watched() as recording:
        train(Unrolled(), steps=8, data=batch(128))
    assert recording.values(DEAD, "relu")[0] == 0.0


ALIVE = [nn.LeakyReLU(), nn.PReLU(), nn.ELU(), nn.GELU(), nn.SiLU(), nn.Tanh(), nn.Hardswish()]
ALIVE += [nn.Threshold(-1.0, 0.0), nn.Threshold(0.0, 5.0), nn.Softshrink(), nn.Dropout(0.9)]


@pytest.mark.parametrize("activation", ALIVE, ids=lambda activation: repr(activation))
def test_other_activations_have_no_dead_units(activation):
    net = nn.Sequential(nn.Linear(6, 8), activation, nn.Linear(8, 3))
    killing(net[0], 3)
    with watched() as recording:
        train(net, steps=9, data=batch(128))
    assert recording.sites(DEAD) == set()


@pytest.mark.parametrize("activation", [nn.ReLU6(), nn.Hardsigmoid(), nn.Threshold(0.1, 0.0)])
def test_some_kinds_are_off_as_a_relu_is(activation):
    net = nn.Sequential(nn.Linear(6, 8), activation, nn.Linear(8, 3))
    killing(net[0], 3)
    with watched() as recording:
        train(net, steps=9, data=batch(128))
    assert recording.values(DEAD, "1") == [3 / 8]


def test_units_are_the_channels_after_a_convolution_and_the_last_axis_after_a_linear_layer():
    image, tokens = torch.randn(64, 6, 5), torch.randn(64, 5, 6)
    for layer, x in ((nn.Conv1d(6, 8, 1), image), (nn.Linear(6, 8), tokens)):
        net = nn.Sequential(layer, nn.ReLU(), nn.Flatten(), nn.Linear(40, 3))
        killing(layer, 2)
        with watched() as recording:
            train(net, steps=4, data=(x, batch(64)[1]))
        assert recording.values(DEAD, "1") == [2 / 8]


def test_images_with_channels_last_in_memory_or_in_shape_are_read_right():
    images = torch.randn(64, 6, 2, 3).to(memory_format=torch.channels_last)
    rows = torch.randn(64, 2, 3, 6)
    for layer, x in ((nn.Conv2d(6, 8, 1), images), (nn.Linear(6, 8), rows)):
        net = nn.Sequential(layer, nn.ReLU(), nn.Flatten(), nn.Linear(48, 3))
        killing(layer, 2)
        with watched() as recording:
            train(net, steps=3, data=(x, batch(64)[1]))
        assert recording.values(DEAD, "1") == [2 / 8]


def test_the_positions_of_a_transformer_are_not_its_units():
    layer = nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0, batch_first=True)
    net = nn.Sequential(layer, nn.Flatten(), nn.Linear(30, 3))
    killing(layer.linear1, 2)
    with watched() as recording:
        train(net, steps=5, data=(torch.randn(64, 5, 6), batch(64)[1]))
    assert recording.values(DEAD, "0.linear1") == [2 / 8]


def test_what_is_not_a_number_is_not_called_dead():
    net = mlp()
    with torch.no_grad():
        net[0].weight.fill_(float("nan"))
    with watched() as recording:
        train(net, steps=8, data=batch(128))
    assert recording.values(DEAD, "1") == [0.0]


def test_half_precision_is_read_as_it_is():
    class Half(nn.Module):
        def __init__(self):
            super().__init__()
            self.hidden, self.relu, self.head = nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)

        def forward(self, x):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return self.head(self.relu(self.hidden(x))).float()

    net = Half()
    killing(net.hidden, 3)
    with watched() as recording:
        train(net, steps=8, data=batch(128))
    assert recording.values(DEAD, "relu")[0] >= 3 / 8


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_checkpointed_relu_is_seen_once_a_step(reentrant):
    class Checkpointed(nn.Module):
        def __init__(self):
            super().__init__()
            self.block, self.head = mlp(sizes=(6, 8, 6)), nn.Linear(6, 3)

        def forward(self, x):
            return self.head(checkpoint(self.block, x, use_reentrant=reentrant))

    with watched() as recording:
        net = Checkpointed()
        killing(net.block[0], 3)
        x, y = batch(128)
        train(net, steps=8, data=(x.requires_grad_(), y))
    assert recording.values(DEAD, "block.1") == [3 / 8]
    assert recording.values("units.samples", "block.1") == [1024.0]


def test_micro_batches_add_up():
    with watched() as recording:
        net = mlp()
        killing(net[0], 3)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
        for _ in range(4):
            for part in batch(256)[0].split(64):
                net(part).square().mean().backward()
            optimizer.step()
    assert recording.values(DEAD, "1") == [3 / 8]
    assert recording.values("units.samples", "1") == [1024.0]


def test_a_model_used_by_its_parts_keeps_no_graph_alive():
    class Parts(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.decoder = mlp(), mlp(sizes=(3, 8, 6))

    with watched() as recording:
        net = Parts()
        killing(net.encoder[0], 3)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
        for _ in range(8):
            net.decoder(net.encoder(batch(128)[0])).square().mean().backward()
            optimizer.step()
    assert recording.values(DEAD, "encoder.1") == [3 / 8]


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("on_host", [True, False], ids=["host", "device"])
def test_the_active_units_are_those_above_zero_anywhere(layout, dtype, on_host):
    generator = torch.Generator().manual_seed(0)
    for rare in (0.0, 0.3, 0.999):  # active all over, here and there, in a sample or two
        values = torch.rand(24, 40, 3, 3, generator=generator).sub_(rare).relu_()
        values = values.to(dtype, memory_format=layout)
        for axis in (1, 3):
            active = torch.zeros(values.shape[axis], dtype=torch.bool)
            for part in (values[:12], values[12:]):
                _note_active(active.numpy() if on_host else active, part, axis)
            others = [dim for dim in range(4) if dim != axis]
            assert torch.equal(active, (values > 0).sum(others) > 0)


@pytest.mark.parametrize("shape", [(40, 8), (40, 8, 9, 9)])
def test_all_units_are_known_to_be_active_once_the_last_one_is(shape):
    values = torch.ones(shape)
    values[:, 3] = 0
    active = np.zeros(8, dtype=np.bool_)
    assert not _note_active(active, values, 1)
    assert active.tolist() == [unit != 3 for unit in range(8)]
    values[-1, 3] = 1
    assert _note_active(active, values, 1)
    assert active.all()


def test_a_unit_that_is_not_a_number_is_not_called_dead():
    values = torch.zeros(4, 3)
    values[2, 1] = torch.nan
    active = torch.zeros(3, dtype=torch.bool)
    for where in (active, active.numpy()):
        active.zero_()
        with np.errstate(all="raise"):
            _note_active(where, values, 1)
        assert active.tolist() == [False, True, False]


def test_tensors_of_ever_changing_width_do_not_pile_up():
    recorder = Recorder()
    model = TrackedModel(nn.ReLU(), "relu")
    units = Units(recorder)
    for width in range(1, 400):
        units.forward_starts(model, ())
        output = torch.ones(2, width)
        recorder.tensor((model, "", Point.OUTPUT), output)
        units.output(model, "", nn.ReLU(), output)
        units.round_ends(model)
        recorder.parts()
    assert 1 <= len(units._windows) <= 64


@pytest.mark.slow
def test_a_compiled_model_has_none():
    with watched() as recording:
        net = mlp()
        fast: Any = torch.compile(net, backend="eager")
        train(fast, steps=9, data=batch(128))
    assert recording.sites(DEAD) == set()
