"""One forward and backward pass of a model, listened to: what signal and gradient every layer has.

The gradient is that of <direction, output> for a random direction, so no loss is needed. The
model's weights, buffers, modes, gradients and random state are left as they were.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from traindx.errors import UsageError
from traindx.messages import say
from traindx.nested import tensors
from traindx.preflight.layers import layer_of
from traindx.preflight.links import Links
from traindx.preflight.measures import signal_of
from traindx.preflight.structures import mapped, named_tensors
from traindx.signal.layers import Pooled, Weighted
from traindx.signal.profile import Passage
from traindx.trial import called, described, unchanged

_WHOLE = (nn.MultiheadAttention,)
"""Modules that compute by themselves what their children are for."""


def passages(model: nn.Module, inputs: Sequence[object], *, seed: int = 0) -> list[Passage]:
    """Every call of a module without children, and the functions between them, in order.

    The model runs in the mode it is in: of BatchNorm and Dropout, training and evaluation differ.

    Args:
        model: Any model; its parameters take gradients, or nothing flows back.
        inputs: Its arguments; a dict alone is its keywords, if it has such.
        seed: Of the direction at the output, and of the model's own random numbers.

    Raises:
        UsageError: The model cannot be tried, fails on the batch, or makes nothing that a gradient
            can flow from.
    """
    with unchanged(model), uncompiled(), torch.enable_grad():
        cast(Any, torch).random.manual_seed(seed)
        recording = _Recording()
        with recording.listening(model):
            output = _differentiable(called(model, mapped(list(inputs), recording.given)))
        if not recording.heard:
            raise UsageError(
                say("No layer of the model makes real numbers of this batch. Give it more samples.")
            )
        recording.reaches(output)
        _flow_back(output, seed)
        return recording.passages


@contextmanager
def uncompiled() -> Generator[None]:
    """Run what `torch.compile` has wrapped as it was written: hooks are not for its tracer."""
    compiler = cast(Any, torch.compiler)
    with compiler.set_stance("force_eager") if hasattr(compiler, "set_stance") else nullcontext():
        yield


def _differentiable(output: object) -> Tensor:
    for _, tensor in named_tensors(output):
        if tensor.is_floating_point() and tensor.grad_fn is not None:
            return tensor
    raise UsageError(
        say(
            "The model's output takes no gradient. It needs to return a tensor of real numbers "
            "that depends on its parameters."
        )
    )


def _flow_back(output: Tensor, seed: int) -> None:
    generator = torch.Generator(device="cpu").manual_seed(seed)
    direction = torch.randn(output.shape, generator=generator, dtype=torch.float64, device="cpu")
    root = output.grad_fn
    assert root is not None, "chosen for it"
    leaves = _leaves(root)
    try:
        # Returned, and not added to the user's own gradients.
        torch.autograd.grad(output, leaves, direction.to(output), allow_unused=True)
    except RuntimeError as error:
        raise UsageError(
            say(
                "The gradient cannot flow back through the model: {error}. It needs to work with "
                "`torch.autograd.grad`.",
                error=described(error),
            )
        ) from error


def _leaves(root: Any) -> list[Tensor]:
    """Every tensor at the end of the graph."""
    found: list[Tensor] = []
    waiting, seen = [root], {root}
    while waiting:
        node = waiting.pop()
        found += [node.variable] if hasattr(node, "variable") else []
        for before, _ in node.next_functions:
            if before is not None and before not in seen:
                seen.add(before)
                waiting.append(before)
    return found


class _Recording:
    """Listens to a forward pass, and through it to the backward pass."""

    def __init__(self) -> None:
        self._noted: list[Passage] = []
        self._links = Links(self._noted)
        self._calls: Counter[str] = Counter()
        self._weights: dict[int, str] = {}
        self._entered: list[_Entry] = []
        self._backward: dict[tuple[int, str], float] = {}
        self._open: set[int] = set()

    @property
    def heard(self) -> bool:
        """Whether any module has been called."""
        return bool(self._calls)

    @property
    def passages(self) -> list[Passage]:
        """What has been heard."""
        return [self._with_gradients(i, passage) for i, passage in enumerate(self._noted)]

    def _with_gradients(self, index: int, passage: Passage) -> Passage:
        made = self._backward.get((index, "made"))
        given = self._backward.get((index, "given"))
        layer = passage.layer
        if isinstance(layer, Pooled) and made and given is not None:
            layer = replace(layer, backward=given / made)
        return replace(
            passage, layer=layer, open=index in self._open, gradient=made, gradient_in=given
        )

    def given(self, tensor: Tensor) -> Tensor:
        """A copy of an input; of real numbers one that takes gradients, to follow its way."""
        if not tensor.is_floating_point():
            return tensor.clone()  # the model may change it in place
        copy = tensor.detach().clone().requires_grad_().clone()
        self._links.starts(copy)
        return copy

    def reaches(self, output: Tensor) -> None:
        """The network's output, at which the gradient begins."""
        self._open = self._links.open(output.grad_fn)

    @contextmanager
    def listening(self, model: nn.Module) -> Generator[None]:
        """Hooks on every module without children, removed at the end."""
        handles: list[Any] = []
        for fqn, module in _leaf_modules(model):
            note = functools.partial(self._left, fqn)
            handles.append(module.register_forward_pre_hook(self._enters, with_kwargs=True))
            handles.append(module.register_forward_hook(note))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _enters(
        self, module: nn.Module, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> tuple[tuple[object, ...], dict[str, object]]:
        """Give the module a copy: it may work in place, and its input may be used elsewhere, too.

        Of a copy's copy, so that the first keeps the gradient of what came in.
        """
        first = args[0] if args else next(iter(kwargs.values()), None)
        if not (isinstance(first, Tensor) and first.is_floating_point()):
            self._entered.append(_Entry(module, None, None))
            return args, kwargs
        seen = first.clone()
        self._links.enters(seen)
        self._entered.append(_Entry(module, first, seen))
        if args:
            return (seen.clone(), *args[1:]), kwargs
        return (), {**kwargs, next(iter(kwargs)): seen.clone()}

    def _left(self, fqn: str, module: nn.Module, args: tuple[object, ...], output: object) -> None:
        del args
        entry = self._entered.pop()
        made = next(tensors(output), None)
        if made is None or not made.is_floating_point() or not made.numel():
            return
        self._calls[fqn] += 1
        passage = _passage(fqn, self._calls[fqn], entry, made, self._links)
        passage = self._tied(passage, module)
        index = len(self._noted)  # behind the functions between
        self._noted.append(passage)
        self._links.made(index, made)
        self._listen_back(index, "made", made)
        if entry.seen is not None:
            self._listen_back(index, "given", entry.seen)

    def _tied(self, passage: Passage, module: nn.Module) -> Passage:
        """Weights that the signal has met before are not independent of it."""
        matrices = [id(parameter) for parameter in module.parameters() if parameter.dim() > 1]
        met = next((self._weights[each] for each in matrices if each in self._weights), "")
        self._weights.update({each: passage.fqn for each in matrices if each not in self._weights})
        return replace(passage, tied=met, mixes=False) if met else passage

    def _listen_back(self, index: int, which: str, tensor: Tensor) -> None:
        def note(gradient: Tensor) -> None:
            self._backward[index, which] = float(gradient.double().square().mean())

        if tensor.requires_grad:
            cast(Any, tensor).register_hook(note)


def _leaf_modules(model: nn.Module) -> list[tuple[str, Any]]:
    """Modules that compute by themselves, what is inside them left out."""
    found: list[tuple[str, Any]] = []
    within: tuple[str, ...] = ()
    for fqn, module in cast("Iterable[tuple[str, nn.Module]]", cast(Any, model).named_modules()):
        if fqn.startswith(within):
            continue
        children = [name for name, _ in module.named_children() if name != "parametrizations"]
        if isinstance(module, _WHOLE) or not children:
            found.append((fqn, module))
            within = (*within, f"{fqn}." if fqn else "")
    return found


class _Entry(NamedTuple):
    """A call that has begun: its input, and the copy of it whose gradient tells."""

    module: nn.Module
    given: Tensor | None
    seen: Tensor | None


def _passage(fqn: str, call: int, entry: _Entry, made: Tensor, links: Links) -> Passage:
    module, given = entry.module, entry.given
    kind = type(module).__name__
    mixes = any(parameter.dim() > 1 for parameter in module.parameters())
    if given is None:
        reason = say("its input is not made of real numbers")
        return Passage(
            *(fqn, kind, call, None, reason, None, signal_of(made)), broken=reason, mixes=mixes
        )
    layer = layer_of(module, given, made)
    sources, broken = links.sources(given)
    known = not isinstance(layer, str)
    return Passage(
        fqn,
        kind,
        call,
        layer if known else None,
        "" if known else layer,
        signal_of(entry.seen if entry.seen is not None else given),
        signal_of(made),
        sources,
        broken,
        mixes=mixes or isinstance(layer, Weighted),
    )
