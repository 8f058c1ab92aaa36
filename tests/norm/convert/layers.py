"""Layers to convert, with numbers in which no two are alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from traindx.norm.convert.frameworks.catalog import FRAMEWORKS
from traindx.norm.convert.frameworks.framework import Hint, Hints, by_pattern
from traindx.norm.convert.state import NormState
from traindx.norm.presets import preset

C, G = 6, 2
FILES = [(name, suffix) for name in FRAMEWORKS for suffix in FRAMEWORKS[name].suffixes]
KINDS = ("BatchNorm", "LayerNorm", "GroupNorm", "InstanceNorm", "RMSNorm")


def numbers(kind: str, seed: int = 0) -> dict[str, Any]:
    """Weights and statistics of a layer in float32."""
    draw = np.random.default_rng(seed).uniform
    found = {"weight": draw(0.5, 2, C)}
    if kind != "RMSNorm":
        found["bias"] = draw(-1, 1, C)
    if kind == "BatchNorm":
        found |= {"running_mean": draw(-2, 2, C), "running_var": draw(1e-4, 3, C)}
    return {role: values.astype(np.float32) for role, values in found.items()}


def state(framework: str, kind: str, **options: Any) -> NormState:
    """A layer of a framework, called after its kind."""
    groups = {"num_groups": G} if kind == "GroupNorm" else {}
    spec = preset(FRAMEWORKS[framework].presets[kind], **{"eps": 3e-4, **groups, **options})
    batches = 17 if framework == "torch" and kind == "BatchNorm" else None
    return NormState(f"block.{kind.lower()}", spec, numbers(kind), batches)


def every(framework: str) -> list[NormState]:
    """A layer of each kind."""
    return [state(framework, kind) for kind in KINDS]


def hints(states: Sequence[NormState]) -> Hints:
    """What the files of weights do not tell of them."""
    every = ("eps", "momentum", "num_groups")
    return by_pattern([Hint(one.name, one.spec, every) for one in states])


NONE = by_pattern(())


def same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two layers hold the same numbers, to the bit."""
    return set(one) == set(other) and all(np.array_equal(one[key], other[key]) for key in one)


def written(framework: str, suffix: str, folder: Path, states: Sequence[NormState]) -> Path:
    """A file of a framework with these layers."""
    path = folder / f"source{suffix}"
    FRAMEWORKS[framework].writes(path, states)
    return path
