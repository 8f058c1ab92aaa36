"""Probe: the batch and what the first layer is given: NaN, copies, range, scale of each feature."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase  # pyright: ignore[reportPrivateUsage]
from torch.nn.modules.conv import _ConvNd  # pyright: ignore[reportPrivateUsage]

from traindx.facts import Json
from traindx.messages import say
from traindx.preflight.case import Case, DoesNotApplyError
from traindx.preflight.marks import marks_of
from traindx.preflight.probe import STEP, observed, probe
from traindx.preflight.structures import named_tensors
from traindx.records import Item, Scalar, Site

_WEIGHTED = (nn.Linear, _ConvNd, nn.RNNBase, nn.RNNCellBase)
_COLUMNS = 2048
"""Elements of a sample, evenly spaced, by which it is compared with the others."""
_EVEN = 1e-3
"""How far from evenly spaced values of float32 may lie, in spaces."""
_LEVELS = 4
"""Values that some column must take before they can be called evenly spaced."""
_NORMS = (_NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)


class _First(NamedTuple):
    """The first layer that multiplies its input by weights.

    Attributes:
        fqn: Its path.
        given: Its input.
        axis: The axis of the features.
        normalized: Whether a normalization takes its output as it is.
    """

    fqn: str
    given: Tensor
    axis: int
    normalized: bool


@probe(writes=("probe.input_nonfinite", "probe.input_rms"), passes=0.1)
def input_values(case: Case) -> Iterator[Item]:
    """NaN, copies and constants in the batch, and the scale of what the first layer is given."""
    named = named_tensors([list(case.args), dict(case.kwargs)])
    if not named:
        raise DoesNotApplyError(say("the batch holds no tensors"))
    site = Site(case.name)
    tensors = [*named, *((f"target {i}", t) for i, t in enumerate(case.targets))]
    broken = [(_placed(name), _nonfinite(t)) for name, t in tensors]
    yield Scalar(STEP, "probe.input_nonfinite", sum(count for _, count in broken), site)
    yield observed(
        "input-values",
        site,
        broken=[name for name, count in broken if count],
        **_varied([t for _, t in named if t.dim() and t.layout is torch.strided]),
    )
    first = _first_layer(case)
    if first is not None:
        yield from _scale(case, first)


def _placed(name: str) -> str:
    """The path of a tensor in the batch: the arguments come before the keyword arguments."""
    return name.partition(".")[2] or name if not name.startswith("target") else name


def _nonfinite(tensor: Tensor) -> int:
    """How many elements are NaN or infinite; a mask is made of infinities on purpose."""
    if not tensor.is_floating_point():
        return 0
    values = tensor.detach()
    values = values.coalesce().values() if values.is_sparse else values
    if values.layout is not torch.strided:  # of other layouts not every function is there
        return 0
    if bool((values == -math.inf).any()) and not bool(values.isnan().any()):
        return 0
    return int((~values.isfinite()).sum())


def _varied(tensors: list[Tensor]) -> dict[str, Json]:
    """What varies most of the tensors with as many rows as the first: another may be a mask."""
    found = [_copies(t) for t in tensors if t.shape[0] == tensors[0].shape[0]]
    return max(found, key=lambda one: cast(int, one["distinct"])) if found else {}


def _copies(batch: Tensor) -> dict[str, Json]:
    """How many samples of a batch are copies of another one."""
    rows = batch.detach().flatten(1) if batch.dim() > 1 else batch.detach()[:, None]
    some = rows[:, :: max(1, rows.shape[1] // _COLUMNS)]  # sorting whole images takes seconds
    distinct = (
        len(rows) if not rows.numel() else len(cast(Tensor, cast(Any, torch).unique(some, dim=0)))
    )
    constant = (rows == rows[:1]).all(0).float().mean() if rows.numel() else torch.tensor(0.0)
    filled = (rows != 0).double()
    return {
        "blank": int((filled.sum(1) == 0).sum()),
        "filled": float(filled.mean()) if rows.numel() else 1.0,
        "real": rows.is_floating_point(),
        "samples": len(rows),
        "features": rows.shape[1],
        "distinct": distinct,
        "constant_fraction": float(constant),
        "whole": not rows.is_floating_point()
        or bool((rows == rows.round()).all())
        or _is_grid(some.double()),
    }


def _is_grid(rows: Tensor) -> bool:
    """Whether the values are whole numbers but for scale and offset, as states of a small world.

    Those of every column are evenly spaced and take at least half of the places between them;
    copies of a few samples of other numbers do not.
    """
    most = 0
    for column in rows.unbind(1):
        values = cast(Tensor, cast(Any, column).unique())
        most = max(most, len(values))
        if len(values) < 3 or not bool(values.isfinite().all()):
            continue
        gaps = values[1:] - values[:-1]
        places = (values - values[0]) / gaps.min()
        uneven = float((places - torch.round(places)).abs().max())
        if uneven > _EVEN or float(places[-1]) >= 2 * len(values):
            return False
    return most >= _LEVELS


class _EnoughError(Exception):
    """Ends a forward pass of which no more is to be seen."""


# -- the first layer -------------------------------------------------------------------------------


def _first_layer(case: Case) -> _First | None:
    """What the first weighted layer is given; None if there is none, or it is given no numbers."""
    calls: list[tuple[str, nn.Module, Any, Any]] = []
    handles: list[Any] = []
    named = cast("Iterable[tuple[str, nn.Module]]", cast(Any, case.model).named_modules())
    for fqn, module in named:
        if isinstance(module, (*_WEIGHTED, *_NORMS, nn.Embedding, nn.EmbeddingBag)):

            def note(module: Any, args: Any, output: Any, fqn: str = fqn) -> None:
                calls.append((fqn, module, args[0] if args else None, output))
                if len(calls) > 1 or not isinstance(module, _WEIGHTED):
                    raise _EnoughError

            handles.append(cast(Any, module).register_forward_hook(note))
    try:
        with torch.no_grad(), contextlib.suppress(_EnoughError):
            case.output()
    finally:
        for handle in handles:
            handle.remove()
    if not calls or not isinstance(calls[0][1], _WEIGHTED) or not isinstance(calls[0][2], Tensor):
        return None
    fqn, module, given, output = calls[0]
    follows = len(calls) > 1 and isinstance(calls[1][1], _NORMS) and calls[1][2] is output
    axis = 1 if isinstance(module, _ConvNd) and given.dim() > 2 else given.dim() - 1
    return _First(fqn, given, axis, follows)


def _scale(case: Case, first: _First) -> Iterator[Item]:
    """Moments of the features, which a normalization right behind the layer would make equal."""
    given = first.given.detach().double()
    if given.dim() < 2 or not bool(given.isfinite().all()):
        return
    features = given.movedim(first.axis, -1).flatten(0, -2)
    rms = features.square().mean(0).sqrt()
    used = rms[rms > 0]
    mean, std = float(features.mean()), float(features.std(correction=0))
    site = Site(case.name, first.fqn)
    yield Scalar(STEP, "probe.input_rms", float(features.square().mean().sqrt()), site)
    yield observed(
        "input-scale",
        site,
        mean=mean,
        std=std,
        min=float(features.min()),
        max=float(features.max()),
        greatest_rms=float(rms.max()),
        median_rms=float(used.median()) if used.numel() else 0.0,
        feature=int(rms.argmax()),
        features=rms.numel(),
        normalized=first.normalized,
        **_marked(given),
    )


def _marked(given: Tensor) -> dict[str, Json]:
    """Numbers of a table that stand for none."""
    marks = marks_of(given) if given.dim() == 2 else None
    if marks is None:
        return {}
    return {"mark": marks.value, "marks": marks.elements, "marked": marks.columns}
