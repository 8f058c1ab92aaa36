"""N020: BatchNorm that keeps no running statistics."""

from __future__ import annotations

from dataclasses import replace

from tests.rules.recording import Recording, batchnorm_net
from traindx.facts import Json
from traindx.records import Event, EventKind, Site


def run_of(*, track: bool = False, kind: str = "BatchNorm1d", in_eval: bool = True) -> Recording:
    net = batchnorm_net("bn1", "bn2")
    own: dict[str, Json] = {"track_running_stats": track}
    modules = [replace(m, kind=kind, options=m.options | own) if m.fqn else m for m in net.modules]
    recording = Recording(replace(net, modules=tuple(modules)))
    for step in range(5):
        recording.scalar(step, "loss", 1.0)
        recording.scalar(step, "mode.training", 1)
        recording.measured(step)
    recording.evaluated(4, training=not in_eval)
    recording.ended(5)
    return recording


def test_fires_when_evaluation_has_nothing_but_the_batch():
    (finding,) = run_of().findings("N020")
    assert finding.evidence.site == ("net", "bn1")
    assert finding.evidence.message == (
        "2 BatchNorm layers of net keep no running statistics, and in 5 forward passes in eval "
        "mode normalized by the batch"
    )


def test_silent_when_statistics_are_kept():
    assert run_of(track=True).findings("N020") == ()


def test_silent_on_instance_norm_which_looks_at_one_sample():
    assert run_of(kind="InstanceNorm2d").findings("N020") == ()


def test_silent_when_the_model_was_not_evaluated_in_eval_mode():
    assert run_of(in_eval=False).findings("N020") == ()


def seen_by_preflight(kind: str, mode: str = "evaluation") -> Recording:
    recording = Recording(batchnorm_net("bn1"))
    recording.scalar(-1, "probe.batch_mixing", 0.3)
    detail: dict[str, Json] = {
        "probe": "batch-composition", "mode": mode, "kind": kind, "mixing": 0.3, "tolerance": 1e-4,
    }  # fmt: skip
    recording.items.append(Event(-1, EventKind.OBSERVED, Site("net", "bn1"), detail))
    recording.measured(-1)
    return recording


def test_fires_before_training_where_preflight_sees_samples_mixed():
    run = seen_by_preflight("BatchNorm1d")
    (finding,) = run.findings("N020")
    assert "moves by 0.3 of its RMS" in finding.evidence.message
    assert run.findings("E007") == ()  # it is one cause, and told once


def test_silent_on_other_layers_that_mix_and_in_training():
    assert seen_by_preflight("Attention").findings("N020") == ()
    assert seen_by_preflight("BatchNorm1d", "training").findings("N020") == ()
