"""A whole file of layers from one framework to another: carried, written, read again, proved."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from traindx.errors import UsageError
from traindx.messages import Message, listed, say
from traindx.norm.convert import proof
from traindx.norm.convert.carrying import Carried, Wish, carry, with_name
from traindx.norm.convert.frameworks import catalog
from traindx.norm.convert.frameworks.framework import Found, Framework, Hint
from traindx.norm.convert.mapping import is_left_out, renamed
from traindx.norm.convert.proof import Proof
from traindx.norm.convert.purpose import Purpose
from traindx.norm.convert.state import NormState, RefusedError, UnsoundError

_ASKED = 64
"""Layers that the frameworks are asked about, the first ones: each takes them milliseconds."""


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be done.

    Attributes:
        target: Where the layers go.
        wish: What must come through.
        renames: Old and new names, the first that fits first.
        left_out: Patterns of layers that stay behind.
        out: The new file; None writes none.
        frameworks: Whether installed frameworks are asked, too.
        dry: Whether only to say what would be done: nothing is written or proved.
    """

    target: Framework
    wish: Wish = field(default_factory=Wish)
    renames: Sequence[tuple[str, str]] = ()
    left_out: Sequence[str] = ()
    out: Path | None = None
    frameworks: bool = True
    dry: bool = False


@dataclass(frozen=True, slots=True)
class Conversion:
    """What became of each layer.

    Attributes:
        source: The framework they are from.
        target: The framework they go to.
        layers: Those that were carried.
        refused: Those that were not, each with the reason.
        left_out: Those that the user left behind.
        others: Arrays of other layers in the source.
        proofs: What was compared.
        unasked: Frameworks that could not be asked, with the reason.
        saved: The file written; empty if none was.
    """

    source: Framework
    target: Framework
    layers: Sequence[Carried]
    refused: Mapping[str, Message]
    left_out: Sequence[str]
    others: int
    proofs: Sequence[Proof] = ()
    unasked: Sequence[Message] = ()
    saved: str = ""


def convert(source: Framework, found: Found, order: Order) -> Conversion:
    """Carry every layer, write them, read the file again, and prove that they answer the same.

    Nothing is written where a layer is refused or not proved.

    Raises:
        UsageError: Nothing is to be done, numbers have no answer, two layers get one name, or the
            file cannot be written.
    """
    carried, refused, left_out = _all_carried(found, order)
    if not carried and not refused:
        raise UsageError(_nothing(found, left_out))
    _refuse_names(carried)
    made = Conversion(source, order.target, carried, refused, left_out, found.others)
    suffix = _suffix(order)
    if refused or order.dry:
        return made
    with _place(order.out, suffix) as part:
        try:
            order.target.writes(part, [one.after for one in carried])
        except OSError as error:
            raise _unwritten(order.out or part, error) from error
        except RefusedError as error:
            raise UsageError(say("It cannot be written: {why}.", why=error.reason)) from error
        return _proved(made, order, part)


def refuse_existing(path: Path) -> None:
    """Tell early that nothing can be saved there.

    Raises:
        UsageError: The file exists, or its folder does not.
    """
    if os.path.lexists(path):
        raise UsageError(say("`{file}` exists. Name a new file.", file=path))
    if not path.parent.is_dir():
        raise UsageError(say("There is no folder `{folder}`.", folder=path.parent))


def _all_carried(found: Found, order: Order) -> tuple[list[Carried], dict[str, Message], list[str]]:
    carried: list[Carried] = []
    left_out = [name for name in found.refused if is_left_out(name, order.left_out)]
    refused = {name: why for name, why in found.refused.items() if name not in left_out}
    for state in found.states:
        if is_left_out(state.name, order.left_out):
            left_out.append(state.name)
            continue
        try:
            one = carry(state, order.target, order.wish)
        except UnsoundError as error:
            name = state.name or "."
            text = say("`{name}` cannot be converted: {why}.", name=name, why=error.reason)
            raise UsageError(text) from error
        except RefusedError as error:
            refused[state.name] = error.reason
            continue
        name = order.target.names(renamed(state.name, order.renames))
        carried.append(with_name(one, name))
    return carried, refused, left_out


def _nothing(found: Found, left_out: Sequence[str]) -> Message:
    if left_out:
        return say("Every normalization layer was left out: there is nothing to convert.")
    return say(
        "There is no normalization layer to convert among {n} arrays. Of a file that names them "
        "otherwise, tell what they are with `--layer`.",
        n=found.others,
    )


def _refuse_names(carried: Sequence[Carried]) -> None:
    odd = next((one for one in carried if not _can_be_written(one.after.name)), None)
    if odd is not None:
        raise UsageError(
            say(
                "`{name}` is a name that no file can hold. Give the layer another one with "
                "`--rename OLD=NEW`.",
                name=ascii(odd.after.name)[1:-1],
            )
        )
    counts = Counter(one.after.name for one in carried)
    twins = [name for name, count in counts.items() if count > 1]
    if twins:
        raise UsageError(
            say(
                "Two layers would both be called {names}. Give them names of their own with "
                "`--rename OLD=NEW`.",
                names=listed(twins[:3]),
            )
        )


def _can_be_written(name: str) -> bool:
    """Half of a pair of UTF-16 has no bytes, and to several formats a name ends at a 0."""
    return "\0" not in name and name.encode("utf-8", "ignore").decode() == name


def _suffix(order: Order) -> str:
    """The ending of the file to write.

    Raises:
        UsageError: The framework does not read such files.
    """
    if order.out is None:
        return order.target.suffixes[0]
    for suffix in order.target.suffixes:
        if order.out.name.endswith(suffix):
            return suffix
    raise UsageError(
        say(
            "A file for {framework} ends in one of {suffixes}; got `{file}`.",
            framework=order.target.name,
            suffixes=listed(order.target.suffixes),
            file=order.out.name,
        )
    )


@contextmanager
def _place(out: Path | None, suffix: str) -> Generator[Path]:
    """A new file beside the one that is wanted, or in a folder of its own; it does not stay."""
    if out is None:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder) / f"layers{suffix}"
        return
    part = out.with_name(f".{os.getpid()}{suffix}")
    try:
        yield part
    finally:
        with suppress(OSError):
            part.unlink()


def _unwritten(file: Path, error: OSError) -> UsageError:
    reason = error.strerror or str(error)
    return UsageError(say("Cannot write `{file}`: {reason}.", file=file, reason=reason))


def _proved(made: Conversion, order: Order, part: Path) -> Conversion:
    again = _read_again(made, part)
    written = {state.name: state for state in again.states}
    layers = [_noted(one, again.refused.get(one.after.name)) for one in made.layers]
    proofs: list[Proof] = []
    refused: dict[str, Message] = {}
    unasked: list[Message] = []
    for seed, one in enumerate(layers):
        name = one.after.name
        if one.after.arrays and name not in written and name not in again.refused:
            refused[one.before.name] = say("the file that was written does not hold it")
            continue
        found = list(_proofs(made, order, one, written.get(name, one.after), seed))
        unasked += [each for each in found if isinstance(each, Message)]
        own = [each for each in found if isinstance(each, Proof)]
        proofs += own
        failed = next((each for each in own if not each.holds), None)
        if failed is not None:
            refused[one.before.name] = _unproved(failed, one)
    saved = ""
    if not refused and order.out is not None:
        try:
            part.replace(order.out)
        except OSError as error:
            raise _unwritten(order.out, error) from error
        saved = str(order.out)
    return replace(
        made,
        layers=layers,
        refused=refused,
        proofs=proofs,
        unasked=list(dict.fromkeys(unasked)),
        saved=saved,
    )


def _noted(one: Carried, unread: Message | None) -> Carried:
    if unread is None:
        return one
    note = say(
        "the file alone does not tell it again ({why}); proved is what was given to its writer",
        why=unread,
    )
    return replace(one, notes=(*one.notes, note))


def _read_again(made: Conversion, part: Path) -> Found:
    """The layers as the file has them; what it cannot tell is told to its reader."""
    if not any(one.after.arrays for one in made.layers):  # of settings alone, which are printed
        return Found(())
    every = ("eps", "momentum", "num_groups")
    hints = {one.after.name: Hint("", one.after.spec, every) for one in made.layers}
    return catalog.read(part, made.target.name, hints.get)[1]


def _proofs(
    made: Conversion, order: Order, one: Carried, after: NormState, seed: int
) -> Iterator[Proof | Message]:
    if order.wish.purpose is Purpose.TRAINING:
        trained = proof.of_training(one, after, order.wish, seed)
        if trained is not None:
            yield trained
            return
    yield proof.by_reference(one, after, seed)
    if order.frameworks and seed < _ASKED:
        asked = proof.by_frameworks(one, after, made.source, made.target, seed)
        if asked is not None:
            yield asked


def _unproved(failed: Proof, one: Carried) -> Message:
    if one.before.spec.kind == "SpectralNorm":
        return say(
            "its power iteration has not come to rest: Flax takes one more step in evaluation, and "
            "the weight would change by {difference:.3g}. Run it in training mode until it rests",
            difference=failed.difference,
        )
    return say(
        "by {by} its output would differ by {difference:.3g}, which is {excess:.3g} times what "
        "rounding allows: it is not given out",
        by=failed.by,
        difference=failed.difference,
        excess=failed.excess,
    )
