"""The page as a file: what it holds, what it may do, and what it costs."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import time
from typing import Any

import pytest

from tests.report.sample import IMG_NAME, healthy_run, sample_run, stats
from traindx.facts import ModelFacts, ModuleFacts, ParamFacts
from traindx.findings import Evidence, Finding, Severity, Verdict
from traindx.records import Description, Event, EventKind, Point, Record, Scalar, Site
from traindx.report.html import render
from traindx.report.html.thinning import extremes, spread
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
    assert len(scripts) == 2
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
    band = embedded(page)["findings"][0]["figures"][0]["figure"]["layout"]["shapes"][-1]
    assert (band["type"], band["x0"], band["x1"]) == ("rect", 9, 402)


def test_the_loss_shows_evaluations_and_the_first_nan(page: str) -> None:
    figure = embedded(page)["loss"]["figure"]
    lines = [(s["x0"], s.get("label", {}).get("text")) for s in figure["layout"]["shapes"]]
    assert lines == [(331, "NaN from step 331"), (99, None), (199, None), (299, None), (399, None)]
    assert figure["data"][1]["y"][331:] == [None] * 72


def test_values_over_more_than_two_decades_get_a_log_axis() -> None:
    def axis(low: float, high: float) -> dict[str, Any]:
        run = Run(Scalar(step, "loss", y, Site("net")) for step, y in enumerate((high, low)))
        return embedded(render(run))["loss"]["figure"]["layout"]["yaxis"]

    assert axis(1e-3, 1.0)["type"] == "log"
    assert "type" not in axis(0.5, 1.0)
    assert "type" not in axis(-1e-3, 1.0)


def test_only_measured_quantities_are_offered_in_network_order(page: str) -> None:
    grids = {grid["quantity"]: grid for grid in embedded(page)["grids"]}
    assert list(grids) == [
        "grad.rms", "output.rms", "output_grad.rms", "param.rms", "update.ratio",
        "norm.running_gap",
    ]  # fmt: skip
    assert grids["norm.running_gap"]["rows"] == ["net · bn1", "net · bn2"]
    assert grids["grad.rms"]["rows"][0] == "net · conv1.weight"
    assert "net · &lt;img src=x onerror=alert(1)>.bias" in grids["grad.rms"]["rows"]
    assert grids["grad.rms"]["values"][-1][-1] == "nan"
    assert grids["grad.rms"]["values"][5] == [0.0] * 60


def test_a_loss_that_is_not_finite_takes_the_green_tick_away() -> None:
    clean = Verdict(evaluated=("G001",))
    assert embedded(render(healthy_run(clean)))["verdict"]["level"] == "clear"
    verdict = embedded(render(sample_run(clean)))["verdict"]
    assert verdict["level"] == "warning"
    assert verdict["words"].startswith("the loss of critic is not finite from step 331 on; ")


def test_only_code_is_marked_as_code(page: str) -> None:
    assert [finding["fix_is_code"] for finding in embedded(page)["findings"]] == [True, False]


def test_an_empty_run_makes_a_page() -> None:
    data = embedded(render(Run()))
    assert data["verdict"]["level"] == "unknown"
    assert data["loss"] is None
    assert data["grids"] == []


def test_a_finding_without_its_series_has_no_figure() -> None:
    evidence = Evidence(Site("net", "gone"), 1, "m", {}, series=("norm.running_gap", "loss"))
    finding = Finding(1, "N001", "n", Severity.ERROR, True, evidence, 0, 1, 1)
    run = Run()
    run.verdict = Verdict(findings=(finding,))
    assert embedded(render(run))["findings"][0]["figures"] == []


def test_spread_keeps_the_ends() -> None:
    assert spread(range(10), 4) == [0, 3, 6, 9]
    assert spread(range(3), 4) == [0, 1, 2]
    assert spread(range(3), 1) == [2]
    assert spread(range(3), 0) == []


def test_thinning_keeps_peaks_and_what_is_not_finite() -> None:
    points = [(i, math.sin(i / 50)) for i in range(10_000)]
    points[1234] = (1234, 77.0)
    points[4321] = (4321, math.nan)
    points[7000] = (7000, -77.0)
    kept = extremes(points, 200)
    assert (1234, 77.0) in kept
    assert (7000, -77.0) in kept
    assert 4321 in [step for step, _ in kept]
    assert len(kept) <= 201
    assert kept == sorted(kept, key=lambda point: point[0])


def large_run(num_layers: int, num_steps: int) -> Run:
    """A deep network measured often, with everything that a heatmap shows."""
    names = [f"blocks.{i}.linear" for i in range(num_layers)]
    modules = (
        ModuleFacts("", "Net", order=0),
        *(ModuleFacts(n, "L", order=i) for i, n in enumerate(names, 1)),
    )
    params = tuple(
        ParamFacts(f"{n}.{p}", (8, 8), "float32", True) for n in names for p in ("weight", "bias")
    )
    run = Run([Description(0, ModelFacts("net", "Net", modules, params))])
    for step in range(num_steps):
        tensor = stats(1.2345 / (step + 1))
        for name in names:
            run.add(Record(step, Site("net", name), Point.OUTPUT, tensor))
            run.add(Record(step, Site("net", name), Point.OUTPUT_GRAD, tensor))
            for param in (f"{name}.weight", f"{name}.bias"):
                run.add(Record(step, Site("net", param), Point.GRAD, tensor))
                run.add(Scalar(step, "param.rms", 1.2345, Site("net", param)))
            run.add(Scalar(step, "update.ratio", 0.001234, Site("net", f"{name}.weight")))
        run.add(Scalar(step, "loss", 1.0 / (step + 1), Site("net")))
        run.add(Event(step, EventKind.MEASURED))
    return run


@pytest.mark.slow
def test_a_large_run_makes_a_page_of_a_bearable_size_in_seconds() -> None:
    run = large_run(500, 2000)
    start = time.process_time()
    page = render(run)
    assert time.process_time() - start < 10
    assert len(page) <= 25_000_000
    left_out = embedded(page)["grids"][0]["left_out"]
    assert left_out == (
        "Shows 400 of 2000 measured steps, evenly spaced, and 500 of 1000 rows, "
        "those with findings among them."
    )


def test_rows_with_findings_are_never_left_out() -> None:
    run = large_run(20, 3)
    site = Site("net", "blocks.13.linear")
    evidence = Evidence(site, 1, "m", {})
    finding = Finding(1, "N001", "n", Severity.ERROR, True, evidence, 0, 1, 1)
    run.verdict = Verdict(findings=(finding,))
    rows = embedded(render(run, figure_layers=5))["grids"][0]["rows"]
    assert len(rows) == 5
    assert {"blocks.13.linear.weight", "blocks.13.linear.bias"} <= set(rows)
