"""A user's own layer as a target: `package:factory`.

The factory is called without arguments, or with the number of channels if it takes one. What it
gives is a `torch.nn.Module`, or a function of a NumPy array. Whatever goes wrong in it is said of
it; nothing of it is trusted to have the right shape or type.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np

from traindx.errors import UsageError
from traindx.messages import listed, say
from traindx.norm.conformance.kinds import KINDS
from traindx.norm.conformance.patience import patience
from traindx.norm.conformance.precision import Numbers, dtype_name, laid_out, numbers
from traindx.norm.conformance.target import Answer, Call, UnsupportedError, described

_NAMES = {
    "weight": ("weight", "gamma", "scale"),
    "bias": ("bias", "beta"),
    "mean": ("running_mean", "moving_mean"),
    "var": ("running_var", "moving_var", "moving_variance"),
}
"""What the state of a layer may be called."""


class Custom:
    """A layer that a factory makes.

    Args:
        name: `package:factory`, as it was given.
        factory: Makes the layer.
        kind: The family that it should be of.
    """

    slow = False

    def __init__(self, name: str, factory: Callable[..., object], kind: str) -> None:
        self.name = name
        self.layers: Mapping[str, str] = {name.rpartition(":")[2]: kind}
        self.version = name
        self._factory = factory
        self._kind = kind

    def run(self, call: Call) -> Answer:
        """See `Target`."""
        if call.options != dict(KINDS[self._kind].needed) or call.mask is not None:
            raise UnsupportedError("the layer is as its factory makes it")
        with patience(self.name):
            return self._answer(call)

    def _answer(self, call: Call) -> Answer:
        layer = self._made(call)
        if isinstance(layer, type):
            raise TypeError(f"the factory gives the class {layer.__name__}, and no layer")
        if _is_module(layer):
            return _of_module(layer, call)
        if not callable(layer):
            raise TypeError(f"the factory gives a {type(layer).__name__}, which cannot be called")
        if call.weight is not None or call.running is not None or not call.training:
            raise UnsupportedError("a function has no state")
        if call.dtype == "bfloat16":
            raise UnsupportedError("NumPy has no bfloat16")
        x = laid_out(call.x.astype(call.dtype), call.memory)
        y = cast("Callable[[Any], Any]", layer)(x)
        return Answer(numbers(y), dtype_name(y), overwrote=not _is(call, x))

    def code(self, call: Call, aspect: str) -> str:
        """See `Target`."""
        place, _, name = self.name.rpartition(":")
        arguments = str(_channels(self._kind, call)) if _takes_one(self._factory) else ""
        load = f"from {place} import {name}"
        if place.endswith(".py"):
            load = f"import runpy\n\n{name} = runpy.run_path({place!r})[{name!r}]"
        if self._gives_function(call):
            given = f"x.astype('{call.dtype}')"
            got = f"np.asarray(layer({given}), np.float64)"
            return f"{load}\n\nlayer = {name}({arguments})\ngot = {got}"
        return "\n".join((load, "import torch\n", *_torch_steps(name, arguments, call, aspect)))

    def _gives_function(self, call: Call) -> bool:
        try:
            return not _is_module(self._made(call))
        except KeyboardInterrupt:
            raise
        except BaseException:  # of somebody else's code; the program shows it
            return False

    def _made(self, call: Call) -> object:
        if _takes_one(self._factory):
            return self._factory(_channels(self._kind, call))
        return self._factory()


def load(name: str, kind: str) -> Custom:
    """The target that `package:factory` or `file.py:factory` names.

    Raises:
        UsageError: There is no such thing, or it cannot be called.
    """
    place, _, attribute = name.rpartition(":")
    try:
        module = _imported(place)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # of somebody else's code: it may even leave the program
        raise UsageError(
            say("`{place}` cannot be imported: {error}.", place=place, error=described(error))
        ) from error
    factory = module.get(attribute) if attribute else None
    if not callable(factory):
        raise UsageError(
            say(
                "`{place}` has no function `{name}`. Name one that makes a layer: a "
                "`torch.nn.Module`, or a function of a NumPy array.",
                place=place,
                name=attribute,
            )
        )
    if len(needed := _needed(factory)) > 1 or any(p.kind is p.KEYWORD_ONLY for p in needed):
        raise UsageError(
            say(
                "`{name}` needs {arguments}. A factory is called without arguments, or with the "
                "number of channels.",
                name=name,
                arguments=listed(f"`{p.name}`" for p in needed),
            )
        )
    return Custom(name, factory, kind)


def _imported(place: str) -> Mapping[str, Any]:
    file = Path(place)
    if file.suffix != ".py" and not all(part.isidentifier() for part in place.split(".")):
        raise ImportError("it is neither the name of a module nor a Python file")
    folder, module = (file.parent, file.stem) if file.suffix == ".py" else (Path.cwd(), place)
    sys.path.insert(0, str(folder.resolve()))  # as `python FILE` has it
    return vars(import_module(module))


def _takes_one(factory: Callable[..., object]) -> bool:
    """Whether a factory needs an argument: the number of channels."""
    return bool(_needed(factory))


def _needed(factory: Callable[..., object]) -> list[inspect.Parameter]:
    """The arguments that a factory has to be given."""
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return []
    some = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p for p in parameters if p.default is inspect.Parameter.empty and p.kind not in some]


def _channels(kind: str, call: Call) -> int:
    """Elements along the axis that a layer of this family is made for."""
    return call.x.shape[-1 if kind in ("layer_norm", "rms_norm") else 1]


def _is(call: Call, x: Numbers) -> bool:
    """Whether an array still holds the input."""
    return np.array_equal(x, call.x.astype(x.dtype), equal_nan=True)


def _is_module(layer: object) -> bool:
    return all(hasattr(layer, name) for name in ("named_parameters", "named_buffers", "train"))


def _of_module(layer: Any, call: Call) -> Answer:
    torch: Any = import_module("torch")
    wide = "float32" if call.dtype == "bfloat16" else call.dtype
    x = torch.from_numpy(laid_out(call.x.astype(wide), call.memory))
    x = x.to(getattr(torch, call.dtype)).requires_grad_(call.dy is not None)
    layer = layer.to(getattr(torch, call.dtype)).train(call.training)
    state = {**dict(layer.named_parameters()), **dict(layer.named_buffers())}
    found = {name: _named(state, names) for name, names in _NAMES.items()}
    mean, var = call.running or (None, None)
    for name, value in {"weight": call.weight, "bias": call.bias, "mean": mean, "var": var}.items():
        if value is not None:
            if found[name] is None:
                raise UnsupportedError(f"the layer has no {name}")
            found[name].data.copy_(torch.tensor(value))
    y = layer(x)
    overwrote = not _is(call, numbers(x)) if call.dtype != "bfloat16" else False
    if call.dy is not None:
        y.backward(torch.tensor(call.dy).to(y.dtype))
    running = None
    if found["mean"] is not None and found["var"] is not None:
        running = (numbers(found["mean"]), numbers(found["var"]))
    slopes = [getattr(found[name], "grad", None) for name in ("weight", "bias")]
    return Answer(
        numbers(y),
        dtype_name(y),
        None if x.grad is None else numbers(x.grad),
        *(None if slope is None else numbers(slope) for slope in slopes),
        running=running,
        affine=(found["weight"] is not None, found["bias"] is not None),
        overwrote=overwrote,
    )


def _named(state: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    """What of a state has one of these names, at the end of its own."""
    for name in names:
        for key, value in state.items():
            if key.rpartition(".")[2] == name:
                return value
    return None


def _torch_steps(name: str, arguments: str, call: Call, aspect: str) -> list[str]:
    steps = [
        f"x = torch.tensor(x).to(torch.{call.dtype})",
        f"layer = {name}({arguments}).to(torch.{call.dtype}).train({call.training})",
    ]
    if call.weight is not None or call.running is not None:
        steps.append("state = {**dict(layer.named_parameters()), **dict(layer.named_buffers())}")
        given = {"weight": call.weight, "bias": call.bias}
        steps += [
            f"state[{k!r}].data.copy_(torch.tensor({k}))" for k, v in given.items() if v is not None
        ]
    if call.running is not None:
        steps += [f"state[{k!r}].copy_(torch.tensor({k}))" for k in ("running_mean", "running_var")]
    if aspect.startswith("grad"):
        steps += [
            "x.requires_grad_(True)",
            "y = layer(x)",
            "y.backward(torch.tensor(dy).to(y.dtype))",
        ]
    else:
        steps.append("y = layer(x)")
    got = {
        "forward": "y.detach()",
        "grad_x": "x.grad",
        "running_mean": "dict(layer.named_buffers())['running_mean']",
        "running_var": "dict(layer.named_buffers())['running_var']",
    }.get(aspect, "y.detach()")
    return [*steps, f"got = {got}.double().numpy()"]
