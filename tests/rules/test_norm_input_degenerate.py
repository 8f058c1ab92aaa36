"""N012: normalizations of single numbers."""

from __future__ import annotations

from tests.rules.normed import layernorm_net
from tests.rules.recording import Recording
from traindx.facts import Json
from traindx.findings import Severity
from traindx.records import Event, EventKind, Site


def run_of(**groups: float) -> Recording:
    recording = Recording(layernorm_net(*groups))
    for fqn, group in groups.items():
        recording.scalar(0, "norm.group", group, fqn)
    recording.measured(0)
    return recording


def test_fires_when_a_group_is_a_single_number():
    (finding,) = run_of(a=10, b=1).findings("N012")
    assert finding.severity is Severity.ERROR
    assert finding.evidence.site == ("net", "b")
    assert "whatever its input (1 of 2 normalization layers)" in finding.evidence.message


def test_silent_without_normalizations():
    assert run_of().findings("N012") == ()


def test_silent_on_groups_of_two():
    assert run_of(a=2, b=2).findings("N012") == ()


def before_training(group: float, **layout: Json) -> Recording:
    recording = Recording(layernorm_net("a"))
    recording.scalar(-1, "probe.norm_group", group, "a")
    detail: dict[str, Json] = {"probe": "normalization-layout", "kind": "LayerNorm", **layout}
    recording.items.append(Event(-1, EventKind.OBSERVED, Site("net", "a"), detail))
    recording.measured(-1)
    return recording


def test_fires_before_training_by_the_shapes_that_preflight_sees():
    (finding,) = before_training(1).findings("N012")
    assert finding.evidence.site == ("net", "a")


def test_silent_before_training_on_two_numbers_and_where_statistics_are_kept():
    assert before_training(2).findings("N012") == ()
    assert before_training(1, kind="BatchNorm1d", training=False).findings("N012") == ()
