"""The page in a browser: it draws, stays safe, and fits the screen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.devtools import Page, browser
from tests.conftest import find_chromium
from tests.report.sample import BOLD_NAME, IMG_NAME, sample_run
from traindx.report.html import render
from traindx.run import Run

pytestmark = pytest.mark.browser

DRAWN = "document.querySelectorAll('#heatmap .main-svg').length > 0"


@pytest.fixture(scope="module")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    path = find_chromium()
    assert path, "these tests are marked `browser`"
    with browser(path, tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture
def page(chrome: Page, tmp_path: Path) -> Page:
    """The sample's page, opened from disk on a wide screen."""
    return shown(chrome, sample_run(), tmp_path)


def shown(chrome: Page, run: Run, folder: Path) -> Page:
    """A run's page in a browser that has forgotten what it reported before."""
    file = folder / "report.html"
    file.write_text(render(run), "utf-8")
    chrome.problems.clear()
    chrome.requests.clear()
    chrome.media()
    chrome.size(1280)
    chrome.open(file)
    return chrome


def test_every_figure_in_sight_is_drawn(page: Page) -> None:
    page.wait_for(DRAWN)
    visible = "[...document.querySelectorAll('.plot')].filter((plot) => plot.checkVisibility())"
    assert page.js(f"{visible}.length") == 5  # Three pieces of evidence, the loss, the heatmap.
    assert page.js(f"{visible}.every((plot) => plot.querySelector('.main-svg'))")
    assert page.js("document.querySelectorAll('#heatmap image').length") == 3


def test_the_browser_reports_no_error_and_no_violation(page: Page) -> None:
    page.wait_for(DRAWN)
    page.js("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    page.wait_for("document.querySelectorAll('details .main-svg').length > 0")
    assert page.problems == []


def test_the_policy_forbids_scripts_and_requests_of_others(page: Page) -> None:
    page.js("document.body.append(Object.assign(document.createElement('script'), "
            "{textContent: 'window.intruder = true'}))")  # fmt: skip
    assert page.js("window.intruder") is None
    page.js("void fetch('data:text/plain,x').catch(() => { window.refused = true; })")
    page.wait_for("window.refused === true")
    assert any("Content Security Policy" in problem for problem in page.problems)


def test_nothing_is_asked_of_any_network(page: Page) -> None:
    page.wait_for(DRAWN)
    assert [url for url in page.requests if not url.startswith(("file:", "data:", "blob:"))] == []
    assert len([url for url in page.requests if url.startswith("file:")]) == 1


def test_hostile_names_are_text(page: Page) -> None:
    page.wait_for(DRAWN)
    assert page.js("document.querySelectorAll('img, b[onerror], a').length") == 0
    assert IMG_NAME in page.js("document.querySelector('table').textContent")
    assert IMG_NAME.removeprefix("<img") in page.js(
        "document.querySelector('#heatmap').textContent"
    )
    assert "[bold]x[/]" in page.js("document.body.textContent")


def test_a_name_in_a_hover_label_is_text(page: Page) -> None:
    page.wait_for(DRAWN)
    page.js("document.getElementById('heatmap').scrollIntoView()")
    box = page.js("document.querySelector('#heatmap .nsewdrag').getBoundingClientRect().toJSON()")
    page.point_at(box["x"] + 50, box["y"] + box["height"] * 8.5 / 9)  # The last of nine rows.
    page.wait_for("document.querySelector('#heatmap .hovertext') !== null")
    text = page.js("document.querySelector('#heatmap .hovertext').textContent")
    assert f"critic · {BOLD_NAME}.weight" in text
    assert "grad.rms 0.0000" in text


def test_a_sentence_is_no_code_to_copy_and_its_fragments_are(page: Page) -> None:
    page.wait_for(DRAWN)
    of = "[...document.querySelectorAll('#finding-{} > .parts dt')]" \
         ".find((dt) => dt.textContent === 'Fix').nextSibling"  # fmt: skip
    assert page.js(f"{of.format(1)}.querySelectorAll('pre, button').length") == 2
    assert page.js(f"{of.format(3)}.querySelectorAll('pre, button').length") == 0
    assert page.js(f"{of.format(3)}.querySelector('code').textContent").startswith("torch.nn")
    assert page.js(f"{of.format(3)}.textContent").startswith("Clip with torch.nn.utils")


def test_another_quantity_can_be_chosen(page: Page) -> None:
    page.wait_for(DRAWN)
    page.js("{ const s = document.getElementById('quantity'); s.value = '5'; "
            "s.dispatchEvent(new Event('change')); }")  # fmt: skip
    page.wait_for("document.querySelector('#heatmap').textContent.includes('net · bn2')")
    assert not page.js("document.querySelector('#heatmap').textContent.includes('conv1')")
    assert "running statistics" in page.js("document.querySelector('.chooser + p').textContent")


def test_a_folded_finding_draws_its_figure_when_opened(page: Page) -> None:
    page.wait_for(DRAWN)
    assert page.js("document.querySelectorAll('details .main-svg').length") == 0
    page.js("document.querySelector('details').open = true")
    page.wait_for("document.querySelectorAll('details .main-svg').length > 0")


@pytest.mark.parametrize("width", [390, 768])
def test_a_narrow_screen_needs_no_sideways_scrolling(page: Page, width: int) -> None:
    page.wait_for(DRAWN)
    page.size(width)
    widest = "Math.max(...[...document.querySelectorAll('.main-svg')].map((s) => s.clientWidth))"
    page.wait_for(f"{widest} < {width}")
    assert page.js("document.documentElement.scrollWidth") == width
    assert page.problems == []


def test_the_ground_follows_the_readers_scheme_and_paper_is_light(page: Page) -> None:
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    light = page.js(ground)
    page.media("screen", "dark")
    assert page.js(ground) != light
    page.media("print", "dark")
    assert page.js(ground) == light


def test_figures_fit_the_sheet_when_printed(page: Page) -> None:
    page.wait_for(DRAWN)
    page.js("dispatchEvent(new Event('beforeprint'))")
    widths = page.js("[...document.querySelectorAll('.main-svg')].map((s) => s.clientWidth)")
    assert max(widths) <= 672
    page.js("dispatchEvent(new Event('afterprint'))")


def test_a_run_with_nothing_in_it_makes_a_quiet_page(chrome: Page, tmp_path: Path) -> None:
    page = shown(chrome, Run(), tmp_path)
    assert page.js("document.querySelector('h1').textContent").startswith("Nothing to judge")
    assert page.problems == []
