"""Finds, in a training that runs, its model, batch, loss and optimizer, up to the first step."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer

from traindx.capture.losses import find_loss
from traindx.capture.manual import few_entries
from traindx.capture.models import is_compiled, unwrapped
from traindx.capture.owners import Owners, name_in_frames
from traindx.capture.taps import Args, Kwargs, Taps, in_graph_task
from traindx.messages import Message, say
from traindx.nested import holds_data
from traindx.preflight.ahead import Ahead, with_gradient, without_gradient
from traindx.preflight.case import Case
from traindx.preflight.loaders import SeenLoaders
from traindx.preflight.losses import Calls, Replayed
from traindx.preflight.structures import mapped, named_tensors
from traindx.preflight.tape import Entry, Score, Tape, autocasts, leading_to
from traindx.stats.measurable import in_transform


class _Call(NamedTuple):
    """A call of a model that is going on."""

    module: nn.Module
    args: Args
    kwargs: Kwargs
    copies: dict[int, tuple[Tensor, Tensor, int]]
    autocast: tuple[tuple[str, torch.dtype], ...]
    with_grad: bool


class Finder:
    """Listens to a training until its first step.

    Args:
        found: Told of the case, with everything put back as it was; it may raise.
    """

    def __init__(self, found: Callable[[Case], None]) -> None:
        self._found = found
        self._pid = os.getpid()
        self._taps = Taps(self)
        self._tape = Tape()
        self._tape.running = False
        self._owners = Owners()
        self._loaders = SeenLoaders()
        self._names: dict[int, str | None] = {}
        self._originals: dict[int, Tensor] = {}
        self._modes: dict[int, bool] = {}
        self._call: _Call | None = None
        self._last: Entry | None = None
        self._score: Score | None = None
        self._why = Message("")
        self._scales: dict[int, float] = {}
        self._before: tuple[nn.Module, object] | None = None
        self._stepping: Optimizer | None = None
        self._played = True
        self._ahead: Ahead | None = None
        self._foreign = False
        self.backwards = 0
        self.transformed = False

    # -- life ------------------------------------------------------------------------------------

    def arm(self) -> None:
        """Begin to listen; torch has just been imported."""
        self._taps.install()
        self._loaders.install()
        self._tape.__enter__()

    def disarm(self) -> None:
        """Stop listening, in whatever state the program is."""
        self._taps.remove()
        self._loaders.remove()
        _take_out(self._tape)
        self._tape.running = False

    @property
    def _elsewhere(self) -> bool:
        return os.getpid() != self._pid

    # -- forward ---------------------------------------------------------------------------------

    def forward_starts(self, module: nn.Module, args: Args, kwargs: Kwargs) -> None:
        """The outermost module of a forward pass is called."""
        if next(module.parameters(), None) is None or in_graph_task() or self._elsewhere:
            return
        if in_transform():
            self.transformed = True
            return
        if self._ahead is not None:
            return
        grad = torch.is_grad_enabled()
        if grad and self._played:  # what led to the last backward is no longer needed
            self._tape.entries = []
            self._originals = {}
            self._played = self._foreign = False
        if grad and id(module) not in self._names:
            self._names[id(module)] = name_in_frames(module, inspect.currentframe())
        self._foreign = self._foreign or (grad and _has_foreign_weights(module))
        given = named_tensors([list(args), dict(kwargs)]) if grad else []
        copies = {id(t): (t, t.detach().clone(), _version(t)) for _, t in given}
        _take_out(self._tape)
        self._call = _Call(module, args, dict(kwargs), copies, autocasts(), grad)

    def forward_ended(self, module: nn.Module, output: object) -> None:
        """It has returned."""
        call = self._returned(module)
        if call is None or not call.with_grad:
            return
        changed = {k: copy for k, (t, copy, version) in call.copies.items()
                   if _version(t) != version}  # fmt: skip
        self._originals.update(changed)
        self._modes[id(call.module)] = call.module.training
        self._tape.running = True
        self._last = Entry(module, tuple(call.args), call.kwargs, output, True, call.autocast)
        self._tape.entries.append(self._last)

    def forward_failed(self) -> None:
        """It has raised."""
        if self._call is not None:
            self._returned(self._call.module)

    def _returned(self, module: nn.Module) -> _Call | None:
        call, self._call = self._call, None
        if call is None or call.module is not module:
            return None
        _put_under(self._tape)
        return call

    # -- backward --------------------------------------------------------------------------------

    def backward_starts(self, tensors: object) -> None:
        """`backward` is called."""
        if self._elsewhere or self._ahead is not None:
            return
        self._note(tensors)
        if self._updated_by_hand():
            self._act(None)

    def _note(self, tensors: object) -> None:
        self.backwards += 1
        self._tape.running = False
        self._played = True
        loss = find_loss(tensors)
        self._score, self._why = None, Message("")
        if loss is None:
            self._why = say("`backward` was given no single number")
            return
        entries = leading_to(self._tape.entries, loss)
        if not any(entry.is_call for entry in entries):
            self._why = say("what lies between the model and its loss was not seen")
            return
        if self._foreign:
            self._why = say("the model is called with other weights than its own")
            return
        self._score = Score(tuple(entries), loss, self._scales.get(id(loss), 1.0))

    def backward_ended(self) -> None:
        """`backward` has returned."""
        if self._elsewhere or self._ahead is not None:
            return
        if self._stepping is not None:
            self._act(self._stepping)
        call = self._last
        if call is not None and self._before is None:
            module = cast(nn.Module, call.function)
            self._before = module, _entries(module)

    def backward_failed(self) -> None:
        """`backward` has raised."""

    def _updated_by_hand(self) -> bool:
        """Whether parameters have changed since the first backward, though no optimizer stepped.

        Their versions do not tell: a change of `param.data` raises none.
        """
        return self._before is not None and self._before[1] != _entries(self._before[0])

    def loss_scaled(self, scaled: object, scaler: object) -> None:
        """A GradScaler has multiplied a loss."""
        scale = getattr(scaler, "_scale", None)
        if isinstance(scaled, Tensor) and isinstance(scale, Tensor):
            self._scales[id(scaled)] = float(scale)

    # -- step ------------------------------------------------------------------------------------

    def step_starts(self, optimizer: Optimizer, /) -> None:
        """An optimizer is about to step; with a closure, backward comes within."""
        if self._elsewhere:
            return
        if self._ahead is not None:
            if self._ahead.is_enough():
                self.ended()
            return
        if self.backwards:
            self._act(optimizer)
        self._stepping = optimizer

    def step_ended(self, optimizer: Optimizer, /) -> None:
        """An optimizer has stepped."""
        self._stepping = None

    def _act(self, optimizer: Optimizer | None) -> None:
        case = self._case(optimizer)
        if case is None:
            return
        case = replace(case, graded=with_gradient(case))
        left = without_gradient(case)
        if left:
            _take_out(self._tape)
            self._ahead = Ahead(case, left)
            return
        self.disarm()
        self._found(case)

    def ended(self) -> None:
        """Nothing more is to be seen, or the program has ended."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            self.disarm()
            self._found(ahead.case())

    def _case(self, optimizer: Optimizer | None) -> Case | None:
        """The case as far as it was seen; None if no model was called."""
        score = self._score
        calls = [self._last] if score is None else score.calls
        first = next((call for call in calls if call is not None), None)
        if first is None:
            return None
        held = _held(optimizer)
        model, name, whole = self._model([c for c in calls if c is not None], held)
        case = Case(
            model=model,
            name=name,
            args=tuple(mapped(list(first.args), self._original)),
            kwargs=mapped(dict(first.kwargs), self._original),
            why_no_loss=self._why,
            optimizer=optimizer,
            loaders=self._loaders.found(inspect.currentframe()),
            compiled=any(is_compiled(cast(nn.Module, c.function)) for c in calls if c),
            training=self._modes.get(id(first.function), True),
            autocast=first.autocast if whole else (),
        )
        return case if score is None else _with_loss(case, score, whole, self._original)

    def _original(self, tensor: Tensor) -> Tensor:
        """A tensor as it was before a model changed it in place."""
        return self._originals.get(id(tensor), tensor)

    def _model(self, calls: list[Entry], held: set[int]) -> tuple[nn.Module, str, bool]:
        """The model, its name, and whether it is called itself and once."""
        modules = {id(call.function): cast(nn.Module, call.function) for call in calls}
        roots = [unwrapped(module) for module in modules.values()]
        if len(roots) == 1:
            (root,) = roots
            if len(calls) == 1 and held <= {id(param) for param in root.parameters()}:
                return root, self._name(next(iter(modules.values()))), True
        tops = {id(top): top for root in roots if (top := self._owners.top(root))}
        if len(tops) == 1:
            (top,) = tops.values()
            return top, self._name(top), False
        named = nn.ModuleDict()
        for root in roots:
            name = self._name(root).replace(".", "_")
            named[name if name not in named else f"{name}_{len(named)}"] = root
        return named, "+".join(named), False

    def _name(self, module: nn.Module) -> str:
        known = self._names.get(id(module)) or name_in_frames(module, inspect.currentframe())
        return known or type(unwrapped(module)).__name__

    # -- what else the taps tell -----------------------------------------------------------------

    def compiling(self) -> None:
        """torch.compile is used: dynamo must find module calls as they are."""
        self._taps.remove_calls()
        from torch._dynamo import OptimizedModule

        self._taps.listen_to(OptimizedModule)

    def optimizer_made(self, optimizer: Optimizer, /) -> None:
        """An optimizer has got its parameters."""

    def scaler_step_starts(self, optimizer: Optimizer, /) -> None:
        """A GradScaler is about to step an optimizer, or to skip it."""

    def scaler_step_ended(self, optimizer: Optimizer, /) -> None:
        """A GradScaler has stepped an optimizer, or skipped it."""

    def loaded(self, args: Args, kwargs: dict[str, object], keys: object) -> None:
        """Nothing."""

    def clipped(self, largest: object, norm: object) -> None:
        """Gradients have been clipped."""

    def swap_starts(self, first: object, second: object, /) -> None:
        """What two tensors hold is about to be exchanged."""

    def swap_ended(self, first: object, second: object, /) -> None:
        """That has been done, or has failed."""

    def child_registered(self, parent: nn.Module, name: str, child: nn.Module | None) -> None:
        """A module has got a child."""
        self._owners.child_registered(parent, name, child)

    def param_registered(self, module: nn.Module, name: str, param: Tensor | None) -> None:
        """A module has got a parameter."""
        self._owners.param_registered(module, name, param)


def _entries(module: nn.Module) -> list[list[float]]:
    """Some entries of each of its parameters that can be read."""
    readable = [p for p in module.parameters() if p.layout is torch.strided and holds_data(p)]
    return [cast(Any, few_entries(param)).tolist() for param in readable]


def _with_loss(case: Case, score: Score, whole: bool, original: Callable[[Tensor], Tensor]) -> Case:
    """The case with the loss that was seen, and with all its calls where there are several."""
    loss = Replayed.of_score(score)
    loss = replace(loss, leaves={key: original(leaf) for key, leaf in loss.leaves.items()})
    if whole:
        return replace(case, loss_found=loss)
    made = {id(t) for entry in score.entries for t in entry.made()}
    into = {id(t): t for call in score.calls for t in call.given() if id(t) not in made}
    own = {id(param) for param in case.model.parameters()}
    inputs = {key: original(t) for key, t in into.items() if key not in own}
    calls = Calls(score, tuple(inputs))
    return replace(
        case,
        args=tuple(inputs.values()),
        kwargs={},
        score=calls,
        loss_found=replace(loss, several=True),
    )


def _held(optimizer: Optimizer | None) -> set[int]:
    groups = [] if optimizer is None else optimizer.param_groups
    return {id(param) for group in groups for param in group["params"] if param.grad is not None}


def _has_foreign_weights(module: nn.Module) -> bool:
    """Whether it is called by `functional_call`, with tensors in the place of its parameters."""
    held = (vars(inner)["_parameters"] for inner in module.modules())
    each = (param for params in held for param in params.values())
    return any(param is not None and not isinstance(param, nn.Parameter) for param in each)


def _version(tensor: Tensor) -> int:
    return -1 if tensor.is_inference() else tensor._version


# -- torch's stack of modes ------------------------------------------------------------------------


def _take_out(mode: Any) -> None:
    """Take a mode out of this thread's stack; the others stay as they are."""
    above = _popped_down_to(mode)
    if above is not None:
        _push(above)


def _put_under(mode: Any) -> None:
    """Put a mode at the bottom of this thread's stack."""
    above = [_overrides()._pop_mode() for _ in _stack()]
    _push([*above, mode])


def _popped_down_to(mode: Any) -> list[Any] | None:
    if not any(one is mode for one in _stack()):
        return None
    above: list[Any] = []
    while (top := _overrides()._pop_mode()) is not mode:
        above.append(top)
    return above


def _push(above: list[Any]) -> None:
    for mode in reversed(above):
        _overrides()._push_mode(mode)


def _stack() -> list[Any]:
    return _overrides()._get_current_function_mode_stack()


def _overrides() -> Any:
    return torch.overrides
