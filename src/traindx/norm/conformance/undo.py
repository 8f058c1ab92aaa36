"""Undoes one of several differences, so that each can be shown alone."""

from __future__ import annotations

from dataclasses import replace

from traindx.norm.conformance.kinds import on_axis
from traindx.norm.spec import NormSpec


def undone(found: NormSpec, expected: NormSpec, name: str) -> NormSpec:
    """What was found, but for the difference of this name."""
    running, before = found.running, expected.running
    match name:
        case "eps" if found.eps_placement is expected.eps_placement:
            return replace(found, eps=expected.eps)
        case "eps" | "eps-placement":
            return replace(found, eps=expected.eps, eps_placement=expected.eps_placement)
        case "momentum" | "momentum-swapped" | "running-frozen" if running and before:
            return replace(found, running=replace(running, momentum=before.momentum))
        case "running-variance" if running and before:
            return replace(found, running=replace(running, variance=before.variance))
        case "variance":
            return replace(found, variance=expected.variance)
        case "group-order" if found.groups and expected.groups:
            return replace(found, groups=replace(found.groups, order=expected.groups.order))
        case "axis" if found.groups and expected.groups:
            return on_axis(found, expected.groups.axis)
        case "axis" if found.reduced.others:
            return on_axis(found, expected.reduced.named[-1])
        case "axis" | "axes":
            if running and before:
                running = replace(running, axes=before.axes)
            reduced, affine = expected.reduced, expected.affine
            return replace(found, reduced=reduced, affine=affine, running=running)
        case _:
            return expected
