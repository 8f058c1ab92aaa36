"""N016: frozen layers that go on averaging."""

from __future__ import annotations

from dataclasses import replace

from tests.rules.recording import Recording, batchnorm_net, linear, weight


def run_of(
    *,
    steps: int = 25,
    training: int = 1,
    updates: int = 1,
    frozen: bool = True,
    before: bool = False,
) -> Recording:
    """A BatchNorm with frozen weights, and a trained layer behind it or before it."""
    net = batchnorm_net("bn", affine_frozen=frozen)
    shifted = [replace(m, order=None if m.order is None else 2 * m.order) for m in net.modules]
    head = linear("head", 1 if before else 9)
    recording = Recording(
        replace(net, modules=(*shifted, head), params=(*net.params, weight("head")))
    )
    for step in range(steps):
        recording.scalar(step, "norm.training", training, "bn")
        recording.scalar(step, "norm.updates", updates, "bn")
        recording.measured(step)
    return recording


def test_fires_when_a_frozen_layer_averages_new_batches():
    (finding,) = run_of().findings("N016")
    assert finding.evidence.site == ("net", "bn")
    assert "updated their statistics for 24 steps (threshold 20)" in finding.evidence.message


def test_silent_in_eval_mode():
    assert run_of(training=0, updates=0).findings("N016") == ()


def test_silent_on_a_layer_that_is_trained_or_lies_behind_a_trained_one():
    assert run_of(frozen=False).findings("N016") == ()
    assert run_of(before=True).findings("N016") == ()


def test_silent_up_to_the_threshold():
    assert run_of(steps=20).findings("N016") == ()
