"""`Case`: one model, one batch, and the loss between them, as the training has them."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer

from traindx.capture.undoing import random_state
from traindx.messages import Message, say
from traindx.preflight.losses import Calls as Calls
from traindx.preflight.losses import InOutput, Loss, Replayed, same
from traindx.preflight.samples import (
    Taking,
    bag_of,
    has_closed_bags,
    loose_tensors,
    positions,
    size_of,
)
from traindx.preflight.structures import like, mapped, once
from traindx.preflight.tape import LOSSES, Changed, Entry, Tape, losses_among

_NOTHING = Message("")


class DoesNotApplyError(Exception):
    """Why a probe has nothing to say of a case, in one line."""

    @property
    def reason(self) -> Message:
        """The line."""
        return self.args[0]


class Compared(NamedTuple):
    """One call of a known loss function.

    Attributes:
        function: Its name: `cross_entropy`, `mse_loss`, …
        prediction: What it was given first.
        target: What it was given second.
        options: Its other arguments by name.
        value: What it returned, with its graph.
    """

    function: str
    prediction: Tensor
    target: Tensor
    options: Mapping[str, Any]
    value: Tensor


@dataclass(frozen=True, slots=True)
class Loaders:
    """The data loaders that are visible where the training runs.

    Attributes:
        training: The one that gives the batch; None if none was seen.
        others: The others, by the names of their variables.
        tensors: Tensors in the program's variables, of many rows.
    """

    training: Any = None
    others: Mapping[str, Any] = field(default_factory=dict[str, Any])
    tensors: tuple[Tensor, ...] = ()


@dataclass(frozen=True, slots=True)
class Widths:
    """The same case in other widths.

    Attributes:
        argument: The argument that says how wide the model is.
        base: The width that it has.
        case: Makes the case of a width.
    """

    argument: str
    base: int
    case: Callable[[int], Case]


@dataclass(frozen=True, slots=True)
class Case:
    """What the probes look at.

    Attributes:
        model: The model; where a training calls several, they are its children.
        name: Its name in the run.
        args: The arguments it is called with; of several calls, all that goes into them.
        kwargs: The keyword arguments.
        loss_found: The loss as a function of the output; None if there is none.
        why_no_loss: Why there is none; empty if there is one.
        optimizer: The optimizer that is about to step; None if there is none.
        loaders: The data loaders.
        compiled: Whether torch.compile runs it; the probes run it without.
        training: The mode it was called in.
        autocast: The autocast regions it was called in.
        score: What calls it; None where that is a plain call.
        wide: Whether it is a copy in float64.
        widths: The same in other widths; None if nothing can make them.
        graded: Ids of the parameters that some backward pass of the program reaches.
        axis: Where arguments of two and more axes have their samples: 1 if time comes first.
    """

    model: nn.Module
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict[str, Any])
    loss_found: Loss | None = None
    why_no_loss: Message = _NOTHING
    optimizer: Optimizer | None = None
    loaders: Loaders = Loaders()
    compiled: bool = False
    training: bool = True
    autocast: tuple[tuple[str, torch.dtype], ...] = ()
    score: Calls | None = None
    wide: bool = False
    widths: Widths | None = None
    graded: frozenset[int] = frozenset()
    axis: int = 0

    # -- running it ------------------------------------------------------------------------------

    def output(self, args: Sequence[Any] | None = None, kwargs: Any = None) -> Any:
        """Run the model on its batch, or on another, as the training does."""
        given = self.args if args is None else tuple(args)
        named = self.kwargs if kwargs is None else dict(kwargs)
        with ExitStack() as stack:
            for device, dtype in self.autocast:
                stack.enter_context(torch.autocast(device, dtype=dtype, cache_enabled=False))
            if self.score is not None:
                return self.score.outputs(given)
            return self.model(*given, **named)

    def loss_of(self, output: Any) -> Tensor:
        """The scalar given to backward, as a function of the model's output."""
        if self.loss_found is None:
            raise DoesNotApplyError(self.why_no_loss or say("no loss was found"))
        return self.loss_found.of(output)

    def loss(self) -> Tensor:
        """The loss of the batch."""
        return self.loss_of(self.output())

    def compared(self, output: Any) -> list[Compared]:
        """The calls of known loss functions in the loss of an output, in order."""
        tape = Tape()
        with tape:
            self.loss_of(output)
        own = [compared_of(entry) for entry in losses_among(tape.entries)]
        if not own:  # the model may hold its loss: then it is called within
            own = self._within()
        return [one for one in own if one is not None]

    def terms(self) -> list[Compared]:
        """The calls of known loss functions in the loss of a new pass, in order."""
        found = self.loss_found
        inside = isinstance(found, InOutput)
        if isinstance(found, Replayed):
            inside = not losses_among(found.score.entries)
        if not inside:
            return self.compared(self.output())
        return [one for one in self._within() if one is not None]

    def _within(self) -> list[Compared | None]:
        """The calls of known loss functions inside the model, of a new pass."""
        tape = Tape()
        with tape:
            self.output()
        return [compared_of(entry) for entry in losses_among(tape.entries)]

    # -- what it is ------------------------------------------------------------------------------

    @property
    def batch_size(self) -> int | None:
        """Samples of the batch: those of an argument, the one that a target agrees with.

        Without such a target, of the first tensor argument; None if there is none.
        """
        closed = has_closed_bags(self.model)
        return size_of([self.args, self.kwargs], self.targets, self.axis, closed=closed)

    @property
    def targets(self) -> tuple[Tensor, ...]:
        """The tensors besides the output that go into the loss."""
        own = {id(param) for param in self.model.parameters()}
        found = self.loss_found.targets() if self.loss_found is not None else []
        return tuple(tensor for tensor in found if id(tensor) not in own)

    @property
    def device(self) -> torch.device:
        """Where its first parameter lies."""
        first = next(self.model.parameters(), None)
        return torch.device("cpu") if first is None else first.device

    def trainable(self) -> list[tuple[str, nn.Parameter]]:
        """Its parameters that take gradients, by their dotted paths."""
        return [(fqn, param) for fqn, param in self.model.named_parameters() if param.requires_grad]

    # -- others like it --------------------------------------------------------------------------

    def with_args(self, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None) -> Case:
        """The same with another batch; its targets stay."""
        return replace(
            self, args=tuple(args), kwargs=dict(self.kwargs if kwargs is None else kwargs)
        )

    def subset(self, n: int) -> Case:
        """The first `n` samples.

        Raises:
            DoesNotApplyError: The batch has no samples, or the loss does not follow.
        """
        size = self.batch_size
        if size is not None and n >= size:
            return self
        return self.take(torch.arange(n))

    def take(self, index: Tensor) -> Case:
        """Some samples of the batch, by their places.

        Raises:
            DoesNotApplyError: The batch has no samples, or the loss does not follow.
        """
        size = self.batch_size
        if size is None:
            raise DoesNotApplyError(say("the batch has no axis of samples"))
        given = [list(self.args), dict(self.kwargs)]
        loose = [tensor for tensor in loose_tensors(given) if tensor.dim()]
        steps = next((t.shape[0] for t in loose if t.dim() > 1), 0) if self.axis else 0
        bag = bag_of(self.model, given, size)
        each = () if self.axis else positions(loose, size)
        taking = Taking(index, size, self.axis, steps, bag, each)
        if not all(taking.fits(tensor) for tensor in loose):
            raise DoesNotApplyError(say("an input has no row for each of the {n} samples", n=size))
        case = self._changed(taking, None)
        if self.loss_found is not None:
            case._must_follow(len(index))
        return case

    def _must_follow(self, samples: int) -> None:
        """The loss of some samples must be one: a program may have written their number down."""
        from traindx.preflight.comparing import loss_again

        undo = random_state()
        try:
            loss_again(self)
        except DoesNotApplyError:
            raise
        except Exception as error:
            raise DoesNotApplyError(
                say(
                    "the loss of {n} samples alone cannot be computed: {error}",
                    n=samples,
                    error=f"{type(error).__name__}: {error}",
                )
            ) from error
        finally:
            undo()

    def copy(self) -> Case:
        """With a copy of the model, which has no optimizer.

        Raises:
            DoesNotApplyError: The model cannot be copied.
        """
        return self._copied(same)

    def double(self) -> Case:
        """With a copy of model, batch and targets in float64; without autocast and optimizer.

        Raises:
            DoesNotApplyError: The model cannot be copied, or is not computed in float64 then.
        """
        case = replace(self._copied(_wide), autocast=(), wide=True)
        case.model.double()
        if case.score is not None:
            case = replace(case, score=case.score.wider())
        if case.loss_found is not None and isinstance(case.loss_found, Replayed):
            case = replace(case, loss_found=replace(case.loss_found, wide=True))
        return case

    def _copied(self, change: Changed) -> Case:
        try:
            model = copy.deepcopy(self.model)
        except Exception as error:
            raise DoesNotApplyError(
                say("the model cannot be copied: {error}", error=f"{type(error).__name__}: {error}")
            ) from error
        pairs = zip(self.model.modules(), model.modules(), strict=True)
        modules = {id(old): new for old, new in pairs}
        params = zip(self.model.parameters(), model.parameters(), strict=True)
        own: dict[int, Tensor] = {id(old): new for old, new in params}

        def changed(tensor: Tensor) -> Tensor:
            return own[id(tensor)] if id(tensor) in own else change(tensor)

        return replace(self._changed(once(changed), modules), model=model, optimizer=None)

    def _changed(self, change: Changed, modules: Mapping[int, nn.Module] | None) -> Case:
        return replace(
            self,
            args=tuple(mapped(list(self.args), change)),
            kwargs=mapped(dict(self.kwargs), change),
            loss_found=self.loss_found and self.loss_found.changed(change, modules),
            score=self.score and self.score.changed(change, modules),
        )


def _wide(tensor: Tensor) -> Tensor:
    return like(tensor.detach().double(), tensor) if tensor.is_floating_point() else tensor


def compared_of(entry: Entry) -> Compared | None:
    """A call of a known loss function as what it compares; None if that is no pair of tensors."""
    assert entry.function in LOSSES
    named = inspect.signature(entry.function).bind(*entry.args, **entry.kwargs).arguments
    first, second = list(named)[:2]
    prediction, target = named.pop(first), named.pop("target" if second == "input2" else second)
    if not isinstance(prediction, Tensor) or not isinstance(target, Tensor):
        return None
    return Compared(entry.name, prediction, target, named, entry.result)
