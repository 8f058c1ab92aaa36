"""The examination of a target: every layer through every stage."""

from __future__ import annotations

from collections.abc import Iterable

from traindx.norm.conformance.defaults import study_defaults, study_evaluation
from traindx.norm.conformance.edges import study_empty, study_lone, study_masks
from traindx.norm.conformance.extremes import (
    study_constants,
    study_halves,
    study_ladder,
    study_memory,
    study_range,
    study_spoiled,
)
from traindx.norm.conformance.repeats import study_repeats
from traindx.norm.conformance.requests import study_axis, study_requests, study_windows
from traindx.norm.conformance.study import Stage, Study
from traindx.norm.conformance.target import Target

STAGES: tuple[Stage, ...] = (
    study_repeats,
    study_defaults,
    study_evaluation,
    study_requests,
    study_axis,
    study_windows,
    study_ladder,
    study_constants,
    study_memory,
    study_halves,
    study_range,
    study_spoiled,
    study_lone,
    study_empty,
    study_masks,
)
"""In this order: what comes later is judged by what was found before."""

QUICK: tuple[Stage, ...] = (study_repeats, study_defaults, study_requests, study_ladder)
"""For a target of which every question costs seconds."""


def examine(target: Target, layers: Iterable[str] | None = None) -> list[Study]:
    """What there is to know of each layer of a target."""
    return [studied(target, layer) for layer in layers or target.layers]


def studied(target: Target, layer: str) -> Study:
    """One layer through every stage; one whose defaults are not understood goes no further."""
    study = Study.begun(target, layer)
    for stage in QUICK if target.slow else STAGES:
        stage(study)
        if study.unexplained:
            break
    return study
