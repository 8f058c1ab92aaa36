"""What a program does with tensors between calling a model and calling `backward`, to do it again.

A loss is seldom one function: outputs are reshaped, terms are weighted, parameters are penalized.
The tape notes every torch function called in the open, outside of models, and can play them again
on another output of the model, on other targets, or in another precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import Tensor, nn

from traindx.preflight.calls import Call, Calls
from traindx.preflight.structures import holds_distribution, mapped, named_tensors, tensors

_RANDOM = {
    *("rand", "randn", "randint", "rand_like", "randn_like", "randint_like", "normal", "bernoulli"),
    *("multinomial", "randperm", "poisson"),
}
_CONSTANT = {*_RANDOM, "backward", "detach"}
"""Functions whose results are taken as they came: no gradient flows through them, and a loss must
be the same every time."""
_PRECISIONS = {"float", "half", "bfloat16"}
_DEVICES = ("cpu", "cuda")

Changed = Callable[[Tensor], Tensor]


@dataclass(frozen=True, slots=True, eq=False)
class Entry(Call):
    """One call that was made, of a torch function or of a model.

    Attributes:
        result: What it returned.
        with_grad: Whether autograd was on.
        autocast: Device and dtype of each autocast region it stood in.
        before: What a tensor that it changed in place held before; None if it changed none.
    """

    result: Any
    with_grad: bool = True
    autocast: tuple[tuple[str, torch.dtype], ...] = ()
    before: Tensor | None = None

    @property
    def is_call(self) -> bool:
        """Whether a model was called."""
        return isinstance(self.function, nn.Module)

    @property
    def changed(self) -> Tensor | None:
        """The tensor it works on in place."""
        return self.args[0] if self.before is not None else None

    def made(self) -> list[Tensor]:
        """The tensors that it made or changed."""
        changed = [self.changed] if self.changed is not None else []
        return [*tensors(self.result), *changed]

    def again(self, replace: Callable[[Tensor], Any], function: Callable[..., Any]) -> Any:
        """Call it once more with tensors replaced."""
        args = mapped(list(self.args), replace)
        kwargs = mapped(dict(self.kwargs), replace)
        with ExitStack() as stack:
            for device, dtype in self.autocast:
                stack.enter_context(torch.autocast(device, dtype=dtype, cache_enabled=False))
            return function(*args, **kwargs)


class Tape(Calls):
    """Notes the calls of torch functions, while it is running.

    Attributes:
        entries: The calls noted.
        running: Whether it notes any.
    """

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[Entry] = []
        self.running = True

    def answer(self, call: Call) -> Any:
        """Note it, if it makes or changes a tensor."""
        if not self.running:
            return call.run()
        before = _before(call)
        result = call.run()
        if before is not None or named_tensors(result):
            self.note(call.function, call.args, call.kwargs, result, before)
        return result

    def note(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        result: Any,
        before: Tensor | None = None,
    ) -> None:
        """Note a call."""
        grad = torch.is_grad_enabled()
        self.entries.append(Entry(function, args, kwargs, result, grad, autocasts(), before))


def autocasts() -> tuple[tuple[str, torch.dtype], ...]:
    """The autocast regions going on."""
    on = (device for device in _DEVICES if torch.is_autocast_enabled(device))
    return tuple((device, torch.get_autocast_dtype(device)) for device in on)


def _before(call: Call) -> Tensor | None:
    """What the tensor held that a function is about to change in place."""
    name = call.name
    inplace = name.endswith("_") and not name.endswith("__")
    if not (inplace or name == "__setitem__" or (name.startswith("__i") and name in _IN_PLACE)):
        return None
    target = call.args[0] if call.args else None
    return target.detach().clone() if isinstance(target, Tensor) else None


_IN_PLACE = {
    f"__i{name}__"
    for name in ("add", "sub", "mul", "div", "truediv", "pow", "and", "or", "xor", "floordiv")
}


# -- playing it again ------------------------------------------------------------------------------


def leading_to(entries: Sequence[Entry], loss: Tensor) -> list[Entry]:
    """The entries that a loss depends on, in order, as far as a model's output does, or gradients.

    What is neither, such as a target that is sliced or made one-hot, is a leaf as it was made.
    """
    needed, found = {id(loss)}, list[Entry]()
    for entry in reversed(_moving(entries)):
        if any(id(tensor) in needed for tensor in entry.made()):
            found.append(entry)
            needed.update(id(tensor) for tensor in entry.given())
    return found[::-1]


def _moving(entries: Sequence[Entry]) -> list[Entry]:
    """The entries whose results change with a model's output or with parameters."""
    moving: set[int] = set()
    found: list[Entry] = []
    for entry in entries:
        if not entry.with_grad or entry.name in _CONSTANT:
            continue
        follows = any(id(tensor) in moving for tensor in entry.given())
        made = entry.made()
        if not entry.is_call and _makes_leaves(made):
            continue
        if entry.is_call or follows or any(tensor.requires_grad for tensor in made):
            found.append(entry)
            moving.update(map(id, made))
    return found


def _makes_leaves(made: Sequence[Tensor]) -> bool:
    """Whether autograd begins at what was made: points that a loss differentiates by."""
    return bool(made) and all(tensor.is_leaf and tensor.requires_grad for tensor in made)


@dataclass(frozen=True, slots=True)
class Score:
    """The calls that lead to a loss, to be played again.

    Attributes:
        entries: They, in order, those of models among them.
        loss: What they made.
        scale: What the loss was multiplied by, to be divided out.
    """

    entries: tuple[Entry, ...]
    loss: Tensor
    scale: float = 1.0

    @property
    def calls(self) -> list[Entry]:
        """The calls of models."""
        return [entry for entry in self.entries if entry.is_call]

    def leaves(self) -> list[Tensor]:
        """The tensors that none of its entries made, each once, in the order of use."""
        made = {id(tensor) for entry in self.entries for tensor in entry.made()}
        given = [tensor for entry in self.entries for tensor in entry.given()]
        # What is changed in place was there before, unless an earlier entry made it.
        first = {id(t) for entry in self.entries for t in _changed_first(entry, self.entries)}
        leaves = {id(t): t for t in given if id(t) not in made or id(t) in first}
        return list(leaves.values())

    def outputs(
        self, replace: Changed, run: Callable[[Entry, tuple[Any, ...], dict[str, Any]], Any]
    ) -> list[Any]:
        """What each call of a model returns, on other tensors than it was given.

        Args:
            replace: What to put in the place of a leaf.
            run: Calls the model of an entry.
        """
        played = _Playing(replace)
        results: list[Any] = []
        for entry in _leading_to_calls(self.entries):
            if entry.is_call:
                args = tuple(mapped(list(entry.args), played.now))
                result = run(entry, args, mapped(dict(entry.kwargs), played.now))
                results.append(result)
                played.becomes(entry.result, result)
            else:
                played.play(entry)
        return results

    def of(self, outputs: Sequence[Any], replace: Changed, *, wide: bool = False) -> Tensor:
        """The loss of other outputs.

        Args:
            outputs: Of each call, in the structure it returned.
            replace: What to put in the place of a leaf.
            wide: Whether to keep the precision that tensors have where the program lowers it.
        """
        played = _Playing(replace, wide=wide)
        for entry, output in zip(self.calls, outputs, strict=True):
            played.becomes(entry.result, output)
        for entry in self.entries:
            if not entry.is_call:
                played.play(entry)
        loss = played.now(self.loss)
        return loss if self.scale == 1.0 else loss / self.scale


def _changed_first(entry: Entry, entries: Sequence[Entry]) -> list[Tensor]:
    """The tensor that an entry changes in place, if no earlier one made it."""
    changed = entry.changed
    if changed is None:
        return []
    for earlier in entries:
        if earlier is entry:
            return [changed]
        if any(tensor is changed for tensor in earlier.made()):
            return []
    return [changed]


def _leading_to_calls(entries: Sequence[Entry]) -> list[Entry]:
    """The calls of models, and what their arguments are made by; no part of a loss of one alone."""
    needed, found = set[int](), list[Entry]()
    for entry in reversed(entries):
        if entry.is_call or any(id(tensor) in needed for tensor in entry.made()):
            found.append(entry)
            needed.update(id(tensor) for tensor in entry.given())
    return found[::-1]


class _Playing:
    """The tensors that stand for those of the tape."""

    def __init__(self, replace: Changed, *, wide: bool = False) -> None:
        self._replace = replace
        self._wide = wide
        self._now: dict[int, Any] = {}

    def now(self, tensor: Tensor) -> Any:
        """What stands for a tensor."""
        if id(tensor) not in self._now:
            self._now[id(tensor)] = self._replace(tensor)
        return self._now[id(tensor)]

    def becomes(self, before: Any, after: Any) -> None:
        """Another result stands for an earlier one, tensor by tensor."""
        old, new = named_tensors(before), dict(named_tensors(after))
        if len(old) != len(new) and not holds_distribution(before):
            raise ValueError(f"the model returned {len(old)} tensors before, {len(new)} now")
        for path, was in old:  # a distribution has more of them once it was asked
            if path in new:
                self._now[id(was)] = new[path]

    def play(self, entry: Entry) -> None:
        """Do it again."""
        changed = entry.changed
        if changed is not None and id(changed) not in self._now:
            assert entry.before is not None
            self._now[id(changed)] = self._replace(entry.before).clone()
        if self._wide and _lowers_precision(entry):
            self.becomes(entry.result, self.now(entry.args[0]))
            return
        if self._wide:
            entry = replace(entry, autocast=())
        result = entry.again(self.now, entry.function)
        if entry.result is not None:
            self.becomes(entry.result, result)


def _lowers_precision(entry: Entry) -> bool:
    """Whether it is nothing but a conversion to a type of less precision."""
    if entry.name in _PRECISIONS:
        return True
    if entry.name not in ("to", "type"):
        return False
    given = [*entry.args[1:], *entry.kwargs.values()]
    return any(isinstance(one, torch.dtype) and one.is_floating_point for one in given)


def losses_among(entries: Iterable[Entry]) -> list[Entry]:
    """The calls of the losses of `torch.nn.functional` that compare a prediction with a target."""
    return [entry for entry in entries if _is_loss(entry.function)]


def _is_loss(function: Any) -> bool:
    return function in LOSSES


_NAMES = (
    *("cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"),
    *("binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div", "poisson_nll_loss"),
    *("gaussian_nll_loss", "hinge_embedding_loss", "multi_margin_loss", "multilabel_margin_loss"),
    *("multilabel_soft_margin_loss", "soft_margin_loss", "ctc_loss"),
    *("cosine_embedding_loss", "margin_ranking_loss"),
)
LOSSES: frozenset[Any] = frozenset(getattr(cast(Any, torch).nn.functional, name) for name in _NAMES)
"""Losses that are given a prediction, or two that are compared, then a target."""
