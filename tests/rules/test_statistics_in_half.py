"""N015: running statistics in half precision."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.rules.recording import Recording, batchnorm_net
from traindx.findings import Severity


def run_of(dtype: str | None, momentum: float | None, *, updates: int = 1) -> Recording:
    net = batchnorm_net("bn", momentum=momentum)
    added = {} if dtype is None else {"running_dtype": dtype}
    modules = [replace(m, options=m.options | added) if m.fqn else m for m in net.modules]
    recording = Recording(replace(net, modules=tuple(modules)))
    recording.scalar(0, "norm.updates", updates, "bn")
    recording.measured(0)
    return recording


def test_fires_when_small_steps_are_rounded_away():
    (finding,) = run_of("bfloat16", 0.01).findings("N015")
    assert finding.severity is Severity.WARNING
    assert finding.evidence.message == (
        "the running statistics of 1 normalization layers are bfloat16 and stall 20% or more from "
        "their goal with momentum=0.01 (threshold 10%), first `bn`"
    )


def test_is_an_error_when_a_third_is_lost():
    (finding,) = run_of("bfloat16", 0.005).findings("N015")
    assert finding.severity is Severity.ERROR


@pytest.mark.parametrize(
    ("dtype", "momentum"),
    [("bfloat16", 0.1), ("float16", 0.01), (None, 0.001), ("bfloat16", None), ("bfloat16", 0.0)],
)
def test_silent_where_little_is_lost(dtype: str | None, momentum: float | None):
    assert run_of(dtype, momentum).findings("N015") == ()


def test_silent_on_a_layer_that_updates_nothing():
    assert run_of("bfloat16", 0.01, updates=0).findings("N015") == ()
