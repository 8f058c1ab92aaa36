"""Probing leaves no trace: everything a probe may touch is put back bit for bit, and hashed.

Held: parameters, buffers and tensors in attributes of modules, their gradients, which of them take
gradients, every attribute and plain container of a module (hooks and modes among them), the
optimizer's state and groups, the tensors of the batch, and the random state of Python, NumPy and
torch on every device.
"""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from traindx.capture.undoing import contents, generators_of_python, random_state
from traindx.preflight.case import Case
from traindx.preflight.structures import named_tensors


@contextmanager
def isolated(case: Case) -> Generator[None]:
    """Inside, anything may be done to the case; afterwards it is as before."""
    state = State(case)
    try:
        yield
    finally:
        state.restore()


class State:
    """All that a probe may touch, as it is when this is made."""

    def __init__(self, case: Case) -> None:
        self._tensors = [_Held.of(what, tensor) for what, tensor in _tensors(case)]
        self._params = [
            (fqn, param, param.requires_grad, param.grad)
            for fqn, param in case.model.named_parameters()
        ]
        self._modules = [(module, dict(vars(module))) for module in case.model.modules()]
        self._undo = [contents(vars(module).values()) for module in case.model.modules()]
        if case.optimizer is not None:
            self._undo += _optimizer(case.optimizer)
        self._undo.append(generators_of_python())
        self._random = random_state()
        self._grad, self._dtype = torch.is_grad_enabled(), torch.get_default_dtype()
        self._modes = self._described()

    @property
    def digest(self) -> str:
        """One hash of everything, as it was."""
        text = repr([(held.what, held.digest) for held in self._tensors] + self._modes)
        return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]

    def begin(self) -> None:
        """Give a probe a clean start: no gradients, and a seed of its own."""
        for _, param, _, _ in self._params:
            param.grad = None
        torch.set_grad_enabled(True)
        cast(Any, torch).manual_seed(0)
        random.seed(0)
        if "numpy" in sys.modules:
            cast(Any, sys.modules["numpy"]).random.seed(0)

    def restore(self) -> list[str]:
        """Put everything back; what differs all the same, which should be nothing."""
        for module, attributes in self._modules:
            vars(module).clear()
            vars(module).update(attributes)
        for undo in self._undo:
            undo()
        for held in self._tensors:
            held.restore()
        for _, param, requires_grad, grad in self._params:
            param.requires_grad_(requires_grad)
            param.grad = grad
        self._random()
        torch.set_grad_enabled(self._grad)
        torch.set_default_dtype(self._dtype)
        return self.differences()

    def differences(self) -> list[str]:
        """What is not as it was."""
        found = [held.what for held in self._tensors if not held.is_unchanged()]
        for name, was, now in zip(_ASPECTS, self._modes, self._described(), strict=True):
            if was != now:
                found.append(name)
        return found

    def _described(self) -> list[str]:
        """The rest, each as a text that is equal only if it is."""
        return [
            repr([param.requires_grad for _, param, _, _ in self._params]),
            repr([id(param.grad) for _, param, _, _ in self._params]),
            repr([module.training for module, _ in self._modules]),
            repr([sorted(map(str, vars(module))) for module, _ in self._modules]),
            _random_digest(),
        ]


_ASPECTS = ("requires_grad", "grad", "training", "attributes", "random state")


class _Held(NamedTuple):
    """A tensor, what it held, and the storage that it held it in."""

    what: str
    tensor: Tensor
    alias: Tensor
    copy: Tensor
    digest: str

    @classmethod
    def of(cls, what: str, tensor: Tensor) -> _Held:
        alias = tensor.detach()
        return cls(what, tensor, alias, alias.clone(), digest_of(alias))

    def is_unchanged(self) -> bool:
        return digest_of(self.tensor.detach()) == self.digest

    def restore(self) -> None:
        now = self.tensor.detach()
        moved = (now.data_ptr(), now.dtype, now.shape) != (
            self.alias.data_ptr(),
            self.alias.dtype,
            self.alias.shape,
        )
        if moved:
            self.tensor.data = self.alias
        if digest_of(self.alias) != self.digest:  # written only where it must be: it is a version
            with torch.no_grad():
                self.alias.copy_(self.copy)


def _tensors(case: Case) -> Iterator[tuple[str, Tensor]]:
    """Every tensor of the case that a probe may change, each once."""
    seen: set[int] = set()
    for what, tensor in _all(case):
        if id(tensor) not in seen and _holds_data(tensor):
            seen.add(id(tensor))
            yield what, tensor


def _all(case: Case) -> Iterator[tuple[str, Tensor]]:
    for fqn, param in case.model.named_parameters():
        yield fqn, param
        if param.grad is not None:
            yield f"{fqn}.grad", param.grad
    yield from case.model.named_buffers()
    named = cast("Iterable[tuple[str, nn.Module]]", cast(Any, case.model).named_modules())
    for fqn, module in named:
        for name, value in vars(module).items():
            if isinstance(value, Tensor):
                yield f"{fqn}.{name}", value
    yield from named_tensors({"args": list(case.args), "kwargs": dict(case.kwargs)})
    yield from ((f"target {i}", tensor) for i, tensor in enumerate(case.targets))
    if case.optimizer is not None:
        for i, state in enumerate(case.optimizer.state.values()):
            yield from ((f"optimizer {i}.{name}", t) for name, t in named_tensors(state))


def _holds_data(tensor: Tensor) -> bool:
    return not (tensor.is_meta or tensor.layout is not torch.strided or tensor.is_inference())


def _optimizer(optimizer: Any) -> list[Callable[[], None]]:
    groups = optimizer.param_groups
    states = list(optimizer.state.values())
    plain = [groups, *groups, *(group["params"] for group in groups), optimizer.state, *states]
    return [contents([one]) for one in plain]


def digest_of(tensor: Tensor) -> str:
    """A hash of every bit of a tensor, its shape and its type."""
    flat = tensor.detach().reshape(-1).contiguous().cpu()
    found = hashlib.blake2b(repr((tensor.dtype, tuple(tensor.shape))).encode(), digest_size=16)
    if flat.numel():
        found.update(_bytes(flat))
    return found.hexdigest()


def _bytes(flat: Tensor) -> memoryview:
    """The memory of a one-dimensional tensor on the host."""
    return memoryview(cast(Any, flat.view(torch.uint8).numpy()))


def _random_digest() -> str:
    """A hash of every random state."""
    found = hashlib.blake2b(repr(random.getstate()).encode(), digest_size=16)
    found.update(_bytes(torch.get_rng_state()))
    numpy = getattr(sys.modules.get("numpy"), "random", None)
    if numpy is not None:
        found.update(repr(numpy.get_state()).encode())  # its array in short: the position tells
        found.update(numpy.get_state()[1].tobytes())
    if torch.cuda.is_initialized():
        for generator in torch.cuda.default_generators:
            found.update(_bytes(generator.get_state()))
    return found.hexdigest()
