"""What a training of the matrix is, and everything that can be told of one afterwards.

A case is a function that builds a `Training`; `outcome` runs it and notes all that must be the same
with and without traindx, each number by its bits.
"""

from __future__ import annotations

import gc
import hashlib
import random
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef

from tests.capture.watched import Recording, watched

Step = Callable[[int], object]
Data = Callable[[int], tuple[Any, Any]]


@dataclass
class Training:
    """Something that trains.

    Attributes:
        step: One step of it, given its number; what it returns is compared.
        held: Models, optimizers, tensors, generators, lists: their state is compared at the end.
        steps: How many steps there are.
        within: Context managers the steps run in.
    """

    step: Step
    held: tuple[object, ...] = ()
    steps: int = 6
    within: tuple[Callable[[], Any], ...] = ()


@dataclass
class Case:
    """A training of the matrix, by name.

    Attributes:
        build: Builds it, after random numbers were seeded.
        slow: Whether it takes long.
        unseen: Why no step of it is counted, if none is.
        references: Whether module outputs can be followed in it by hooks on all modules.
        awaited: Whether a loss is never differentiated, for which the trap waits until the step.
    """

    build: Callable[[], Training]
    slow: bool = False
    unseen: str = ""
    references: bool = True
    awaited: bool = False

    @property
    def name(self) -> str:
        """The function's name."""
        return self.build.__name__


class Cases(dict[str, Case]):
    """The cases of one file, in order."""

    def __call__(self, **options: Any) -> Callable[[Callable[[], Training]], Callable[[], Any]]:
        """Add the decorated function."""

        def add(build: Callable[[], Training]) -> Callable[[], Training]:
            case = Case(build, **options)
            assert case.name not in self, case.name
            self[case.name] = case
            return build

        return add


# -- what most cases are made of -----------------------------------------------------------------


class Net(nn.Module):
    """Two linear layers, with a function of the layers and the input for a forward pass."""

    def __init__(self, way: Callable[[Any, Any], Any] | None = None, outputs: int = 3) -> None:
        super().__init__()
        self.first, self.last, self.way = nn.Linear(6, 8), nn.Linear(8, outputs), way

    def forward(self, x: Any) -> Any:
        return self.way(self, x) if self.way else self.last(F.relu(self.first(x)))


def batch(rows: int = 8, columns: int = 6, outputs: int = 3) -> tuple[Tensor, Tensor]:
    """Inputs and targets, the same whenever they are asked for."""
    generator = torch.Generator().manual_seed(rows)
    x = torch.randn(rows, columns, generator=generator)
    return x, torch.randn(rows, outputs, generator=generator)


def sgd(net: nn.Module, lr: float = 0.05) -> torch.optim.Optimizer:
    """What a case trains with if it is not about optimizers."""
    return torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9)


def plain(
    net: nn.Module,
    data: tuple[Any, Any] | Data | None = None,
    loss: Callable[[Any, Any], Any] = F.mse_loss,
    *,
    optimizer: Any = None,
    after: Callable[[int], object] | None = None,
    held: tuple[object, ...] = (),
    **options: Any,
) -> Training:
    """A plain loop, with something done after each step."""
    optimizer = optimizer or sgd(net)
    batches = batch() if data is None else data

    def step(i: int) -> object:
        optimizer.zero_grad()
        x, y = batches(i) if callable(batches) else batches
        value = loss(net(x), y)
        value.backward()
        optimizer.step()
        return value.detach(), after(i) if after else None

    return Training(step, (net, optimizer, *held), **options)


@contextmanager
def quiet() -> Iterator[None]:
    """Without torch's warnings that something is a prototype or deprecated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# -- what came of it -----------------------------------------------------------------------------


@dataclass
class Outcome:
    """All that must be the same with and without traindx.

    Attributes:
        steps: What each step returned or raised.
        state: Of models, optimizers and all else that the training holds, at the end.
        randomness: Of torch, numpy and Python.
        warnings: Which Python heard.
        alive: After each step, outputs of modules and gradients in memory, if that was asked for.
    """

    steps: list[object] = field(default_factory=list)
    state: list[object] = field(default_factory=list)
    randomness: object = None
    warnings: list[str] = field(default_factory=list)
    alive: list[list[str]] = field(default_factory=list)


def digest(value: Any) -> object:
    """A value by its bits, as something that can be compared and read."""
    match value:
        case Tensor():
            return _of_tensor(value)
        case float():
            return value.hex()
        case Mapping():
            return {str(key): digest(held) for key, held in value.items()}
        case list() | tuple():
            return [digest(held) for held in value]
        case torch.Generator():
            return digest(value.get_state())
        case np.random.Generator():
            return repr(value.bit_generator.state)
        case random.Random():
            return hash(value.getstate())
        case _ if hasattr(value, "state_dict"):
            return digest(value.state_dict())
        case _:
            return _without_addresses(repr(value))


def _of_tensor(tensor: Tensor) -> object:
    with torch._C.DisableTorchFunctionSubclass():
        tensor = tensor.detach()
        kind = str(tensor.dtype), str(tensor.layout), str(tensor.device)
        if tensor.is_nested:
            return [kind, *(digest(part) for part in tensor.unbind())]
        if tensor.is_meta:
            return [kind, list(tensor.shape)]
        if tensor.is_quantized:
            tensor = tensor.int_repr()
        if tensor.layout != torch.strided:
            tensor = tensor.to_dense()
        if tensor.is_complex():
            tensor = torch.view_as_real(tensor)
        entries = tensor.contiguous().reshape(-1).view(torch.uint8).numpy()
        return [kind, list(tensor.shape), hashlib.sha256(entries.tobytes()).hexdigest()[:16]]


def outcome(build: Callable[[], Training], *, references: bool = False) -> Outcome:
    """Build a training, run it and tell what came of it."""
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    done = Outcome()
    with warnings.catch_warnings(record=True) as heard, ExitStack() as stack:
        warnings.simplefilter("always")
        training = build()
        follow = stack.enter_context(Following()) if references else None
        for context in training.within:
            stack.enter_context(context())
        for i in range(training.steps):
            done.steps.append(_stepped(training, i))
            if follow is not None:
                done.alive.append(follow.alive())
    done.state = [digest(held) for held in training.held]
    done.randomness = [
        digest(torch.get_rng_state()),
        repr(np.random.get_state()),
        hash(random.getstate()),
    ]
    # Told apart, not counted: outside of these tests torch says each of its own once a process.
    done.warnings = sorted({_without_addresses(str(said.message)) for said in heard})
    return done


def _stepped(training: Training, i: int) -> object:
    try:
        return digest(training.step(i))
    except (Exception, KeyboardInterrupt) as error:
        return _without_addresses(repr(error))


def _without_addresses(text: str) -> str:
    return re.sub(r"\b0x[0-9a-f]+", "0x", text)


class Following:
    """Follows the memory of what modules are given and return, without keeping it alive.

    Collection of cycles is off meanwhile: what nobody refers to goes at once, or it is held.
    """

    def __init__(self) -> None:
        self._memory: list[tuple[str, StorageWeakRef]] = []
        self._hook: Any = None

    def __enter__(self) -> Following:
        gc.collect()
        gc.disable()
        self._hook = nn.modules.module.register_module_forward_hook(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        self._hook.remove()
        gc.enable()

    def alive(self) -> list[str]:
        """Of what was followed since the last time, all that is still in memory."""
        found = sorted(name for name, memory in self._memory if not memory.expired())
        self._memory = []
        return found

    def _called(self, module: nn.Module, given: Any, returned: Any) -> None:
        for what, held in (("input", given), ("output", returned)):
            for tensor in held if isinstance(held, tuple | list) else [held]:
                if isinstance(tensor, Tensor) and tensor.layout == torch.strided:
                    name = f"{what} of a {type(module).__name__}"
                    self._memory.append((name, StorageWeakRef(tensor.untyped_storage())))


def compared(case: Case, *, references: bool = False, **options: Any) -> Recording:
    """Assert that traindx changes nothing of a training and watches it to the end."""
    expected = outcome(case.build, references=references)
    with watched(**options) as recording:
        found = outcome(case.build, references=references)
    for part in ("steps", "state", "randomness", "warnings"):
        assert getattr(found, part) == getattr(expected, part), part
    # In the first two steps a model's last output is kept until backward, to describe the loss.
    assert found.alive[2:] == expected.alive[2:]
    return recording
