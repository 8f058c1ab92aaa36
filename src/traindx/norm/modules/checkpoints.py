"""Weights from and into files, without running anything that a file may hold.

`.safetensors` is read by its own library; everything else by torch with `weights_only`, which
builds tensors and plain containers only.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from traindx.errors import UsageError
from traindx.messages import Message, listed, say
from traindx.trial import described

_NESTED = ("state_dict", "model_state_dict", "model", "net", "module", "weights", "params")
"""Keys under which checkpoints commonly hold a model's state."""


def read(path: Path) -> dict[str, Tensor]:
    """The tensors of a checkpoint by name: its state, or the one it holds under a common key.

    Raises:
        UsageError: It is missing, damaged, holds other things than weights, or none.
    """
    content = _of_safetensors(path) if path.suffix == ".safetensors" else _of_torch(path)
    state = _state(content)
    if not state:
        raise UsageError(
            say(
                "`{file}` holds no weights: {content}. A state is `model.state_dict()`, itself or "
                "under `state_dict` or `model`.",
                file=path,
                content=_described(content),
            )
        )
    return state


def load_into(model: nn.Module, path: Path) -> None:
    """Give a model the weights of a checkpoint; every name and shape must be there.

    Raises:
        UsageError: The checkpoint cannot be read, or is of another model.
    """
    state = _unprefixed(read(path))
    wanted = model.state_dict()
    missing = [name for name in wanted if name not in state]
    foreign = [name for name in state if name not in wanted]
    other = [n for n, t in state.items() if n in wanted and t.shape != wanted[n].shape]
    if missing or foreign or other:
        raise UsageError(
            say(
                "`{file}` is of another model: {what}.",
                file=path,
                what=listed(
                    _few(text, names)
                    for text, names in (
                        (say("missing"), missing),
                        (say("not in the model"), foreign),
                        (say("of another shape"), other),
                    )
                    if names
                ),
            )
        )
    model.load_state_dict(state)


def refuse_existing(path: Path) -> None:
    """Tell early that nothing can be saved there.

    Raises:
        UsageError: The file exists, or its folder does not.
    """
    if os.path.lexists(path):
        raise UsageError(say("`{file}` exists. Name a new file.", file=path))
    if not path.parent.is_dir():
        raise UsageError(say("There is no folder `{folder}`.", folder=path.parent))


def save(model: nn.Module, path: Path) -> None:
    """Write a model's state where nothing is yet, or not at all: never a half.

    Raises:
        UsageError: The file exists, or cannot be written.
    """
    refuse_existing(path)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if path.suffix == ".safetensors":
            # The format refuses tensors that share memory, as tied weights do.
            own = {name: value.detach().clone() for name, value in model.state_dict().items()}
            _safetensors().save_file({n: v.contiguous() for n, v in own.items()}, str(part))
        else:
            torch.save(model.state_dict(), part)
        part.replace(path)
    except (OSError, RuntimeError) as error:
        with suppress(OSError):
            part.unlink()
        why = getattr(error, "strerror", None) or described(error)
        raise UsageError(say("Cannot write `{file}`: {reason}.", file=path, reason=why)) from error


def _of_torch(path: Path) -> object:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of how a file was pickled that is refused anyway
            return torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise UsageError(_unreadable(path, error.strerror or error)) from error
    except Exception as error:  # a hostile file can make the reader fail in any way
        raise UsageError(_unreadable(path, _refused(error))) from error


def _refused(error: Exception) -> Message:
    """What torch would not build: said in its words, without its advice to trust the file."""
    for line in str(error).splitlines():
        if "GLOBAL" in line or "nsupported class" in line or "nsupported global" in line:
            return say(
                "it holds more than weights, and nothing of it was run ({what})",
                what=line.strip().partition(". ")[0].rstrip(".")[:120],
            )
    return say("it is damaged, or no checkpoint of torch")


def _of_safetensors(path: Path) -> object:
    try:
        return _safetensors().load_file(str(path))
    except OSError as error:
        raise UsageError(_unreadable(path, error.strerror or error)) from error
    except UsageError:
        raise
    except Exception as error:  # its own error is no class of Python's
        raise UsageError(_unreadable(path, error)) from error


def _safetensors() -> Any:
    try:
        return import_module("safetensors.torch")
    except ImportError as error:
        text = say("A .safetensors file is read by the package safetensors. Install it.")
        raise UsageError(text) from error


def _state(content: object, depth: int = 3) -> dict[str, Tensor]:
    """The largest state within; a dict may hold itself, so that the depth is bounded."""
    if not isinstance(content, Mapping) or not depth:
        return {}
    entries = cast("Mapping[object, object]", content)
    own = {k: v for k, v in entries.items() if isinstance(k, str) and isinstance(v, Tensor)}
    for key in _NESTED:
        inner = _state(entries.get(key), depth - 1)
        if len(inner) > len(own):
            own = inner
    return own


def _unprefixed(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Without what DataParallel, DDP and torch.compile put before every name."""
    for prefix in ("module.", "_orig_mod."):
        if all(name.startswith(prefix) for name in state):
            state = {name.removeprefix(prefix): value for name, value in state.items()}
    return state


def _unreadable(path: Path, why: object) -> Message:
    return say("Cannot read `{file}`: {why}.", file=path, why=why)


def _few(what: Message, names: list[str]) -> Message:
    shown = listed(names[:3])
    if len(names) > 3:
        shown = say("{names} and {n} more", names=shown, n=len(names) - 3)
    return say("{what} {names}", what=what, names=shown)


def _described(content: object) -> Message:
    if isinstance(content, Mapping):
        keys = [str(key) for key in list(cast("Mapping[object, object]", content))[:5]]
        return say("a dict of {keys}", keys=listed(keys)) if keys else say("an empty dict")
    return say("a {kind}", kind=type(content).__name__)
