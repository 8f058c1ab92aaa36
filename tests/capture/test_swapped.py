"""Nothing of ours hangs on a tensor of the user's: a conversion may exchange what tensors hold."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.capture.watched import batch, mlp, watched
from traindx.capture.owners import Owners

Convert = Callable[[nn.Module], object]

CONVERSIONS: dict[str, Convert] = {
    "half and back": lambda net: net.half().float(),
    "double": lambda net: net.double(),
    "bfloat16": lambda net: net.to(torch.bfloat16),
    "to the meta device, and made anew": lambda net: net.to("meta").to_empty(device="cpu"),
    "tensors one by one": lambda net: [
        torch.utils.swap_tensors(param, nn.Parameter(param.detach() * 2))
        for param in net.parameters()
    ],
}


@pytest.fixture
def _swapping() -> Iterator[None]:
    torch.__future__.set_swap_module_params_on_conversion(True)
    yield
    torch.__future__.set_swap_module_params_on_conversion(False)


def converted(convert: Convert, at: int, *, cleared: bool, steps: int = 40) -> list[object]:
    """Losses and weights of a training whose model is converted in a step."""
    net = mlp()
    net.insert(1, nn.BatchNorm1d(8))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x, y = batch()
    losses: list[object] = []
    for step in range(steps):
        if step == at:
            if cleared:
                optimizer.zero_grad()
            convert(net)
            if convert is CONVERSIONS["to the meta device, and made anew"]:
                for tensor in net.state_dict().values():
                    tensor.fill_(0.5)
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x.to(net[0].weight.dtype)).float(), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        del loss
    return [losses, [param.tolist() for param in net.parameters()]]


@pytest.mark.usefixtures("_swapping")
@pytest.mark.parametrize("cleared", [True, False])
@pytest.mark.parametrize("at", [1, 3, 25])
@pytest.mark.parametrize("convert", CONVERSIONS.values(), ids=CONVERSIONS)
def test_a_model_is_converted_by_exchange_as_without_traindx(convert, at, cleared):
    bare = converted(convert, at, cleared=cleared)
    for every in (1, 16):
        with watched(every=every) as recording:
            assert repr(converted(convert, at, cleared=cleared)) == repr(bare)
        assert recording.run.steps == 40


@pytest.mark.usefixtures("_swapping")
def test_a_model_is_converted_within_a_step_as_without_traindx():
    def body() -> list[float]:
        net = mlp()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        x, y = batch()
        losses: list[float] = []
        for _ in range(8):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            losses.append(loss.item())
            del loss
            net.double().float()
            optimizer.step()
        return losses

    bare = body()
    with watched() as recording:
        assert body() == bare
    assert recording.run.steps == 8


@pytest.mark.parametrize("by_optimizer", [True, False])
def test_tensors_outside_of_modules_can_be_exchanged(by_optimizer: bool):
    def body() -> list[float]:
        weight = torch.ones(6, 3, requires_grad=True)
        optimizer = torch.optim.SGD([weight], lr=0.1)
        x, y = batch()
        losses: list[float] = []
        for step in range(9):
            if step in (2, 5):
                weight.grad = None
                torch.utils.swap_tensors(weight, weight.detach().neg().requires_grad_())
            loss = F.cross_entropy(x @ weight, y)
            loss.backward()
            losses.append(loss.item())
            del loss
            if by_optimizer:
                optimizer.step()
                optimizer.zero_grad()
            else:
                assert weight.grad is not None
                weight.data -= 0.1 * weight.grad
                weight.grad = None
        return losses

    bare = body()
    with watched() as recording:
        assert body() == bare
    steps = 9 if by_optimizer else 8  # the last update is seen when the next loss comes
    assert len(recording.values("grad.rms", "weight")) >= steps
    assert recording.run.steps == steps
    assert recording.models == {"parameters"}


def weakly_referred(tensors: dict[str, Any]) -> set[str]:
    return {
        name
        for name, tensor in tensors.items()
        if isinstance(tensor, Tensor) and weakref.getweakrefcount(tensor)
    }


@pytest.mark.parametrize("optimizer_kind", [torch.optim.SGD, None])
@pytest.mark.parametrize("every", [1, 3, None])
@pytest.mark.parametrize("trap_nan", [True, False])
def test_no_weak_reference_hangs_on_what_is_left_of_a_step(optimizer_kind, every, trap_nan):
    with watched(every=every, trap_nan=trap_nan):
        net = mlp()
        optimizer = optimizer_kind(net.parameters(), lr=0.1) if optimizer_kind else None
        x, y = batch()
        for _ in range(14):
            net.zero_grad()
            output = net(x)
            loss = F.cross_entropy(output, y)
            loss.backward()
            if optimizer is not None:
                optimizer.step()
            else:
                with torch.no_grad():
                    for param in net.parameters():
                        assert param.grad is not None
                        param -= 0.1 * param.grad
                net(x)
            held = {"x": x, "y": y, "output": output, "loss": loss}
            params = dict(net.named_parameters())
            grads = {f"{name}.grad": param.grad for name, param in params.items()}
            if optimizer is not None:
                assert weakly_referred({**held, **params, **grads}) == set()
            else:
                assert weakly_referred({**held, **params}) == set()
    assert weakly_referred({**held, **params, **grads}) == set()


def test_no_weak_reference_hangs_on_a_gradient_after_a_failure_of_ours(monkeypatch):
    def fail(*_: object) -> None:
        raise LookupError("of ours")

    monkeypatch.setattr("traindx.capture.collectors.updates.Updates.before_step", fail)
    with watched(fails=True):
        net = mlp()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        x, y = batch()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
        grads = {name: param.grad for name, param in net.named_parameters()}
        assert weakly_referred(grads) == set()


@pytest.mark.parametrize("fails_in", ["forward", "backward", "step"])
@pytest.mark.parametrize("at", [0, 1, 5, 14])
@pytest.mark.parametrize("trap_nan", [False, True])
def test_a_model_whose_step_has_failed_can_be_freed(fails_in: str, at: int, trap_nan: bool):
    def fail(*_: object) -> None:
        raise MemoryError

    def body() -> weakref.ref[Tensor]:
        net = mlp()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        x, y = batch()
        for step in range(at + 1):
            optimizer.zero_grad()
            if step == at and fails_in == "forward":
                net[2].register_forward_hook(fail)
                try:
                    net(x)
                except MemoryError:
                    return weakref.ref(net[0].weight)
            hidden = net(x)
            loss = F.cross_entropy(hidden, y)
            if step == at and fails_in == "backward":
                hidden.register_hook(fail)
                try:
                    loss.backward()
                except MemoryError:
                    return weakref.ref(net[0].weight)
            loss.backward()
            if step == at:
                optimizer.param_groups[0]["lr"] = "none"
                try:
                    optimizer.step()
                except (TypeError, ValueError, RuntimeError):
                    return weakref.ref(net[0].weight)
            optimizer.step()
        raise AssertionError("it has not failed")

    with watched(every=4, trap_nan=trap_nan):
        weight = body()
        gc.collect()
        assert weight() is None


def test_what_is_known_of_owners_does_not_grow():
    owners = Owners()
    net, child = nn.Module(), nn.Linear(2, 2)
    kept: list[object] = []
    for _ in range(300):
        param = nn.Parameter(torch.zeros(1))
        owners.param_registered(net, "weight", param)
        net.weight = param
        kept.append(param)  # no id is used again
        owners.child_registered(net, "child", child)
        owners.child_registered(nn.Sequential(child), "0", child)
    assert owners.holder(cast(Any, net.weight)) is net
    sizes = [len(held) for held in vars(owners).values() if isinstance(held, dict)]
    assert len(sizes) == 3
    assert max(sizes) < 40
    assert max(len(parents) for parents in owners._parents.values()) < 5
    del net, param
    gc.collect()
    assert not owners._holders
    assert not owners._held


def test_a_parameter_that_two_modules_hold_is_known_when_one_replaces_its_own():
    owners = Owners()
    first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    second.weight = first.weight
    for module in (first, second):
        owners.param_registered(module, "weight", module.weight)
    kept = [nn.Parameter(torch.zeros(2, 2)) for _ in range(40)]
    for param in kept:
        first.weight = param
        owners.param_registered(first, "weight", param)
    assert owners.holder(second.weight) is second
