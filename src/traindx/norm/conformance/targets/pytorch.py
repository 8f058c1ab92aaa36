"""torch's layers: as they are, on channels_last input, and compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

from traindx.norm.conformance.precision import dtype_name, laid_out, numbers
from traindx.norm.conformance.script import keywords, spoken
from traindx.norm.conformance.target import Answer, Call, Entry, UnsupportedError

LAYERS = {
    "BatchNorm": "batch_norm",
    "LayerNorm": "layer_norm",
    "GroupNorm": "group_norm",
    "InstanceNorm": "instance_norm",
    "RMSNorm": "rms_norm",
    "LocalResponseNorm": "local_response_norm",
    "normalize": "unit_norm",
}
_WORDS = {"BatchNorm": ("eps", "momentum"), "InstanceNorm": ("eps",), "GroupNorm": ("eps",)}
_SPATIAL = {4: "channels_last", 5: "channels_last_3d"}


class Torch:
    """`torch.nn` on the CPU.

    Args:
        name: What the target is called.
        channels_last: Whether input of two or three spatial axes is given in that memory format.
        compiled: Whether layers go through `torch.compile`.
    """

    layers: Mapping[str, str] = LAYERS

    def __init__(self, name: str, *, channels_last: bool = False, compiled: bool = False) -> None:
        self.name = name
        self.slow = compiled
        self._torch: Any = import_module("torch")
        self._channels_last = channels_last
        self._compiled: dict[str, Any] = {}
        self.version = f"torch {self._torch.__version__}"

    def run(self, call: Call) -> Answer:
        """See `Target`."""
        torch = self._torch
        if call.mask is not None:
            raise UnsupportedError("torch has no mask")
        x = self._tensor(call, call.x).requires_grad_(call.dy is not None)
        layer = self._built(call)
        layer, called = self._kept(call, layer) if self.slow else (layer, layer)
        with torch.set_grad_enabled(call.dy is not None):
            y = called(x)
        if call.dy is not None:
            y.backward(self._placed(torch.tensor(call.dy).to(y.dtype)))
        state = dict(layer.named_buffers()) if isinstance(layer, torch.nn.Module) else {}
        own = dict(layer.named_parameters()) if isinstance(layer, torch.nn.Module) else {}
        mean, var = state.get("running_mean"), state.get("running_var")
        batches = state.get("num_batches_tracked")
        return Answer(
            numbers(y),
            dtype_name(y),
            dx=None if x.grad is None else numbers(x.grad),
            dweight=_gradient(own.get("weight")),
            dbias=_gradient(own.get("bias")),
            running=None if mean is None or var is None else (numbers(mean), numbers(var)),
            batches=None if batches is None else int(batches),
            affine=("weight" in own, "bias" in own),
        )

    def code(self, call: Call, aspect: str) -> str:
        """See `Target`."""
        last = _SPATIAL.get(call.x.ndim) if self._channels_last else None
        placed = f".contiguous(memory_format=torch.{last})" if last else ""
        mode = "" if call.layer == "normalize" else f".train({call.training})"
        forward = "torch.compile(layer)(x)" if self.slow else "layer(x)"
        return spoken(
            call,
            aspect,
            imports="import torch\n",
            x=f"torch.from_numpy({_memory(call)}).to(torch.{call.dtype}){placed}",
            build=f"layer = {_source(call)}{mode}",
            state=_STATE,
            forward=f"y = {forward}",
            backward=f"x.requires_grad_(True)\ny = {forward}\n"
            f"y.backward(torch.tensor(dy).to(y.dtype){placed})",
            found={
                "forward": "y.detach().double().numpy()",
                "grad_x": "x.grad.double().numpy()",
                "grad_weight": "layer.weight.grad.double().numpy()",
                "grad_bias": "layer.bias.grad.double().numpy()",
                "running_mean": "layer.running_mean.double().numpy()",
                "running_var": "layer.running_var.double().numpy()",
            },
        )

    def _tensor(self, call: Call, values: Any) -> Any:
        torch = self._torch
        wide = "float32" if call.dtype == "bfloat16" else call.dtype
        tensor = torch.from_numpy(laid_out(values.astype(wide), call.memory))
        return self._placed(tensor.to(getattr(torch, call.dtype))).detach()

    def _placed(self, tensor: Any) -> Any:
        last = _SPATIAL.get(tensor.ndim) if self._channels_last else None
        return tensor.contiguous(memory_format=getattr(self._torch, last)) if last else tensor

    def _built(self, call: Call) -> Any:
        torch = self._torch
        if call.layer == "normalize":
            options = {_ARGUMENTS.get(k, k): v for k, v in call.options.items()}
            return partial(torch.nn.functional.normalize, **options)
        name, arguments, options = _written(call)
        layer = getattr(torch.nn, name)(*arguments, **options)
        layer = layer.to(getattr(torch, call.dtype)).train(call.training)
        with torch.no_grad():
            for key, value in (("weight", call.weight), ("bias", call.bias)):
                if value is not None:
                    if getattr(layer, key, None) is None:
                        raise UnsupportedError(f"{name} has no {key}")
                    getattr(layer, key).copy_(torch.tensor(value))
            if call.running is not None:
                layer.running_mean.copy_(torch.tensor(call.running[0]))
                layer.running_var.copy_(torch.tensor(call.running[1]))
        return layer

    def _kept(self, call: Call, layer: Any) -> Any:
        """The layer that was compiled for such questions, in the state of a new one."""
        key = f"{_source(call)} {call.dtype} {call.training} {call.dy is None} {call.x.ndim}"
        if key not in self._compiled:
            # Or else, after some layers, torch goes on without compiling.
            self._torch.compiler.reset()
            self._compiled = {key: (layer, self._torch.compile(layer))}
        kept, compiled = self._compiled[key]
        if kept is not layer and isinstance(kept, self._torch.nn.Module):
            kept.load_state_dict(layer.state_dict())
            kept.zero_grad()
        return kept, compiled


_ARGUMENTS = {"axis": "dim"}
_STATE = {
    "weight": "layer.weight.data[:] = torch.tensor(weight)",
    "bias": "layer.bias.data[:] = torch.tensor(bias)",
    "running": "layer.running_mean[:] = torch.tensor(running_mean)\n"
    "layer.running_var[:] = torch.tensor(running_var)",
}


def _memory(call: Call) -> str:
    """The NumPy array as it lies in memory, of a type that torch takes from NumPy."""
    wide = "float32" if call.dtype == "bfloat16" else call.dtype
    return {
        "contiguous": f"x.astype(np.{wide})",
        "strided": f"np.ascontiguousarray(x.astype(np.{wide}).T).T",
        "sliced": f"np.repeat(x.astype(np.{wide}), 2, axis=-1)[..., ::2]",
    }[call.memory]


def _gradient(parameter: Any) -> Any:
    return None if parameter is None or parameter.grad is None else numbers(parameter.grad)


def _written(call: Call) -> tuple[str, list[Any], dict[str, Any]]:
    """The class, its positional and its keyword arguments."""
    options, shape = dict(call.options), call.x.shape
    if "axis" in options:
        raise UnsupportedError(f"torch's {call.layer} has its axis fixed")
    match call.layer:
        case "BatchNorm":
            dims = {2: 1, 3: 1, 4: 2, 5: 3}.get(len(shape))
            return f"BatchNorm{dims}d", [shape[1]], options
        case "InstanceNorm":
            if call.weight is not None:
                options["affine"] = True
            dims = {3: 1, 4: 2, 5: 3}.get(len(shape))
            if dims is None:
                raise UnsupportedError("InstanceNorm needs a spatial axis")
            return f"InstanceNorm{dims}d", [shape[1]], options
        case "LayerNorm" | "RMSNorm":
            return call.layer, [shape[-options.pop("normalized_ndim", 1) :]], options
        case "GroupNorm":
            if "num_groups" not in options:
                raise UnsupportedError("num_groups must be given")
            return call.layer, [options.pop("num_groups"), shape[1]], options
        case _:
            if "size" not in options:
                raise UnsupportedError("size must be given")
            return call.layer, [options.pop("size")], options


def _source(call: Call) -> str:
    if call.layer == "normalize":
        options = {_ARGUMENTS.get(k, k): v for k, v in call.options.items()}
        return f"lambda x: torch.nn.functional.normalize(x{keywords(options)})"
    name, arguments, options = _written(call)
    positional = ", ".join(map(repr, arguments))
    return f"torch.nn.{name}({positional}{keywords(options)}).to(torch.{call.dtype})"


def _maker(name: str, **how: bool) -> Callable[[], Torch]:
    return partial(Torch, name, **how)


_INSTALL = "pip install torch"
TARGETS = (
    Entry("torch", _maker("torch"), _INSTALL),
    Entry("torch-channels-last", _maker("torch-channels-last", channels_last=True), _INSTALL),
    Entry("torch-compile", _maker("torch-compile", compiled=True), _INSTALL),
)
