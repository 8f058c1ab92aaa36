"""Which findings stand on top and which are folded, and the words around them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.report.sample import LAYERS, sample_run, sample_verdict
from traindx.facts import Json, ModelFacts, ModuleFacts
from traindx.findings import Finding, Verdict
from traindx.records import Event, EventKind, Scalar, Site
from traindx.report import story
from traindx.report.layers import layers, sites, where
from traindx.run import Run


def _verdict(causes: dict[int, tuple[int, ...]], inactive: tuple[int, ...] = ()) -> Verdict:
    one = sample_verdict().findings[0]

    def finding(i: int) -> Finding:
        return replace(one, id=i, caused_by=causes[i], active=i not in inactive)

    return Verdict(findings=tuple(map(finding, causes)))


def _shown(verdict: Verdict) -> dict[int, list[int]]:
    return {r.finding.id: [f.id for f in r.symptoms] for r in story.roots(verdict)}


@pytest.mark.parametrize(
    ("causes", "shown"),
    [
        ({1: (), 2: ()}, {1: [], 2: []}),
        ({1: (), 2: (1,), 3: (2,)}, {1: [2, 3]}),
        ({1: (2,), 2: (), 3: (2,)}, {2: [1, 3]}),
        ({1: (9,), 2: ()}, {1: [], 2: []}),
        ({1: (2,), 2: (1,), 3: (2,)}, {1: [2, 3]}),
        ({1: (1,)}, {1: []}),
    ],
    ids=["apart", "chain", "worse-symptom", "unknown-cause", "circle", "itself"],
)
def test_a_symptom_is_folded_under_the_end_of_its_chain(
    causes: dict[int, tuple[int, ...]], shown: dict[int, list[int]]
) -> None:
    assert _shown(_verdict(causes)) == shown


def test_a_cleared_finding_explains_nothing_that_is_still_active() -> None:
    verdict = _verdict({1: (), 2: (1,)}, inactive=(1,))
    assert _shown(verdict) == {2: []}
    assert [finding.id for finding in story.cleared(verdict)] == [1]


@pytest.mark.parametrize(
    ("causes", "words"),
    [
        ({1: ()}, "1 error"),
        ({1: (), 2: (1,)}, "1 error, explaining 1 more finding"),
        ({1: (), 2: (1,), 3: (2,), 4: ()}, "2 errors, explaining 2 more findings"),
    ],
    ids=["alone", "one", "two"],
)
def test_the_headline_counts_roots(causes: dict[int, tuple[int, ...]], words: str) -> None:
    assert story.verdict_words(_run_of_losses([1.0], _verdict(causes))) == words


def _run_of_losses(losses: list[float], verdict: Verdict, *names: str) -> Run:
    run = Run(
        Scalar(step, "loss", loss, Site(name))
        for step, loss in enumerate(losses)
        for name in names or ("net",)
    )
    run.verdict = verdict
    return run


CLEAN = Verdict(evaluated=("G001", "N001"))


def test_a_clean_run_is_clear_and_one_without_steps_is_not() -> None:
    assert story.level(_run_of_losses([1.0], CLEAN)) == "clear"
    assert story.level(_run_of_losses([], CLEAN)) == "unknown"
    assert story.level(_run_of_losses([1.0], Verdict())) == "unknown"


def _costing(steps: int, ended: dict[str, float], *, asked: int | None = None) -> str:
    started = Event(-1, EventKind.STARTED, detail={"every": asked})
    end = Event(steps, EventKind.ENDED, detail={"steps": steps, **ended})
    return story.cost(Run([started, end]))


def test_the_cost_names_what_it_holds_and_what_not() -> None:
    known = {"overhead_fraction": 0.0213, "sink_seconds": 0.5, "seconds": 20.0, "budget_since": 200}
    assert _costing(1000, known) == (
        "measuring cost 2.1 % of the training time, saving and judging took 2.5 % of the whole "
        "time; listening at every step not included"
    )
    assert _costing(1000, {**known, "listening_fraction": 0.0042}).endswith(
        "of the whole time; listening at the other steps about 0.4 %"
    )
    assert _costing(1000, {**known, "listening_fraction": 0.01, "budget": 0.01}).endswith("1.0 %")
    assert _costing(1000, {**known, "listening_fraction": 0.042, "budget": 0.01}).endswith(
        "; listening at the other steps about 4.2 %, which alone is more than the budget"
    )
    del known["budget_since"]
    exempt = " (the budget was not in force yet)"
    assert _costing(199, known).endswith(f"not included{exempt}")
    assert _costing(1000, known).endswith(f"not included{exempt}")
    assert _costing(1000, known, asked=1).endswith("not included")  # there is no budget
    assert _costing(1000, {}) == ""
    assert _costing(1000, {"sink_seconds": 0.1, "seconds": 10.0}).startswith(
        "saving and judging took 1.0"
    )


@pytest.mark.parametrize(
    ("fix", "code"),
    [
        ("Call `net.train()`.", False),
        ("Call it.\n", False),
        ("# Before training:", True),
        ("for m in net.modules():\n    m.momentum = 0.1", True),
        ("", False),
    ],
)
def test_a_fix_of_several_lines_or_a_comment_is_code(fix: str, code: bool) -> None:
    assert story.is_code(fix) is code


def test_places_that_were_skipped_for_one_reason_share_a_line() -> None:
    run = Run()
    for i in range(11):
        detail = {"point": "output", "reason": "compiled"}
        run.add(Event(0, EventKind.SKIPPED, Site("net", f"l{i}"), dict(detail)))
        run.add(Event(8, EventKind.SKIPPED, Site("net", f"l{i}"), dict(detail)))
    [line] = story.unmeasured(run)
    assert line.startswith("output: compiled (net · l0, net · l1,")
    assert line.endswith("net · l7 and 3 more)")


def test_a_script_that_failed_is_noted() -> None:
    run = sample_run()
    run.header["exit_code"] = 3
    assert story.notes(run)[0] == "The script ended with exit code 3."


def test_layers_are_counted_in_the_order_of_the_forward_pass() -> None:
    modules = (
        ModuleFacts("", "Net", order=0),
        ModuleFacts("head", "Linear", order=5),
        ModuleFacts("spare", "Linear"),
        ModuleFacts("body", "Sequential", order=1),
        ModuleFacts("body.0", "Conv2d", order=2),
    )
    found = layers(ModelFacts("net", "Net", modules, ()))
    assert [(layer.site.fqn, layer.position) for layer in found] == [
        ("body.0", 1),
        ("head", 2),
        ("spare", None),
    ]


def test_parameters_follow_their_module() -> None:
    order = [site.fqn for site in sites(sample_run().models["net"])]
    assert order[:4] == ["", "conv1", "conv1.weight", "conv1.bias"]
    assert len(order) == 1 + 3 * len(LAYERS)


def test_a_site_is_told_by_model_path_class_and_place() -> None:
    run = sample_run()
    assert where(run, Site("net", "bn2.weight")) == "net · bn2.weight (BatchNorm2d, layer 4 of 6)"
    assert where(run, Site("net")) == "net (ConvNet)"
    assert where(run, Site("")) == "the whole run"


@pytest.mark.parametrize("value", [10**400, float("nan"), float("inf"), True, "x"])
def test_a_cost_that_is_no_number_of_use_is_left_out(value: Json) -> None:
    detail: dict[str, Json] = {"overhead_fraction": value, "sink_seconds": value, "seconds": 1.0}
    assert story.cost(Run([Event(0, EventKind.ENDED, detail=detail)])) == ""
