"""Which findings stand on top and which are folded, and the words around them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.report.sample import LAYERS, sample_run, sample_verdict
from traindx.facts import ModelFacts, ModuleFacts
from traindx.findings import Finding, Verdict
from traindx.records import Event, EventKind, Site
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
