"""What changed from one run to another."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace

from tests.report.sample import sample_run, sample_verdict
from traindx.facts import ModelFacts, ModuleFacts, OptimizerFacts
from traindx.findings import Verdict
from traindx.records import Description, Event, EventKind, Item, Scalar, Site
from traindx.report import compared
from traindx.report.comparison import Comparison, MedianChange, compare
from traindx.run import Run

GAP = Site("net", "bn")


def _items(*, gap: float, noise: float, momentum: float, steps: int) -> Iterator[Item]:
    bn = ModuleFacts("bn", "BatchNorm1d", 0, 1, {"momentum": momentum})
    yield Event(-1, EventKind.STARTED, detail={"versions": {"torch": f"2.{steps}"}})
    yield Description(0, ModelFacts("net", "Net", (bn,), ()))
    yield Description(0, OptimizerFacts("SGD", "SGD", ({"lr": momentum},), 2))
    for step in range(steps):
        yield Scalar(step, "loss", 1.0 / (step + 1), Site("net"))
        yield Scalar(step, "norm.running_gap", gap + noise * math.sin(step), GAP)
        yield Event(step, EventKind.MEASURED)


def _run(*, gap: float = 1.0, noise: float = 0.1, momentum: float = 0.1, steps: int = 40) -> Run:
    return Run(_items(gap=gap, noise=noise, momentum=momentum, steps=steps))


def _codes(comparison: Comparison) -> tuple[list[str], list[str], list[str]]:
    return (
        [f.code for f in comparison.gone],
        [f.code for f in comparison.new],
        [f.code for _, f in comparison.same],
    )


def test_findings_are_gone_new_or_the_same_by_rule_and_place() -> None:
    one, two, *_ = sample_verdict().findings
    moved = replace(two, evidence=replace(two.evidence, site=Site("net", "conv2.weight")))
    before, after = sample_run(), sample_run(Verdict(findings=(one, moved)))
    assert _codes(compare(before, after)) == (["G001", "G011"], ["G001"], ["N001"])
    assert _codes(compare(after, before)) == (["G001"], ["G001", "G011"], ["N001"])


def test_a_cleared_finding_is_gone() -> None:
    one = sample_verdict().findings[0]
    after = sample_run(Verdict(findings=(replace(one, active=False),)))
    assert _codes(compare(sample_run(Verdict(findings=(one,))), after)) == (["N001"], [], [])


def test_a_run_against_itself_has_not_changed() -> None:
    same = compare(sample_run(), sample_run())
    assert _codes(same)[:2] == ([], [])
    assert (same.medians, same.settings) == ((), ())


def test_losses_are_compared_at_steps_that_both_have() -> None:
    [loss] = compare(_run(steps=40), _run(steps=21)).losses
    assert loss.steps == (0, 5, 10, 15, 20)
    assert loss.before == loss.after == tuple(1 / (step + 1) for step in loss.steps)
    assert loss.end_before < loss.end_after


def test_a_median_that_moved_out_of_the_noise_is_told() -> None:
    [change] = compare(_run(gap=1.0), _run(gap=2.0)).medians
    assert (change.quantity, change.site) == ("norm.running_gap", GAP)
    assert 0.9 < change.before < 1.1
    assert 1.9 < change.after < 2.1


def test_a_median_within_the_noise_is_not() -> None:
    assert compare(_run(gap=1.0, noise=1.0), _run(gap=1.5, noise=1.0)).medians == ()


def test_a_steady_but_small_change_is_not() -> None:
    assert compare(_run(gap=1.0, noise=0.0), _run(gap=1.2, noise=0.0)).medians == ()


def test_too_few_measurements_make_no_median() -> None:
    assert compare(_run(gap=1.0, steps=4), _run(gap=9.0, steps=4)).medians == ()


def test_options_versions_and_rates_that_differ_are_told() -> None:
    changes = compare(_run(momentum=0.1, steps=30), _run(momentum=0.2, steps=40)).settings
    found = {(c.name, c.before, c.after, tuple(map(str, c.sites))) for c in changes}
    assert found == {
        ("torch", "2.30", "2.40", ()),
        ("steps", 30, 40, ()),
        ("SGD.lr", 0.1, 0.2, ()),
        ("momentum", 0.1, 0.2, ("bn",)),
    }


def test_a_model_that_only_one_run_has_is_a_setting() -> None:
    changes = compare(_run(), sample_run()).settings
    assert ("model", None, "critic") in [(c.name, c.before, c.after) for c in changes]


def test_the_text_tells_each_part() -> None:
    before, after = _run(gap=1.0), _run(gap=2.0, momentum=0.5)
    after.verdict = Verdict(findings=sample_verdict().findings[:1])
    text = compared.render(before, after, compare(before, after))
    assert text.startswith("0 findings gone, 1 new, 0 in both runs\n")
    assert "- error N001 bn-eval-gap at net · bn2: With its running" in text
    assert "momentum 0.1 -> 0.5 (bn)" in text
    assert "norm.running_gap at net · bn (BatchNorm1d, layer 1 of 1):" in text
    assert "middle 80 %" in " ".join(text.split())


def test_the_text_in_chinese_keeps_its_columns() -> None:
    text = compared.render(_run(), _run(), compare(_run(), _run()), language="zh-Hant")
    head, before, after = text.split("net 的損失\n")[1].split("\n")[:3]
    assert before.split()[0] == "之前"
    assert after.split()[1:] == before.split()[1:]
    assert head.split()[:2] == ["第", "0"]


def test_the_document_is_strict_json_without_names_lost() -> None:
    before, after = sample_run(), sample_run(Verdict())
    document = json.loads(compared.document(before, after, compare(before, after)))
    assert [f["code"] for f in document["gone"]] == ["N001", "G001", "G011"]
    assert document["gone"][2]["evidence"] == {"norm": "Infinity", "times": "NaN"}
    assert (document["schema"], document["new"], document["same"]) == (1, [], [])
    assert {loss["model"] for loss in document["losses"]} == {"net", "critic"}


def test_losses_and_medians_at_the_ends_of_what_a_float_holds_are_compared() -> None:
    ends = [math.inf, -math.inf, 1e308, 1e308, -1e308]
    items = [Scalar(step, "loss", value, Site("net")) for step, value in enumerate(ends)]
    (loss,) = compare(Run(items), Run(items[2:])).losses
    assert math.isnan(loss.end_before)
    assert MedianChange("grad.rms", GAP, 1e308, 5e-324).size > 1000
