"""Which models are being trained: found as they are called, confirmed by the optimizer's steps."""

from __future__ import annotations

import sys
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, cast

from torch import Tensor, nn

from traindx.capture.given import Given
from traindx.capture.owners import Names, Owners, name_in_frames, unique
from traindx.capture.parts import Parts, own_children
from traindx.capture.threads import Token, this_thread
from traindx.facts import PathFacts

_COMPILED_PREFIX = "_orig_mod."
_Named = Iterable[tuple[str, nn.Module]]


class TrackedModel:
    """A model, held weakly: the names of its parts, and what was seen of it.

    Attributes:
        name: Unique name in the run.
        kind: Class name.
        confirmed: Whether it is known to be trained, and so is reported.
        called: Whether it was called with gradients enabled, or a loss depends on it.
        called_at: The last step in which such a call was seen.
        compiled: Whether torch.compile runs it.
        order: Position of each module's first call, by fqn.
        calls: Calls of each module in the round going on, by fqn.
        paths: Best backward path to each parameter, by fqn.
        thread: The thread that last called it, or differentiated a loss of it.
        fqns: The names by the modules' ids, as last learnt; equal if nothing has changed since.
        batch_size: First dimension of its first tensor argument in the last training forward.
        sample: The other dimensions.
    """

    def __init__(self, root: nn.Module, name: str) -> None:
        self._root = weakref.ref(root)
        self.name = name
        self.kind = type(unwrapped(root)).__name__
        self.confirmed = False
        self.called = False
        self.called_at: int | None = None
        self.compiled = is_compiled(root)
        self.order: dict[str, int] = {}
        self.calls: dict[str, int] = {}
        self.paths: dict[str, PathFacts] = {}
        self.batch_size: int | None = None
        self.sample: tuple[int, ...] = ()
        self.thread: Token | None = None
        self.fqns: dict[int, str] = {}
        self._parts: Parts | None = None
        self._learnt: Parts | None = None

    @property
    def root(self) -> nn.Module | None:
        """The module, None once it is gone."""
        return self._root()

    @property
    def training(self) -> bool:
        """The root's mode flag."""
        root = self.root
        return root is not None and root.training

    def called_here(self) -> None:
        """Note that the calling thread calls it, or trains it."""
        self.thread = this_thread()

    @property
    def is_of_this_thread(self) -> bool:
        """Whether no other thread called it last."""
        return self.thread in (None, this_thread())

    @property
    def is_elsewhere(self) -> bool:
        """Whether another living thread has it, which may be freeing its gradients any moment."""
        return self.thread is not None and self.thread.is_elsewhere

    def modules(self) -> Iterator[tuple[str, nn.Module]]:
        """Its modules by fqn, without torch.compile's wrapper."""
        if self._parts is not None:
            yield from self._parts.modules()
        elif (root := self.root) is not None:
            for name, module in cast("_Named", unwrapped(root).named_modules()):
                yield name.removeprefix(_COMPILED_PREFIX), module

    def parameters(self) -> list[tuple[str, Tensor]]:
        """Its parameters by fqn, a shared one once."""
        if self._parts is not None:
            return self._parts.parameters()
        root = self.root
        named = () if root is None else root.named_parameters()
        return [(name.removeprefix(_COMPILED_PREFIX), param) for name, param in named]

    def trainable(self) -> list[tuple[str, Tensor]]:
        """Its parameters that require a gradient."""
        return [named for named in self.parameters() if named[1].requires_grad]

    def mark(self) -> tuple[tuple[int, int], ...]:
        """What changes when a backward pass reaches it: gradients' identities and versions.

        Of the first and the last gradient, since a pass may reach only a part of a model.
        """
        grads = [grad for _, param in self.trainable() if (grad := param.grad) is not None]
        return tuple((id(grad), grad._version) for grad in (*grads[:1], *grads[-1:]))

    def refresh(self) -> None:
        """Learn the names of its modules again if any has been added, removed or replaced."""
        root = self.root
        if root is not None and self._learnt and self._learnt.are_those_of(unwrapped(root)):
            self._parts = self._learnt
            return
        self._parts = None
        modules = [*self.modules()]
        self.fqns = {id(module): fqn for fqn, module in modules}
        if root is not None and _is_plain(root):
            self._parts = self._learnt = Parts(modules)

    def part_with(self) -> None:
        """Look for its parts anew from now on, as long as it is not called: a step is over."""
        self._parts = None

    def fqn_of(self, module: nn.Module) -> str | None:
        """The fqn of one of its modules."""
        return self.fqns.get(id(module))

    def note_call(self, fqn: str) -> None:
        """Note that one of its modules was called."""
        if fqn not in self.order:
            self.order[fqn] = len(self.order)
        self.calls[fqn] = self.calls.get(fqn, 0) + 1

    def note_batch(self, batch: Tensor | None) -> None:
        """Note the extents of what it is given."""
        shape = () if batch is None or batch.is_nested else tuple(batch.shape)
        self.batch_size, self.sample = shape[0] if shape else None, shape[1:]


def _is_plain(root: nn.Module) -> bool:
    """Whether its parameters are called what a plain module calls them."""
    return cast(Any, type(root)).named_parameters is cast(Any, nn.Module).named_parameters


class LooseParameters(TrackedModel):
    """Trained tensors that no module holds, as one model without modules."""

    def __init__(self) -> None:
        super().__init__(nn.Module(), "parameters")
        self.kind = "tensors outside any module"
        self._params: dict[str, Callable[[], Tensor | None]] = {}
        self._away: dict[str, Tensor] = {}

    def adopt(self, param: Tensor, frame: types.FrameType | None) -> None:
        """Take a parameter, named by its variable where there is one."""
        name = name_in_frames(param, frame) or f"tensor{len(self._params)}"
        self._params[unique(name, self._params)] = weakref.ref(param)

    def let_go(self, tensors: Sequence[object]) -> None:
        """Refer to these no longer, not even weakly, until they are taken back."""
        for name, ref in self._params.items():
            tensor = ref()
            if tensor is not None and any(tensor is one for one in tensors):
                self._away[name] = tensor
        self._params.update(dict.fromkeys(self._away, _nothing))

    def take_back(self) -> None:
        """Know those again."""
        self._params.update({name: weakref.ref(tensor) for name, tensor in self._away.items()})
        self._away = {}

    def forget(self, ids: set[int] | None = None) -> None:
        """Know none any more, or none of these ids."""
        held = [] if ids is None else [*self._params.items()]
        self._params = {name: ref for name, ref in held if id(ref()) not in (ids or ())}

    def modules(self) -> Iterator[tuple[str, nn.Module]]:
        """It has none."""
        return iter(())

    def parameters(self) -> list[tuple[str, Tensor]]:
        """The tensors still alive."""
        held = [(name, ref()) for name, ref in self._params.items()]
        return [(name, param) for name, param in held if param is not None]


class Models:
    """Every model seen, by its root; of those given, if any were.

    Those that another living thread trains are there, but are not given out.

    Attributes:
        given: What the user has named, if anything.
    """

    def __init__(self, owners: Owners, given: Given) -> None:
        self._owners = owners
        self.given = given
        self._by_root: dict[int, TrackedModel] = {}
        self._of_module: dict[int, tuple[weakref.ref[nn.Module], TrackedModel | None]] = {}
        self._names = Names()
        self._loose: LooseParameters | None = None
        self._looked_up: tuple[int, list[int]] | None = None

    def __iter__(self) -> Iterator[TrackedModel]:
        models = [*self._by_root.values()]
        here = [m for m in models if m.root is not None and not m.is_elsewhere]
        return iter([*here, self._loose] if self._loose else here)

    def only(self) -> TrackedModel | None:
        """The model, if there is but one alive, and none that is left alone."""
        if len(self._by_root) > 1:
            self._bury()
        if len(self._by_root) != 1 or self._loose is not None or not self.given.alone:
            return None
        (model,) = self._by_root.values()
        return None if model.is_elsewhere else model

    @property
    def loose(self) -> LooseParameters | None:
        """The trained tensors that no module holds, if there are any."""
        return self._loose

    def confirmed(self) -> list[TrackedModel]:
        """The models known to be trained."""
        return [model for model in self if model.confirmed]

    def expect(self, modules: Sequence[nn.Module], frame: types.FrameType | None) -> None:
        """Know these before they are called, by the names of their variables."""
        for module in modules:
            name = name_in_frames(module, frame) or type(unwrapped(module)).__name__
            self.given.add(module, name)
            self._owners.learn(module)
        for module in modules:
            self.of(module, frame)

    def of(self, module: nn.Module, frame: types.FrameType | None) -> TrackedModel | None:
        """The model a module belongs to; None if it is not to be watched.

        So are modules without parameters, such as losses, and models other than those given.
        """
        known = self._of_module.get(id(module))
        if known is not None and known[0]() is module:
            return known[1]
        top = self._owners.top(module)
        if next(iter(top.parameters()), None) is None:
            return None  # asked again next time: lazy parameters may come
        model = self._holding(top)
        if model is None and self.given.admits(top):
            model = self._rooted_at(top, frame)
        self._of_module[id(module)] = (weakref.ref(module), model)
        return model

    def _holding(self, module: nn.Module) -> TrackedModel | None:
        """The known model that a module is a part of, though nobody registered it (a copy's)."""
        for model in self:
            if model.root is module or any(part is module for _, part in model.modules()):
                return model
        return None

    def _rooted_at(self, root: nn.Module, frame: types.FrameType | None) -> TrackedModel:
        self._bury()
        inner = unwrapped(root)
        name = self.given.name(inner) or self.given.name(root) or name_in_frames(root, frame)
        self._absorb(root)
        name = name or name_in_frames(inner, frame) or type(inner).__name__
        model = self._by_root[id(root)] = TrackedModel(root, self._names.new(name))
        return model

    def _bury(self) -> None:
        """Forget the models that are gone: one of hundreds must cost nothing once it is over.

        Their names stay taken, since something may have been written under each of them.
        """
        gone = [key for key, model in [*self._by_root.items()] if model.root is None]
        for key in gone:
            self._by_root.pop(key, None)  # another thread may have done so
        if gone:
            parts, left = [*self._of_module.items()], [None, *self._by_root.values()]
            alive = {key: it for key, it in parts if it[0]() is not None and it[1] in left}
            self._of_module, self._looked_up = alive, None

    def _absorb(self, root: nn.Module) -> None:
        """Drop the models that have become parts of a larger one."""
        for part in root.modules():
            model = self._by_root.get(id(part))
            if model is not None and model.root is part:
                self._drop(model, part)

    def trained_here(self, ids: set[int]) -> None:
        """The calling thread, which is not the one watched, trains the parameters of these ids."""
        for model in [*self._by_root.values()]:
            if any(id(param) in ids for _, param in model.parameters()):
                model.called_here()
        if self._loose is not None:
            self._loose.forget(ids)

    def drop_those_of_other_threads(self) -> None:
        """Forget the models that other threads call: their gradients may be freed any moment."""
        for model in list(self._by_root.values()):
            root = model.root
            if root is not None and not model.is_of_this_thread:
                self._drop(model, root)

    def _drop(self, model: TrackedModel, root: nn.Module) -> None:
        del self._by_root[id(root)]
        self._of_module = {
            key: known for key, known in self._of_module.items() if known[1] is not model
        }
        self._looked_up = None
        if not model.confirmed:  # nothing was written under its name
            self._names.give_back(model.name)

    def places(
        self, params: list[Tensor], frame: types.FrameType | None
    ) -> list[tuple[TrackedModel, str, Tensor]]:
        """The model and fqn of each parameter an optimizer holds.

        A parameter that no called or living module holds is not placed, unless it has a gradient:
        then it is a tensor trained outside any module.
        """
        looked_up = self._owners.registrations, [*map(id, params)]
        if looked_up != self._looked_up:  # nothing new can be found out about them otherwise
            holders = [self._owners.holder(param) for param in params]
            for holder in {id(holder): holder for holder in holders if holder is not None}.values():
                self.of(holder, frame)
            self._looked_up = looked_up
        known = self._known()
        if unknown := [param for param in params if id(param) not in known]:
            for param in unknown:
                if param.grad is not None:
                    self._adopt(param, frame)
            known = self._known()
        return [(*known[id(param)], param) for param in params if id(param) in known]

    def confirm_reached(self) -> None:
        """Take the called models that have gradients for the ones in training."""
        for model in self:
            if model.called and any(param.grad is not None for _, param in model.trainable()):
                model.confirmed = True

    def reached(self, params: Iterable[Tensor], frame: types.FrameType | None) -> None:
        """A loss depends on these parameters: their models are called, whether seen or not."""
        known = self._known()
        for param in params:
            if id(param) in known:
                known[id(param)][0].called = True
            elif (holder := self._owners.holder(param)) is not None:
                if (model := self.of(holder, frame)) is not None:
                    model.called = True
                    known = self._known()
            else:
                self._adopt(param, frame)

    def _known(self) -> dict[int, tuple[TrackedModel, str]]:
        return {id(param): (model, fqn) for model in self for fqn, param in model.parameters()}

    def _adopt(self, param: Tensor, frame: types.FrameType | None) -> None:
        if self.given:
            self.given.pass_over()
            return
        if self._loose is None:
            self._loose = LooseParameters()
        self._loose.adopt(param, frame)


def _nothing() -> None:
    """What a weak reference to nothing gives."""


def confirm(places: Iterable[tuple[TrackedModel, str, Tensor]]) -> None:
    """Take the models of these parameters for models in training."""
    for model, _, _ in places:
        model.confirmed = True


def unwrapped(root: nn.Module) -> nn.Module:
    """The module inside torch.compile's wrapper."""
    children = own_children(root)
    inner = children["_orig_mod"] if "_orig_mod" in children else None  # noqa: SIM401  # scripted
    return root if inner is None else inner


def is_compiled(module: nn.Module) -> bool:
    """Whether torch.compile runs a module, through a wrapper or in place."""
    if getattr(module, "_compiled_call_impl", None) is not None:
        return True
    dynamo = sys.modules.get("torch._dynamo.eval_frame")  # never imported for the question alone
    return dynamo is not None and isinstance(module, dynamo.OptimizedModule)
