"""What a page of a large run costs: its size, writing it, and opening it in Chromium.

Run it with `python benchmarks/page.py`; `--layers` and `--steps` measure other runs, `--output`
keeps the page. The run has everything that a page shows: activations, gradients, parameters,
updates, exponent histograms, and a normalization for every fourth layer. Three openings are timed.
"""

from __future__ import annotations

import argparse
import math
import random
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.browser.devtools import Page, browser  # noqa: E402
from traindx.facts import Json, ModelFacts, ModuleFacts, ParamFacts  # noqa: E402
from traindx.findings import Evidence, Finding, Severity, Verdict  # noqa: E402
from traindx.quantities import EXPONENTS  # noqa: E402
from traindx.records import (  # noqa: E402
    Description,
    Event,
    EventKind,
    Item,
    Point,
    Record,
    Scalar,
    Site,
    TensorStats,
    Vector,
)
from traindx.report.html import render  # noqa: E402
from traindx.run import Run  # noqa: E402

CHANNELS = 64


def large_run(num_layers: int, num_steps: int) -> Run:
    """A deep network measured at every step, with a finding at every fiftieth layer."""
    run = Run(item for step in large_items(num_layers, num_steps) for item in step)
    run.verdict = _verdict(_names(num_layers), num_steps)
    return run


def large_items(num_layers: int, num_steps: int) -> Iterator[list[Item]]:
    """What is written of that network, a measured step at a time."""
    names = _names(num_layers)
    rng = random.Random(0)
    for step in range(num_steps):
        described = [Description(0, _model(names))] if step == 0 else []
        yield [*described, *_measured(rng, step, names)]


def _names(num_layers: int) -> list[str]:
    return [f"blocks.{i}.{'norm' if i % 4 == 3 else 'linear'}" for i in range(num_layers)]


def _model(names: list[str]) -> ModelFacts:
    modules = [ModuleFacts("", "Net", order=0)]
    params: list[ParamFacts] = []
    for i, name in enumerate(names, start=1):
        is_norm = name.endswith("norm")
        options: dict[str, Json] = {"track_running_stats": True, "momentum": 0.1} if is_norm else {}
        kind = "BatchNorm1d" if is_norm else "Linear"
        modules.append(ModuleFacts(name, kind, order=i, calls=1, options=options))
        shape = (CHANNELS,) if is_norm else (CHANNELS, CHANNELS)
        params.append(ParamFacts(f"{name}.weight", shape, "float32", True, ("Adam",)))
        params.append(ParamFacts(f"{name}.bias", (CHANNELS,), "float32", True, ("Adam",)))
    return ModelFacts("net", "Net", tuple(modules), tuple(params))


def _measured(rng: random.Random, step: int, names: list[str]) -> Iterator[Item]:
    has_vectors = step < 4 or step & (step - 1) == 0 or (step % 3 == 0 and _is_power(step // 3))
    for depth, name in enumerate(names):
        site = Site("net", name)
        yield Record(step, site, Point.OUTPUT, _stats(rng, 1.0))
        yield Record(step, site, Point.OUTPUT_GRAD, _stats(rng, 10 ** (-depth / 100)))
        for which in ("weight", "bias"):
            param = Site("net", f"{name}.{which}")
            yield Record(step, param, Point.GRAD, _stats(rng, 10 ** (depth / 100 - 6)))
            yield Scalar(step, "param.rms", 0.1 + 0.001 * rng.random(), param)
            yield Scalar(step, "update.ratio", 1e-3 * math.exp(rng.gauss(0, 0.4)), param)
        if has_vectors:
            yield from _vectors(rng, step, name)
        if name.endswith("norm"):
            yield Scalar(step, "norm.running_gap", 0.1 + 0.1 * rng.random(), site)
    yield Scalar(step, "loss", 2.3 * math.exp(-step / 500) + 0.1 * rng.random(), Site("net"))
    yield Scalar(step, "lr", 1e-3, Site("Adam"))
    yield Event(step, EventKind.MEASURED)


def _is_power(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


def _stats(rng: random.Random, scale: float) -> TensorStats:
    rms = scale * math.exp(rng.gauss(0, 0.3))
    mean = 0.1 * rms * rng.gauss(0, 1)
    spread = 4096 * max(rms * rms - mean * mean, 0.0)
    return TensorStats(4096, mean, spread, -4 * rms, 4 * rms, 0, 4096, int(2048 * rng.random()))


def _vectors(rng: random.Random, step: int, name: str) -> Iterator[Item]:
    places = [("output", name), ("grad", f"{name}.weight"), ("param", f"{name}.weight")]
    for point, fqn in places:
        centre = -3 if point == "output" else -12
        counts = tuple(
            float(int(1200 * math.exp(-((e - centre) ** 2) / 12) * (0.8 + 0.4 * rng.random())))
            for e in EXPONENTS
        )
        yield Vector(step, f"{point}.exponents", Site("net", fqn), counts)
    if name.endswith("norm"):
        for quantity in ("batch_mean", "running_mean", "batch_var", "running_var"):
            values = tuple(1 + 0.2 * rng.random() for _ in range(CHANNELS))
            yield Vector(step, f"norm.{quantity}", Site("net", name), values)


def _verdict(names: list[str], num_steps: int) -> Verdict:
    findings = tuple(
        Finding(
            i, "G001", "vanishing-depth", Severity.WARNING, True,
            Evidence(Site("net", f"{name}.weight"), num_steps - 1, "The gradient is small.",
                     {"ratio": 1e-4}, series=("grad.rms", "loss")),
            num_steps // 2, num_steps - 1, num_steps // 2,
        )
        for i, name in enumerate(names[::50], start=1)
    )  # fmt: skip
    return Verdict(findings, evaluated=("G001",))


def opened(page: Page, file: Path) -> tuple[float, float, float]:
    """Seconds until the words are painted, the document is complete, and a plot is drawn."""
    start = time.monotonic()
    page.open(file)
    page.wait_for("document.querySelector('.main-svg') !== null", 60)
    drawn = time.monotonic() - start
    painted = page.js("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0")
    complete = page.js("performance.timing.loadEventEnd - performance.timing.navigationStart")
    return painted / 1000, complete / 1000, drawn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=500)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    run = large_run(options.layers, options.steps)
    start, cpu = time.monotonic(), time.process_time()
    html = render(run)
    wall, cpu = time.monotonic() - start, time.process_time() - cpu
    print(f"{options.layers} layers, {options.steps} measured steps")
    print(
        f"written: {len(html.encode()) / 1e6:.1f} MB in {wall:.1f} s ({cpu:.1f} s of CPU)",
        flush=True,
    )
    chromium = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        file = options.output or Path(folder) / "page.html"
        file.write_text(html, "utf-8")
        if chromium is None:
            print("Chromium is not installed: opening was not timed")
            return
        with browser(chromium, Path(folder) / "profile") as page:
            page.size(1280)
            for _ in range(3):
                painted, complete, drawn = opened(page, file.resolve())
                print(f"opened: words after {painted:.2f} s, complete after {complete:.2f} s, "
                      f"first plot after {drawn:.2f} s")  # fmt: skip
            print(f"problems: {page.problems or 'none'}")


if __name__ == "__main__":
    main()
