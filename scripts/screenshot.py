"""Takes the README's screenshot: the page of the demo's stale_batchnorm run, up to its first plot.

Run it with `make screenshot`, or `python scripts/screenshot.py -o FILE`. It trains the network, a
matter of seconds, writes the page, and opens it in Chromium, 1280 pixels wide in the light theme.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.browser.devtools import Page, browser  # noqa: E402

SCRIPT = ROOT / "src" / "traindx" / "demo" / "stale_batchnorm.py"
DEFAULT = ROOT / "docs" / "images" / "page.png"
WIDTH = 1280
MARGIN = 16
PLOT = "#evidence-1 .plot"


def page_of_the_demo(folder: Path) -> Path:
    """The page that `traindx run` and `traindx report` make of the demo's script."""
    page = folder / "page.html"
    shared = ["--config", os.devnull, "--lang", "en"]  # not as the user's own settings have it
    traindx("run", "--quiet", *shared, "--runs", str(folder), str(SCRIPT))
    run = next(folder.glob("*.traindx"))
    traindx("report", *shared, str(run), "-o", str(page))
    return page


def traindx(*words: str) -> None:
    """A command; its output matters only if it fails."""
    command = [sys.executable, "-m", "traindx", *words]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}:\n{done.stderr}")


def take(page: Page, file: Path, output: Path) -> None:
    """Open a page and save what is above its first plot, and the plot."""
    page.media()
    page.size(WIDTH)
    page.open(file)
    page.wait_for(f"document.querySelector('{PLOT} .main-svg') !== null")
    bottom = page.js(f"document.querySelector('{PLOT}').getBoundingClientRect().bottom")
    page.size(WIDTH, int(bottom) + MARGIN)
    output.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(output, whole=False)


def main() -> None:
    """Take it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=DEFAULT)
    output: Path = parser.parse_args().output
    names = ("chromium", "chromium-browser", "google-chrome")
    chromium = next(filter(None, map(shutil.which, names)), None)
    if chromium is None:
        sys.exit(f"The screenshot is taken by one of {', '.join(names)}; none is installed.")
    with TemporaryDirectory() as folder, browser(chromium, Path(folder) / "profile") as page:
        take(page, page_of_the_demo(Path(folder)), output)
    print(f"{output}: {output.stat().st_size} bytes")


if __name__ == "__main__":
    main()
