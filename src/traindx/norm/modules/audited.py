"""A checkpoint or a live model, with a batch or without, as an audit sees it."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm  # pyright: ignore[reportPrivateUsage]
from torch.nn.modules.instancenorm import _InstanceNorm  # pyright: ignore[reportPrivateUsage]
from torch.nn.parameter import is_lazy

from traindx.errors import UsageError
from traindx.messages import say
from traindx.nested import tensors
from traindx.norm.audit.facts import Family, Layer, Seen, Settings, Subject
from traindx.norm.modules.attribution import attribute
from traindx.norm.modules.checkpoints import read
from traindx.norm.modules.connections import connections, named, outputs
from traindx.norm.modules.population import Moments
from traindx.norm.modules.recalibrate import running_gap
from traindx.norm.modules.state_facts import layers_of
from traindx.trial import unchanged

_KNOWN = {
    _BatchNorm: Family.BATCH,
    _InstanceNorm: Family.INSTANCE,
    nn.GroupNorm: Family.GROUP,
    nn.LayerNorm: Family.LAYER,
    nn.RMSNorm: Family.RMS,
}
_TRIED = 64
"""Layers that are switched one at a time, those with the largest gap first."""


def of_checkpoint(path: Path, *, steps: int | None = None) -> Subject:
    """What a file of weights tells.

    Raises:
        UsageError: It cannot be read, or holds no weights.
    """
    layers, malformed = layers_of(read(path))
    return Subject(str(path), tuple(layers), tuple(malformed), steps)


def of_model(
    model: nn.Module,
    inputs: Sequence[Any] = (),
    *,
    random: bool = False,
    name: str = "",
    weights: str = "",
    steps: int | None = None,
) -> Subject:
    """What a model tells, tried on a batch if one is given; it comes back as it was.

    Args:
        model: The model.
        inputs: What to call it with; a dict alone is its keywords.
        random: Whether that is noise and not of the data the model is for.
        name: What it is called.
        weights: The file that its weights are from, if any.
        steps: Optimizer steps it was trained for, if known.

    Raises:
        UsageError: It fails on the batch in evaluation, or is lazy and has no shapes yet.
    """
    if any(map(is_lazy, (*model.parameters(), *model.buffers()))):
        raise UsageError(
            say("The model is lazy and has no shapes yet. Call it on a batch before it is given.")
        )
    with _eager():
        subject = Subject(
            name or type(model).__name__,
            (),
            steps=steps,
            live=True,
            weights=weights,
            batch=bool(inputs),
            random=random,
        )
        return _of_model(subject, _bare(model), inputs)


def _bare(model: nn.Module) -> nn.Module:
    """Without what `torch.compile` wraps a model in."""
    inner = getattr(model, "_orig_mod", None)
    return inner if isinstance(inner, nn.Module) else model


def _eager() -> AbstractContextManager[object]:
    """Compiled parts run as they are written: hooks and modes would compile them anew."""
    return cast(Any, torch.compiler).set_stance("force_eager")


def _of_model(subject: Subject, model: nn.Module, inputs: Sequence[Any]) -> Subject:
    by_name, malformed = layers_of(model.state_dict())
    modules = {fqn: module for fqn, module in named(model) if family(module) is not Family.OTHER}
    told = {layer.fqn: layer for layer in by_name if layer.family is not Family.SPECTRAL}
    layers = [_live(fqn, module, told.get(fqn)) for fqn, module in modules.items()]
    aliases = {fqn for fqn, module in _each(model) if family(module) is not Family.OTHER}
    layers += [x for x in by_name if _shows_only_in_state(x) and x.fqn not in aliases]
    subject = replace(subject, layers=tuple(layers), malformed=tuple(malformed))
    return _tried(subject, model, inputs, modules) if inputs else subject


def _shows_only_in_state(layer: Layer) -> bool:
    """Spectral normalization, and statistics of classes that are not known."""
    return layer.family is Family.SPECTRAL or layer.statistics is not None


def _each(model: nn.Module) -> Iterable[tuple[str, nn.Module]]:
    """Its modules by all of their names."""
    return cast(Any, model).named_modules(remove_duplicate=False)


def family(module: nn.Module) -> Family:
    """What a module computes: torch's classes and their kin, others by what they are called.

    Hugging Face and others write RMSNorm and LayerNorm of their own, named so.
    """
    for kind, known in _KNOWN.items():
        if isinstance(module, kind):
            return known
    weight = getattr(module, "weight", None)
    if isinstance(weight, Tensor) and weight.dim() == 1 and _eps(module) is not None:
        for known in (Family.RMS, Family.LAYER):
            if type(module).__name__.endswith(known.value):
                return known
    return Family.OTHER


def _eps(module: nn.Module) -> float | None:
    for name in ("eps", "variance_epsilon", "epsilon"):
        value = getattr(module, name, None)
        if isinstance(value, int | float):
            return float(value)
    return None


def _live(fqn: str, module: nn.Module, told: Layer | None) -> Layer:
    held: Any = module
    weight = cast("Tensor | None", getattr(held, "weight", None))
    known = isinstance(weight, Tensor)  # a quantized layer's is a function
    settings = Settings(
        _eps(module),
        getattr(held, "momentum", None),
        getattr(held, "running_mean", None) is not None,
        module.training,
        any(param.requires_grad for param in module.parameters()) if known else None,
    )
    return Layer(
        fqn,
        type(module).__name__,
        family(module),
        str(weight.dtype).removeprefix("torch.") if known else "",
        told.statistics if told else None,
        settings,
    )


# -- on a batch -----------------------------------------------------------------------------------


def _tried(
    subject: Subject, model: nn.Module, inputs: Sequence[Any], modules: Mapping[str, nn.Module]
) -> Subject:
    with unchanged(model):
        model.eval()
        _, links = connections(model, inputs)
    holders = dict(named(model))
    seen, failure = _seen(model, inputs, modules)
    for fqn, fed_by in links.fed_by.items():
        if fqn in seen and fed_by and getattr(holders[fed_by], "bias", None) is not None:
            seen[fqn] = replace(seen[fqn], biased_layer=fed_by)
    layers = tuple(replace(x, seen=seen.get(x.fqn)) for x in subject.layers)
    if subject.random:
        layers = tuple(replace(x, seen=x.seen and replace(x.seen, gap=None)) for x in layers)
        noise = say("the batch is noise, not of the model's data")
        return replace(subject, layers=layers, untried=noise)
    subject = replace(subject, layers=layers)
    if failure is not None:
        return replace(subject, untried=failure.message)
    return _attributed(subject, model, inputs, modules)


def _seen(
    model: nn.Module, inputs: Sequence[Any], modules: Mapping[str, nn.Module]
) -> tuple[dict[str, Seen], UsageError | None]:
    """What each layer is given when every BatchNorm normalizes by the batch."""
    seen: dict[str, Seen] = {}
    with _listening(modules, seen), unchanged(model), torch.no_grad():
        model.eval()
        for module in modules.values():
            module.training = isinstance(module, _BatchNorm)
        try:
            outputs(model, inputs)
        except UsageError as error:
            return seen, error
    return seen, None


@contextmanager
def _listening(modules: Mapping[str, nn.Module], seen: dict[str, Seen]) -> Generator[None]:
    handles = [
        cast(Any, module).register_forward_pre_hook(_note(fqn, seen), with_kwargs=True)
        for fqn, module in modules.items()
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _note(fqn: str, seen: dict[str, Seen]) -> Any:
    def note(module: nn.Module, args: tuple[object, ...], kwargs: Mapping[str, object]) -> None:
        x = next(tensors([*args, *kwargs.values()]), None)
        if x is not None and x.is_floating_point() and x.numel():
            values = _together(module, x.detach().double())
            if values is not None:
                seen[fqn] = _facts(module, x.detach(), values)

    return note


def _facts(module: nn.Module, x: Tensor, together: Tensor) -> Seen:
    mean, std = together.mean(1), together.std(1, correction=0)
    spread = (mean.abs() / std.clamp_min(1e-30)).nan_to_num(0.0, 0.0, 0.0)
    offset = float(spread.max()) if together.shape[1] > 1 else 0.0
    return Seen(x.shape[0], together.shape[1], offset, _error(module, x), gap=_gap(module, x))


def _together(module: nn.Module, values: Tensor) -> Tensor | None:
    """The elements that share a statistic, in rows; None where the layer normalizes otherwise."""
    match family(module):
        case Family.BATCH if values.dim() > 1:
            return values.movedim(1, 0).reshape(values.shape[1], -1)
        case Family.GROUP if values.dim() > 1:
            return values.reshape(values.shape[0] * cast(nn.GroupNorm, module).num_groups, -1)
        case Family.LAYER | Family.RMS:
            weight = getattr(module, "weight", None)
            shape = getattr(module, "normalized_shape", None) or getattr(weight, "shape", ())
            extent = tuple(int(n) for n in shape)
            if tuple(values.shape[values.dim() - len(extent) :]) == extent:
                return values.reshape(-1, math.prod(extent))
            if len(extent) == 1 and values.dim() > 2 and values.shape[1] == extent[0]:
                return values.movedim(1, -1).reshape(-1, extent[0])  # over the channels (timm)
            return None
        case Family.INSTANCE if values.dim() > 2:
            return values.reshape(-1, *values.shape[2:]).flatten(1)
        case _:
            return None


def _error(module: nn.Module, x: Tensor) -> float | None:
    """What torch's kernel does wrong on channels_last input; ours do not call it so."""
    if not isinstance(module, nn.GroupNorm) or type(module).__module__.startswith("traindx."):
        return None
    last = x.is_cpu and x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last)
    if not last or x.is_contiguous() or not bool(x.isfinite().all()):
        return None
    exact = F.group_norm(x.double().contiguous(), module.num_groups, eps=module.eps)
    found = F.group_norm(x, module.num_groups, eps=module.eps)
    return float((found.double() - exact).abs().max()) if x.dtype.itemsize >= 4 else None


def _gap(module: nn.Module, x: Tensor) -> float | None:
    if not isinstance(module, _BatchNorm) or module.running_mean is None or x.dim() < 2:
        return None
    var = cast(Tensor, module.running_var)
    return running_gap(module.running_mean, var, Moments.of(x), module.eps)


def _attributed(
    subject: Subject, model: nn.Module, inputs: Sequence[Any], modules: Mapping[str, nn.Module]
) -> Subject:
    gaps = {x.fqn: x.seen.gap for x in subject.layers if x.seen and x.seen.gap is not None}
    tried = sorted(gaps, key=lambda fqn: -gaps[fqn])[:_TRIED]
    if not tried:
        return replace(subject, untried=say("no layer has running statistics"))
    norms = {fqn: cast(_BatchNorm, modules[fqn]) for fqn in tried}
    try:
        found = attribute(model, inputs, norms)
    except UsageError as error:
        return replace(subject, untried=error.message)
    layers = tuple(
        replace(x, seen=replace(x.seen, share=found.shares[x.fqn]))
        if x.seen and x.fqn in found.shares
        else x
        for x in subject.layers
    )
    return replace(subject, layers=layers, change=found.change, rest=found.rest)
