"""Which layer feeds which normalization, as the autograd graph of one forward pass has it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase  # pyright: ignore[reportPrivateUsage]
from torch.nn.modules.conv import _ConvNd  # pyright: ignore[reportPrivateUsage]

from traindx.nested import tensors
from traindx.trial import called

Weighted = nn.Linear | _ConvNd
"""Layers that a normalization can follow."""


@dataclass(slots=True)
class Links:
    """What one forward pass has shown of the layers.

    Attributes:
        fed_by: The layer whose very output a norm was given; None if it was another tensor.
        dims: Dimensions of what a norm was given.
        calls: How often each module was called.
        uses: How often each layer's output goes into something.
    """

    fed_by: dict[str, str | None]
    dims: dict[str, int]
    calls: Counter[str]
    uses: dict[str, int]


def connections(model: nn.Module, inputs: Sequence[Any]) -> tuple[list[Tensor], Links]:
    """The model's outputs, and what one forward pass in the mode it is in shows of its layers.

    Raises:
        UsageError: The model fails.
    """
    made: dict[Any, str] = {}
    links = Links({}, {}, Counter(), {})
    handles: list[Any] = []
    for fqn, module in named(model):
        if isinstance(module, _NormBase):
            note = _entering(fqn, made, links)
            handles.append(cast(Any, module).register_forward_pre_hook(note, with_kwargs=True))
        elif isinstance(module, Weighted):
            handles.append(cast(Any, module).register_forward_hook(_leaving(fqn, made, links)))
    try:
        with torch.enable_grad():
            made_out = outputs(model, with_gradients(inputs))
    finally:
        for handle in handles:
            handle.remove()
    used = _uses(made_out)
    links.uses = {fqn: used[node] for node, fqn in made.items()}
    return [output.detach() for output in made_out], links


def _entering(fqn: str, made: dict[Any, str], links: Links) -> Any:
    def note(module: nn.Module, args: tuple[object, ...], kwargs: Mapping[str, object]) -> None:
        del module
        links.calls[fqn] += 1
        if (given := next(tensors([*args, *kwargs.values()]), None)) is not None:
            links.fed_by[fqn] = made.get(given.grad_fn)
            links.dims[fqn] = given.dim()

    return note


def _leaving(fqn: str, made: dict[Any, str], links: Links) -> Any:
    def note(module: nn.Module, args: tuple[object, ...], output: object) -> None:
        del module, args
        links.calls[fqn] += 1
        if isinstance(output, Tensor) and output.grad_fn is not None:
            made[output.grad_fn] = fqn

    return note


def with_gradients(inputs: Sequence[Any]) -> list[Any]:
    """A frozen model has a graph all the same if its inputs take gradients."""
    return [_with_gradient(value) for value in inputs]


def _with_gradient(value: Any) -> Any:
    if isinstance(value, Tensor) and value.is_floating_point():
        return value.detach().clone().requires_grad_().clone()
    if isinstance(value, Mapping):
        items = cast("Mapping[object, Any]", value).items()
        return {name: _with_gradient(each) for name, each in items}
    return value


def _uses(made_out: Sequence[Tensor]) -> Counter[Any]:
    """How often each node of the graph goes into another, or is an output itself."""
    roots = [output.grad_fn for output in made_out if output.grad_fn is not None]
    used: Counter[Any] = Counter(roots)
    waiting, seen = list[Any](roots), set[Any](roots)
    while waiting:
        for before, _ in waiting.pop().next_functions:
            if before is None:
                continue
            used[before] += 1
            if before not in seen:
                seen.add(before)
                waiting.append(before)
    return used


def outputs(model: nn.Module, inputs: Sequence[Any]) -> list[Tensor]:
    """Every tensor a model returns.

    Raises:
        UsageError: It fails.
    """
    return list(tensors(called(model, inputs)))


def named(model: nn.Module) -> Iterable[tuple[str, nn.Module]]:
    """Its modules by their names."""
    return cast(Any, model).named_modules()
