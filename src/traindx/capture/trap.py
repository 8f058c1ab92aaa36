"""The trap for NaN (`--trap-nan`): replays the batch whose loss or gradient is not finite.

Every training forward of the step going on is kept with what it takes to make it again. If the
loss, or a gradient that backward has left, is not finite, the call is made once more before the
optimizer steps, operation by operation, until the first that gives what is not finite. Then the
trap has done its work, and keeps nothing more.

On another device than the CPU this waits for the device twice a step.
"""

from __future__ import annotations

import math
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor, nn

from traindx.capture.births import Birth, Calls, Operations, backward_birth, num_bad
from traindx.capture.kept import KeptCall
from traindx.capture.loss_births import LossPart
from traindx.capture.models import TrackedModel
from traindx.capture.taps import CallState
from traindx.facts import Json
from traindx.messages import say
from traindx.nested import holds_data, tensors
from traindx.records import Site

_MOST = 8
"""Calls kept at a time: of the micro-batches that no backward has followed yet."""

Tell = Callable[[Site, dict[str, Json]], None]


class Trap:
    """Waits for the first loss or gradient that is not finite.

    Args:
        tell: Told once where it was born, or why that is not known.
        calls: The taps' state, for the replay to go unnoticed.

    Attributes:
        armed: Whether it is waiting.
        compiled: Whether torch.compile is used, which cannot be looked into.
    """

    def __init__(self, tell: Tell, calls: CallState, *, armed: bool) -> None:
        self.armed = armed
        self.compiled = False
        self._tell = tell
        self._calls = calls
        self._kept: deque[KeptCall] = deque(maxlen=_MOST)
        self._called: KeptCall | None = None
        self._loss_part: LossPart | None = None

    def forward_starts(
        self, model: TrackedModel, module: nn.Module, args: object, kwargs: object
    ) -> None:
        """A model is called in training: keep the call."""
        if self.armed:
            self._called = KeptCall(model, module, args, kwargs)
            self._kept.append(self._called)

    def forward_ended(self, module: nn.Module, output: object) -> None:
        """The outermost call of a forward pass has returned."""
        called, self._called = self._called, None
        if called is not None and called.module is module:  # it may have raised instead
            called.returned(output)

    def forward_failed(self) -> None:
        """It has raised: there is no output to wait for."""
        if self._called is not None:
            self._kept.pop()
            self._called = None

    def backward_starts(self, loss: Tensor | None, models: Iterable[TrackedModel]) -> None:
        """A loss is about to be differentiated: it should be finite."""
        if not self.armed or loss is None:
            return
        outputs = {number for call in self._kept for number in call.nodes}
        self._loss_part = LossPart(loss, outputs)
        if not math.isfinite(float(loss.detach())):
            self._spring(models, self._forward)
        else:
            self._loss_part.watch_backward()

    def backward_ended(self, models: Iterable[TrackedModel], *, scaled: bool) -> None:
        """Gradients have been left: they should be finite, unless a GradScaler is at work."""
        if not self.armed:
            return
        models = list(models)
        if not scaled and any(not _finite(grads) for grads in _gradients(models)):
            self._spring(models, self._backward)
        for call in [call for call in self._kept if call.gradients]:
            self._kept.remove(call)
        self._forget_loss()

    def backward_failed(self) -> None:
        """`backward` has raised: there are no gradients to wait for."""
        self.round_ends()

    def round_ends(self) -> None:
        """The step is over: nothing of it is kept."""
        self._kept.clear()
        self._called = None
        self._forget_loss()

    def _forget_loss(self) -> None:
        if self._loss_part is not None:
            self._loss_part.forget()
            self._loss_part = None

    def _spring(
        self, models: Iterable[TrackedModel], search: Callable[[], tuple[KeptCall | None, Birth]]
    ) -> None:
        """Search once, tell, and rest; a failure of ours is told in place of an origin."""
        self.armed = False
        suspect = self._kept[-1].model if self._kept else next(iter(models), None)
        try:
            call, birth = self._searched(search)
            model = call.model if call is not None else suspect
            self._tell(Site(model.name if model else "", birth.fqn), birth.detail())
        except _UnknownError as unknown:
            self._tell(Site(suspect.name if suspect else ""), {"reason": str(unknown)})
        except Exception as error:  # of the user's model, which may not bear a second call
            name = type(error).__name__
            reason = say("the replay failed: {name}: {error}", name=name, error=str(error))
            self._tell(Site(suspect.name if suspect else ""), {"reason": str(reason)})
        self.round_ends()

    def _searched(
        self, search: Callable[[], tuple[KeptCall | None, Birth]]
    ) -> tuple[KeptCall | None, Birth]:
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            raise _UnknownError(say("of a distributed training, one rank cannot replay alone"))
        if not self._kept:
            raise _UnknownError(say("no call of a model was seen before it"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return search()

    def _forward(self) -> tuple[KeptCall | None, Birth]:
        for call in self._kept:
            if any(num_bad(output) for output in call.outputs):
                birth = self._replay(call).forward()
                if birth is not None:
                    return call, birth
        birth = self._loss_part.forward_birth() if self._loss_part else None
        if birth is None:
            raise _UnknownError(say("every output was finite, and the loss made by no operation"))
        return None, birth

    def _backward(self) -> tuple[KeptCall | None, Birth]:
        birth = self._loss_part.backward_birth() if self._loss_part else None
        if birth is not None:
            return None, birth
        for call in reversed(self._kept):
            if call.gradients and not any(num_bad(it) for it in call.gradients.values()):
                birth = self._replay(call).backward()
                if birth is not None:
                    return call, birth
        raise _UnknownError(say("the replay of the batch gave finite gradients"))

    def _replay(self, call: KeptCall) -> _Replay:
        if self.compiled or call.model.compiled:
            raise _UnknownError(say("torch.compile is used, and a replay cannot look inside"))
        return _Replay(call, self._calls)


class _UnknownError(Exception):
    """Why the origin is not known."""


class _Replay:
    """One call made again, watched operation by operation."""

    def __init__(self, call: KeptCall, state: CallState) -> None:
        if call.obstacle:
            raise _UnknownError(say("the call cannot be replayed: {why}", why=call.obstacle))
        self._call = call
        self._state = state
        self._seen = Calls()
        self._operations = Operations(self._seen)

    def forward(self) -> Birth | None:
        """Where its outputs have what is not finite from; None if it is there on purpose."""
        with self._call.as_it_was():
            outputs, _ = self._made_again()
            if not any(num_bad(output) for output in outputs):
                raise _UnknownError(say("the replay of the batch gave finite outputs"))
            return self._operations.birth(outputs)

    def backward(self) -> Birth | None:
        """Where its gradients stop being finite."""
        with self._call.as_it_was():
            outputs, leaves = self._made_again()
            pairs = [
                (output, self._call.gradients[i])
                for i, output in enumerate(outputs)
                if i in self._call.gradients and output.requires_grad
            ]
            params = [param for param in self._call.module.parameters() if param.requires_grad]
            results, gradients = [out for out, _ in pairs], [gradient for _, gradient in pairs]
            inputs = [*params, *leaves]
            return backward_birth(results, gradients, inputs, self._seen, self._operations)

    def _made_again(self) -> tuple[list[Tensor], list[Tensor]]:
        """The outputs of the call, and the leaves of its arguments."""
        model, module = self._call.model, self._call.module
        model.refresh()
        args, kwargs, leaves = self._call.arguments()
        self._note_given(args, kwargs)
        with ExitStack() as stack:
            stack.enter_context(cast(Any, torch)._C._EnableTorchFunction())  # as the user's call
            stack.callback(self._operations.restore_generators)
            stack.enter_context(_unnoticed(self._state))
            stack.enter_context(self._seen.followed(model.fqn_of))
            stack.enter_context(self._operations)
            output = module(*args, **kwargs)
        return [tensor for tensor in tensors(output) if tensor.is_floating_point()], leaves

    def _note_given(self, args: object, kwargs: object) -> None:
        """What is there before the call, and may not be finite."""
        model, module = self._call.model, self._call.module
        given = Birth("input", model.fqn_of(module) or "", "")
        for tensor in tensors((args, kwargs)):
            self._operations.holds(tensor, given)
        for fqn, param in model.parameters():
            owner, _, name = fqn.rpartition(".")
            self._operations.holds(
                param, replace(given, phase="parameter", fqn=owner, operation=name)
            )


@contextmanager
def _unnoticed(state: CallState) -> Generator[None]:
    """Inside, calls of modules in this thread are not told to the capture."""
    observer, state.observer = state.observer, None
    try:
        yield
    finally:
        state.observer = observer


def _gradients(models: Iterable[TrackedModel]) -> list[list[Tensor]]:
    """The gradients of models, in groups of one device and dtype."""
    groups: dict[tuple[torch.device, torch.dtype], list[Tensor]] = {}
    for model in models:
        for _, param in model.trainable():
            if (grad := param.grad) is None or not holds_data(grad):
                continue
            if grad.layout is torch.strided and grad.numel():
                groups.setdefault((grad.device, grad.dtype), []).append(grad.detach())
    return list(groups.values())


def _finite(gradients: list[Tensor]) -> bool:
    """Whether all are: their norms tell, and each element where a norm overflows."""
    norms = torch.stack(cast(Any, torch)._foreach_norm(gradients))
    return bool(norms.isfinite().all()) or not any(num_bad(gradient) for gradient in gradients)
