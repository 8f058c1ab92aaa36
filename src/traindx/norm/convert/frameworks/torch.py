"""torch: `weight`, `bias`, `running_mean`, `running_var`, `num_batches_tracked`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from traindx.errors import ArgumentError
from traindx.messages import say
from traindx.norm.arrays import Array
from traindx.norm.convert.content import LARGEST_KERNEL, Content, Name, Told, path_of
from traindx.norm.convert.formats import npz, safetensors
from traindx.norm.convert.formats import torch as torch_files
from traindx.norm.convert.frameworks.framework import Found, Framework, Hints, Layer
from traindx.norm.convert.frameworks.reading import COUNTER, Naming, read_tree
from traindx.norm.convert.state import (
    BIAS,
    DIRECTION,
    KERNEL,
    MEAN,
    VAR,
    WEIGHT,
    NormState,
    RefusedError,
    U,
    V,
)
from traindx.norm.presets import preset
from traindx.norm.torch_layers import spec_of

if TYPE_CHECKING:
    from torch import nn

_PARAMETRIZED = ("parametrizations", "weight")
_WEIGHT_NORM = {"original0": WEIGHT, "original1": DIRECTION}
_SPECTRAL = {"original": KERNEL, "_u": U, "_v": V}
_OLD_WEIGHT_NORM = {"weight_g": WEIGHT, "weight_v": DIRECTION}
_OLD_SPECTRAL = {"weight_orig": KERNEL, "weight_u": U, "weight_v": V}

NAMING = Naming(
    {
        **{"weight": WEIGHT, "bias": BIAS, "running_mean": MEAN, "running_var": VAR},
        COUNTER: COUNTER,
    },
    "torch.BatchNorm2d",
    lambda _: None,
    "weight",
    "torch.LayerNorm",
)


def read(content: Content, hints: Hints) -> Found:
    """The layers of a state dict; reparametrized weights among them."""
    weights, consumed = _reparametrized(content)
    names = {name: name for name in content.arrays if name not in consumed}
    found = read_tree(content, names, NAMING, hints)
    return Found([*found.states, *weights], found.refused, found.others)


def of_model(model: nn.Module, name: str) -> Content:
    """A live model as a file would hold it, with what each layer is."""
    told: dict[str, Told] = {}
    for fqn, module in cast("Iterator[tuple[str, nn.Module]]", model.named_modules()):
        with suppress(ArgumentError):  # other layers than normalizations
            told[fqn] = Told(spec_of(module))
    state = model.state_dict()
    path = Path(name)
    arrays = {
        torch_files.parts_of(key): torch_files.stored(path, key, value)
        for key, value in state.items()
        if hasattr(value, "detach")
    }
    return Content(path, arrays, told)


def _reparametrized(content: Content) -> tuple[list[NormState], set[Name]]:
    """Weight and spectral normalization, as parametrizations and in their older forms."""
    owned: dict[Name, dict[str, Name]] = {}
    for name in content.arrays:
        if name[-3:-1] == _PARAMETRIZED:
            owned.setdefault(name[:-3], {})[name[-1]] = name
        elif name[-4:-2] == _PARAMETRIZED and name[-2] == "0":
            owned.setdefault(name[:-4], {})[name[-1]] = name
        elif name[-1] in {*_OLD_WEIGHT_NORM, *_OLD_SPECTRAL}:
            owned.setdefault(name[:-1], {})[name[-1]] = name
    states: list[NormState] = []
    consumed: set[Name] = set()
    for owner, leaves in owned.items():
        for roles, kind in (
            (_WEIGHT_NORM, "torch.weight_norm"),
            (_SPECTRAL, "torch.spectral_norm"),
            (_OLD_SPECTRAL, "torch.legacy_spectral_norm"),
            (_OLD_WEIGHT_NORM, "torch.weight_norm"),
        ):
            if set(leaves) == set(roles):
                arrays = {
                    r: content.read(leaves[leaf], LARGEST_KERNEL) for leaf, r in roles.items()
                }
                states.append(NormState(".".join(owner), preset(kind), _flat(arrays)))
                consumed |= set(leaves.values())
                break
    return states, consumed


def _flat(arrays: dict[str, Array]) -> dict[str, Array]:
    """The magnitude as one value an output, [out]."""
    if WEIGHT in arrays:
        arrays[WEIGHT] = arrays[WEIGHT].reshape(arrays[WEIGHT].shape[:1])
    return arrays


def arrays_of(state: NormState) -> dict[Name, Array]:
    """A state's arrays by their names in a state dict."""
    owner = path_of(state.name)
    values = dict(state.arrays)
    if state.spec.kind == "WeightNorm":
        magnitude = values[WEIGHT].reshape((-1,) + (1,) * (values[DIRECTION].ndim - 1))
        place = (*owner, *_PARAMETRIZED)
        return {(*place, "original0"): magnitude, (*place, "original1"): values[DIRECTION]}
    if state.spec.kind == "SpectralNorm":
        place = (*owner, *_PARAMETRIZED)
        vectors = {(*place, "0", "_u"): values[U], (*place, "0", "_v"): values[V]}
        return {(*place, "original"): values[KERNEL], **vectors}
    found: dict[Name, Array] = {(*owner, role): value for role, value in values.items()}
    if state.batches is not None and state.spec.running is not None:
        found[(*owner, COUNTER)] = np.array(state.batches, np.int64)
    return found


def layer(state: NormState, channels: int | str) -> Layer:
    """The layer of torch for a state."""
    spec, has = state.spec, state.arrays
    shape = state.shape if len(state.shape) > 1 else channels
    match spec.kind:
        case "BatchNorm":
            assert spec.running is not None
            named = {"eps": spec.eps, "momentum": spec.running.momentum}
            affine: dict[str, object] = {} if WEIGHT in has else {"affine": False}
            return Layer("nn.BatchNorm2d", (channels,), {**named, **affine})
        case "InstanceNorm":
            return Layer("nn.InstanceNorm2d", (channels,), _affine(state, {"eps": spec.eps}))
        case "GroupNorm":
            assert spec.groups is not None
            affine = {} if WEIGHT in has else {"affine": False}
            return Layer("nn.GroupNorm", (spec.groups.count, channels), {"eps": spec.eps, **affine})
        case "LayerNorm":
            named = {"eps": spec.eps}
            if WEIGHT not in has:
                return Layer("nn.LayerNorm", (shape,), {**named, "elementwise_affine": False})
            more: dict[str, object] = {} if BIAS in has else {"bias": False}
            return Layer("nn.LayerNorm", (shape,), {**named, **more})
        case "RMSNorm":
            more = {} if WEIGHT in has else {"elementwise_affine": False}
            return Layer("nn.RMSNorm", (shape,), {"eps": spec.eps, **more})
        case "LocalResponseNorm":
            return _response(state)
        case "WeightNorm":
            return Layer("nn.utils.parametrizations.weight_norm", ("layer",), {"dim": 0})
        case "SpectralNorm":
            return Layer("nn.utils.parametrizations.spectral_norm", ("layer",), {"dim": 0})
        case _:
            raise RefusedError(say("torch has no {kind}", kind=spec.kind))


def _affine(state: NormState, named: dict[str, object]) -> dict[str, object]:
    affine = {"affine": True} if WEIGHT in state.arrays else {}
    tracked = {"track_running_stats": True} if state.spec.running else {}
    return {**named, **affine, **tracked}


def _response(state: NormState) -> Layer:
    window = state.spec.window
    assert window is not None
    size = window.before + 1 + window.after
    named = {"alpha": round(window.alpha * size, 12), "beta": window.beta, "k": window.k}
    return Layer("nn.LocalResponseNorm", (size,), named)


def write(path: Path, states: Sequence[NormState]) -> None:
    """A state dict of the layers."""
    arrays = {name: value for state in states for name, value in arrays_of(state).items()}
    formats: dict[str, Any] = {".safetensors": safetensors.write, ".npz": npz.write}
    formats.get(path.suffix, torch_files.write)(path, arrays, note="pt")


def run(state: NormState, x: Array) -> Array:
    """The output of torch in evaluation."""
    import torch
    from torch import nn

    tensor = cast("Any", torch).from_numpy
    made = layer(state, x.shape[1] if state.spec.kind != "LayerNorm" else state.channels)
    name = made.call.rpartition(".")[2].replace("2d", f"{x.ndim - 2}d")
    if state.spec.kind in {"LayerNorm", "RMSNorm"}:
        made = layer(state, state.channels or x.shape[-1])
    module = getattr(nn, name)(*made.positional, **made.named)
    values = {
        ".".join(key[len(path_of(state.name)) :]): tensor(v.copy())
        for key, v in arrays_of(state).items()
    }
    module.load_state_dict(values, strict=False)
    module.eval()
    with torch.no_grad():
        return module(tensor(x)).numpy()


TORCH = Framework(
    "torch",
    {
        "BatchNorm": "torch.BatchNorm2d",
        "LayerNorm": "torch.LayerNorm",
        "GroupNorm": "torch.GroupNorm",
        "InstanceNorm": "torch.InstanceNorm2d",
        "RMSNorm": "torch.RMSNorm",
        "LocalResponseNorm": "torch.LocalResponseNorm",
        "WeightNorm": "torch.weight_norm",
        "SpectralNorm": "torch.spectral_norm",
    },
    1,
    (".pt", ".pth", ".safetensors", ".npz"),
    ("torch",),
    read,
    layer,
    write,
    run,
    counts=True,
)
