"""Tells tools of others what happens in a program that knows none of them.

A user would write a tool's lines into the program. Here they are called from outside, at the same
moments: when a model is first called for training, after each backward pass, before and after each
step of an optimizer, and when a loss is computed without gradients, which is a validation.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules import module as modules
from torch.optim import Optimizer
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

LOSSES = (
    *("cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"),
    *("binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div", "poisson_nll_loss"),
    *("gaussian_nll_loss", "hinge_embedding_loss", "soft_margin_loss", "multi_margin_loss"),
    *("triplet_margin_loss", "cosine_embedding_loss", "margin_ranking_loss", "ctc_loss"),
)
"""Functions whose values are losses; the modules of the same names call them."""


class Peer:
    """A tool that watches one run; it is told what happens, and keeps its alarms.

    Attributes:
        watch: Who tells it.
        alarms: By what it says: the step it was first said at, and the places it named.
        failure: Why it said nothing more; empty if it did not fail.
    """

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.alarms: dict[str, tuple[int, set[str]]] = {}
        self.failure = ""

    def alarm(self, code: str, *sites: str) -> None:
        """Note an alarm, and each place it names."""
        step, named = self.alarms.get(code, (self.watch.steps, set()))
        self.alarms[code] = (step, named | {site for site in sites if site})

    def model(self, model: nn.Module, optimizer: Optimizer | None) -> None:
        """A model is about to be called for training for the first time."""

    def entered(self, module: nn.Module, name: str, args: tuple[Any, ...]) -> None:
        """A module of a model was called, with gradients enabled."""

    def left(
        self, module: nn.Module, name: str, args: tuple[Any, ...], kwargs: Any, output: Any
    ) -> None:
        """It returned."""

    def scored(self, name: str, inputs: Tensor, target: Any) -> None:
        """A loss was computed for training."""

    def validated(self, loss: float) -> None:
        """A loss was computed without gradients."""

    def starting(self) -> None:
        """Gradients are about to be computed."""

    def backward(self, loss: Tensor) -> None:
        """They were."""

    def stepping(self, optimizer: Optimizer, loss: Tensor) -> None:
        """An optimizer is about to step."""

    def stepped(self, optimizer: Optimizer) -> None:
        """It did."""

    def finish(self) -> None:
        """The program is over."""


class Watch:
    """What happens in this process, told to peers for as long as it is open.

    Attributes:
        models: Those that are trained, each with its optimizer if it has one.
        steps: Steps of optimizers so far.
    """

    def __init__(self, peers: Sequence[Callable[[Watch], Peer]]) -> None:
        self.models: list[tuple[nn.Module, Optimizer | None]] = []
        self.steps = 0
        self.peers = [peer(self) for peer in peers]
        self._names: dict[int, str] = {}
        self._met: set[int] = set()
        self._parents: dict[int, nn.Module] = {}
        self._optimizers: list[Optimizer] = []
        self._loss: Tensor | None = None
        self._depth = 0
        self._silent = False
        self._undo: list[Callable[[], None]] = []

    def __enter__(self) -> Watch:
        left = modules.register_module_forward_hook(self._left, with_kwargs=True, always_call=True)
        handles = [
            modules.register_module_module_registration_hook(self._registered),
            modules.register_module_forward_pre_hook(self._entered),
            left,
            register_optimizer_step_pre_hook(self._stepping),
            register_optimizer_step_post_hook(self._stepped),
        ]
        self._undo += [handle.remove for handle in handles]
        # torch's own handle forgets to take it out of here.
        with_kwargs: Any = modules._global_forward_hooks_with_kwargs
        self._undo.append(lambda: with_kwargs.pop(left.id, None))
        self._wrap(Optimizer, "__init__", self._made)
        self._wrap(torch.autograd, "backward", self._backward, "starting")
        for name in LOSSES:
            self._wrap(F, name, functools.partial(self._scored, name))
        return self

    def __exit__(self, *_: object) -> None:
        for undo in reversed(self._undo):
            undo()
        self._tell("finish")

    def name(self, module: nn.Module) -> str:
        """The dotted path of a module in its model."""
        return self._names.get(id(module), "")

    def _wrap(self, owner: Any, name: str, after: Callable[..., None], before: str = "") -> None:
        """Call something after each call of a function, with its result and its arguments."""
        function = getattr(owner, name)

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            if before and not self._silent:
                self._tell(before)
            result = function(*args, **kwargs)
            if not self._silent:
                after(result, *args, **kwargs)
            return result

        setattr(owner, name, wrapped)
        self._undo.append(lambda: setattr(owner, name, function))

    def _tell(self, event: str, *args: Any) -> None:
        self._silent = True
        for peer in self.peers:
            if not peer.failure:
                try:
                    getattr(peer, event)(*args)
                except Exception as error:
                    peer.failure = f"{type(error).__name__}: {error}"[:200]
        self._silent = False

    def _registered(self, parent: nn.Module, _name: str, child: nn.Module | None) -> None:
        if child is not None:
            self._parents[id(child)] = parent

    def _made(self, _result: None, optimizer: Optimizer, *_: Any, **__: Any) -> None:
        self._optimizers.append(optimizer)

    def _top(self, module: nn.Module) -> nn.Module:
        """The model that a module is a part of."""
        seen: set[int] = set()
        while (parent := self._parents.get(id(module))) is not None and id(module) not in seen:
            seen.add(id(module))
            module = parent
        return module

    def _meet(self, model: nn.Module) -> None:
        """Tell of a model that is trained, as soon as there is an optimizer."""
        params = {id(param) for param in model.parameters() if param.requires_grad}
        if id(model) in self._met or not self._optimizers or not params:
            return
        self._met.add(id(model))
        own = (optimizer for optimizer in self._optimizers if params & _trained(optimizer))
        optimizer = next(own, None)
        self.models.append((model, optimizer))
        self._names |= {id(module): name for name, module in model.named_modules()}
        self._tell("model", model, optimizer)

    def _entered(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        if self._silent:
            return
        self._depth += 1
        if torch.is_grad_enabled():
            if self._depth == 1:
                self._meet(self._top(module))
            if id(module) in self._names:
                self._tell("entered", module, self._names[id(module)], args)

    def _left(self, module: nn.Module, args: tuple[Any, ...], kwargs: Any, output: Any) -> None:
        if self._silent:
            return
        self._depth = max(0, self._depth - 1)
        if torch.is_grad_enabled() and id(module) in self._names:
            self._tell("left", module, self._names[id(module)], args, kwargs, output)

    def _scored(self, name: str, value: Any, *args: Any, **kwargs: Any) -> None:
        if not isinstance(value, Tensor):
            return
        if not torch.is_grad_enabled() and value.numel() == 1:
            self._tell("validated", float(value.detach()))
        elif torch.is_grad_enabled() and value.requires_grad and len(args) > 1:
            self._tell("scored", name, args[0], args[1])

    def _backward(self, _result: None, tensors: Any, *_: Any, **__: Any) -> None:
        first = tensors if isinstance(tensors, Tensor) else next(iter(tensors))
        self._loss = cast(Tensor, first)
        self._tell("backward", self._loss)

    def _stepping(self, optimizer: Optimizer, *_: object) -> None:
        if self._loss is not None and not self._silent:
            self._tell("stepping", optimizer, self._loss)

    def _stepped(self, optimizer: Optimizer, *_: object) -> None:
        if not self._silent:
            self.steps += 1
            self._tell("stepped", optimizer)


def _trained(optimizer: Optimizer) -> set[int]:
    return {id(param) for group in optimizer.param_groups for param in group["params"]}


def tensors(value: Any) -> Iterable[Tensor]:
    """The tensors in what a module takes or returns."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from tensors(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors(part)
