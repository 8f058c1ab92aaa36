"""Outputs of modules of every kind, each measured once and before anything changes it in place."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from tests.capture.watched import batch, mlp, train, watched
from traindx.records import Point


def test_an_output_has_the_statistics_of_the_tensor_returned():
    net = mlp()
    hidden = net[0](batch()[0]).detach()
    with watched() as recording:
        train(net, steps=1)
    stats = recording.last_stats(Point.OUTPUT, "0")
    assert stats.count == hidden.numel()
    assert stats.mean == pytest.approx(hidden.mean().item(), abs=1e-6)
    assert (stats.min, stats.max) == (hidden.min().item(), hidden.max().item())


def test_zeros_behind_a_relu_are_counted():
    net = mlp()
    active = torch.relu(net[0](batch()[0]))
    with watched() as recording:
        train(net, steps=1)
    zeros = int((active == 0).sum())
    assert recording.values("output.zero_fraction", "1") == [zeros / active.numel()]


def test_a_container_that_returns_its_last_childs_output_is_not_measured_again():
    with watched() as recording:
        train(nn.Sequential(mlp(), nn.Sequential(nn.Linear(3, 3))))
    assert recording.sites("output.mean") == {"0.0", "0.1", "0.2", "1.0"}


def test_an_in_place_activation_is_measured_besides_its_input():
    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(inplace=True), nn.Linear(8, 3))
    hidden = net[0](batch()[0])
    with watched() as recording:
        train(net, steps=1)
    assert recording.values("output.min", "0") == [hidden.min().item()]
    assert recording.values("output.min", "1") == [0.0]
    assert recording.sites("output_grad.l2") == {"0", "1", "2"}


class Around(nn.Module):
    """A block with a way around it, whose sum passes its gradient on to both."""

    def __init__(self, *, apart: bool):
        super().__init__()
        self.first, self.inside, self.around = nn.Linear(6, 6), nn.Linear(6, 6), nn.Identity()
        self.apart = apart

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        if self.apart:  # the same numbers in tensors of their own
            return 1.0 * self.inside(1.0 * x) + 1.0 * self.around(1.0 * x)
        return self.inside(x) + self.around(x)


def test_what_goes_around_a_block_has_the_statistics_it_would_have_if_it_were_read_again():
    found = []
    for apart in (False, True):
        with watched() as recording:
            torch.manual_seed(0)
            train(Around(apart=apart), steps=3)
        found.append(recording)
    quantities = [(point, fqn) for point in ("output", "output_grad") for fqn in ("inside", "")]
    for point, fqn in [*quantities, ("output", "around")]:
        shared, apart = (each.values(f"{point}.rms", fqn) for each in found)
        assert len(shared) == 3
        assert shared == pytest.approx(apart, rel=1e-6)
    for quantity in ("output.rms", "output_grad.rms"):  # of one tensor, which is returned twice
        assert found[0].values(quantity, "around") == found[0].values(quantity, "first")


def test_an_output_thrown_away_does_not_hide_the_next_one():
    class Wasteful(nn.Module):
        def __init__(self):
            super().__init__()
            self.side, self.main = nn.Linear(6, 3), nn.Linear(6, 3)

        def forward(self, x):
            self.side(x)
            return self.main(x) * 1

    with watched() as recording:
        train(Wasteful())
    assert recording.sites("output.mean") == {"side", "main", ""}


def test_a_module_called_twice_merges_into_one_place():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.shared = nn.Linear(6, 6)
            self.head = nn.Linear(6, 3)

        def forward(self, x):
            return self.head(self.shared(torch.relu(self.shared(x))))

    with watched() as recording:
        train(Twice())
    stats = recording.last_stats(Point.OUTPUT, "shared")
    assert stats.count == 2 * 5 * 6
    assert recording.module("shared").calls == 2
    assert (recording.module("shared").order, recording.module("head").order) == (0, 1)
    assert recording.last_stats(Point.OUTPUT_GRAD, "shared").count == 2 * 5 * 6


def test_an_lstm_is_measured_by_its_output():
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(6, 4, batch_first=True)
            self.head = nn.Linear(4, 3)

        def forward(self, x):
            out, _ = self.lstm(x)
            return self.head(out[:, -1])

    with watched() as recording:
        train(Reader(), data=(torch.randn(5, 7, 6), batch()[1]))
    assert recording.last_stats(Point.OUTPUT, "lstm").count == 5 * 7 * 4
    assert abs(recording.series("output.max", "lstm").last) <= 1
    assert recording.sites("grad.l2") >= {"lstm.weight_ih_l0", "lstm.weight_hh_l0"}


def test_attentions_projection_is_visible_as_never_called():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(6, 2, batch_first=True)
            self.head = nn.Linear(6, 3)

        def forward(self, x):
            out, _ = self.attention(x, x, x)
            return self.head(out.mean(1))

    with watched() as recording:
        train(Block(), data=(torch.randn(5, 7, 6), batch()[1]))
    assert recording.module("attention.out_proj").calls == 0
    assert recording.module("attention.out_proj").order is None
    assert recording.module("attention").calls == 1
    assert "attention.out_proj" not in recording.sites("output.mean")
    assert "attention.out_proj.weight" in recording.sites("grad.l2")


def test_dict_outputs_are_measured_by_their_first_tensor():
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(6, 3)

        def forward(self, x):
            return {"note": "text", "logits": self.inner(x) * 2, "rest": [x]}

    with watched() as recording:
        train(Named(), loss=lambda out, y: F.cross_entropy(out["logits"], y))
    assert recording.last_stats(Point.OUTPUT, "").count == 15


def test_a_module_never_called_is_known_as_such():
    class Forgetful(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.unused = nn.Linear(6, 3), nn.Linear(6, 3)

        def forward(self, x):
            return self.used(x)

    with watched() as recording:
        train(Forgetful())
    assert recording.module("unused").calls == 0
    assert recording.module("used").calls == 1
    assert recording.values("grad.absent", "unused.weight") == [1.0] * 3


class Checkpointed(nn.Module):
    """Two blocks, the first of which is computed again in backward."""

    def __init__(self, *, reentrant: bool):
        super().__init__()
        self.first = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Dropout(0.5))
        self.second = nn.Linear(8, 3)
        self.reentrant = reentrant

    def forward(self, x):
        hidden = checkpoint(self.first, x, use_reentrant=self.reentrant)
        return self.second(hidden)


@pytest.mark.parametrize("reentrant", [True, False], ids=["reentrant", "non-reentrant"])
def test_a_checkpointed_block_is_not_counted_twice(reentrant):
    with watched() as recording:
        net = Checkpointed(reentrant=reentrant)
        x, y = batch()
        train(net, data=(x.requires_grad_(), y))
    for fqn, columns in (("first.0", 8), ("first.1", 8), ("second", 3)):
        assert recording.last_stats(Point.OUTPUT, fqn).count == 5 * columns
        assert recording.last_stats(Point.OUTPUT_GRAD, fqn).count == 5 * columns
        assert recording.module(fqn).calls == 1
    assert recording.run.steps == 3
    assert recording.run.header["backwards"] == 3


class Returns(nn.Module):
    """A module that returns what it is told to."""

    def __init__(self, value):
        super().__init__()
        self.value = value

    def forward(self, x):
        return self.value


class Carrier(nn.Module):
    """A trained layer beside a module with a strange output."""

    def __init__(self, value):
        super().__init__()
        self.strange = Returns(value)
        self.layer = nn.Linear(6, 3)

    def forward(self, x):
        self.strange(x)
        return self.layer(x)


STRANGE = {
    "integer": (torch.ones(3, dtype=torch.long), "not a floating-point type"),
    "boolean": (torch.ones(3, dtype=torch.bool), "not a floating-point type"),
    "complex": (torch.ones(3, dtype=torch.complex64), "has no order"),
    "empty": (torch.ones(0, 3), "empty"),
    "meta": (torch.ones(3, device="meta"), "holds no data"),
    "sparse": (torch.eye(3).to_sparse(), "layout sparse_coo"),
    "subclass": (torch.ones(3).as_subclass(type("Mine", (torch.Tensor,), {})), "subclass Mine"),
}


@pytest.mark.parametrize("kind", STRANGE)
def test_an_output_that_cannot_be_measured_is_told_once_with_its_reason(kind):
    value, reason = STRANGE[kind]
    with watched() as recording:
        train(Carrier(value), steps=3)
    assert reason in recording.skips()["strange", "output"]
    assert len([at for at in recording.skips() if at[0] == "strange"]) == 1
    assert len(recording.values("output.mean", "layer")) == 3


@pytest.mark.parametrize(
    "value",
    [
        *(torch.tensor(2.0), torch.ones(3).half(), torch.ones(3).double()),
        torch.ones(3).to(torch.float8_e4m3fn),
    ],
)
def test_scalars_and_other_float_types_are_measured(value):
    with watched() as recording:
        train(Carrier(value), steps=2)
    assert recording.values("output.mean", "strange") == [value.double().mean().item()] * 2


@pytest.mark.parametrize("value", [None, "text", 7, (), {}, [None]])
def test_an_output_without_a_tensor_is_passed_over(value):
    with watched() as recording:
        train(Carrier(value), steps=2)
    assert "strange" not in recording.sites("output.mean")


def test_a_nested_tensor_is_skipped():
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    with watched() as recording:
        train(Carrier(nested), steps=2)
    assert recording.skips()["strange", "output"]


def test_an_inference_tensor_among_outputs_is_measured():
    with torch.inference_mode():
        cached = torch.ones(4)
    with watched() as recording:
        train(Carrier(cached), steps=2)
    assert recording.values("output.mean", "strange") == [1.0, 1.0]


def test_the_size_of_the_batch_is_noted():
    with watched() as recording:
        net = mlp()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for rows in (5, 5, 2):
            train(net, steps=1, optimizer=optimizer, data=batch(rows))
    assert recording.values("batch.size") == [5.0, 5.0, 2.0]


def test_a_parameter_returned_as_an_output_gets_no_hook():
    class Table(nn.Module):
        def __init__(self):
            super().__init__()
            self.rows = nn.Parameter(torch.randn(6, 3))

        def forward(self, x):
            return self.rows

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = Table()

        def forward(self, x):
            return x @ self.table(x)

    with watched() as recording:
        net = Net()
        train(net)
        assert not net.table.rows._backward_hooks
    assert len(recording.values("output.mean", "table")) == 3
