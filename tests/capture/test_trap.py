"""The trap for NaN: it names the operation that made it, and changes nothing."""

from __future__ import annotations

import weakref
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.capture.watched import Recording, batch, mlp, one, train, watched
from traindx.records import Event, EventKind


def origin(recording: Recording) -> Event:
    return one(recording.run.events(EventKind.ORIGIN))


def found(recording: Recording) -> tuple[str, object, object]:
    event = origin(recording)
    assert "reason" not in event.detail, event.detail
    return event.site.fqn, event.detail["phase"], event.detail["operation"]


def steps(net: Any, loss: Any, count: int = 4, *, x: Tensor | None = None, lr: float = 0.1) -> Any:
    """Train `count` steps; `loss` is given the step, the output and the targets."""
    optimizer = torch.optim.SGD(net.parameters(), lr=lr)
    data, y = batch()
    losses: list[Tensor] = []
    for step in range(count):
        optimizer.zero_grad()
        value = loss(step, net(data if x is None else x), y)
        value.backward()
        optimizer.step()
        losses.append(value.detach())
    return torch.stack(losses)


def plain(_step: int, output: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(output, y)


class Function(nn.Module):
    """A module that applies a function, told how often it was called."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return self.function(x, self.calls - 1)


def between(function: Any) -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), Function(function), nn.Linear(8, 3))


def log_at_step_2(x: Tensor, step: int) -> Tensor:
    return torch.log(x.relu() if step == 2 else x.exp())


def test_the_logarithm_of_zero_inside_a_module_is_named():
    with watched(every=100, trap_nan=True) as recording:
        steps(between(log_at_step_2), plain)
    assert found(recording) == ("1", "forward", "log")
    event = origin(recording)
    assert event.step == 2
    assert event.detail["input_min"] == 0.0
    assert isinstance(event.detail["index"], list)
    assert len(event.detail["index"]) == 2
    assert event.detail["shape"] == [5, 8]


def test_a_nan_made_of_an_infinity_is_traced_back_to_the_infinity():
    with watched(every=100, trap_nan=True) as recording:
        steps(between(lambda x, step: x if step < 2 else 0 * (1000 * x.abs()).exp()), plain)
    assert found(recording) == ("1", "forward", "exp")


def test_a_row_masked_out_entirely_is_the_softmax_s_fault_and_not_the_mask_s():
    def attention(x: Tensor, step: int) -> Tensor:
        mask = torch.zeros(5, 8, dtype=torch.bool)
        mask[3] = step == 2
        return x.masked_fill(mask, -torch.inf).softmax(1)

    with watched(every=100, trap_nan=True) as recording:
        steps(between(attention), plain)
    assert found(recording) == ("1", "forward", "softmax")
    assert origin(recording).detail["index"] == [3, 0]


def test_a_mask_that_does_no_harm_is_not_named():
    def masked_then_bad(x: Tensor, step: int) -> Tensor:
        mask = torch.full((8,), -torch.inf)
        mask[:4] = 0
        weights = (x + mask).softmax(1)
        return weights if step < 2 else x / weights.sum(1, keepdim=True).sub(weights.sum())

    def divided(x: Tensor, step: int) -> Tensor:
        masked = masked_then_bad(x, 0)
        return masked if step < 2 else masked / torch.zeros(8)

    with watched(every=100, trap_nan=True) as recording:
        steps(between(divided), plain)
    assert found(recording) == ("1", "forward", "div")


def test_an_infinity_that_where_leaves_out_is_not_named():
    def harmless(x: Tensor, step: int) -> Tensor:
        safe = torch.where(x > 0, x.clamp_min(0).log(), torch.zeros(()))
        return safe if step < 2 else (safe - 1e9).sqrt()

    with watched(every=100, trap_nan=True) as recording:
        steps(between(harmless), plain)
    assert found(recording) == ("1", "forward", "sqrt")


def test_what_is_written_in_place_through_a_view_is_followed():
    def in_place(x: Tensor, step: int) -> Tensor:
        x = x.clone()
        if step == 2:
            x[:, 0] = torch.log(x[:, 0] * 0)
        return x * 2

    with watched(every=100, trap_nan=True) as recording:
        steps(between(in_place), plain)
    assert found(recording) == ("1", "forward", "log")


def test_a_nan_in_the_batch_is_the_data_s():
    net = mlp()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x, y = batch()
    with watched(every=100, trap_nan=True) as recording:
        for step in range(4):
            given = x.clone()
            given[2, 1] = torch.nan if step == 3 else 0.0
            optimizer.zero_grad()
            F.cross_entropy(net(given), y).backward()
            optimizer.step()
    assert found(recording) == ("", "input", "")
    assert origin(recording).detail["index"] == [2, 1]
    assert origin(recording).detail["count"] == 1


def test_a_parameter_that_the_update_made_infinite_is_named():
    net = mlp()
    with watched(every=100, trap_nan=True) as recording:
        steps(net, lambda step, out, y: plain(step, out, y) * (1e-20, 1e30, 1)[step], 3, lr=1e20)
    fqn, phase, operation = found(recording)
    assert (fqn, phase) in {("0", "parameter"), ("2", "parameter")}
    assert operation in {"weight", "bias"}


@pytest.mark.parametrize(
    ("loss", "operation"),
    [
        (lambda out: -out.relu().log().mean(), "log"),
        (lambda out: (out - out).sum().reciprocal(), "reciprocal"),
        (lambda out: (1000 * out.abs()).exp().sum(), "exp"),
        (lambda out: out.sum() / torch.zeros(()), "div"),
        (lambda out: (out.abs() * -1).sqrt().sum(), "sqrt"),
        (lambda out: F.mse_loss(out, torch.full_like(out, torch.nan)), "mse_loss"),
        (
            lambda out: F.cross_entropy(out, torch.full((5,), -100)),
            "nll_loss_without_targets",
        ),
    ],
)
def test_a_loss_function_is_named_by_its_operation(loss: Any, operation: str):
    with watched(every=100, trap_nan=True) as recording:
        steps(mlp(), lambda step, out, y: loss(out) if step == 2 else plain(step, out, y))
    assert found(recording) == ("", "loss", operation)
    assert origin(recording).step == 2


def test_a_gradient_that_a_module_breaks_is_named():
    def root(x: Tensor, step: int) -> Tensor:
        return x if step < 2 else x + (x * 0).sqrt()

    with watched(every=100, trap_nan=True) as recording:
        losses = steps(between(root), plain, 3)
    assert losses.isfinite().all()
    assert found(recording) == ("1", "backward", "sqrt")
    detail = origin(recording).detail
    assert (detail["input_min"], detail["input_max"]) == (0.0, 0.0)
    assert detail["in_loss"] is False


def test_a_gradient_that_the_loss_function_breaks_is_named():
    def distance(step: int, out: Tensor, y: Tensor) -> Tensor:
        return plain(step, out, y) + (0 if step < 2 else ((out - out) ** 2).sum().sqrt())

    with watched(every=100, trap_nan=True) as recording:
        losses = steps(mlp(), distance, 3)
    assert losses.isfinite().all()
    assert found(recording) == ("", "backward", "sqrt")
    assert origin(recording).detail["in_loss"] is True


def stochastic() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(6, 8),
        nn.BatchNorm1d(8),
        nn.ReLU(inplace=True),
        nn.Dropout(0.3),
        Function(lambda x, step: x / (x.sum() * 0) if step == 2 else x),
        nn.Linear(8, 3),
    )


def test_training_goes_on_bit_for_bit_after_the_replay_and_without_one():
    def trained(*, trap: bool) -> tuple[Tensor, dict[str, Tensor], Tensor]:
        net = stochastic()
        if trap:
            with watched(every=2, trap_nan=True) as recording:
                losses = steps(net, plain, 6)
            assert found(recording) == ("4", "forward", "div")
            assert net[4].calls == 6
        else:
            losses = steps(net, plain, 6)
        return losses, net.state_dict(), torch.rand(3)

    bare, trapped = trained(trap=False), trained(trap=True)
    assert torch.equal(bare[0], trapped[0]) or bare[0].isnan().equal(trapped[0].isnan())
    for key, value in bare[1].items():
        assert torch.allclose(value, trapped[1][key], rtol=0, atol=0, equal_nan=True), key
    assert torch.equal(bare[2], trapped[2])


def test_a_gradient_s_replay_touches_no_gradient():
    def trained(*, trap: bool) -> list[Tensor]:
        net = between(lambda x, step: x if step < 2 else x + (x * 0).sqrt())
        net[2].weight.grad = torch.zeros_like(net[2].weight)
        if trap:
            with watched(every=100, trap_nan=True):
                steps(net, plain, 3)
        else:
            steps(net, plain, 3)
        return [param.grad.clone() for param in net.parameters()]

    for bare, trapped in zip(trained(trap=False), trained(trap=True), strict=True):
        assert torch.allclose(bare, trapped, rtol=0, atol=0, equal_nan=True)


def test_there_is_one_replay_and_then_nothing_more_is_kept():
    net = between(log_at_step_2)
    with watched(every=100, trap_nan=True) as recording:
        steps(net, plain, 9)
    assert len(recording.run.events(EventKind.ORIGIN)) == 1


def test_without_the_option_nothing_is_said():
    with watched(every=1) as recording:
        steps(between(log_at_step_2), plain)
    assert recording.run.events(EventKind.ORIGIN) == ()


def test_a_batch_changed_in_place_after_the_call_is_not_replayed():
    net = nn.Sequential(Function(lambda x, call: x.relu().log()), nn.Linear(6, 3))
    x, y = batch()
    with watched(every=100, trap_nan=True) as recording:
        loss = F.cross_entropy(net(x), y)
        x.zero_()
        loss.backward()
        torch.optim.SGD(net.parameters(), lr=0.1).step()
    assert "its input was changed in place" in str(origin(recording).detail["reason"])


def test_each_micro_batch_is_kept_until_its_backward():
    net = between(lambda x, call: x if call != 5 else x.relu().log())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x, y = batch()
    with watched(every=100, trap_nan=True) as recording:
        for _ in range(2):
            optimizer.zero_grad()
            for _ in range(4):
                F.cross_entropy(net(x), y).backward()
            optimizer.step()
    assert found(recording) == ("1", "forward", "log")
    assert origin(recording).step == 1


def test_a_grad_scaler_s_skips_are_no_fault():
    net = mlp()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)
    x, y = batch()
    with watched(every=100, trap_nan=True) as recording:
        for _ in range(3):
            optimizer.zero_grad()
            scaler.scale(F.cross_entropy(net(x), y) / 100).backward()
            for param in net.parameters():
                param.grad[...] = torch.inf
            scaler.step(optimizer)
            scaler.update()
    assert recording.run.events(EventKind.ORIGIN) == ()


def test_autocast_is_replayed_as_it_was():
    def overflow(x: Tensor, step: int) -> Tensor:
        return x * (1e5 if step == 2 else 1)

    net = between(overflow)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x, y = batch()
    with watched(every=100, trap_nan=True) as recording:
        for _ in range(3):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.float16):
                loss = F.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
    assert found(recording) == ("1", "forward", "mul")


class Gan(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 4)

    def forward(self, x: Tensor, *, bad: bool = False) -> Tensor:
        return self.net(x) if not bad else self.net(x) + self.net(x).sub(self.net(x)).sqrt()


def test_of_two_models_the_one_that_breaks_the_gradient_is_named():
    torch.manual_seed(0)
    generator, critic = Gan(), nn.Sequential(nn.Linear(4, 1))
    first = torch.optim.SGD(critic.parameters(), lr=0.1)
    second = torch.optim.SGD(generator.parameters(), lr=0.1)
    with watched(every=100, trap_nan=True) as recording:
        for step in range(3):
            fake = generator(torch.randn(3, 4), bad=step == 2)
            first.zero_grad()
            critic(fake.detach()).mean().backward()
            first.step()
            second.zero_grad()
            critic(fake).mean().neg().backward()
            second.step()
    event = origin(recording)
    assert (event.site.model, event.site.fqn) == ("generator", "")
    assert (event.detail["phase"], event.detail["operation"]) == ("backward", "sqrt")


def test_a_model_that_cannot_bear_a_second_call_is_said_to():
    calls: list[int] = []  # of which the module knows nothing

    def once(x: Tensor, _call: int) -> Tensor:
        calls.append(1)
        if len(calls) == 4:
            raise RuntimeError("once only")
        return x if len(calls) < 3 else x.relu().log()

    with watched(every=100, trap_nan=True) as recording:
        steps(between(once), plain, 3)
    assert "once only" in str(origin(recording).detail["reason"])


@pytest.mark.slow
def test_a_compiled_model_is_said_to_be_closed():
    x, _ = batch()
    net = torch.compile(mlp(), backend="eager")
    with watched(every=100, trap_nan=True) as recording:
        steps(net, plain, 3, x=x * torch.nan)
    assert "torch.compile" in str(origin(recording).detail["reason"])


def test_gradients_whose_norm_overflows_are_finite_all_the_same():
    with watched(every=100, trap_nan=True) as recording:
        steps(mlp(), lambda step, out, y: plain(step, out, y) * 1e25, 1)
    assert recording.run.events(EventKind.ORIGIN) == ()


def test_nothing_is_kept_after_the_step():
    net = mlp()
    with watched(every=100, trap_nan=True):
        x, y = batch()
        x = x.clone()
        seen = weakref.ref(x)
        F.cross_entropy(net(x), y).backward()
        torch.optim.SGD(net.parameters(), lr=0.1).step()
        del x
        assert seen() is None


def test_a_graph_that_is_never_differentiated_is_let_go():
    net = mlp()
    x, y = batch()
    with watched(every=100, trap_nan=True):
        train(net)  # of the first steps the last output is kept for the loss's description
        alive: list[weakref.ref[Tensor]] = []
        for _ in range(3):
            hidden = net[0](x)
            alive.append(weakref.ref(hidden))
            del hidden
        assert [ref() for ref in alive] == [None] * 3
        F.cross_entropy(net(x), y).backward()
        torch.optim.SGD(net.parameters(), lr=0.1).step()
