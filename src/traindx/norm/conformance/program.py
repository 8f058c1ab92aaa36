"""A stand-alone program that shows one difference: what the framework gives, and what is right.

It needs the framework and NumPy, nothing of ours: whoever gets it can read all of it.
"""

from __future__ import annotations

import numpy as np

from traindx.errors import ArgumentError
from traindx.norm.choices import EpsPlacement, Estimator, Scale
from traindx.norm.conformance.kinds import resolved
from traindx.norm.conformance.precision import Numbers
from traindx.norm.conformance.study import Finding
from traindx.norm.conformance.target import Call, Target
from traindx.norm.conformance.truth import truth
from traindx.norm.moments import layout
from traindx.norm.spec import Axes, NormSpec

WITHOUT = {
    *("affine", "counter", "running", "output-type", "groups"),
    *("not-repeatable", "overwrites-input"),
}
"""Differences of which no two arrays can be shown."""


def program(target: Target, finding: Finding) -> str:
    """The program of a finding; empty if there are no outputs to show."""
    if finding.difference.name in WITHOUT:
        return ""
    call, spec = finding.call, resolved(finding.expected, finding.call.dtype)
    title = f"{finding.layer} of {target.name}: {finding.difference.text}"
    right = _right(spec, call, finding.aspect)
    shown = "print('got     ', got.ravel()[:8].tolist())"
    first = f"{right}\nprint('expected', expected.ravel()[:8].tolist())\n\n" if right else ""
    return f'''"""{_quoted(title)}

{_quoted(target.version)}. Needs it and NumPy, nothing else.
"""

import numpy as np

{_given(call)}
{first}# {finding.aspect} by {target.name}.
{target.code(call, finding.aspect)}
{shown}
'''


def _quoted(text: str) -> str:
    """Text that ends no docstring, whatever a framework said."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    return plain.replace("\\", "/").replace('"', "'")


def _given(call: Call) -> str:
    """The arrays of the question."""
    lines = [f"x = {_array(call.x)}"]
    for name, values in (
        ("weight", call.weight),
        ("bias", call.bias),
        ("dy", call.dy),
        ("mask", call.mask),
    ):
        if values is not None:
            lines.append(f"{name} = {_array(values)}")
    if call.running is not None:
        lines.append(f"running_mean = {_array(call.running[0])}")
        lines.append(f"running_var = {_array(call.running[1])}")
    return "\n".join(lines) + "\n"


def _array(values: Numbers) -> str:
    """Source of an array, short where it is regular."""
    if not values.size:
        return f"np.zeros({values.shape})"
    first = values.flat[0]
    if np.array_equal(values, np.full(values.shape, first), equal_nan=True):
        return f"np.full({values.shape}, {_number(first)})"
    flat = ", ".join(map(_number, values.ravel().tolist()))
    shaped = f".reshape({values.shape})" if values.ndim > 1 else ""
    return f"np.array([{flat}]){shaped}"


def _number(value: float) -> str:
    if np.isnan(value):
        return "np.nan"
    return repr(float(value)) if np.isfinite(value) else f"{'-' * bool(value < 0)}np.inf"


# -- what is right --------------------------------------------------------------------------------


def _right(spec: NormSpec, call: Call, aspect: str) -> str:
    """Source that makes `expected`; the formula where there is a short one, else the numbers."""
    try:
        known = truth(spec, call)
    except ArgumentError:
        return ""
    if aspect not in known:
        return ""
    usual = (
        spec.scale in (Scale.STANDARD_DEVIATION, Scale.ROOT_MEAN_SQUARE)
        and spec.eps_placement in _ROOTS
        and spec.window is None
        and call.mask is None
        and spec.renorm is None
        and (spec.groups is None or not spec.groups.affine)
        and aspect in ("forward", "grad_x", "running_mean", "running_var")
    )
    if not usual or not call.x.size or not (call.training or spec.running is None):
        return f"# By traindx's float64 reference.\nexpected = {_array(known[aspect].value)}"
    return _formula(spec, call, aspect)


_ROOTS = {
    EpsPlacement.INSIDE_ROOT: "np.sqrt(var + {eps})",
    EpsPlacement.OUTSIDE_ROOT: "(np.sqrt(var) + {eps})",
    EpsPlacement.NONE: "np.sqrt(var)",
}


def _formula(spec: NormSpec, call: Call, aspect: str) -> str:
    seen = layout(spec, call.x.shape)
    view = "x" if seen.cut is None else f"x.reshape({seen.seen})"
    lines = [
        "# In float64, by two passes.",
        f"v, axes = {view}, {seen.reduced}",
        "mean = v.mean(axis=axes, keepdims=True)" if spec.centered else "mean = 0.0",
    ]
    lost = spec.variance.lost
    over = f" * ({seen.count} / {seen.count - lost})" if lost else ""
    away = "mean" if spec.scale is Scale.STANDARD_DEVIATION else "0.0"
    if away == "mean" and not spec.centered:
        away = "v.mean(axis=axes, keepdims=True)"
    lines.append(f"var = ((v - {away}) ** 2).mean(axis=axes, keepdims=True){over}")
    if aspect.startswith("running"):
        return "\n".join(lines + _running(spec, call, aspect, seen.count))
    root = _ROOTS[spec.eps_placement].format(eps=spec.eps)
    lines.append(f"normalized = (v - mean) / {root}")
    if aspect == "forward":
        lines.append(f"expected = normalized.reshape(x.shape){_affine(spec, call)}")
        return "\n".join(lines)
    weight = f" * {_spread('weight', spec.affine, call)}" if call.weight is not None else ""
    average = ".mean(axis=axes, keepdims=True)"
    middle = f" - g{average}" if spec.centered else ""
    lines += [
        f"g = (dy{weight}).reshape(v.shape)",
        f"inner = (g * normalized){average}",
        f"expected = ((g{middle} - normalized * inner) / {root}).reshape(x.shape)",
    ]
    return "\n".join(lines)


def _affine(spec: NormSpec, call: Call) -> str:
    scale = ""
    if call.weight is not None:
        offset = f" + {spec.weight_offset}" if spec.weight_offset else ""
        scale = f" * ({_spread('weight', spec.affine, call)}{offset})"
    return scale + (f" + {_spread('bias', spec.affine, call)}" if call.bias is not None else "")


def _spread(name: str, axes: Axes | None, call: Call) -> str:
    along = () if axes is None else axes.of(call.x.ndim)
    extents = tuple(n if i in along else 1 for i, n in enumerate(call.x.shape))
    return f"{name}.reshape({extents})"


def _running(spec: NormSpec, call: Call, aspect: str, count: int) -> list[str]:
    rule = spec.running
    assert rule is not None, "its running statistics are shown"
    m = 1.0 if rule.momentum is None else rule.momentum
    if aspect == "running_mean":
        before = "0.0" if call.running is None else "running_mean"
        new = "mean"
    else:
        before = "1.0" if call.running is None else "running_var"
        biased = rule.variance is Estimator.BIASED or count == 1
        new = "var" if biased else f"var * {count} / {count - 1}"
    return [f"new = ({new}).ravel()", f"expected = {1 - m!r} * {before} + {m!r} * new"]
