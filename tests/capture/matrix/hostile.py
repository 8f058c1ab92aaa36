"""Trainings that change what they are in the middle, and whatever else a program may do to us.

Long enough for the steps that take the short way, between measured ones.
"""

from __future__ import annotations

import asyncio
import copy
import io
import pickle
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from tests.capture.matrix.training import Cases, Net, Training, batch, sgd

CASES = Cases()
STEPS = 40


class Parts:
    """A model, its optimizer and a batch, which a case does something else with at times."""

    def __init__(self, net: nn.Module | None = None) -> None:
        self.net: nn.Module = net or Net()
        self.optimizer: Any = sgd(self.net)
        self.x, self.y = batch()

    def loss(self) -> Tensor:
        return F.mse_loss(self.net(self.x), self.y)

    def step(self, _number: int = 0) -> Tensor:
        self.optimizer.zero_grad()
        loss = self.loss()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def training(self, step: Callable[[int], object], *held: object) -> Training:
        return Training(step, (self.net, self.optimizer, *held), steps=STEPS)


def now_and_then(do: Callable[[Parts, int], object], net: nn.Module | None = None) -> Training:
    """A plain training, in which something is done before every seventh step."""
    parts = Parts(net)

    def step(i: int) -> object:
        return do(parts, i) if i % 7 == 5 else None, parts.step()

    return parts.training(step)


def within(context: Callable[[], AbstractContextManager[Any]]) -> Training:
    """A plain training, of which some steps are inside a context."""
    parts = Parts()

    def step(i: int) -> object:
        with context() if i % 7 in (3, 4) else nullcontext():
            return parts.step()

    return parts.training(step)


# -- what is trained changes ---------------------------------------------------------------------


@CASES()
def optimizer_replaced() -> Training:
    parts = Parts()
    made: list[Any] = []

    def step(i: int) -> object:
        if i % 13 == 12:
            parts.optimizer = torch.optim.Adam(parts.net.parameters(), lr=1e-3)
            made.append(parts.optimizer)
        return parts.step()

    return parts.training(step, made)


@CASES()
def model_replaced() -> Training:
    parts = Parts()

    def step(i: int) -> object:
        if i % 13 == 12:
            parts.net = Net()
            parts.optimizer = sgd(parts.net)
        return parts.step()

    return parts.training(step)


@CASES()
def model_replaced_under_its_optimizer() -> Training:
    parts = Parts()

    def step(i: int) -> object:
        if i % 13 == 12:
            parts.net = copy.deepcopy(parts.net)
            parts.optimizer.param_groups[0]["params"] = list(parts.net.parameters())
            parts.optimizer.state.clear()
        return parts.step()

    return parts.training(step)


@CASES()
def second_model_joins() -> Training:
    first, second = Parts(), Parts()

    def step(i: int) -> object:
        return first.step(), second.step() if i >= 17 else None

    return first.training(step, second.net, second.optimizer)


@CASES()
def second_optimizer_joins() -> Training:
    parts = Parts()
    other = torch.optim.Adam(parts.net.last.parameters(), lr=1e-3)  # pyright: ignore

    def step(i: int) -> object:
        loss = parts.step()
        if i >= 17 and i % 2:
            other.step()
        return loss

    return parts.training(step, other)


@CASES()
def optimizer_of_nothing_seen_steps_in_between() -> Training:
    tensor = torch.ones(3, requires_grad=True)
    other = torch.optim.SGD([tensor], lr=0.1)

    def do(_parts: Parts, i: int) -> object:
        tensor.grad = torch.full((3,), float(i))
        other.step()
        return tensor.detach().clone()

    return now_and_then(do)


@CASES()
def weights_changed_by_hand() -> Training:
    def do(parts: Parts, i: int) -> None:
        with torch.no_grad():
            next(parts.net.parameters()).mul_(0.9).clamp_(-1, 1)
        parts.net.last.bias.data = torch.full((3,), float(i))  # pyright: ignore

    return now_and_then(do)


@CASES()
def layer_replaced_frozen_and_thawed() -> Training:
    def do(parts: Parts, i: int) -> None:
        net: Any = parts.net
        net.first.requires_grad_(i % 2 == 0)
        net.last = copy.deepcopy(net.last)
        parts.optimizer.param_groups[0]["params"] = list(net.parameters())
        parts.optimizer.state.clear()

    return now_and_then(do)


@CASES()
def copied_and_pickled() -> Training:
    def do(parts: Parts, i: int) -> object:
        both = copy.deepcopy((parts.net, parts.optimizer))
        stream = io.BytesIO()
        torch.save({"net": parts.net, "optimizer": parts.optimizer.state_dict()}, stream)
        again = pickle.loads(pickle.dumps(parts.net))
        return both[0].state_dict(), again.state_dict()

    return now_and_then(do)


@CASES()
def restored_from_a_checkpoint() -> Training:
    kept: dict[str, Any] = {}

    def do(parts: Parts, i: int) -> None:
        if not kept:
            kept["net"] = copy.deepcopy(parts.net.state_dict())
            kept["optimizer"] = copy.deepcopy(parts.optimizer.state_dict())
        parts.net.load_state_dict(kept["net"], assign=i % 2 == 0)
        parts.optimizer = sgd(parts.net)
        parts.optimizer.load_state_dict(kept["optimizer"])

    return now_and_then(do)


@CASES()
def converted_in_the_middle() -> Training:
    def do(parts: Parts, _i: int) -> None:
        parts.optimizer.zero_grad()
        parts.net.half().float()
        parts.net.to("cpu", non_blocking=True)

    return now_and_then(do)


# -- backward and step in every order --------------------------------------------------------------


@CASES()
def forward_without_backward() -> Training:
    return now_and_then(lambda parts, _: parts.net(parts.x).detach())


@CASES()
def backward_twice() -> Training:
    def do(parts: Parts, _i: int) -> object:
        loss = parts.loss()
        loss.backward(retain_graph=True)
        loss.backward()
        try:
            loss.backward()
        except RuntimeError as error:
            return type(error)
        raise AssertionError

    return now_and_then(do)


@CASES()
def old_graph_differentiated_later() -> Training:
    parts = Parts()
    old: list[Tensor] = []

    def step(i: int) -> object:
        if old:
            old.pop().backward()
        loss = parts.loss()
        if i % 7 == 3:
            old.append(parts.loss())
            loss = loss * 1
        elif i % 7 == 5:
            torch.autograd.grad(loss, list(parts.net.parameters()), retain_graph=True)
        loss.backward()
        parts.optimizer.step()
        parts.optimizer.zero_grad()
        return loss.detach()

    return parts.training(step)


@CASES()
def accumulated() -> Training:
    parts = Parts()

    def step(i: int) -> object:
        loss = parts.loss()
        (loss / 3).backward()
        if i % 3 == 2:
            parts.optimizer.step()
            parts.optimizer.zero_grad(set_to_none=i % 2 == 0)
        return loss.detach()

    return parts.training(step)


@CASES()
def backward_within_step() -> Training:
    """And a step within that backward, of another optimizer."""
    parts = Parts()
    other = Parts()

    class Own(torch.optim.SGD):
        def step(self, closure: Any = None) -> Any:
            parts.loss().backward()
            return super().step(closure)

    parts.optimizer = Own(parts.net.parameters(), lr=0.01)

    def step(i: int) -> object:
        parts.optimizer.zero_grad()
        loss = parts.loss()
        if i % 7 == 5:
            loss.register_hook(lambda _: other.optimizer.step())
        loss.backward()
        parts.optimizer.step()
        return loss.detach()

    return parts.training(step, other.net)


@CASES()
def closures_now_and_then() -> Training:
    parts = Parts()

    def closure() -> Tensor:
        parts.optimizer.zero_grad()
        loss = parts.loss()
        loss.backward()
        return loss

    def step(i: int) -> object:
        if i % 7 == 5:
            return parts.optimizer.step(closure)
        return parts.step()

    return parts.training(step)


@CASES()
def failing_anywhere() -> Training:
    parts = Parts()

    def fail(*_: object) -> None:
        raise ArithmeticError("of the user's")

    def step(i: int) -> object:
        kind = i % 9
        parts.optimizer.zero_grad()
        if kind == 2:
            with_hook = parts.net.last.register_forward_pre_hook(fail)  # pyright: ignore
            try:
                parts.net(parts.x)
            finally:
                with_hook.remove()
        output = parts.net(parts.x)
        if kind == 4:
            output.register_hook(fail)
        loss = F.mse_loss(output, parts.y)
        loss.backward()
        if kind == 6:
            with_hook = parts.optimizer.register_step_pre_hook(fail)
            try:
                parts.optimizer.step()
            finally:
                with_hook.remove()
        if kind == 7:
            with_hook = parts.optimizer.register_step_post_hook(fail)
            try:
                parts.optimizer.step()
            finally:
                with_hook.remove()
        parts.optimizer.step()
        return loss.detach()

    return parts.training(step)


# -- what a program does to Python and torch -------------------------------------------------------


@CASES()
def of_generators() -> Training:
    parts = Parts()

    def endless() -> Iterator[Tensor]:
        while True:
            parts.optimizer.zero_grad()
            loss = parts.loss()
            yield loss.detach()
            loss.backward()
            yield loss.detach()
            parts.optimizer.step()

    training = endless()
    return parts.training(lambda _: [next(training), next(training)])


@CASES()
def of_coroutines() -> Training:
    first, second = Parts(), Parts()

    async def train(parts: Parts) -> list[Tensor]:
        losses: list[Tensor] = []
        for _ in range(6):
            parts.optimizer.zero_grad()
            loss = parts.loss()
            await asyncio.sleep(0)
            loss.backward()
            await asyncio.sleep(0)
            parts.optimizer.step()
            losses.append(loss.detach())
        return losses

    async def both() -> object:
        return await asyncio.gather(train(first), train(second))

    return first.training(lambda _: asyncio.run(both()), second.net, second.optimizer)


@CASES()
def with_a_limit_of_recursion_of_its_own() -> Training:
    class Deep(Net):
        def forward(self, x: Any) -> Any:
            if sys.getrecursionlimit() < 5000:
                sys.setrecursionlimit(5000)
            return super().forward(x)

    parts = Parts(Deep())
    before = sys.getrecursionlimit()

    def step(i: int) -> object:
        sys.setrecursionlimit([before, 3000, 2**31 - 1, 2**31 - 50][i % 4])
        try:
            return parts.step(), sys.getrecursionlimit()
        finally:
            sys.setrecursionlimit(before)

    return parts.training(step)


@CASES()
def called_in_threads_at_once() -> Training:
    parts = Parts()
    limit = sys.getrecursionlimit()

    def step(i: int) -> object:
        if i % 7 == 5:
            threads = [threading.Thread(target=parts.net, args=(parts.x,)) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        return parts.step(), sys.getrecursionlimit() - limit

    return parts.training(step)


@CASES()
def traced_and_profiled_by_python() -> Training:
    parts = Parts()
    seen: list[int] = [0]

    def tracer(*_: Any) -> Any:
        seen[0] += 1
        return tracer

    def step(i: int) -> object:
        before = sys.gettrace(), sys.getprofile()
        (sys.settrace if i % 2 else sys.setprofile)(tracer)
        try:
            return parts.step()
        finally:
            sys.settrace(before[0])
            sys.setprofile(before[1])

    return parts.training(step)


@contextmanager
def strict() -> Iterator[None]:
    """Warnings are errors, and so is whatever NumPy finds odd."""
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        yield


@CASES()
def strictly() -> Training:
    return within(strict)


@CASES()
def of_odd_numbers_strictly() -> Training:
    parts = Parts(nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3)))
    x = parts.x
    odd = [1e38, 3.4e38, 1e-42, -0.0, float("inf"), float("-inf"), float("nan"), 1e-30, 1e30]
    kept = copy.deepcopy(parts.net.state_dict())

    def step(i: int) -> object:
        parts.x = x * odd[i % len(odd)]
        if i % 3 == 0:
            parts.net.load_state_dict(kept)
            parts.optimizer = sgd(parts.net)
        with strict():
            return parts.step()

    return parts.training(step)


@CASES()
def of_huge_and_tiny_weights_strictly() -> Training:
    def do(parts: Parts, i: int) -> None:
        with torch.no_grad():
            for param in parts.net.parameters():
                param.copy_(
                    torch.full_like(param, [3e38, 1e-44, float("nan"), 1e20, 0][i // 7 % 5])
                )

    parts = Parts()

    def step(i: int) -> object:
        if i % 7 == 5:
            do(parts, i)
        with strict():
            return parts.step()

    return parts.training(step)


@contextmanager
def other_defaults() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    try:
        yield
    finally:
        torch.set_default_device(None)
        torch.set_default_dtype(torch.float32)


@CASES()
def with_other_defaults() -> Training:
    return within(other_defaults)


@contextmanager
def deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


@CASES()
def with_deterministic_algorithms() -> Training:
    return within(deterministic)


@CASES()
def with_anomalies_detected() -> Training:
    return within(lambda: torch.autograd.set_detect_anomaly(True))


@CASES()
def with_operations_counted() -> Training:
    parts = Parts()

    def step(i: int) -> object:
        counter = FlopCounterMode(display=False)
        with counter if i % 7 in (3, 4) else nullcontext():
            loss = parts.step()
        return loss, counter.get_total_flops()

    return parts.training(step)


@CASES()
def profiled_by_torch() -> Training:
    def profile() -> AbstractContextManager[Any]:
        return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])

    return within(profile)


@CASES()
def evaluated_in_inference_mode() -> Training:
    def do(parts: Parts, i: int) -> object:
        parts.net.eval()
        with torch.inference_mode():
            output = parts.net(parts.x).sum().item()
        if i % 2:
            parts.net.train()
        return output

    return now_and_then(do)


@CASES()
def backward_without_gradient_mode() -> Training:
    parts = Parts()

    def step(i: int) -> object:
        parts.optimizer.zero_grad()
        loss = parts.loss()
        with torch.no_grad():
            loss.backward()
        parts.optimizer.step()
        return loss.detach()

    return parts.training(step)


@CASES()
def with_gradient_mode_off_and_on() -> Training:
    parts = Parts()

    def step(i: int) -> object:
        torch.set_grad_enabled(False)
        with torch.no_grad():
            out = parts.net(parts.x)
        torch.set_grad_enabled(True)
        return out, parts.step()

    return parts.training(step)


@CASES()
def made_anew_in_each_step() -> Training:
    """A head that is a module of its own in every step, around parts that stay."""
    parts = Parts()

    def step(i: int) -> object:
        net: Any = parts.net
        parts.optimizer.zero_grad()
        whole = nn.Sequential(net.first, nn.ReLU(), net.last)
        loss = F.mse_loss(whole(parts.x), parts.y)
        loss.backward()
        parts.optimizer.step()
        return loss.detach()

    return parts.training(step)
