"""N021: BatchNorm over padding."""

from __future__ import annotations

from tests.rules.recording import Recording, batchnorm_net


def run_of(*fractions: float) -> Recording:
    recording = Recording(batchnorm_net("bn1", "bn2"))
    for step, fraction in enumerate(fractions):
        recording.scalar(step, "norm.zero_rows", 0.0, "bn1")
        recording.scalar(step, "norm.zero_rows", fraction, "bn2")
        recording.measured(step)
    return recording


def test_fires_where_much_of_what_is_averaged_is_padding():
    (finding,) = run_of(0.8, 0.9, 0.85).findings("N021")
    assert finding.evidence.site == ("net", "bn2")
    assert finding.evidence.message == (
        "85% of the vectors that `bn2` averages are nothing but zeros (threshold 30%), as padding "
        "is"
    )
    assert "out[mask] = bn2(x[mask])" in finding.evidence.fix


def test_silent_on_a_little_padding():
    assert run_of(0.29, 0.29, 0.29).findings("N021") == ()


def test_silent_when_one_batch_alone_was_padded():
    assert not run_of(0.9, 0.1, 0.1).findings("N021")[0].active
    assert run_of(0.0, 0.1, 0.9).findings("N021") == ()
