"""Nothing of traindx stays behind: not on modules, parameters, optimizers, nor in torch itself."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules import module as modules
from torch.optim.optimizer import _global_optimizer_post_hooks, _global_optimizer_pre_hooks

from tests.capture.watched import batch, mlp, train, watched


def state_of_torch() -> dict[str, object]:
    """Everything in torch that traindx may touch."""
    scaler = torch.amp.GradScaler
    return {
        "call": nn.Module.__call__,
        "compile": torch.compile,
        "module compile": nn.Module.compile,
        "backward": torch.autograd.backward,
        "load": nn.Module.load_state_dict,
        "scaler": (scaler.scale, scaler.step, scaler.update, scaler.unscale_),
        "own": ["__call__" in vars(nn.Module), "compile" in vars(nn.Module)],
        "module hooks": [
            dict(getattr(modules, name))
            for name in vars(modules)
            if name.startswith("_global_") and isinstance(getattr(modules, name), dict)
        ],
        "optimizer hooks": [
            dict(_global_optimizer_pre_hooks),
            dict(_global_optimizer_post_hooks),
        ],
    }


def hooks_left(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[object]:
    """Every hook on a model, its parameters or its optimizer."""
    left: list[object] = []
    for part in model.modules():
        left += [held for name, held in vars(part).items() if "hooks" in name and held]
    for param in model.parameters():
        left += [param._backward_hooks, param._post_accumulate_grad_hooks]
    left += [held for name, held in vars(optimizer).items() if "hooks" in name and held]
    return [held for held in left if held]


def test_torch_is_as_before_once_watching_ends():
    before = state_of_torch()
    with watched():
        assert state_of_torch()["call"] != before["call"]
        train(mlp())
    assert state_of_torch() == before


def test_torch_is_as_before_when_the_training_raised():
    before = state_of_torch()

    def raising(_out: Tensor, _y: Tensor) -> Tensor:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), watched():
        train(mlp(), loss=raising)
    assert state_of_torch() == before


def test_a_patch_made_meanwhile_survives_and_still_works():
    original = nn.Module.__call__
    seen: list[nn.Module] = []
    net = mlp()
    try:
        with watched():
            ours = nn.Module.__call__

            def theirs(self: nn.Module, *args: object) -> object:
                seen.append(self)
                return ours(self, *args)

            nn.Module.__call__ = theirs
            train(net, steps=1)
        assert nn.Module.__call__ is theirs
        count = len(seen)
        net(batch()[0])
        assert len(seen) == count + 4
    finally:
        nn.Module.__call__ = original


def test_watching_twice_at_once_lets_go_of_everything():
    before = state_of_torch()
    with watched() as outer:
        with watched() as inner:
            net = mlp()
            train(net)
        train(net)
    assert state_of_torch() == before
    assert inner.run.steps == 3
    assert outer.run.steps == 6


def test_nothing_is_attached_after_a_step():
    with watched():
        net = mlp()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(2):
            train(net, steps=1, optimizer=optimizer)
            assert not hooks_left(net, optimizer)
    assert not hooks_left(net, optimizer)


def test_a_model_can_be_copied_and_pickled_in_the_middle_of_a_step():
    with watched():
        net = mlp()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        x, y = batch()
        loss = F.cross_entropy(net(x), y)
        assert torch.equal(copy.deepcopy(net)(x), pickle.loads(pickle.dumps(net))(x))
        loss.backward()
        copy.deepcopy(optimizer)
        pickle.dumps(optimizer.state_dict())
        optimizer.step()


class Broken(nn.Module):
    """Fails in its forward or backward on demand."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 3)
        self.fails = ""

    def forward(self, x: Tensor) -> Tensor:
        out = self.inner(x)
        if self.fails == "forward":
            raise RuntimeError("of the user's")
        return Explosive.apply(out) if self.fails == "backward" else out


class Explosive(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        raise RuntimeError("of the user's")


@pytest.mark.parametrize("where", ["forward", "backward"])
def test_an_exception_of_the_users_passes_and_training_may_go_on(where):
    with watched() as recording:
        net = Broken()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        x, y = batch()
        for step in range(4):
            net.fails = where if step == 1 else ""
            optimizer.zero_grad()
            if net.fails:
                with pytest.raises(RuntimeError, match="of the user's"):
                    F.cross_entropy(net(x), y).backward()
            else:
                F.cross_entropy(net(x), y).backward()
                optimizer.step()
            assert not hooks_left(net, optimizer)
    assert recording.run.steps == 3
    assert len(recording.values("loss")) == 3


def test_an_exception_in_the_optimizer_passes_and_training_may_go_on():
    class Fussy(torch.optim.SGD):
        fails = False

        def step(self, closure=None):
            if self.fails:
                raise RuntimeError("of the user's")
            return super().step(closure)

    with watched() as recording:
        net = mlp()
        optimizer = Fussy(net.parameters(), lr=0.1)
        train(net, steps=2, optimizer=optimizer)
        optimizer.fails = True
        with pytest.raises(RuntimeError, match="of the user's"):
            train(net, steps=1, optimizer=optimizer)
        optimizer.fails = False
        train(net, steps=2, optimizer=optimizer)
        assert not hooks_left(net, optimizer)
    assert recording.run.steps == 4


def test_a_module_returns_its_very_output():
    class Remembers(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(6, 3)
            self.last = None

        def forward(self, x):
            self.last = {"logits": self.inner(x), "extra": (1, "two")}
            return self.last

    with watched():
        net = Remembers()
        out = net(batch()[0])
        assert out is net.last


def test_a_module_given_by_name_is_called_as_before():
    layer, inputs = nn.Linear(3, 2), torch.randn(4, 3)
    with watched():
        assert nn.Module.__call__(self=layer, input=inputs).equal(layer(inputs))


def test_in_place_activations_do_not_disturb_backward():
    def losses(inplace: bool) -> list[float]:
        torch.manual_seed(0)
        net: Any = nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=inplace), nn.Flatten(),
            nn.Linear(64, 3),
        )  # fmt: skip
        x = torch.randn(5, 1, 6, 6, generator=torch.Generator().manual_seed(1))
        return train(net, data=(x, batch()[1]))

    bare = losses(inplace=True)
    with watched() as recording:
        assert losses(inplace=True) == bare
    assert recording.values("output.min", "2") == [0.0] * 3
    assert min(recording.values("output.min", "1")) < 0


def test_user_hooks_run_as_before():
    def order() -> list[str]:
        net = mlp()
        seen: list[str] = []
        net.register_forward_pre_hook(lambda *_: seen.append("pre"))
        net[0].register_forward_hook(lambda *_: seen.append("forward"))
        net[2].register_full_backward_hook(lambda *_: seen.append("backward"))
        net[2].weight.register_hook(lambda _: seen.append("gradient"))
        train(net, steps=2)
        return seen

    bare = order()
    assert len(bare) == 8
    with watched():
        assert order() == bare


def test_double_backward_works():
    def penalty() -> float:
        net = mlp(sizes=(6, 8, 1))
        x = batch()[0].requires_grad_()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (slope,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
            loss = (slope.norm() - 1).square()
            loss.backward()
            optimizer.step()
        return loss.item()

    bare = penalty()
    with watched() as recording:
        assert penalty() == bare
    assert recording.values("loss")[-1] == bare


def test_tracing_and_functional_transforms_are_left_alone():
    with watched():
        net = mlp()
        x, y = batch()
        params = dict(net.named_parameters())

        def loss(params, x, y):
            return F.cross_entropy(torch.func.functional_call(net, params, (x,)), y)

        per_sample = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))
        gradients = per_sample(params, x[:, None], y[:, None])
        assert gradients["0.weight"].shape == (5, 8, 6)
        graph = torch.fx.symbolic_trace(net)
        assert torch.equal(graph(x), net(x))
        train(net)


def test_a_backward_given_an_iterator_of_losses_gets_all_of_them():
    with watched():
        net = mlp()
        x, y = batch()
        losses = [F.cross_entropy(net(x), y), net(x).square().mean()]
        given: Any = iter(losses)
        torch.autograd.backward(given)
    assert net[0].weight.grad is not None


def test_a_call_that_somebody_has_replaced_before_us_is_still_theirs(monkeypatch):
    original, called = nn.Module.__call__, list[nn.Module]()

    def theirs(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        called.append(self)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(nn.Module, "__call__", theirs)
    net = mlp()
    with watched(every=5):
        train(net, steps=8)
    assert sum(one is net[0] for one in called) == sum(one is net for one in called) == 8


def test_a_module_that_is_called_by_other_means_is():
    net = mlp()
    told: list[str] = []

    def compiled(x: Tensor) -> Tensor:
        told.append("called")
        return net[0]._call_impl(x)

    net[0]._compiled_call_impl = compiled
    with watched(every=5):
        train(net, steps=8)
    assert told == ["called"] * 8
