"""N011: weights of normalizations that let nothing through."""

from __future__ import annotations

from collections.abc import Sequence

from tests.rules.normed import layernorm_net, sgd
from tests.rules.recording import Recording
from traindx.findings import Severity


def run_of(sizes: dict[str, Sequence[float]], *, decay: float = 0.1) -> Recording:
    """Weights of these layers over the steps 0, 5, 10, ..."""
    recording = Recording(layernorm_net(*sizes), sgd(decay))
    for i in range(len(next(iter(sizes.values())))):
        for fqn, values in sizes.items():
            recording.scalar(5 * i, "param.rms", values[i], f"{fqn}.weight")
        recording.measured(5 * i)
    return recording


def test_fires_when_all_weights_start_at_zero_and_stay_there():
    (finding,) = run_of({"a": [0, 0, 0], "b": [0, 0, 0.01]}).findings("N011")
    assert finding.severity is Severity.ERROR
    assert finding.evidence.site == ("net", "a")
    assert "of all 2 normalization layers were 0 at the first step" in finding.evidence.message


def test_fires_when_all_weights_were_drawn_around_zero():
    (finding,) = run_of({"a": [0.02, 0.03, 0.05], "b": [0.02, 0.04, 0.06]}).findings("N011")
    assert finding.severity is Severity.WARNING
    assert finding.evidence.message == (
        "the weights of all 2 normalization layers were small at the first step, 0.02 at most "
        "(RMS), and have stayed so"
    )
    assert "ones_" in finding.evidence.fix


def test_silent_when_what_was_drawn_small_has_grown_or_only_some_were():
    assert run_of({"a": [0.02, 0.08, 0.2], "b": [0.02, 0.1, 0.2]}).findings("N011") == ()
    assert run_of({"a": [0.02, 0.02, 0.02], "b": [0.5, 0.5, 0.5]}).findings("N011") == ()
    assert run_of({"a": [0.02, 0.02, 0.02]}).findings("N011") == ()


def test_silent_when_some_weight_starts_at_one():
    assert run_of({"a": [1, 1, 1], "b": [0, 0, 0]}).findings("N011") == ()


def test_silent_when_the_weights_have_grown_or_it_is_too_early():
    assert run_of({"a": [0, 0.1, 0.3], "b": [0, 0.1, 0.2]}).findings("N011") == ()
    assert run_of({"a": [0, 0], "b": [0, 0]}).findings("N011") == ()


def test_fires_when_decay_takes_them_away():
    (finding,) = run_of({"a": [1, 0.3, 0.08], "b": [1, 1, 1]}).findings("N011")
    assert finding.severity is Severity.WARNING
    assert finding.evidence.message == (
        "weight decay has brought the weights of 1 of 2 normalization layers under 0.1 of their "
        "first size, of `a` to 0.08 of it"
    )
    assert '"weight_decay": 0.0' in finding.evidence.fix


def test_silent_without_weight_decay():
    """A penalty of the loss prunes on purpose."""
    assert run_of({"a": [1, 0.3, 0.08]}, decay=0.0).findings("N011") == ()


def test_silent_when_few_have_fallen_or_not_far():
    many = {name: [1, 1, 1] for name in "bcdef"}
    assert run_of({"a": [1, 0.3, 0.05], **many}).findings("N011") == ()
    assert run_of({"a": [1, 0.3, 0.11]}).findings("N011") == ()
