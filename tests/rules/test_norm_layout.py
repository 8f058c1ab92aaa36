"""S009 norm-layout: the wrong axes, or too few numbers."""

from __future__ import annotations

import pytest

from tests.rules.before_training import Probing
from traindx.facts import Json
from traindx.findings import Severity

BATCH: dict[str, Json] = {
    "kind": "BatchNorm2d", "shape": [8, 16, 4, 4], "source": "conv", "source_kind": "Conv2d",
    "channels_first": True, "normalized_axes": [], "training": True,
}  # fmt: skip
LAYER: dict[str, Json] = {
    **BATCH, "kind": "LayerNorm", "shape": [8, 16, 50], "normalized_axes": [2],
}  # fmt: skip


def seen(facts: dict[str, Json], group: float, **changes: Json) -> Probing:
    run = Probing().number("probe.norm_group", group, "norm")
    return run.seen("normalization-layout", "norm", **{**facts, **changes})


@pytest.mark.parametrize(
    ("facts", "group", "changes", "words"),
    [
        (BATCH, 2, {"shape": [2, 16]}, "groups of 2 numbers of its input 2x16"),
        (LAYER, 3, {"shape": [8, 16, 3], "channels_first": False}, "groups of 3 numbers"),
        (LAYER, 50, {}, "8x16x50 with the channels on axis 1"),
    ],
)
def test_fires_for_wrong_axes_and_small_groups(
    facts: dict[str, Json], group: float, changes: dict[str, Json], words: str
):
    (finding,) = seen(facts, group, **changes).findings("S009")
    assert finding.severity is Severity.WARNING
    assert words in finding.evidence.message


@pytest.mark.parametrize(
    ("facts", "group", "changes"),
    [
        (BATCH, 128, {}),
        (BATCH, 2, {"training": False}),
        (BATCH, 1, {"kind": "GroupNorm", "shape": [8, 16]}),  # single numbers are N012's
        (LAYER, 50, {"channels_first": False, "source": ""}),
        (LAYER, 800, {"normalized_axes": [1, 2]}),
        (BATCH, 16, {"kind": "GroupNorm"}),
    ],
)
def test_silent_for_usual_layers(facts: dict[str, Json], group: float, changes: dict[str, Json]):
    assert not seen(facts, group, **changes).findings("S009")


def test_silent_without_a_normalization():
    assert Probing().why_not("S009") == "needs preflight"
