"""Where traindx touches torch: a few functions replaced while it watches, and put back after.

No hook is ever left on a user's module, optimizer or tensor that outlives the step, so models can
be copied and pickled at any time. Each replacement calls the original with the same arguments and
returns its very result.
"""

from __future__ import annotations

import functools
import inspect
import threading
import types
from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn
from torch.optim.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from traindx.capture.clipping import largest_of
from traindx.capture.guard import give_back, in_room, make_room
from traindx.capture.replacing import replace, then

Args = tuple[object, ...]
Kwargs = Mapping[str, object]
Observer = Callable[[nn.Module, object], None]


operations: Callable[[], int] = cast(Any, torch)._C._autograd._get_sequence_nr
"""How many operations autograd has noted in this thread."""
graph_task: Callable[[], int] = cast(Any, torch)._C._current_graph_task_id
"""The backward pass that this thread is inside of; -1 if there is none."""

is_compiling = torch.compiler.is_compiling
is_dynamo_compiling = torch.compiler.is_dynamo_compiling


class Listener(Protocol):
    """What the taps report to; none of it may raise."""

    def forward_starts(self, module: nn.Module, args: Args, kwargs: Kwargs) -> None:
        """The outermost module of a forward pass is called."""

    def forward_ended(self, module: nn.Module, output: object) -> None:
        """It has returned."""

    def forward_failed(self) -> None:
        """It has raised."""

    def backward_starts(self, tensors: object) -> None:
        """`backward` is called by the user."""

    def backward_ended(self) -> None:
        """`backward` has returned."""

    def backward_failed(self) -> None:
        """`backward` has raised."""

    def optimizer_made(self, optimizer: Optimizer, /) -> None:
        """An optimizer has got its parameters."""

    def step_starts(self, optimizer: Optimizer, /) -> None:
        """An optimizer is about to step."""

    def step_ended(self, optimizer: Optimizer, /) -> None:
        """An optimizer has stepped."""

    def loss_scaled(self, scaled: object, scaler: object) -> None:
        """A GradScaler has multiplied a loss."""

    def scaler_step_starts(self, optimizer: Optimizer, /) -> None:
        """A GradScaler is about to step an optimizer, or to skip it."""

    def scaler_step_ended(self, optimizer: Optimizer, /) -> None:
        """A GradScaler has stepped an optimizer, or skipped it."""

    def clipped(self, largest: object, norm: object) -> None:
        """Gradients have been clipped to a largest norm; theirs was `norm`."""

    def loaded(self, args: Args, kwargs: dict[str, object], keys: object) -> None:
        """A state has been loaded into a module, by these arguments and with this result."""

    def swap_starts(self, first: object, second: object, /) -> None:
        """What two tensors hold is about to be exchanged; nobody may refer to them weakly."""

    def swap_ended(self, first: object, second: object, /) -> None:
        """That has been done, or has failed."""

    def compiling(self) -> None:
        """torch.compile is being used."""

    def child_registered(self, parent: nn.Module, name: str, child: nn.Module | None) -> None:
        """A module has got a child."""

    def param_registered(self, module: nn.Module, name: str, param: Tensor | None) -> None:
        """A module has got a parameter."""


class Passing(Protocol):
    """Takes the moments of steps in which there is next to nothing to do; none of it may raise.

    Each says whether that was all. If not, the listener is told.
    """

    def forward_starts(self, module: nn.Module) -> bool:
        """The outermost module of a forward pass is called; its end need not be told."""
        ...

    def backward_starts(self, tensors: object) -> bool:
        """`backward` is called by the user."""
        ...

    def backward_ended(self) -> bool:
        """`backward` has returned, and its start was taken."""
        ...

    def step_starts(self, optimizer: Optimizer) -> bool:
        """An optimizer is about to step."""
        ...

    def step_ended(self, optimizer: Optimizer) -> bool:
        """An optimizer has stepped."""
        ...


class _Outside:
    """Stands for an observer where no module is being called."""

    def __call__(self, module: nn.Module, output: object) -> None:
        """There is nothing to observe."""


OUTSIDE: Observer = _Outside()


class CallState(threading.local):
    """Where this thread is in a forward pass.

    Attributes:
        observer: Inside the outermost module's call, told of each module's output; None while
            nobody wants to know. Otherwise `OUTSIDE`.
        passing: Takes the moments of this thread first, if there is one.
        began: How many operations autograd had noted in this thread when the module that is told to
            the observer was called.
    """

    observer: Observer | None = OUTSIDE
    began = 0
    passing: Passing | None = None


class Taps:
    """The replacements in force."""

    def __init__(self, listener: Listener) -> None:
        self.calls = CallState()
        self._listener = listener
        self._undo: list[Callable[[], None]] = []
        self._undo_calls: Callable[[], None] | None = None

    def install(self) -> None:
        """Begin to listen."""
        self.add_calls()
        self._tap(torch.autograd, "backward", self._backward)
        self._tap(torch, "compile", self._noting_compile)
        self._tap(nn.Module, "compile", self._noting_compile)
        made = then(lambda args, _kwargs, _none: self._listener.optimizer_made(args[0]))
        self._tap(Optimizer, "__init__", made)
        loaded = then(lambda args, kwargs, keys: self._listener.loaded(args, kwargs, keys))
        self._tap(nn.Module, "load_state_dict", loaded)
        self._tap(torch.amp.GradScaler, "scale", self._scale)
        self._tap(torch.amp.GradScaler, "step", self._scaler_step)
        self._tap(torch.utils, "swap_tensors", self._swap)
        clip = then(lambda a, kw, norm: self._listener.clipped(largest_of(a, kw), norm))
        for module in (torch.nn.utils, torch.nn.utils.clip_grad):
            self._tap(module, "clip_grad_norm_", clip)
        self._install_hooks()

    def _tap(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        self._undo.append(replace(owner, name, make))

    def _install_hooks(self) -> None:
        listener, state, modules = self._listener, self.calls, torch.nn.modules.module

        in_step: set[int] = set()
        nested: set[int] = set()

        # The stack is walked only where a step has begun and not ended: within it, or after one
        # that has raised.
        def step_starts(optimizer: Optimizer, _args: object, _kwargs: object) -> None:
            if is_dynamo_compiling():
                return
            if in_step and _is_nested(optimizer):
                nested.add(id(optimizer))
                return
            in_step.add(id(optimizer))
            passing = state.passing
            if passing is None or not passing.step_starts(optimizer):
                in_room(listener.step_starts, optimizer)

        def step_ended(optimizer: Optimizer, _args: object, _kwargs: object) -> None:
            if is_dynamo_compiling():
                return
            if nested:
                if _is_nested(optimizer):
                    return
                nested.discard(id(optimizer))
            in_step.discard(id(optimizer))
            passing = state.passing
            if passing is None or not passing.step_ended(optimizer):
                in_room(listener.step_ended, optimizer)

        handles = (
            register_optimizer_step_pre_hook(step_starts),
            register_optimizer_step_post_hook(step_ended),
            modules.register_module_module_registration_hook(listener.child_registered),
            modules.register_module_parameter_registration_hook(listener.param_registered),
        )
        self._undo.extend(handle.remove for handle in handles)

    def add_calls(self) -> None:
        """Listen to module calls."""
        if self._undo_calls is None:
            self._undo_calls = replace(nn.Module, "__call__", self._call)

    def remove_calls(self) -> None:
        """Stop listening to module calls: dynamo must find `nn.Module.__call__` as it was."""
        if self._undo_calls is not None:
            self._undo_calls()
            self._undo_calls = None

    def remove(self) -> None:
        """Put everything back."""
        self.remove_calls()
        while self._undo:
            self._undo.pop()()

    def listen_to(self, owner: type[nn.Module]) -> None:
        """Listen to calls of one class only (torch.compile's wrapper, outside the graph)."""
        self._tap(owner, "__call__", self._call)

    def _call(self, original: Callable[..., Any]) -> Callable[..., Any]:
        state, listener = self.calls, self._listener

        # Inside a call that nobody wants to hear of, what is asked is asked for each module. Dynamo
        # takes its question for answered: the next one would make it guard what we answer.
        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            if is_dynamo_compiling():
                return original(*args, **kwargs)
            observer = state.observer
            if observer is None or not args or is_compiling():  # or the module is given by name
                return original(*args, **kwargs)
            if observer is not OUTSIDE:
                began = operations()
                result = original(*args, **kwargs)
                state.began = began
                limit = make_room()  # as in `in_room`, whose call each module would pay
                try:
                    observer(args[0], result)
                finally:
                    give_back(limit)
                return result
            limit = 0
            try:
                state.observer = None
                limit = make_room()
                passing = state.passing
                if passing is not None and passing.forward_starts(args[0]):
                    return original(*args, **kwargs)
                began = operations()
                listener.forward_starts(args[0], args[1:], kwargs)
                result = original(*args, **kwargs)
                if state.observer is not None:
                    state.began = began
                    state.observer(args[0], result)
                listener.forward_ended(args[0], result)
                return result
            except BaseException:
                listener.forward_failed()
                raise
            finally:
                state.observer = OUTSIDE
                give_back(limit)

        return call

    def _backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        state, listener = self.calls, self._listener

        @functools.wraps(original)
        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if graph_task() != -1:  # reentrant checkpointing calls backward inside backward
                return original(tensors, *args, **kwargs)
            passing = state.passing
            if passing is not None and passing.backward_starts(tensors):
                result = original(tensors, *args, **kwargs)
                if not passing.backward_ended():
                    in_room(listener.backward_ended)
                return result
            limit = make_room()
            try:
                listener.backward_starts(tensors)
                result = original(tensors, *args, **kwargs)
                listener.backward_ended()
                return result
            except BaseException:
                listener.backward_failed()
                raise
            finally:
                give_back(limit)

        return backward

    def _noting_compile(self, original: Callable[..., Any]) -> Callable[..., Any]:
        listener = self._listener

        @functools.wraps(original)
        def noting(*args: Any, **kwargs: Any) -> Any:
            listener.compiling()
            return original(*args, **kwargs)

        return noting

    def _swap(self, original: Callable[..., Any]) -> Callable[..., Any]:
        listener = self._listener

        @functools.wraps(original)
        def swap(t1: Any, t2: Any) -> Any:
            listener.swap_starts(t1, t2)
            try:
                return original(t1, t2)
            finally:
                listener.swap_ended(t1, t2)

        return swap

    def _scale(self, original: Callable[..., Any]) -> Callable[..., Any]:
        listener = self._listener

        @functools.wraps(original)
        def scale(self: Any, outputs: Any) -> Any:
            scaled = original(self, outputs)
            listener.loss_scaled(scaled, self)
            return scaled

        return scale

    def _scaler_step(self, original: Callable[..., Any]) -> Callable[..., Any]:
        listener = self._listener

        @functools.wraps(original)
        def step(self: Any, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
            in_room(listener.scaler_step_starts, optimizer)
            result = original(self, optimizer, *args, **kwargs)
            in_room(listener.scaler_step_ended, optimizer)
            return result

        return step


def in_graph_task() -> bool:
    """Whether this thread is inside a running backward pass."""
    return graph_task() != -1


def _is_nested(optimizer: Optimizer) -> bool:
    """Whether an optimizer's step is called by its own step: a subclass calls `super().step()`.

    Torch runs the hooks for each. Only the stack tells; a step that raises runs no hook at its end.
    """
    wrapper = _caller(_caller(inspect.currentframe()))  # runs the hook that asks
    frame = _caller(wrapper)
    while frame is not None and wrapper is not None:
        if frame.f_code is wrapper.f_code and frame.f_locals.get("self") is optimizer:
            return True
        frame = frame.f_back
    return False


def _caller(frame: types.FrameType | None) -> types.FrameType | None:
    return None if frame is None else frame.f_back
