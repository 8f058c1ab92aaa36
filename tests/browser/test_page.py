"""The page in a browser: it draws, stays safe, and fits the screen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.devtools import Page, browser
from tests.conftest import find_chromium
from tests.report.figures.test_distributions import HOSTILE
from tests.report.sample import BOLD_NAME, IMG_NAME, sample_run
from tests.report.test_pictures import preflight
from traindx.findings import Evidence, Finding, Severity, Verdict
from traindx.records import Site
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


def show(page: Page, selector: str) -> None:
    """Bring a part of the page into view."""
    page.js(f"document.querySelector({selector!r}).scrollIntoView({{behavior: 'instant'}})")


def press(page: Page, key: str) -> None:
    """A key, pressed and released."""
    codes = {"Enter": 13, "Escape": 27, "Tab": 9}
    text = {"text": "\r"} if key == "Enter" else {}
    common = {"key": key, "code": key, "windowsVirtualKeyCode": codes[key]}
    page.call("Input.dispatchKeyEvent", type="keyDown", **common, **text)
    page.call("Input.dispatchKeyEvent", type="keyUp", **common)


def shown(chrome: Page, run: Run, folder: Path, language: str = "en") -> Page:
    """A run's page in a browser that has forgotten what it reported before."""
    file = folder / "report.html"
    file.write_text(render(run, language), "utf-8")
    chrome.problems.clear()
    chrome.requests.clear()
    chrome.media()
    chrome.size(1280)
    chrome.open(file)
    return chrome


def test_figures_are_drawn_when_they_come_into_view(page: Page) -> None:
    page.wait_for("document.querySelectorAll('#findings .main-svg').length > 0")
    assert page.js("document.querySelectorAll('#updates .main-svg').length") == 0
    show(page, "#updates")
    page.wait_for("document.querySelectorAll('#updates .main-svg').length > 0")


def test_the_heatmap_marks_zeros_and_what_is_not_finite(page: Page) -> None:
    show(page, "#heatmaps")
    page.wait_for(DRAWN)
    page.wait_for("document.querySelectorAll('#heatmap image').length === 3")
    assert "exactly 0" in page.js("document.querySelector('.keys').textContent")


def test_the_browser_reports_no_error_and_no_violation(page: Page) -> None:
    page.js("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    page.js("for (let i = 0; i < data.layers.length; i++) openLayer(i, false)")
    for section in page.js("sections.map(([id]) => id)"):
        show(page, f"#{section}")
    show(page, "details")
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
    show(page, "#heatmaps")
    page.wait_for(DRAWN)
    assert [url for url in page.requests if not url.startswith(("file:", "data:", "blob:"))] == []
    assert len([url for url in page.requests if url.startswith("file:")]) == 1


def test_hostile_names_are_text(page: Page) -> None:
    show(page, "#heatmaps")
    page.wait_for(DRAWN)
    page.js("openLayer(data.layers.findIndex((layer) => layer.fqn.includes('img')), false)")
    page.wait_for("document.querySelectorAll('#layer .main-svg').length > 0")
    assert (
        page.js("document.querySelectorAll('img, b[onerror], main a:not([href^=\"#\"])').length")
        == 0
    )
    assert IMG_NAME in page.js("document.querySelector('table').textContent")
    assert page.js("document.querySelector('#layer h3').textContent").strip() == IMG_NAME
    assert IMG_NAME.removeprefix("<img") in page.js(
        "document.querySelector('#heatmap').textContent"
    )
    assert "[bold]x[/]" in page.js("document.body.textContent")


def test_a_name_in_a_hover_label_is_text(page: Page) -> None:
    show(page, "#heatmap")
    page.wait_for(DRAWN)
    show(page, "#heatmap")
    box = page.js("document.querySelector('#heatmap .nsewdrag').getBoundingClientRect().toJSON()")
    page.point_at(box["x"] + 50, box["y"] + box["height"] * 8.5 / 9)  # The last of nine rows.
    page.wait_for("document.querySelector('#heatmap .hovertext') !== null")
    text = page.js("document.querySelector('#heatmap .hovertext').textContent")
    assert f"critic · {BOLD_NAME}.weight" in text
    assert "grad.rms 0.0000" in text or "grad.rms 9" in text


def test_a_click_on_a_finding_shows_its_plot_and_highlights_its_layers(page: Page) -> None:
    assert page.js("document.querySelector('#evidence-3').hidden")
    page.js("document.querySelector('#finding-3 .heading').click()")
    show(page, "#evidence-3")
    page.wait_for("document.querySelectorAll('#evidence-3 .main-svg').length > 0")
    marked = "[...document.querySelectorAll('.concerned-row .layer')].map((td) => td.textContent)"
    assert page.js(marked) == ["[bold]x[/]"]
    assert "G011" in page.js("document.querySelector('#selected').textContent")
    page.js("document.querySelector('#selected button').click()")
    assert page.js("document.querySelectorAll('table.layers tr[data-i]:not([hidden])').length") == 1


def test_the_keyboard_reaches_a_finding_and_a_layer(page: Page) -> None:
    page.js("document.querySelector('#finding-3 .heading').focus()")
    press(page, "Enter")
    show(page, "#evidence-3")
    page.wait_for("document.querySelectorAll('#evidence-3 .main-svg').length > 0")
    page.js("document.querySelector('#evidence-3 .chip').focus()")
    press(page, "Enter")
    assert page.js("document.activeElement.id") == "layer"
    assert page.js("document.querySelector('#layer h3').textContent").strip() == "[bold]x[/]"
    press(page, "Escape")
    assert page.js("document.querySelector('#layer').hidden")
    assert page.js("document.activeElement.textContent") == "[bold]x[/]"


def test_what_has_the_focus_is_seen(page: Page) -> None:
    press(page, "Tab")
    assert page.js("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_the_filter_narrows_the_layers(page: Page) -> None:
    page.js("{ const f = document.getElementById('filter'); f.value = 'batchnorm'; "
            "f.dispatchEvent(new Event('input')); }")  # fmt: skip
    assert page.js("document.querySelector('#shown').textContent") == "2 of 8 layers"


def test_the_depth_can_be_seen_at_another_step(page: Page) -> None:
    show(page, "#depths")
    page.wait_for("document.querySelectorAll('#depth .main-svg').length > 0")
    page.js("{ const s = document.querySelector('#depth input'); s.value = '0'; "
            "s.dispatchEvent(new Event('input')); }")  # fmt: skip
    assert page.js("document.querySelector('#depth output').textContent") == "step 0"
    assert page.problems == []


def test_a_finding_about_depth_shows_its_depth_and_highlights_its_layers(page: Page) -> None:
    page.js("document.querySelector('#finding-2').open = true")
    show(page, "#finding-2 figure")
    page.wait_for("document.querySelectorAll('#finding-2 .main-svg').length > 0")
    title = page.js("document.querySelector('#finding-2 figure figcaption').textContent")
    assert title.startswith("grad.rms along the depth, step 402")
    legend = "document.querySelector('#finding-2 figure .legend').textContent"
    assert "step 402" in page.js(legend)
    assert "G001" in page.js(legend)
    marked = "[...document.querySelectorAll('.concerned-row .layer')].map((td) => td.textContent)"
    assert page.js(marked) == ["conv1", "conv2", "head"]
    assert page.js("document.querySelectorAll('#finding-2 .strip .on').length") == 3


@pytest.mark.parametrize("language", ["en", "zh-Hant"])
def test_the_table_of_layers_fits_a_screen_of_1280_pixels(
    chrome: Page, tmp_path: Path, language: str
) -> None:
    codes = ("F005", "F001", "G001", "O001")
    bad = Evidence(Site("net", "conv1"), 402, "", {})
    findings = (
        Finding(i, code, "x", Severity.ERROR, True, bad, 0, 402, 9)
        for i, code in enumerate(codes, start=1)
    )
    page = shown(chrome, sample_run(Verdict(tuple(findings))), tmp_path, language)
    page.js("document.querySelectorAll('td[data-at]').forEach(drawSpark)")
    cell = page.js("document.querySelector('td.health.error').textContent")
    assert all(code in cell for code in codes)
    over = "((box) => box.scrollWidth - box.clientWidth)(document.querySelector('#layers .scroll'))"
    assert page.js(over) == 0


def test_a_legend_of_several_lines_has_room_on_a_phone(page: Page) -> None:
    page.size(390)
    page.js("openLayer(3, false)")
    figures = "#layer figure"
    page.wait_for(f"document.querySelectorAll('{figures} .main-svg').length > 0")
    page.js("printing = true; drawAll(); printing = false")
    covered = """
    [...document.querySelectorAll('#layer .js-plotly-plot')].flatMap((plot) =>
      [...plot.querySelectorAll('.infolayer > [class^=legend]')].filter((legend) => {
        const own = legend.getBoundingClientRect();
        return [...plot.querySelectorAll('.js-line, .annotation')].some((other) => {
          const box = other.getBoundingClientRect();
          return box.height && own.bottom > box.top + 4 && own.top < box.bottom - 4
            && own.right > box.left && own.left < box.right;
        });
      }).map((legend) => legend.textContent))
    """
    legends = "[...document.querySelectorAll('#layer .infolayer > [class^=legend]')]"
    entries = f"{legends}.map((legend) => legend.querySelectorAll('.traces').length)"
    assert max(page.js(entries)) == 4
    assert page.js(covered) == []


def test_a_sentence_is_no_code_to_copy_and_its_fragments_are(page: Page) -> None:
    of = "[...document.querySelectorAll('#finding-{} > .parts dt')]" \
         ".find((dt) => dt.textContent === 'Fix').nextSibling"  # fmt: skip
    assert page.js(f"{of.format(1)}.querySelectorAll('pre, button').length") == 2
    assert page.js(f"{of.format(3)}.querySelectorAll('pre, button').length") == 0
    assert page.js(f"{of.format(3)}.querySelector('code').textContent").startswith("torch.nn")
    assert page.js(f"{of.format(3)}.textContent").startswith("Clip with torch.nn.utils")


def test_another_quantity_can_be_chosen(page: Page) -> None:
    show(page, "#heatmap")
    page.wait_for(DRAWN)
    page.js("{ const s = document.getElementById('quantity'); "
            "s.value = data.heatmaps.findIndex((e) => e.quantity === 'norm.running_gap'); "
            "s.dispatchEvent(new Event('change')); }")  # fmt: skip
    page.wait_for("document.querySelector('#heatmap').textContent.includes('net · bn2')")
    assert not page.js("document.querySelector('#heatmap').textContent.includes('conv1')")
    assert "running statistics" in page.js("document.querySelector('#heatmaps .about').textContent")


def test_a_folded_finding_draws_its_figure_when_opened(page: Page) -> None:
    assert page.js("document.querySelectorAll('details .plot').length") == 0
    page.js("document.querySelector('details').open = true")
    show(page, "details")
    page.wait_for("document.querySelectorAll('details .main-svg').length > 0")


@pytest.mark.parametrize("width", [390, 768])
@pytest.mark.parametrize("language", ["en", "zh-Hant"])
def test_a_narrow_screen_needs_no_sideways_scrolling(
    chrome: Page, tmp_path: Path, width: int, language: str
) -> None:
    page = shown(chrome, sample_run(), tmp_path, language)
    page.size(width)
    page.js("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    page.js("openLayer(3, false)")
    page.wait_for("document.querySelectorAll('#layer .main-svg').length > 0")
    widest = "Math.max(...[...document.querySelectorAll('.main-svg')].map((s) => s.clientWidth))"
    page.wait_for(f"{widest} < {width}")
    assert page.js("document.documentElement.scrollWidth") == width
    assert page.problems == []


def test_the_page_speaks_chinese(chrome: Page, tmp_path: Path) -> None:
    page = shown(chrome, sample_run(), tmp_path, "zh-Hant")
    assert page.js("document.documentElement.lang") == "zh-Hant"
    assert page.js("document.querySelector('#findings h2').textContent") == "診斷結果"
    # All that is left in English are names, code, and what the run itself wrote.
    words = "[...document.querySelectorAll('h2, h3, th, label, summary, nav a')]"
    texts = page.js(f"{words}.map((e) => e.textContent)")
    assert not any(" the " in text or " of " in text for text in texts)
    assert page.problems == []


CONTRAST = """
(() => {
  const channel = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = (c) => {
    const [r, g, b] = c.match(/[\\d.]+/g).map(Number).map(channel);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const c = getComputedStyle(e).backgroundColor;
      if (!c.startsWith("rgba(0, 0, 0, 0")) return c;
    }
  };
  const texts = [...document.querySelectorAll("main *, #bar *")].filter((e) =>
    e.checkVisibility() && !e.closest("svg, :disabled") &&
    [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()));
  return texts.map((e) => {
    const [a, b] = [light(getComputedStyle(e).color), light(ground(e))];
    return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.textContent.slice(0, 40)];
  }).filter(([ratio]) => ratio < 4.5);
})()
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out_from_its_ground(page: Page, scheme: str) -> None:
    page.media("screen", scheme)
    page.js("openLayer(3, false)")
    assert page.js(CONTRAST) == []


def test_the_ground_follows_the_readers_scheme_and_choice_and_paper_is_light(page: Page) -> None:
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    light = page.js(ground)
    page.media("screen", "dark")
    dark = page.js(ground)
    assert dark != light
    page.js("document.getElementById('theme').click()")
    assert page.js(ground) == light
    page.js("document.getElementById('theme').click()")
    assert page.js(ground) == dark
    page.media("print", "dark")
    assert page.js(ground) == light
    page.js("localStorage.clear()")


def test_everything_is_unfolded_and_fits_the_sheet_when_printed(page: Page) -> None:
    page.js("dispatchEvent(new Event('beforeprint'))")
    widths = page.js("[...document.querySelectorAll('.main-svg')].map((s) => s.clientWidth)")
    assert max(widths) <= 672
    folded = "details:not([open]), .evidence[hidden]"
    assert page.js(f"document.querySelectorAll('{folded}').length") == 0
    assert page.js("[...tasks.keys()].every((plot) => plot.querySelector('.main-svg'))")
    page.js("dispatchEvent(new Event('afterprint'))")
    assert page.js("document.querySelectorAll('details[open]').length") == 0


def test_a_run_with_nothing_in_it_makes_a_quiet_page(chrome: Page, tmp_path: Path) -> None:
    page = shown(chrome, Run(), tmp_path)
    assert page.js("document.querySelector('h1').textContent").startswith("Nothing to judge")
    assert page.problems == []


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_the_pictures_of_a_preflight_are_drawn_and_fit(
    chrome: Page, tmp_path: Path, width: int, scheme: str
) -> None:
    page = shown(chrome, preflight(), tmp_path)
    page.media(scheme=scheme)
    page.size(width)
    for section, drawn in (("#distributions", 4), ("#first-layer", 1)):
        show(page, section)
        page.wait_for(f"document.querySelectorAll('{section} .main-svg').length >= {drawn}")
    page.wait_for("document.querySelector('#first-layer image') !== null")
    inside = "(([a, b]) => a.left >= b.left - 1 && a.right <= b.right + 1)"
    boxes = "['#first-layer image', '#first-layer'].map((s) => "
    boxes += "document.querySelector(s).getBoundingClientRect())"
    page.wait_for(f"{inside}({boxes})")  # A figure follows a new width some frames later.
    assert page.js("document.documentElement.scrollWidth") == width
    assert page.js("document.querySelector('#distributions').textContent").count(HOSTILE) >= 3
    assert page.js("document.querySelectorAll('#distributions b:not(figcaption b)').length") == 0
    labels = "[...document.querySelectorAll('#distributions .plot, #first-layer .plot')]"
    assert page.js(f"{labels}.every((plot) => plot.getAttribute('aria-label').length > 6)")
    assert page.problems == []


def test_another_kind_of_distribution_is_chosen(chrome: Page, tmp_path: Path) -> None:
    page = shown(chrome, preflight(), tmp_path)
    show(page, "#distributions")
    about = "document.querySelector('#distributions .plot').getAttribute('aria-label')"
    assert page.js(about).startswith("outputs.")
    page.js(
        "const s = document.getElementById('distribution-0'); s.value = 2;"
        "s.dispatchEvent(new Event('change'))"
    )
    assert page.js(about).startswith("weights.")
