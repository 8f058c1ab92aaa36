"""One call of a model, with everything that it takes to make the very same call again."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree
from torch.utils._device import DeviceContext

from traindx.capture.models import TrackedModel
from traindx.capture.undoing import contents, generators_of_python, random_state
from traindx.messages import Message, say
from traindx.nested import tensors

_DEVICES = ("cpu", "cuda")


class _Held(NamedTuple):
    """A tensor argument, without the graph behind it."""

    alias: Tensor
    version: int
    needs_gradient: bool


class _Part(NamedTuple):
    """A module as it was before the call."""

    module: nn.Module
    attributes: dict[str, Any]
    buffers: dict[str, Tensor | None]


class KeptCall:
    """A training forward, kept until its step ends.

    Arguments are kept without their graphs, buffers as copies, outputs as what backward will be
    compared with. Nothing of the user's is changed.

    Attributes:
        model: The model.
        module: The module that was called, the model itself or one of its parts.
        outputs: The floating-point tensors it returned, without their graphs.
        nodes: Sequence numbers of the autograd nodes that made them.
        gradients: The gradient of the loss with respect to each output, once backward was there.
    """

    def __init__(
        self, model: TrackedModel, module: nn.Module, args: object, kwargs: object
    ) -> None:
        self.model = model
        self.module = module
        self.outputs: list[Tensor] = []
        self.nodes: list[int] = []
        self.gradients: dict[int, Tensor] = {}
        self._leaves: list[Any] = []
        self._spec: pytree.TreeSpec | None = None
        with suppress(RecursionError):  # what holds itself is kept by nobody
            leaves, self._spec = pytree.tree_flatten((args, kwargs))
            self._leaves = [_held(leaf) for leaf in leaves]
        self._parts = [_part(part) for part in module.modules()]
        self._params = [(param, param._version) for param in module.parameters()]
        self._autocast = [_autocast(device) for device in _DEVICES]
        self._device = _default_device()
        self._restore_random = random_state()

    def returned(self, output: object) -> None:
        """Note what it returned, and wait for the gradients."""
        for tensor in tensors(output):
            if tensor.is_floating_point():
                if tensor.grad_fn is not None:
                    hook = functools.partial(_note, weakref.ref(self), len(self.outputs))
                    cast(Any, tensor).register_hook(hook)
                    self.nodes.append(cast(Any, tensor.grad_fn)._sequence_nr())
                self.outputs.append(tensor.detach())

    @property
    def obstacle(self) -> Message:
        """Why the call cannot be made again as it was; empty if it can."""
        if any(param._version != version for param, version in self._params):
            return say("its parameters have changed since")
        if self._spec is None:
            return say("its input holds itself")
        held = (leaf for leaf in self._leaves if isinstance(leaf, _Held))
        if any(_version(it.alias) != it.version for it in held):
            return say("its input was changed in place after the call")
        return Message("")

    def arguments(self) -> tuple[Any, Any, list[Tensor]]:
        """Fresh copies of the arguments, and the leaves of those that need a gradient."""
        leaves: list[Tensor] = []

        def fresh(value: Any) -> Any:
            if not isinstance(value, _Held):
                return value
            tensor = value.alias.detach()
            if value.needs_gradient:
                leaves.append(tensor.requires_grad_())
            return tensor.clone()  # a model may change its input in place

        assert self._spec is not None, "there is no obstacle"
        args, kwargs = pytree.tree_unflatten([fresh(leaf) for leaf in self._leaves], self._spec)
        return args, kwargs, leaves

    @contextmanager
    def as_it_was(self) -> Generator[None]:
        """Inside, random state, buffers, attributes, modes and autocast are those of the call.

        Afterwards all is as before: buffers are exchanged and not written to, since a graph that
        waits for its backward may hold them.
        """
        with ExitStack() as stack:
            stack.callback(random_state())
            stack.callback(generators_of_python())
            for part in self._parts:
                stack.callback(contents(vars(part.module).values()))
                stack.callback(_attributes(part.module))
                _set_attributes(part.module, part.attributes, _copies(part.buffers))
            for autocast in self._autocast:
                stack.enter_context(autocast())
            if self._device is not None:  # in backward torch itself sets it aside
                stack.enter_context(self._device)
            stack.enter_context(torch.enable_grad())
            stack.enter_context(torch.autograd.set_detect_anomaly(False))
            self._restore_random()
            yield


def _note(kept: weakref.ref[KeptCall], i: int, gradient: Tensor | None) -> None:
    call = kept()
    if call is not None and gradient is not None:  # a graph may outlive its step
        call.gradients[i] = gradient


def _held(value: Any) -> Any:
    if type(value) not in (Tensor, nn.Parameter):
        return value
    return _Held(value.detach(), _version(value), value.requires_grad)


def _version(tensor: Tensor) -> int:
    return -1 if tensor.is_inference() else tensor._version


def _part(module: nn.Module) -> _Part:
    return _Part(module, dict(vars(module)), _copies(_buffers(module)))


def _buffers(module: nn.Module) -> dict[str, Tensor | None]:
    return cast(Any, module)._buffers


def _copies(buffers: dict[str, Tensor | None]) -> dict[str, Tensor | None]:
    return {k: None if it is None else it.detach().clone() for k, it in buffers.items()}


def _attributes(module: nn.Module) -> Callable[[], None]:
    """What gives a module back the attributes and buffers that it has now."""
    own, buffers = dict(vars(module)), dict(_buffers(module))
    return functools.partial(_set_attributes, module, own, buffers)


def _set_attributes(
    module: nn.Module, own: dict[str, Any], buffers: dict[str, Tensor | None]
) -> None:
    vars(module).clear()
    vars(module).update(own)
    _buffers(module).clear()
    _buffers(module).update(buffers)


def _default_device() -> torch.device | None:
    """Where tensors are made that are made nowhere in particular, if that has been set."""
    modes = cast("list[Any]", torch.overrides._get_current_function_mode_stack())  # pyright: ignore
    return next((mode.device for mode in modes[::-1] if isinstance(mode, DeviceContext)), None)


def _autocast(device: str) -> Callable[[], torch.autocast]:
    # The cache is the user's region's, and casts of the replay must not stay in it.
    enabled, dtype = torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)
    return functools.partial(
        torch.autocast, device, dtype=dtype, enabled=enabled, cache_enabled=False
    )
