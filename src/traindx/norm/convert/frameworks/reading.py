"""Layers in a tree of named arrays: what belongs together, and what it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from traindx.messages import Message, say
from traindx.norm.convert.content import Content, Name, dotted
from traindx.norm.convert.frameworks.framework import Found, Hints, spec_of_preset
from traindx.norm.convert.state import BIAS, MEAN, VAR, WEIGHT, NormState
from traindx.norm.spec import NormSpec

COUNTER = "num_batches_tracked"

Owned = Mapping[str, Name]
"""The arrays of one owner by the last part of their name."""


@dataclass(frozen=True, slots=True)
class Naming:
    """How a framework calls the arrays of a layer.

    Attributes:
        roles: What each leaf is.
        batch_norm: The preset of a layer with running statistics.
        kind_of: What a layer's name tells of its kind: a preset, or None.
        ambiguous: The leaf that alone makes a normalization likely.
        example: How the user names such a layer, in a hint.
    """

    roles: Mapping[str, str]
    batch_norm: str
    kind_of: Callable[[str], str | None]
    ambiguous: str
    example: str


def owners(names: Mapping[Name, Name]) -> dict[str, dict[str, Name]]:
    """Arrays by the path of their owner and their leaf; keys are paths in the model."""
    found: dict[str, dict[str, Name]] = {}
    for path, name in names.items():
        found.setdefault(dotted(path[:-1]), {})[path[-1]] = name
    return found


def read_tree(content: Content, names: Mapping[Name, Name], naming: Naming, hints: Hints) -> Found:
    """The layers of a tree.

    Args:
        content: The file.
        names: Its arrays: the path in the model, and the name in the file.
        naming: How they are called.
        hints: What the user says.
    """
    states: list[NormState] = []
    refused: dict[str, Message] = dict(content.refused)
    taken = 0
    tree = owners(names)
    for fqn in dict.fromkeys((*content.told, *tree)):
        owned = tree.get(fqn, {})
        known = _spec(content, fqn, owned, naming, hints)
        if isinstance(known, Message):
            refused[fqn] = known
        elif known is not None:
            states.append(_state(content, fqn, owned, naming, *known))
            taken += len(owned)
    return Found(states, refused, len(names) - taken)


def _spec(
    content: Content, fqn: str, owned: Owned, naming: Naming, hints: Hints
) -> tuple[NormSpec, tuple[str, ...]] | Message | None:
    """What an owner computes and what of it is assumed; why it is refused; or None."""
    if fqn in content.told:
        return content.told[fqn].spec, ()
    hint = hints(fqn)
    named = {naming.roles[leaf] for leaf in owned if leaf in naming.roles} - {COUNTER}
    if hint is not None and named:
        if {MEAN, VAR} & named and hint.spec.running is None:
            return say("it has running statistics, and a {kind} has none", kind=hint.spec.kind)
        return hint.spec, assumed(hint.spec, hint.given)
    if {MEAN, VAR} <= named:
        spec = spec_of_preset(naming.batch_norm)
        return spec, assumed(spec, ())
    if {MEAN, VAR} & named:
        return say("it has only one of running mean and running variance")
    if named - {WEIGHT, BIAS} or not _may_be_norm(content, owned, naming):
        return None
    kind = naming.kind_of(fqn)
    if kind is not None:
        spec = spec_of_preset(kind)
        return spec, assumed(spec, ())
    return say(
        "a LayerNorm, GroupNorm or RMSNorm, or none of them: the file does not tell. Name it, as "
        "`--layer 'NAME={example}'`, or leave it behind, with `--leave-out NAME`",
        example=naming.example,
    )


def assumed(spec: NormSpec, given: Sequence[str]) -> tuple[str, ...]:
    """Options of the defaults that decide what the layer computes."""
    wanted = ["eps", *(["momentum"] if spec.running else [])]
    wanted += ["num_groups"] if spec.groups is not None else []
    return tuple(key for key in wanted if key not in given)


def _may_be_norm(content: Content, owned: Owned, naming: Naming) -> bool:
    """A weight of one axis, and at most a bias of the same shape beside it."""
    if naming.ambiguous not in owned or not set(owned) <= set(naming.roles):
        return False
    shapes = {content.arrays[name].shape for name in owned.values()}
    return len(shapes) == 1 and all(len(s) == 1 and s[0] > 1 for s in shapes)


def _state(
    content: Content,
    fqn: str,
    owned: Owned,
    naming: Naming,
    spec: NormSpec,
    defaults: tuple[str, ...],
) -> NormState:
    arrays = {
        naming.roles[leaf]: content.read(name)
        for leaf, name in owned.items()
        if naming.roles.get(leaf, COUNTER) != COUNTER
    }
    if spec.running is None:
        arrays = {role: values for role, values in arrays.items() if role not in {MEAN, VAR}}
    batches = None
    if COUNTER in owned:
        counter = content.read(owned[COUNTER])
        whole = counter.size == 1 and counter.dtype.kind in "iu"
        batches = int(counter.flat[0]) if whole else None
    return NormState(fqn, spec, arrays, batches, defaults)
