"""`.keras`: a zip of a model's configuration and its weights.

The configuration is read as JSON and nothing in it is built, so no code of it can run. What Keras
itself opens only with `safe_mode=False` is refused.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

from traindx.errors import UsageError
from traindx.messages import say
from traindx.norm.arrays import Array
from traindx.norm.convert.content import Content, Name, unreadable
from traindx.norm.convert.formats import hdf5

SUFFIXES = (".keras",)
_CONFIG, _METADATA, _WEIGHTS = "config.json", "metadata.json", "model.weights.h5"
_LARGEST_CONFIG = 64 * 2**20
_LARGEST_WEIGHTS = 2**32
_PACKED = 16
"""Weights are noise, and hardly packed at all: what unpacks to more is made to harm."""
_DEEPEST = 64
VERSION = "3.15.1"


def read(path: Path) -> tuple[Content, dict[str, dict[str, Any]]]:
    """The variables of a model, and the configuration of each of its layers by name.

    Raises:
        UsageError: It is no such file, or holds code.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            infos = {info.filename: info for info in archive.infolist()}
            config = json.loads(_part(archive, infos[_CONFIG], _LARGEST_CONFIG))
            runs_code = _holds_code(config)
            weights = b"" if runs_code else _part(archive, infos[_WEIGHTS], _LARGEST_WEIGHTS)
    except OSError as error:
        raise unreadable(path, error.strerror or error) from error
    except UsageError:
        raise
    except Exception as error:  # a hostile file can make its reader fail in any way
        raise unreadable(path, say("it is damaged, or no model of Keras")) from error
    if runs_code:
        raise unreadable(
            path,
            say(
                "it holds a Lambda layer with code of its own, which Keras opens only without "
                "safe_mode; nothing of it was run. Save the model's weights alone"
            ),
        )
    found = hdf5.arrays_of(path, partial(io.BytesIO, weights))
    return Content(path, found), {layer["name"]: layer for layer in _layers(config)}


def _part(archive: zipfile.ZipFile, info: zipfile.ZipInfo, largest: int) -> bytes:
    packed = info.filename == _WEIGHTS and info.file_size > _PACKED * max(info.compress_size, 1)
    if packed or info.file_size > largest:
        raise ValueError("it unpacks to too much")
    with archive.open(info) as file:
        found = file.read(info.file_size + 1)
    if len(found) != info.file_size:
        raise ValueError("it unpacks to another size than it says")
    return found


def _nested(config: object, depth: int = 0) -> Iterator[dict[str, Any]]:
    """Every object of a configuration, outer ones first."""
    if depth > _DEEPEST:
        raise RecursionError
    if isinstance(config, dict):
        entries = cast("dict[str, Any]", config)
        yield entries
        for value in entries.values():
            yield from _nested(value, depth + 1)
    elif isinstance(config, list):
        for value in cast("list[Any]", config):
            yield from _nested(value, depth + 1)


def _holds_code(config: object) -> bool:
    """Whether there is what Keras keeps as bytes of a function."""
    return any(one.get("class_name") in {"__lambda__", "Lambda"} for one in _nested(config))


def _layers(config: object) -> Iterator[dict[str, Any]]:
    """What has a class, settings and a name: `class_name`, `name`, and its settings as `config`."""
    for one in _nested(config):
        settings = one.get("config")
        if isinstance(settings, dict) and isinstance(one.get("class_name"), str):
            own = cast("dict[str, Any]", settings)
            name = own.get("name", one.get("name"))
            if isinstance(name, str):
                yield {"class_name": one["class_name"], "name": name, "config": own}


# -- written --------------------------------------------------------------------------------------


def write(
    path: Path,
    layers: Mapping[Name, tuple[str, list[Array]]],
    made: Sequence[tuple[str, dict[str, Any], tuple[int | None, ...]]],
) -> None:
    """A model of layers side by side, each with an input of its own.

    Args:
        path: A new file.
        layers: The weights, as `.weights.h5` takes them.
        made: The class of each layer, its settings, and the shape of its input.
    """
    weights = io.BytesIO()
    hdf5.write_into(weights, layers)
    config = _model(made)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(_METADATA, json.dumps({"keras_version": VERSION}))
        archive.writestr(_CONFIG, json.dumps(config))
        archive.writestr(_WEIGHTS, weights.getvalue())


def _model(
    made: Sequence[tuple[str, dict[str, Any], tuple[int | None, ...]]],
) -> dict[str, Any]:
    layers: list[dict[str, Any]] = []
    inputs: list[list[Any]] = []
    outputs: list[list[Any]] = []
    for kind, settings, shape in made:
        name = settings["name"]
        feed = f"{name}_input"
        tensor = {"shape": list(shape), "dtype": "float32", "keras_history": [feed, 0, 0]}
        argument = {"class_name": "__keras_tensor__", "config": tensor}
        layers += [
            _entry("InputLayer", {"batch_shape": list(shape), "dtype": "float32", "name": feed}),
            _entry(kind, settings, [{"args": [argument], "kwargs": {}}]),
        ]
        inputs.append([feed, 0, 0])
        outputs.append([name, 0, 0])
    config = {
        "name": "normalization",
        "trainable": True,
        "layers": layers,
        "input_layers": inputs[0] if len(inputs) == 1 else inputs,
        "output_layers": outputs[0] if len(outputs) == 1 else outputs,
    }
    return {
        "module": "keras.src.models.functional",
        "class_name": "Functional",
        "config": config,
        "registered_name": "Functional",
    }


def _entry(
    kind: str, settings: dict[str, Any], nodes: Sequence[dict[str, Any]] = ()
) -> dict[str, Any]:
    return {
        "module": "keras.layers",
        "class_name": kind,
        "config": settings,
        "registered_name": None,
        "name": settings["name"],
        "inbound_nodes": list(nodes),
    }
