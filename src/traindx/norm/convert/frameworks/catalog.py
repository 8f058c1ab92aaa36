"""Every framework by its name, and which one a file is of."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from stat import S_ISREG
from typing import Any

from traindx.errors import UsageError
from traindx.messages import listed, say
from traindx.norm.convert.content import Content, unreadable
from traindx.norm.convert.formats import hdf5, msgpack, npz, onnx, safetensors
from traindx.norm.convert.formats import keras as keras_files
from traindx.norm.convert.formats import torch as torch_files
from traindx.norm.convert.frameworks import keras
from traindx.norm.convert.frameworks.framework import Found, Framework, Hints
from traindx.norm.convert.frameworks.keras import KERAS
from traindx.norm.convert.frameworks.linen import COLLECTIONS, LINEN
from traindx.norm.convert.frameworks.nnx import NNX
from traindx.norm.convert.frameworks.onnx import ONNX
from traindx.norm.convert.frameworks.torch import TORCH

FRAMEWORKS: Mapping[str, Framework] = {f.name: f for f in (TORCH, LINEN, NNX, KERAS, ONNX)}
_ONE_FRAMEWORK = {
    torch_files.SUFFIXES: (torch_files.read, TORCH),
    hdf5.SUFFIXES: (hdf5.read, KERAS),
    onnx.SUFFIXES: (onnx.read, ONNX),
}
_ANY_FRAMEWORK = {
    safetensors.SUFFIXES: safetensors.read,
    npz.SUFFIXES: npz.read,
    msgpack.SUFFIXES: msgpack.read,
}
_OF_TORCH = {"weight", "running_mean", "running_var", "num_batches_tracked"}
_OF_FLAX = {"scale", "mean", "var", "kernel", "value"}


def framework(name: str) -> Framework:
    """The framework of a name.

    Raises:
        UsageError: There is none.
    """
    if name not in FRAMEWORKS:
        known = listed(FRAMEWORKS)
        raise UsageError(say("A framework is one of {known}; got {name}.", known=known, name=name))
    return FRAMEWORKS[name]


def read(path: Path, source: str | None, hints: Hints) -> tuple[Framework, Found]:
    """The layers of a file, and the framework it is of.

    Raises:
        UsageError: It cannot be read, or nobody knows what wrote it.
    """
    if path.suffix in _suffixes():
        _refuse_odd(path)
    if path.suffix in keras_files.SUFFIXES:
        content, configs = keras_files.read(path)
        return KERAS, keras.read(content, hints, configs)
    for suffixes, (reader, own) in _ONE_FRAMEWORK.items():
        if path.suffix in suffixes:
            return own, own.reads(reader(path), hints)
    for suffixes, reader in _ANY_FRAMEWORK.items():
        if path.suffix in suffixes:
            content = reader(path)
            own = framework(source) if source else _by_names(content)
            return own, own.reads(content, hints)
    raise UsageError(
        say(
            "The file `{file}` needs an ending that tells its format: {known}.",
            file=path,
            known=listed(_suffixes()),
        )
    )


def _refuse_odd(path: Path) -> None:
    """What is not there, and what is no file: a pipe waits, and a device never ends."""
    try:
        regular = S_ISREG(path.stat().st_mode)
    except (OSError, ValueError) as error:
        raise unreadable(path, getattr(error, "strerror", None) or error) from error
    if not regular:
        raise unreadable(path, say("it is no regular file"))


def _suffixes() -> list[str]:
    groups: list[Any] = [*_ONE_FRAMEWORK, keras_files.SUFFIXES, *_ANY_FRAMEWORK]
    return [suffix for suffixes in groups for suffix in suffixes]


def _by_names(content: Content) -> Framework:
    """Who names arrays so."""
    if any(name[0] in COLLECTIONS for name in content.arrays):
        return LINEN
    leaves = {name[-1] for name in content.arrays}
    if leaves & _OF_TORCH:
        return TORCH
    if leaves & _OF_FLAX:
        return NNX
    raise UsageError(
        say(
            "The names in `{file}` are those of no framework that is known. Say whose they are, "
            "with `--from`.",
            file=content.path,
        )
    )
