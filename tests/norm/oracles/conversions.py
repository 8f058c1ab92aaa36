"""`python -m tests.norm.oracles.conversions`: every direction, by the frameworks' own hands.

Each framework makes the layers it has with random numbers, answers, and saves them with its own
saver. `traindx norm convert` moves the file; the target's own loader reads what was written, its
own layers are made by the lines that were printed, and must answer as the source did.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from tests.norm.oracles import wrapped_weights
from tests.norm.oracles.answers import Answer, compared, table
from traindx.norm.convert.converting import Conversion, Order, convert
from traindx.norm.convert.frameworks import catalog
from traindx.norm.convert.frameworks.framework import by_pattern
from traindx.norm.convert.mapping import hint

B, C, L, G = 3, 6, 5, 2  # no two alike: a wrong axis shows
KINDS = ("BatchNorm", "LayerNorm", "GroupNorm", "InstanceNorm", "RMSNorm")
RTOL, ATOL = 1e-5, 4e-6
PACKAGES = {
    "torch": ("torch",),
    "linen": ("flax", "jax"),
    "nnx": ("flax", "jax"),
    "keras": ("keras", "h5py"),
    "onnx": ("onnx", "onnxruntime"),
}
CHANNELS_FIRST = {"torch", "onnx"}
EPS, OLD_WEIGHT = 3e-4, 0.93
X = np.random.default_rng(1).normal(0.7, 1.5, (B, C, L)).astype(np.float32)

Numbers = dict[str, np.ndarray]
Answers = Mapping[str, np.ndarray]
"""Outputs by kind, channels on axis 1, for the input X."""


@dataclass(frozen=True)
class Hands:
    """What a framework does itself.

    Attributes:
        save: Makes its layers of given numbers, saves them in a folder, and answers.
        load: Reads a file and makes layers by the lines that were printed, and answers.
        hints: What its file does not tell.
        suffixes: The files it is written to.
    """

    save: Callable[[Path, Mapping[str, Numbers]], tuple[Path, Answers]]
    load: Callable[[Path, Conversion], Answers]
    suffixes: tuple[str, ...]
    hints: tuple[str, ...] = ()


def numbers() -> dict[str, Numbers]:
    """Weights, biases and statistics of each kind."""
    draw = np.random.default_rng(0)

    def some(low: float, high: float) -> np.ndarray:
        return draw.uniform(low, high, C).astype(np.float32)

    found = {kind: {"weight": some(0.5, 2), "bias": some(-1, 1)} for kind in KINDS}
    del found["RMSNorm"]["bias"]
    found["BatchNorm"] |= {"running_mean": some(-2, 2), "running_var": some(1e-4, 3)}
    return found


def last(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.moveaxis(x, 1, -1))


def first(x: Any) -> np.ndarray:
    return np.moveaxis(np.asarray(x), -1, 1)


def fed(kind: str, framework: str) -> tuple[np.ndarray, Callable[[Any], np.ndarray]]:
    """The input as a layer takes it, and how its output becomes channels on axis 1."""
    if framework in CHANNELS_FIRST and kind not in {"LayerNorm", "RMSNorm"}:
        return X, np.asarray
    return last(X), first


def lines(made: Conversion) -> dict[str, str]:
    """The line that makes each layer, by its name, which is that of its kind.

    Keras writes an InstanceNorm with as many groups as there are channels.
    """
    return {
        one.after.name: made.target.layer(one.after, one.after.channels).code for one in made.layers
    }


# -- torch ----------------------------------------------------------------------------------------


def torch_layers() -> dict[str, Any]:
    nn = import_module("torch.nn")
    return {
        "BatchNorm": nn.BatchNorm1d(C, eps=EPS, momentum=1 - OLD_WEIGHT),
        "LayerNorm": nn.LayerNorm(C, eps=EPS),
        "GroupNorm": nn.GroupNorm(G, C, eps=EPS),
        "InstanceNorm": nn.InstanceNorm1d(C, eps=EPS, affine=True),
        "RMSNorm": nn.RMSNorm(C, eps=EPS),
    }


def torch_answers(layers: Mapping[str, Any]) -> Answers:
    torch = import_module("torch")
    found: Numbers = {}
    with torch.no_grad():
        for kind, layer in layers.items():
            x, back = fed(kind, "torch")
            found[kind] = back(layer.eval()(torch.from_numpy(x)).numpy())
    return found


def torch_save(folder: Path, given: Mapping[str, Numbers]) -> tuple[Path, Answers]:
    torch = import_module("torch")
    layers = torch_layers()
    for kind, layer in layers.items():
        state = {key: torch.from_numpy(value) for key, value in given[kind].items()}
        layer.load_state_dict(state, strict=False)
    model = torch.nn.ModuleDict(layers)
    torch.save(model.state_dict(), folder / "source.pt")
    return folder / "source.pt", torch_answers(layers)


def torch_load(path: Path, made: Conversion) -> Answers:
    torch = import_module("torch")
    nn = {"nn": torch.nn}
    if path.suffix == ".safetensors":
        state = import_module("safetensors.torch").load_file(str(path))
    elif path.suffix == ".npz":
        state = {k: torch.from_numpy(v) for k, v in np.load(path, allow_pickle=False).items()}
    else:
        state = torch.load(path, weights_only=True)
    layers = {k: eval(code.replace("2d", "1d"), nn) for k, code in lines(made).items()}
    model = torch.nn.ModuleDict(layers)
    missing, extra = model.load_state_dict(state, strict=False)
    assert not extra, extra
    assert set(missing) <= {"BatchNorm.num_batches_tracked"}
    return torch_answers(layers)


# -- Flax -----------------------------------------------------------------------------------------

FLAX_LEAVES = {"weight": "scale", "bias": "bias", "running_mean": "mean", "running_var": "var"}


def linen_layers() -> dict[str, Any]:
    nn = import_module("flax.linen")
    settings: dict[str, Any] = {"epsilon": EPS}
    return {
        "BatchNorm": nn.BatchNorm(use_running_average=True, momentum=OLD_WEIGHT, **settings),
        "LayerNorm": nn.LayerNorm(**settings),
        "GroupNorm": nn.GroupNorm(G, **settings),
        "InstanceNorm": nn.InstanceNorm(**settings),
        "RMSNorm": nn.RMSNorm(**settings),
    }


def linen_answers(layers: Mapping[str, Any], tree: Mapping[str, Any]) -> Answers:
    return {
        kind: first(layer.apply({c: tree[c][kind] for c in tree if kind in tree[c]}, last(X)))
        for kind, layer in layers.items()
    }


def linen_save(folder: Path, given: Mapping[str, Numbers]) -> tuple[Path, Answers]:
    serialization = import_module("flax.serialization")
    tree: dict[str, dict[str, Numbers]] = {"params": {}, "batch_stats": {}}
    for kind, arrays in given.items():
        for role, values in arrays.items():
            place = tree["batch_stats" if role.startswith("running") else "params"]
            place.setdefault(kind, {})[FLAX_LEAVES[role]] = values
    (folder / "source.msgpack").write_bytes(serialization.to_bytes(tree))
    return folder / "source.msgpack", linen_answers(linen_layers(), tree)


def flax_tree(path: Path) -> dict[str, Any]:
    """As a user of Flax reads such a file."""
    if path.suffix == ".msgpack":
        return import_module("flax.serialization").msgpack_restore(path.read_bytes())
    if path.suffix == ".npz":
        flat = dict(np.load(path, allow_pickle=False))
    else:
        flat = import_module("safetensors.numpy").load_file(str(path))
    return import_module("flax.traverse_util").unflatten_dict(flat, sep=".")


def linen_load(path: Path, made: Conversion) -> Answers:
    names = {"nn": import_module("flax.linen")}
    layers = {kind: eval(code, names) for kind, code in lines(made).items()}
    return linen_answers(layers, flax_tree(path))


def nnx_layers() -> dict[str, Any]:
    nnx = import_module("flax.nnx")
    settings: dict[str, Any] = {"epsilon": EPS, "rngs": nnx.Rngs(0)}
    return {
        "BatchNorm": nnx.BatchNorm(C, use_running_average=True, momentum=OLD_WEIGHT, **settings),
        "LayerNorm": nnx.LayerNorm(C, **settings),
        "GroupNorm": nnx.GroupNorm(C, G, **settings),
        "InstanceNorm": nnx.InstanceNorm(C, **settings),
        "RMSNorm": nnx.RMSNorm(C, **settings),
    }


def nnx_answers(layers: Mapping[str, Any], tree: Mapping[str, Any]) -> Answers:
    nnx = import_module("flax.nnx")
    found: Numbers = {}
    for kind, layer in layers.items():
        graph, state = nnx.split(layer)
        nnx.replace_by_pure_dict(state, dict(tree[kind]))
        found[kind] = first(nnx.merge(graph, state)(last(X)))
    return found


def nnx_save(folder: Path, given: Mapping[str, Numbers]) -> tuple[Path, Answers]:
    serialization = import_module("flax.serialization")
    tree = {k: {FLAX_LEAVES[r]: v for r, v in arrays.items()} for k, arrays in given.items()}
    (folder / "source.msgpack").write_bytes(serialization.msgpack_serialize(tree))
    return folder / "source.msgpack", nnx_answers(nnx_layers(), tree)


def nnx_load(path: Path, made: Conversion) -> Answers:
    nnx = import_module("flax.nnx")
    layers = {
        kind: eval(f"{code[:-1]}, rngs=nnx.Rngs(0))", {"nnx": nnx})
        for kind, code in lines(made).items()
    }
    return nnx_answers(layers, flax_tree(path))


# -- Keras ----------------------------------------------------------------------------------------


def keras_layers() -> dict[str, Any]:
    layers = import_module("keras").layers
    settings: dict[str, Any] = {"epsilon": EPS}
    return {
        "BatchNorm": layers.BatchNormalization(name="BatchNorm", momentum=OLD_WEIGHT, **settings),
        "LayerNorm": layers.LayerNormalization(name="LayerNorm", **settings),
        "GroupNorm": layers.GroupNormalization(groups=G, name="GroupNorm", **settings),
        "InstanceNorm": layers.GroupNormalization(groups=-1, name="InstanceNorm", **settings),
        "RMSNorm": layers.RMSNormalization(name="RMSNorm", **settings),
    }


def keras_model(layers: Mapping[str, Any]) -> Any:
    keras = import_module("keras")
    inputs = [keras.Input((None, C)) for _ in layers]
    pairs = zip(layers.values(), inputs, strict=True)
    return keras.Model(inputs, [layer(x) for layer, x in pairs])


def keras_answers(model: Any) -> Answers:
    keras = import_module("keras")
    return {
        kind: first(keras.ops.convert_to_numpy(model.get_layer(kind)(last(X), training=False)))
        for kind in KINDS
    }


def keras_save(folder: Path, given: Mapping[str, Numbers]) -> tuple[Path, Answers]:
    layers = keras_layers()
    model = keras_model(layers)
    for kind, layer in layers.items():
        layer.set_weights(list(given[kind].values()))
    model.save(folder / "source.keras")
    return folder / "source.keras", keras_answers(model)


def keras_load(path: Path, made: Conversion) -> Answers:
    keras = import_module("keras")
    if path.suffix == ".keras":
        return keras_answers(keras.models.load_model(path, safe_mode=True))
    names = {"layers": keras.layers}
    made_by = {k: eval(f"{code[:-1]}, name={k!r})", names) for k, code in lines(made).items()}
    model = keras_model(made_by)
    model.load_weights(path)
    return keras_answers(model)


# -- ONNX -----------------------------------------------------------------------------------------

ONNX_KINDS = {
    "BatchNorm": ("BatchNormalization", {"momentum": OLD_WEIGHT}),
    "LayerNorm": ("LayerNormalization", {"axis": -1}),
    "GroupNorm": ("GroupNormalization", {"num_groups": G}),
    "InstanceNorm": ("InstanceNormalization", {}),
    "RMSNorm": ("RMSNormalization", {"axis": -1}),
}


def onnx_model(given: Mapping[str, Numbers]) -> Any:
    onnx = import_module("onnx")
    nodes, constants, inputs, outputs = [], [], [], []
    for kind, arrays in given.items():
        name, attributes = ONNX_KINDS[kind]
        keys = [f"{kind}.{role}" for role in arrays]
        ends = [f"{kind}.input", f"{kind}.output"]
        nodes.append(
            onnx.helper.make_node(name, [ends[0], *keys], ends[1:], epsilon=EPS, **attributes)
        )
        constants += [
            onnx.numpy_helper.from_array(v, f"{kind}.{role}") for role, v in arrays.items()
        ]
        made = [onnx.helper.make_tensor_value_info(end, 1, [None] * 3) for end in ends]
        inputs.append(made[0])
        outputs.append(made[1])
    graph = onnx.helper.make_graph(nodes, "layers", inputs, outputs, constants)
    opsets = [onnx.helper.make_opsetid("", 23)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10)


def onnx_answers(path: Path) -> Answers:
    runtime = import_module("onnxruntime")
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    feeds = {f"{kind}.input": fed(kind, "onnx")[0] for kind in KINDS}
    asked = session.run([f"{kind}.output" for kind in KINDS], feeds)
    return {kind: fed(kind, "onnx")[1](y) for kind, y in zip(KINDS, asked, strict=True)}


def onnx_save(folder: Path, given: Mapping[str, Numbers]) -> tuple[Path, Answers]:
    """With the numbers in a file beside it, as large models have them."""
    onnx = import_module("onnx")
    path = folder / "source.onnx"
    onnx.save_model(
        onnx_model(given), str(path), save_as_external_data=True, location="source.data",
        size_threshold=0,
    )  # fmt: skip
    assert (folder / "source.data").stat().st_size
    return path, onnx_answers(path)


def onnx_load(path: Path, made: Conversion) -> Answers:
    onnx = import_module("onnx")
    onnx.checker.check_model(str(path), full_check=True)
    return onnx_answers(path)


# -- every direction ------------------------------------------------------------------------------

HANDS = {
    "torch": Hands(
        torch_save,
        torch_load,
        (".pt", ".safetensors", ".npz"),
        (
            f"BatchNorm=torch.BatchNorm1d,eps={EPS},momentum={1 - OLD_WEIGHT:.2f}",
            f"LayerNorm=torch.LayerNorm,eps={EPS}",
            f"GroupNorm=torch.GroupNorm,num_groups={G},eps={EPS}",
            f"InstanceNorm=torch.InstanceNorm1d,eps={EPS}",
            f"RMSNorm=torch.RMSNorm,eps={EPS}",
        ),
    ),
    "linen": Hands(
        linen_save,
        linen_load,
        (".msgpack", ".safetensors", ".npz"),
        FLAX := (
            f"BatchNorm=flax.BatchNorm,eps={EPS},momentum={1 - OLD_WEIGHT:.2f}",
            f"LayerNorm=flax.LayerNorm,eps={EPS}",
            f"GroupNorm=flax.GroupNorm,num_groups={G},eps={EPS}",
            f"InstanceNorm=flax.InstanceNorm,eps={EPS}",
            f"RMSNorm=flax.RMSNorm,eps={EPS}",
        ),
    ),
    "nnx": Hands(nnx_save, nnx_load, (".msgpack", ".safetensors", ".npz"), FLAX),
    "keras": Hands(keras_save, keras_load, (".keras", ".weights.h5")),
    "onnx": Hands(onnx_save, onnx_load, (".onnx",)),
}


def present() -> list[str]:
    return [name for name, needs in PACKAGES.items() if all(find_spec(n) for n in needs)]


def moved(folder: Path, source: str, target: str, suffix: str) -> Iterator[Answer]:
    """One direction in one format: the source's own answers beside the target's own."""
    path, before = HANDS[source].save(folder, numbers())
    framework, found = catalog.read(
        path, source, by_pattern([hint(h) for h in HANDS[source].hints])
    )
    out = folder / f"moved{suffix}"
    made = convert(framework, found, Order(catalog.framework(target), out=out))
    assert not made.refused, made.refused
    after = HANDS[target].load(out, made)
    for kind in KINDS:
        pairs = [(after[kind], before[kind])]
        label = f"{kind} to {suffix}"
        yield compared(f"{source} to {target}", label, pairs, rtol=RTOL, atol=ATOL)


def answers() -> Iterator[Answer]:
    """Every direction between the frameworks that are here."""
    here = present()
    for source in here:
        for target in here:
            for suffix in HANDS[target].suffixes if source != target else ():
                with tempfile.TemporaryDirectory() as folder:
                    yield from moved(Path(folder), source, target, suffix)
    yield from wrapped_weights.answers(here)


def main() -> int:
    """Print a line a direction, and their number; 1 if one fails or nothing could be asked."""
    found = list(answers())
    print("\n".join(table(found)))
    failed = [answer for answer in found if not answer.excess <= 1]
    for answer in failed:
        print(f"FAILED {answer.source}: {answer.name} is off by {answer.error:.3g}")
    directions = {answer.source for answer in found} - {answer.source for answer in failed}
    print(f"{len(directions)} directions proved by {', '.join(present())}, {len(failed)} failed")
    return int(bool(failed) or not found)


if __name__ == "__main__":
    sys.exit(main())
