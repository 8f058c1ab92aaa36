"""The page as a file: what it holds, what it may do, and what it costs."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from typing import Any

import numpy as np
import pytest

from benchmarks.page import large_run
from tests.report.sample import IMG_NAME, healthy_run, sample_run
from traindx.facts import ModelFacts, ModuleFacts
from traindx.findings import Context, Evidence, Finding, Severity, Silenced, Verdict
from traindx.records import Description, Site
from traindx.report.html import render
from traindx.report.html.words import SCRIPTS, asset, templates
from traindx.run import Run


def embedded(page: str) -> Any:
    """The data that the page lays out."""
    return json.loads(page.partition('id="data">')[2].partition("</script>")[0])


@pytest.fixture(scope="module")
def page() -> str:
    return render(sample_run())


def test_only_the_scripts_in_the_page_may_run(page: str) -> None:
    scripts = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    digests = [hashlib.sha256(script.encode()).digest() for script in scripts]
    policy = page.partition('Content-Security-Policy" content="')[2].partition('"')[0]
    hashes = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    assert len(scripts) == 2 + len(SCRIPTS)
    assert f"script-src {hashes};" in policy
    assert policy.startswith("default-src 'none';")


def test_no_hostile_name_reaches_the_markup(page: str) -> None:
    assert "<img" not in page.replace(page[page.index("<script>") : page.rindex("</script>")], "")
    assert IMG_NAME in str(embedded(page)["cleared"])


def test_plotly_is_inlined_with_its_notice(page: str) -> None:
    assert "* plotly.js v" in page
    assert "Licensed under the MIT license" in page


def test_nothing_refers_to_another_file_or_host(page: str) -> None:
    shell = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r"(src|href)=|url\(|@import|https?:", shell)


def test_the_threshold_of_the_same_name_is_drawn(page: str) -> None:
    gap, loss = embedded(page)["findings"][0]["figures"]
    assert gap["figure"]["data"][1]["y"] == [0.2, 0.2]
    assert "Dashed: threshold gap 0.2." in gap["caption"]
    assert len(loss["figure"]["data"]) == 1


def test_the_steps_a_rule_saw_it_at_are_shaded(page: str) -> None:
    band = embedded(page)["findings"][0]["figures"][0]["figure"]["layout"]["shapes"][0]
    assert (band["type"], band["x0"], band["x1"]) == ("rect", 9, 402)


def test_a_finding_knows_the_layers_it_concerns(page: str) -> None:
    data = embedded(page)
    names = [layer["fqn"] for layer in data["layers"]]
    assert [names[i] for i in data["findings"][0]["layers"]] == ["bn2"]
    symptom = data["findings"][0]["symptoms"][0]
    # That of the parameter it is at, and those it names.
    assert [names[i] for i in symptom["layers"]] == ["conv1", "conv2", "head"]


def test_a_finding_about_depth_shows_its_depth_first(page: str) -> None:
    along, over_steps = embedded(page)["findings"][0]["symptoms"][0]["figures"]
    assert along["title"] == "grad.rms along the depth, step 402"
    assert over_steps["title"] == "grad.rms"
    profile, ring = along["figure"]["data"]
    assert profile["name"] == "step 402"
    assert ring["name"] == "G001"
    assert along["caption"] == "Ring: where the finding stands."


def test_a_profile_that_a_run_file_made_up_is_not_drawn() -> None:
    evidence = Evidence(
        Site("net", "conv1"), 402, "", {}, profiles=("grad.exponents", "no.such", "batch.size")
    )
    verdict = Verdict((Finding(1, "X", "x", Severity.INFO, True, evidence, 0, 402, 1),))
    assert embedded(render(sample_run(verdict)))["findings"][0]["figures"] == []


def test_layers_stand_in_network_order_with_their_health(page: str) -> None:
    layers = embedded(page)["layers"]
    assert [layer["fqn"] for layer in layers[:4]] == ["conv1", "bn1", "conv2", "bn2"]
    assert [layer["health"] for layer in layers[:4]] == ["error", "clear", "clear", "error"]
    assert layers[3]["codes"] == ["N001"]
    assert layers[6]["grad"][0] == "NaN"
    assert layers[6]["grad"][2] is False


def test_a_layer_of_which_nothing_was_measured_is_not_called_healthy() -> None:
    facts = ModelFacts("net", "Net", (ModuleFacts("", "Net"), ModuleFacts("a", "Linear")), ())
    layer = embedded(render(Run([Description(0, facts)])))["layers"][0]
    assert (layer["health"], layer["main"], layer["output"]) == ("unmeasured", None, None)


def test_every_measured_quantity_has_a_heatmap(page: str) -> None:
    data = embedded(page)
    offered = [entry["quantity"] for entry in data["heatmaps"]]
    assert offered[:3] == ["grad.rms", "output.rms", "update.ratio"]
    assert {"output.mean", "grad.max", "output_grad.l2", "norm.running_gap"} <= set(offered)
    assert "loss" not in offered
    names = data["listed"][data["heatmaps"][0]["figure"]["data"][0]["y"]["texts"]]
    assert names[0] == "net · conv1.weight"
    assert "net · &lt;img src=x onerror=alert(1)>.bias" in names


def test_zeros_and_what_is_not_finite_are_marked_apart(page: str) -> None:
    traces = embedded(page)["heatmaps"][0]["figure"]["data"]
    assert [trace["z"]["shows"] for trace in traces] == ["log10", "zero", "broken"]


def test_the_numbers_of_a_curve_are_stored_once_and_are_those_measured(page: str) -> None:
    data = embedded(page)
    trace = data["findings"][0]["figures"][0]["figure"]["data"][0]
    values = np.frombuffer(base64.b64decode(data["stored"][trace["y"]["at"]]), "<f4")
    series = sample_run().series("norm.running_gap", fqn="bn2")[0]
    assert values == pytest.approx(series.values, rel=1e-6)
    assert len(data["stored"]) == len({str(row) for row in data["stored"]})


def test_only_code_is_marked_as_code(page: str) -> None:
    assert [finding["fix_is_code"] for finding in embedded(page)["findings"]] == [True, False]


def test_an_empty_run_makes_a_page() -> None:
    data = embedded(render(Run()))
    assert data["verdict"]["level"] == "unknown"
    assert data["timeline"] is None
    assert data["heatmaps"] == data["layers"] == data["depths"] == []


def test_a_finding_without_its_series_has_no_figure() -> None:
    evidence = Evidence(Site("net", "gone"), 1, "m", {}, series=("norm.running_gap", "loss"))
    finding = Finding(1, "N001", "n", Severity.ERROR, True, evidence, 0, 1, 1)
    run = Run()
    run.verdict = Verdict(findings=(finding,))
    assert embedded(render(run))["findings"][0]["figures"] == []


def test_what_was_not_checked_is_told(page: str) -> None:
    unchecked = embedded(page)["unchecked"]
    assert [codes for codes, _ in unchecked["rules"]] == ["F005", "G006"]
    assert unchecked["places"] == ["output: compiled (critic · <b>score</b>)"]


def test_silenced_findings_and_contexts_are_told() -> None:
    verdict = Verdict(
        evaluated=("G001",),
        silenced=(Silenced("G001", Site("net", "conv1"), "ignored in the configuration"),),
        contexts=(Context("gan", "two optimizers take turns"),),
    )
    unchecked = embedded(render(healthy_run(verdict)))["unchecked"]
    assert "ignored in the configuration" in unchecked["silenced"][0]
    assert unchecked["contexts"] == ["gan: two optimizers take turns"]


def test_the_page_speaks_the_language_asked_for() -> None:
    page = render(sample_run(), "zh-Hant")
    data = embedded(page)
    assert '<html lang="zh-Hant">' in page
    assert data["strings"]["Findings"] == "診斷結果"
    assert data["timeline"]["figure"]["layout"]["xaxis"]["title"]["text"] == "步"
    assert set(data["strings"]) == set(templates())
    meanings = [heatmap["meaning"] for heatmap in data["heatmaps"]]
    assert meanings
    assert not [text for text in meanings if not re.search(r"[\u4e00-\u9fff]{2}", text)]
    assert not [text for text in meanings if re.search(r"[a-z]{3,} [a-z]{2,} [a-z]{3,}", text)]


def test_every_word_of_the_scripts_goes_through_the_table() -> None:
    """A text child of an element that is more than a name must be a `t(...)`."""
    bare = re.compile(r'(?<![\w"])h\("[^"]+", \{[^{}]*\}, "([^"]*[a-z]{2,}[^"]*)"')
    found = [text for script in SCRIPTS for text in bare.findall(asset(script))]
    assert found == ["traindx"]
    words = re.sub(r"<(script|style)>.*?</\1>|<[^>]*>|\$\w+", " ", asset("page.html"), flags=re.S)
    assert set(words.split()) <= {"traindx"}


def test_scripts_stay_readable() -> None:
    lengths = {name: asset(name).count("\n") for name in (*SCRIPTS, "theme.js", "page.css")}
    assert {name: n for name, n in lengths.items() if n > 400} == {}


@pytest.mark.slow
def test_a_large_run_makes_a_page_of_a_bearable_size_in_seconds() -> None:
    run = large_run(120, 500)
    start = time.process_time()
    page = render(run)
    assert time.process_time() - start < 5
    assert len(page) <= 25_000_000
    first = embedded(page)["heatmaps"][0]
    assert first["caption"].startswith("500 measured steps are drawn as ")
