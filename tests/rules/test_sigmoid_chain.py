"""F005: sigmoids in a row."""

import math

import pytest

from tests.rules.recording import Recording, chain
from traindx.facts import PathFacts
from traindx.findings import Severity

DEPTH = 10


def run_of(paths: list[PathFacts], decades_per_layer: float = 0.6, *, steps: int = 4) -> Recording:
    recording = Recording(chain(len(paths), paths))
    for step in range(steps):
        recording.scalar(step, "loss", 2.3)
        for i in range(len(paths)):
            recording.grad(step, f"{i}.weight", 10 ** (decades_per_layer * (i - len(paths))))
        recording.measured(step)
    return recording


def sigmoids(depth: int, *, norm: float = 1.0, norms: int = 0) -> list[PathFacts]:
    """The paths of a chain with a sigmoid behind every layer and weights of this spectral norm."""
    behind = range(depth, 0, -1)
    factor = math.log10(0.25 * norm)
    return [PathFacts(n, norms, None if norms else factor * n) for n in behind]


def test_fires_on_ten_sigmoids_whose_gradient_vanishes():
    (finding,) = run_of(sigmoids(DEPTH)).findings("F005")
    assert finding.severity is Severity.ERROR
    assert finding.evidence.site == ("net", "0")
    assert finding.evidence.layers[0] == "0"
    assert finding.evidence.profiles == ("grad.rms",)
    assert finding.evidence.numbers["log10_bound"] == pytest.approx(DEPTH * math.log10(0.25))
    bound, measured = finding.evidence.message.split("; measured, ")
    assert "every way from the loss back to `0.weight` passes 10 sigmoids or more" in bound
    assert "at most 10^-6.0 of the loss's gradient arrives there" in bound
    assert measured == "the gradient RMS is 1e-06 at this weight and 0.25 at the last layer's"
    assert finding.remedies == ("use-relu-he",)


def test_silent_when_a_normalization_stands_on_the_path():
    assert run_of(sigmoids(DEPTH, norms=1)).findings("F005") == ()


def test_silent_when_large_weights_make_up_for_the_sigmoids():
    # (0.25 * 3)^10 = 10^-1.2: no proof, whatever was measured.
    assert run_of(sigmoids(DEPTH, norm=3.0)).findings("F005") == ()


def test_silent_when_a_skip_connection_leads_around_the_sigmoids():
    assert run_of([PathFacts(1, 0, math.log10(0.25))] * DEPTH).findings("F005") == ()


def test_silent_when_three_sigmoids_with_tiny_weights_give_the_bound():
    paths = [PathFacts(3, 0, -8.0)] * DEPTH
    assert run_of(paths).findings("F005") == ()
    assert len(run_of(paths).findings("F005", sigmoids=3)) == 1


def test_silent_when_no_vanishing_is_measured():
    assert run_of(sigmoids(DEPTH), decades_per_layer=0.1).findings("F005") == ()


def test_silent_when_fewer_than_three_measured_steps_show_it():
    assert run_of(sigmoids(DEPTH), steps=2).findings("F005") == ()


def test_it_explains_the_vanishing_gradient():
    verdict = run_of(sigmoids(DEPTH)).verdict("G001", "F005")
    cause, symptom = verdict.findings
    assert (cause.code, symptom.code) == ("F005", "G001")
    assert (cause.id, cause.caused_by) == (1, ())
    assert symptom.caused_by == (1,)


def test_is_not_evaluated_where_no_gradient_is_finite():
    verdict = run_of(sigmoids(DEPTH), decades_per_layer=math.nan).verdict("F005")
    assert verdict.not_evaluated[0].reason == "the gradients of net are not finite"


def test_is_not_evaluated_where_no_graph_was_walked():
    recording = Recording(chain(DEPTH))
    recording.grad(0, "0.weight", 1.0)
    recording.measured(0)
    verdict = recording.verdict("F005")
    assert verdict.not_evaluated[0].reason == "the backward graph was not walked"
