"""Trainings that differ in what hangs on autograd, or stands between Python and torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from tests.capture.matrix.training import Cases, Net, Training, batch, plain, quiet, sgd

CASES = Cases()


# -- checkpointing -------------------------------------------------------------------------------


class Checkpointed(nn.Module):
    """A part of it, and with `loss` the loss too, is computed again in backward."""

    calls: Tensor

    def __init__(self, last: nn.Module, *, loss: Any = None, **options: Any) -> None:
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.part = nn.Sequential(
            nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 3), last
        )
        self.register_buffer("calls", torch.zeros(()))
        self.loss, self.options = loss, options

    def run(self, x: Tensor) -> Tensor:
        self.calls.add_(1)
        return self.part(x)

    def lost(self, x: Tensor, y: Tensor) -> Tensor:
        return self.loss(self.run(x), y)

    def forward(self, x: Tensor) -> Any:
        if self.loss is not None:
            return checkpoint(self.lost, self.first(x), torch.full((8, 3), 0.3), **self.options)
        return (checkpoint(self.run, self.first(x), **self.options),)


def checkpointed(last: nn.Module, loss: Any, *, inside: bool = False, **options: Any) -> Training:
    net = Checkpointed(last, loss=loss if inside else None, **options)
    y = torch.full((8, 3), 0.3)
    return plain(net, (batch()[0], y), lambda out, y: out if inside else loss(out[0], y))


@CASES()
def checkpointing() -> Training:
    return checkpointed(nn.Softmax(-1), F.binary_cross_entropy, use_reentrant=False)


@CASES()
def checkpointing_reentrant() -> Training:
    return checkpointed(nn.Softmax(-1), F.binary_cross_entropy, use_reentrant=True)


@CASES()
def checkpointing_without_its_random_state() -> Training:
    options = {"use_reentrant": False, "preserve_rng_state": False}
    return checkpointed(nn.ReLU(), F.mse_loss, **options)


@CASES()
def checkpointing_of_the_loss() -> Training:
    options = {"use_reentrant": False, "preserve_rng_state": False}
    return checkpointed(nn.Sigmoid(), F.binary_cross_entropy, inside=True, **options)


@CASES()
def checkpointing_of_the_loss_reentrant() -> Training:
    options = {"use_reentrant": True, "preserve_rng_state": False}
    return checkpointed(nn.Softmax(-1), F.binary_cross_entropy, inside=True, **options)


# -- hooks and functions -------------------------------------------------------------------------


@CASES()
def hooks_on_saved_tensors() -> Training:
    seen: list[int] = []

    def pack(tensor: Tensor) -> Tensor:
        seen.append(tensor.numel())
        return tensor.clone()

    def unpack(tensor: Tensor) -> Tensor:
        seen.append(-tensor.numel())
        return tensor

    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3), nn.Softmax(-1))
    within = (lambda: torch.autograd.graph.saved_tensors_hooks(pack, unpack),)
    data = batch()[0], torch.full((8, 3), 0.3)
    return plain(net, data, F.binary_cross_entropy, within=within, held=(seen,))


@CASES()
def hooks_that_change_outputs_and_gradients() -> Training:
    net, calls = Net(), cast("list[str]", [])
    net.first.register_forward_hook(lambda module, given, out: out * 1.5)  # pyright: ignore
    net.last.register_forward_pre_hook(lambda module, given: (given[0] + 0.1,))
    net.first.register_full_backward_hook(lambda module, into, out: (into[0],))
    net.last.weight.register_hook(lambda gradient: gradient * 0.5)
    net.last.register_forward_hook(lambda module, given, out: calls.append("forward"))
    net.last.weight.register_hook(lambda gradient: calls.append("gradient"))
    net.last.weight.register_post_accumulate_grad_hook(lambda param: calls.append("after"))
    return plain(net, held=(calls,))


@CASES()
def hook_that_trains_another_model_in_backward() -> Training:
    net, other = Net(), Net()

    def train_other(gradient: Tensor) -> Tensor:
        with torch.enable_grad():
            other(torch.ones(2, 6)).sum().backward()
        return gradient

    net.last.weight.register_hook(train_other)
    return plain(net, held=(other,), after=lambda i: other.last.weight.grad)


class Doubles(torch.autograd.Function):
    """Keeps names of its own on its context."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:  # pyright: ignore
        ctx.name, ctx.variable = "mine", 1
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # pyright: ignore
        return gradient * 2


@CASES()
def own_functions_between_and_after_the_layers() -> Training:
    net = Net(lambda self, x: Doubles.apply(self.last(Doubles.apply(self.first(x)))))
    return plain(net, loss=lambda out, y: Doubles.apply(F.mse_loss(out, y)))


class Weighs(torch.autograd.Function):
    """Has no gradient for its input."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:  # pyright: ignore
        return x * weight

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:  # pyright: ignore
        return None, gradient.sum(0)


@CASES()
def own_function_that_passes_no_gradient() -> Training:
    net = Net(lambda self, x: self.last(Weighs.apply(self.first(x), self.last.weight[0])))
    return plain(net)


@CASES()
def gradient_of_the_input() -> Training:
    x, y = batch()
    return plain(Net(), (x.requires_grad_(), y), held=(x,), after=lambda i: x.grad)


@CASES()
def gradients_retained_on_outputs() -> Training:
    kept: list[Tensor] = []

    def way(self: Net, x: Tensor) -> Tensor:
        kept[:] = [self.first(x)]
        kept.append(self.last(kept[0]))
        for tensor in kept:
            tensor.retain_grad()
        return kept[1]

    return plain(Net(way), after=lambda i: [tensor.grad for tensor in kept])


class Fails(torch.autograd.Function):
    """Raises in backward when told to."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, error: Any) -> Tensor:  # pyright: ignore
        ctx.error = error
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:  # pyright: ignore
        if ctx.error is not None:
            raise ctx.error
        return gradient, None


def failing(way: Callable[[Any, Tensor, bool], Tensor]) -> Training:
    """Every third forward pass does something wrong."""
    calls: list[int] = []

    def forward(self: Net, x: Tensor) -> Tensor:
        calls.append(len(calls))
        return way(self, x, len(calls) % 3 == 2)

    return plain(Net(forward), steps=9)


@CASES()
def exception_in_forward() -> Training:
    def way(self: Net, x: Tensor, wrong: bool) -> Tensor:
        hidden = self.first(x)
        if wrong:
            raise ValueError("the user's")
        return self.last(hidden)

    return failing(way)


@CASES()
def exception_in_backward() -> Training:
    def way(self: Net, x: Tensor, wrong: bool) -> Tensor:
        error = ValueError("the user's") if wrong else None
        return self.last(Fails.apply(self.first(x), error))

    return failing(way)


@CASES()
def interrupt_in_backward() -> Training:
    def way(self: Net, x: Tensor, wrong: bool) -> Tensor:
        return self.last(Fails.apply(self.first(x), KeyboardInterrupt() if wrong else None))

    return failing(way)


@CASES()
def exception_in_the_optimizer_s_step() -> Training:
    class Fails(torch.optim.SGD):
        """Has updated some of the parameters when it raises."""

        num = 0

        def step(self, closure: Any = None) -> Any:
            self.num += 1
            if self.num % 3 == 2:
                with torch.no_grad():
                    self.param_groups[0]["params"][0] -= 0.1
                raise ValueError("the user's")
            return super().step(closure)

    net = Net()
    return plain(net, optimizer=Fails(net.parameters(), lr=0.05, momentum=0.9), steps=9)


@CASES(awaited=True)
def exception_in_the_loss() -> Training:
    losses: list[int] = []

    def loss(out: Tensor, y: Tensor) -> Tensor:
        losses.append(len(losses))
        if len(losses) % 3 == 2:
            raise ValueError("the user's")
        return F.mse_loss(out, y)

    return plain(Net(), loss=loss, steps=9)


# -- torch.func ----------------------------------------------------------------------------------


@CASES(unseen="parameters are detached, and no model gets a gradient")
def gradients_by_torch_func() -> Training:
    net = Net()
    x, y = batch()

    def loss(params: Any) -> Tensor:
        return F.mse_loss(torch.func.functional_call(net, params, (x,)), y)

    def step(i: int) -> object:
        params = {name: param.detach() for name, param in net.named_parameters()}
        gradients, value = torch.func.grad_and_value(loss)(params)
        with torch.no_grad():
            for name, param in net.named_parameters():
                param -= 0.1 * gradients[name]
        return value

    return Training(step, (net,))


@CASES()
def gradients_per_sample_by_vmap() -> Training:
    net = Net()
    optimizer = sgd(net)
    x, y = batch()

    def loss(params: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return F.mse_loss(torch.func.functional_call(net, params, (x[None],)), y[None])

    def step(i: int) -> object:
        params = {name: param.detach() for name, param in net.named_parameters()}
        gradients = torch.func.vmap(torch.func.grad(loss), (None, 0, 0))(params, x, y)
        for name, param in net.named_parameters():
            param.grad = gradients[name].mean(0)
        optimizer.step()
        return F.mse_loss(net(x), y).detach()

    return Training(step, (net, optimizer))


@CASES()
def learning_to_learn_through_functional_call() -> Training:
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    x, y = batch()

    def loss(params: Any) -> Tensor:
        return F.mse_loss(torch.func.functional_call(net, params, (x,)), y)

    def step(i: int) -> object:
        optimizer.zero_grad()
        params = dict(net.named_parameters())
        gradients = torch.autograd.grad(loss(params), list(params.values()), create_graph=True)
        pairs = zip(params.items(), gradients, strict=True)
        after = loss({name: param - 0.1 * gradient for (name, param), gradient in pairs})
        after.backward()
        optimizer.step()
        return after.detach()

    return Training(step, (net, optimizer))


# -- modes ---------------------------------------------------------------------------------------


def normalized() -> nn.Sequential:
    return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))


class Functions(TorchFunctionMode):
    num = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.num += 1
        return func(*args, **(kwargs or {}))


class Operations(TorchDispatchMode):
    num = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.num += 1
        return func(*args, **(kwargs or {}))


def counted(mode: Any) -> Training:
    return plain(normalized(), within=(lambda: mode,), after=lambda i: mode.num)


@CASES()
def mode_that_counts_functions() -> Training:
    return counted(Functions())


@CASES()
def mode_that_counts_operations() -> Training:
    return counted(Operations())


@CASES()
def counter_of_flops() -> Training:
    counter = FlopCounterMode(display=False)
    return plain(normalized(), within=(lambda: counter,), after=lambda i: counter.get_flop_counts())


@CASES()
def anomaly_detection() -> Training:
    return plain(Net(), within=(quiet, lambda: torch.autograd.set_detect_anomaly(True)))


class Deterministic:
    def __enter__(self) -> None:
        torch.use_deterministic_algorithms(True)

    def __exit__(self, *_: object) -> None:
        torch.use_deterministic_algorithms(False)


@CASES(slow=True)
def deterministic_algorithms() -> Training:
    return plain(normalized(), within=(Deterministic,))


@CASES()
def default_device_meta() -> Training:
    return plain(normalized(), within=(lambda: torch.device("meta"),))


@CASES()
def evaluation_in_inference_mode() -> Training:
    net, other = Net(), Net()

    def after(i: int) -> object:
        with torch.inference_mode():
            return other(batch()[0]).clone(), net(batch()[0]).clone()

    return plain(net, after=after)


@CASES(slow=True)
def features_from_inference_mode() -> Training:
    features = Net(outputs=6)

    def data(i: int) -> tuple[Tensor, Tensor]:
        with torch.inference_mode():
            x = features(batch()[0])
        return x.clone(), batch()[1]

    return plain(Net(), data)
