"""What is loaded into modules: names that fit, names that do not, and what was theirs already."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from torch import Tensor, nn

from traindx.capture.models import TrackedModel
from traindx.capture.overwritten import Overwritten
from traindx.capture.transfer import Part
from traindx.facts import Json
from traindx.records import Event, EventKind, Site

_DENSE = 4
"""Loads into a module at the start that are all looked at; then those whose number is 2^k."""
_NAMED = 4
"""Names that are told at most, and from which a prefix is guessed."""
_WRAPPERS = frozenset(
    ("module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "_forward_module")
)
"""Names under which torch and others hold the module that they wrap."""

Named = Mapping[str, Tensor]


@dataclass
class _Counted:
    """A module, and how often something was loaded into it."""

    module: weakref.ref[nn.Module]
    loads: int = 0


@dataclass(frozen=True, slots=True)
class _Load:
    """A load that is yet to be told, when its module turns out to be a part of a known model."""

    module: weakref.ref[nn.Module]
    detail: dict[str, Json] = field(default_factory=dict[str, Json])


class Loads:
    """Calls of `load_state_dict` that have returned."""

    def __init__(self) -> None:
        self._counts: dict[int, _Counted] = {}
        self._pending: list[_Load] = []
        self._found: list[Event] = []
        self._overwritten = Overwritten()

    def loaded(self, args: tuple[Any, ...], kwargs: dict[str, Any], keys: Any, step: int) -> None:
        """A state has been loaded, with these arguments and this result."""
        module, *given = args
        state = _argument("state_dict", given, 0, kwargs)
        if not isinstance(state, Mapping) or not self._looks_at(module):
            return
        assigns = bool(_argument("assign", given, 2, kwargs))
        named = {
            str(name): value
            for name, value in cast("Mapping[Any, object]", state).items()
            if isinstance(value, Tensor)
        }
        missing, unexpected = {*keys.missing_keys}, {*keys.unexpected_keys}
        detail = _compared(module, named, missing, unexpected, assigns=assigns)
        if not assigns:
            self._overwritten.loaded(module, named, step)
        if detail["parameters"]:
            self._pending.append(_Load(weakref.ref(module), {**detail, "at": step}))

    def _looks_at(self, module: nn.Module) -> bool:
        counted = self._counts.get(id(module))
        if counted is None or counted.module() is not module:
            counted = self._counts[id(module)] = _Counted(weakref.ref(module))
        counted.loads += 1
        return counted.loads <= _DENSE or not counted.loads & (counted.loads - 1)

    def place(self, models: Iterable[TrackedModel], step: int) -> None:
        """Look for the modules loaded into among the parts of the models known by now."""
        if not self._pending:
            return
        parts = {
            id(part): (part, Site(model.name, fqn))
            for model in models
            for fqn, part in model.modules()
        }
        waiting: list[_Load] = []
        for load in self._pending:
            module = load.module()
            part, site = parts.get(id(module), (None, None))
            if module is not None and part is module and site is not None:
                self._found.append(Event(step, EventKind.LOADED, site, load.detail))
            elif module is not None:
                waiting.append(load)
        self._pending = waiting

    def called(self, models: Iterable[TrackedModel], step: int) -> None:
        """Some model is called."""
        self._overwritten.called(models, step)

    def take(self) -> list[Part]:
        """What was found and has not been told."""
        found, self._found = self._found, []
        return [*found, *self._overwritten.take()]


def _argument(name: str, given: list[Any], at: int, kwargs: dict[str, Any]) -> Any:
    return kwargs.get(name, given[at] if len(given) > at else None)


def _compared(
    module: nn.Module, given: Named, missing: set[str], unexpected: set[str], *, assigns: bool
) -> dict[str, Json]:
    """How much of what was given is now in the module, and how much of the rest would fit."""
    params = dict(module.named_parameters(remove_duplicate=False))
    own = {**params, **dict(module.named_buffers(remove_duplicate=False))}
    left = {name: value for name, value in given.items() if name in unexpected}
    lacking = {name: value for name, value in own.items() if name in missing}
    used = len(given) - len(left)
    rename, fits = _renamed(lacking, left)
    same = 0 if assigns else sum(_is_same(own.get(name), value) for name, value in given.items())
    return {
        "parameters": len(params),
        "loaded": len(params.keys() - missing),
        "given": len(given),
        "used": used,
        "same": same,
        "missing": [*sorted(lacking)[:_NAMED]],
        "unexpected": [*sorted(left)[:_NAMED]],
        "fits": fits,
        "rename": rename,
    }


def _is_same(own: Tensor | None, given: Tensor) -> bool:
    """Whether both are the very same memory, so that loading copies it onto itself."""
    if own is None or own.is_meta or own.shape != given.shape or not own.numel():
        return False
    plain = all(
        type(each) in (Tensor, nn.Parameter) and not each.is_sparse for each in (own, given)
    )
    return plain and own.device == given.device and own.data_ptr() == given.data_ptr()


def _renamed(lacking: Named, left: Named) -> tuple[str, int]:
    """The change of names after which most of what is lacking is there: it, and how many.

    `-module.` takes a prefix off the given names, `+module.` adds it, and `-_orig_mod` drops a name
    that stands between others. Only tensors of one shape fit.
    """
    candidates = {name: _fitting(name, lacking, left) for name in _prefixes(lacking, left)}
    inner, wrapped = dict(_unwrapped(left)), dict(_unwrapped(lacking))
    common = sum(_alike(value, inner.get(name)) for name, value in wrapped.items())
    best = max(candidates, key=lambda name: candidates[name], default="")
    if common > candidates.get(best, 0):
        names = Counter(
            part for n in (*left, *lacking) for part in n.split(".") if part in _WRAPPERS
        )
        return f"-{names.most_common(1)[0][0]}" if names else "", common
    return best, candidates.get(best, 0)


def _prefixes(lacking: Named, left: Named) -> Iterator[str]:
    for name in sorted(lacking)[:_NAMED]:
        for other in left:
            if other.endswith(f".{name}"):
                yield f"-{other[: -len(name)]}"
            elif name.endswith(f".{other}"):
                yield f"+{name[: -len(other)]}"


def _fitting(rename: str, lacking: Named, left: Named) -> int:
    prefix = rename[1:]
    if rename.startswith("-"):
        return sum(_alike(value, left.get(prefix + name)) for name, value in lacking.items())
    return sum(_alike(value, lacking.get(prefix + name)) for name, value in left.items())


def _unwrapped(named: Named) -> Iterator[tuple[str, Tensor]]:
    for name, value in named.items():
        yield ".".join(part for part in name.split(".") if part not in _WRAPPERS), value


def _alike(one: Tensor, other: Tensor | None) -> bool:
    return other is not None and one.shape == other.shape
