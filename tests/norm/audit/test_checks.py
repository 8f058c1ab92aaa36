"""Every check fires on what it is about, and not on what is nearly that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

from traindx.findings import Severity
from traindx.norm.audit.check import Audit, Needs, audit, every_check
from traindx.norm.audit.facts import (
    Family,
    Layer,
    Malformed,
    Seen,
    Settings,
    Spectral,
    Statistics,
    Subject,
)

LIVE = Settings(eps=1e-5, momentum=0.1, tracks=True, training=False, trainable=True)
GOOD = Statistics(np.array([0.5, -1.0]), np.array([2.0, 0.3]), "float32", 400)
SEEN = Seen(samples=64, elements=64, offset=1.0, gap=0.05)
HEALTHY = Layer("bn", "BatchNorm2d", Family.BATCH, "float32", GOOD, LIVE, seen=SEEN)
PLAIN = Layer("ln", "LayerNorm", Family.LAYER, "float32", None, LIVE, seen=replace(SEEN, gap=None))
ON_DATA = Subject("model", (), live=True, batch=True)


def statistics(mean: Sequence[float], var: Sequence[float], **other: object) -> Layer:
    made = Statistics(np.array(mean), np.array(var), "float32", 400)
    return replace(HEALTHY, statistics=replace(made, **other))


def settings(layer: Layer = HEALTHY, **changes: object) -> Layer:
    return replace(layer, settings=replace(LIVE, **changes))


def seen(layer: Layer = HEALTHY, **changes: object) -> Layer:
    return replace(layer, seen=replace(SEEN, **changes))


def spectral(u: float, v: float | None, estimate: float, sigma: float) -> Layer:
    return Layer("sn", "SpectralNorm", Family.SPECTRAL, spectral=Spectral(u, v, estimate, sigma))


def judged(*layers: Layer, **subject: object) -> Audit:
    given = replace(ON_DATA, layers=layers)
    return audit(replace(given, **subject))


def names(found: Audit) -> list[str]:
    return [one.check for one in found.found]


FRESH = statistics([0.0, 0.0], [1.0, 1.0], batches=0)
OTHER = replace(HEALTHY, fqn="other")
THIRD = replace(HEALTHY, fqn="third")

FIRING: list[tuple[str, tuple[Layer, ...], dict[str, object]]] = [
    ("non-finite-statistics", (statistics([np.nan, 0], [1, 2]),), {}),
    ("non-finite-statistics", (statistics([1, 0], [1, np.inf]),), {}),
    ("negative-variance", (statistics([1, 0], [1, -1e-9]),), {}),
    ("zero-variance", (statistics([1, 0], [2, 0]),), {}),
    ("zero-variance", (statistics([1, 0], [2, 5.6e-45]),), {}),
    ("never-updated", (FRESH, OTHER), {}),
    ("never-updated", (FRESH,), {"steps": 100}),
    ("never-updated", (statistics([0, 0], [1, 1]),), {}),
    ("lost-counter", (statistics([1, 2], [3, 4], batches=0),), {}),
    ("counter-disagrees", (statistics([1, 2], [3, 4], batches=800), OTHER, THIRD), {}),
    ("counter-disagrees", (HEALTHY,), {"steps": 200}),
    ("half-precision-statistics", (statistics([1, 2], [3, 4], dtype="bfloat16"),), {}),
    ("half-precision-norm", (replace(PLAIN, weight_dtype="float16"),), {}),
    ("eps-dominates", (statistics([1, 2], [3, 1e-7]),), {}),
    ("momentum-of-another-framework", (settings(momentum=0.99),), {}),
    ("momentum-of-another-framework", (settings(momentum=1.0),), {}),
    ("statistics-from-the-start", (seen(settings(momentum=0.001), gap=0.3),), {}),
    (
        "instance-norm-without-momentum",
        (settings(replace(HEALTHY, family=Family.INSTANCE), momentum=None),),
        {},
    ),
    ("frozen-but-updating", (settings(training=True, trainable=False),), {}),
    ("bias-before-norm", (seen(biased_layer="conv"),), {}),
    (
        "channels-last-group-norm",
        (seen(replace(PLAIN, family=Family.GROUP), gap=None, error=0.2, offset=900.0),),
        {},
    ),
    ("one-sample-groups", (seen(PLAIN, gap=None, elements=1),), {}),
    ("eval-gap", (seen(gap=0.6),), {}),
    ("eval-gap", (seen(gap=float("nan")),), {}),
    ("averaged-spectral-vectors", (spectral(0.98, 0.97, 2.85, 3.0),), {}),
    ("averaged-spectral-vectors", (spectral(0.98, None, 2.94, 3.0),), {}),
    ("spectral-not-converged", (spectral(1.0, 1.0, 2.0, 3.0),), {}),
    ("spectral-not-converged", (spectral(1.0, 1.0, 0.0, 3.0),), {}),
    ("non-finite-spectral", (spectral(float("nan"), 1.0, float("nan"), 3.0),), {}),
    ("malformed-layer", (), {"malformed": (Malformed("bn", cast(Any, "why")),)}),
]

QUIET: list[tuple[str, tuple[Layer, ...], dict[str, object]]] = [
    ("a large but finite variance", (statistics([1e30, 0], [1e30, 2]),), {}),
    ("untrained", (FRESH, FRESH), {}),
    ("untrained, far from its batch", (seen(FRESH, gap=2.0),), {}),
    ("a few steps more", (statistics([1, 2], [3, 4], batches=404),), {"steps": 400}),
    ("no counter", (statistics([1, 2], [3, 4], batches=None),), {"steps": 400}),
    ("a weight in bfloat16", (replace(PLAIN, weight_dtype="bfloat16"),), {}),
    ("the weight alone in half", (replace(HEALTHY, weight_dtype="float16"),), {}),
    ("half, not updated", (settings(statistics([1, 2], [3, 4], dtype="float16"), momentum=0),), {}),
    ("small variance over its eps", (statistics([1, 2], [3e-5, 4e-5]),), {}),
    (
        "small variance, smaller eps",
        (replace(statistics([1, 2], [3, 1e-7]), settings=replace(LIVE, eps=1e-12)),),
        {},
    ),
    ("momentum of a half", (settings(momentum=0.5),), {}),
    ("another framework's momentum, untracked", (settings(momentum=0.99, tracks=False),), {}),
    ("small momentum, long training", (settings(momentum=0.01),), {}),
    ("small momentum, recalibrated", (seen(settings(momentum=0.001), gap=0.02),), {}),
    ("average of all batches", (settings(momentum=None),), {}),
    (
        "InstanceNorm without tracking",
        (settings(replace(PLAIN, family=Family.INSTANCE), momentum=None, tracks=False),),
        {},
    ),
    (
        "InstanceNorm counts nothing",
        (replace(statistics([1, 2], [3, 4], batches=0), family=Family.INSTANCE),),
        {},
    ),
    ("frozen and in evaluation", (settings(trainable=False),), {}),
    ("trained", (settings(training=True),), {}),
    ("no parameters", (settings(training=True, trainable=None),), {}),
    ("a bias before LayerNorm", (seen(PLAIN, gap=None, biased_layer="fc"),), {}),
    ("GroupNorm exact", (seen(replace(PLAIN, family=Family.GROUP), gap=None, error=3e-5),), {}),
    ("two elements", (seen(PLAIN, gap=None, elements=2),), {}),
    ("BatchNorm on one element", (seen(elements=1),), {}),
    ("a gap of chance", (seen(gap=0.8, samples=8),), {}),
    ("converged vectors", (spectral(1.0, 0.9999, 2.95, 3.0),), {}),
    ("a weight of zeros", (spectral(1.0, 1.0, 0.0, 0.0),), {}),
    ("a small gap", (seen(gap=0.49),), {}),
    ("a gap on noise", (seen(gap=3.0),), {"random": True}),
]


@pytest.mark.parametrize(("name", "layers", "subject"), FIRING, ids=[f[0] for f in FIRING])
def test_a_check_finds_what_it_is_about(
    name: str, layers: tuple[Layer, ...], subject: dict[str, object]
) -> None:
    assert name in names(judged(*layers, **subject))


@pytest.mark.parametrize(("layers", "subject"), [q[1:] for q in QUIET], ids=[q[0] for q in QUIET])
def test_what_is_nearly_that_is_not_found(
    layers: tuple[Layer, ...], subject: dict[str, object]
) -> None:
    assert names(judged(*layers, **subject)) == []


def test_each_check_has_a_case_that_it_fires_on() -> None:
    assert {name for name, _, _ in FIRING} == {each.name for each in every_check()}


def test_each_check_is_named_and_documented() -> None:
    checks = every_check()
    assert len({each.name for each in checks}) == len(checks)
    for each in checks:
        assert each.summary.endswith(".")
        assert each.name == each.name.lower().replace("_", "-")


def test_each_hit_says_what_to_do() -> None:
    for name, layers, subject in FIRING:
        for one in judged(*layers, **subject).found:
            assert one.hit.fix, name
            assert one.hit.message


def test_a_gap_is_an_error_only_where_the_output_changes() -> None:
    def severity(change: float | None) -> Severity:
        return judged(seen(gap=0.9), change=change).found[0].severity

    assert severity(None) is severity(0.2) is Severity.ERROR
    assert severity(0.02) is Severity.WARNING


def test_many_constant_channels_are_a_warning_and_few_a_hint() -> None:
    few = judged(statistics([0.5] * 4, [1, 2, 3, 0])).found
    many = judged(statistics([0.5] * 4, [1, 2, 0, 0])).found
    assert [one.severity for one in (*few, *many)] == [Severity.INFO, Severity.WARNING]


def test_siblings_that_count_otherwise_are_a_hint_and_steps_a_warning() -> None:
    odd = statistics([1, 2], [3, 4], batches=800)
    (hint,) = judged(odd, OTHER, THIRD).found
    (warning,) = judged(odd, OTHER, THIRD, steps=400).found
    assert (hint.severity, warning.severity) == (Severity.INFO, Severity.WARNING)
    assert hint.hit.fqn == warning.hit.fqn == "bn"
    assert "800 batches, 2 times as many as" in str(warning.hit.message)


def test_what_a_checkpoint_does_not_tell_is_not_checked() -> None:
    found = audit(Subject("w.pt", (replace(HEALTHY, settings=None, seen=None),)))
    unchecked = dict(found.unchecked)
    needy = {each.name for each in every_check() if each.needs is not Needs.NOTHING}
    assert set(unchecked) == needy
    assert set(found.checked) == {each.name for each in every_check()} - needy
    assert "eval-gap" in unchecked


def test_noise_is_no_data() -> None:
    unchecked = dict(judged(HEALTHY, random=True).unchecked)
    assert set(unchecked) == {"eval-gap", "statistics-from-the-start"}
    assert "data" in unchecked["eval-gap"]


def test_the_worst_comes_first() -> None:
    bad = statistics([np.nan, 0.5], [2, 0])
    found = judged(bad, seen(biased_layer="conv"))
    ranks = [one.severity.rank for one in found.found]
    assert ranks == sorted(ranks)
    assert ranks[0] == 0


@pytest.mark.parametrize(
    ("subject", "command"),
    [
        (Subject("w.pt", ()), "TARGET --checkpoint w.pt"),
        (Subject("my net.py:make", (), live=True), "'my net.py:make'"),
        (Subject("a.b:c", (), live=True, weights="w.pt"), "a.b:c --checkpoint w.pt"),
        (Subject("Sequential", (), live=True), "TARGET"),
    ],
)
def test_the_repair_can_be_pasted(subject: Subject, command: str) -> None:
    whole = f"traindx norm recalibrate {command} --out NEW.pt"
    assert subject.recalibration == whole
    layer = seen(gap=2.0) if subject.live else statistics([np.nan, 0], [1, 2])
    found = audit(replace(subject, layers=(layer,), batch=subject.live)).found
    assert whole in str(found[0].hit.fix)
