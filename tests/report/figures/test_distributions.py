"""Histograms and quantiles as figures: rows aligned, scales told, hostile values harmless."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest

from traindx.facts import ModelFacts, ModuleFacts, ParamFacts
from traindx.pictured import BINS
from traindx.records import Description, Event, EventKind, Item, Site, Vector
from traindx.report.figures.canvas import Canvas
from traindx.report.figures.distributions import (
    MOST_HISTOGRAMS,
    Distributed,
    distributed,
    histograms_figure,
    left_out,
)
from traindx.report.figures.quantiles import quantiles_figure
from traindx.run import Run

HOSTILE = "<b>x</b>"
FLAT = (-1.0, 1.0, 0.0, 0.0, *[100.0] * BINS)


def run_of(histograms: Mapping[str, Mapping[str, tuple[float, ...]]], scale: float = 1.0) -> Run:
    """A run with these histograms by layer and kind; quantiles are those of the ends."""
    names = list(histograms)
    facts = ModelFacts(
        "net",
        "Net",
        tuple(ModuleFacts(name, "Linear", order=i) for i, name in enumerate(names)),
        tuple(ParamFacts(f"{name}.weight", (2, 2), "float32", True, ()) for name in names),
    )
    items: list[Item] = [Description(-1, facts)]
    for i, (name, kinds) in enumerate(histograms.items()):
        for kind, values in kinds.items():
            site, wide = Site("net", name), scale**i
            spread = tuple(wide * float(q) for q in np.linspace(-1, 1, 9))
            items += [
                Vector(-1, f"probe.{kind}_histogram", site, values),
                Vector(-1, f"probe.{kind}_quantiles", site, spread),
            ]
    return Run(items)


def shown(run: Run, kind: str = "output") -> Distributed:
    ((*own,),) = distributed(run)
    return next(one for one in own if one.kind == kind)


def texts(run: Run, kind: str = "output") -> list[str]:
    return histograms_figure(Canvas(run), shown(run, kind))["data"][2]["text"]


def test_every_kind_has_the_same_rows_and_absent_ones_are_empty() -> None:
    run = run_of({"a": {"output": FLAT, "weight": FLAT}, HOSTILE: {"output": FLAT}})
    outputs, weights = (histograms_figure(Canvas(run), shown(run, k)) for k in ("output", "weight"))
    assert outputs["layout"]["yaxis"]["ticktext"] == ["a", "&lt;b>x&lt;/b>"]
    assert weights["layout"]["yaxis"]["ticktext"] == ["a", ""]
    assert outputs["layout"]["height"] == weights["layout"]["height"]
    assert texts(run, "weight") == ["± 1", ""]


def test_an_outline_is_as_high_as_its_fullest_bin_and_ends_where_the_values_do() -> None:
    counts = [0.0] * BINS
    counts[-1], counts[0] = 4000, 2000
    run = run_of({"a": {"output": (0.0, 3.0, 0.0, 0.0, *counts)}})
    line = histograms_figure(Canvas(run), shown(run))["data"][0]
    assert (min(line["x"]), max(line["x"])) == (0, 1)
    assert min(line["y"]) == pytest.approx(-0.85)
    assert line["y"][1] == pytest.approx(-0.425)
    assert line["fill"] == "toself"


@pytest.mark.parametrize(
    ("head", "text"),
    [
        ((-0.25, 0.5, 0.0, 0.0), "± 0.5"),
        ((-0.25, 0.5, 0.25, 0.0), "± 0.5 · 25 % zero"),
        ((0.0, 0.0, 1.0, 0.0), "all zero"),
        ((-1.0, 1.0, 0.1, 0.001), "1 % not finite"),
        ((-math.inf, 1.0, 0.0, 0.0), "± 0"),
    ],
)
def test_a_row_tells_its_scale_and_what_is_no_part_of_it(
    head: tuple[float, ...], text: str
) -> None:
    run = run_of({"a": {"output": (*head, *[1.0] * BINS)}})
    assert texts(run) == [text]


def test_zeros_and_constants_are_bars() -> None:
    single = [0.0] * BINS
    single[BINS // 2] = 8
    run = run_of({
        "a": {"output": (-1.0, 1.0, 0.5, 0.0, *[9.0] * BINS)},
        "b": {"output": (-2.0, -2.0, 0.0, 0.0, *single)},
    })  # fmt: skip
    bars = histograms_figure(Canvas(run), shown(run))["data"][1]
    assert bars["x"][:2] == [0, 0]
    assert bars["y"][:2] == [0, pytest.approx(-0.425)]
    assert bars["x"][3:5] == [-1, -1]
    assert bars["y"][3:5] == [1, pytest.approx(0.15)]


def test_of_very_many_layers_some_are_drawn_and_that_is_said() -> None:
    run = run_of({f"layer{i}": {"output": FLAT} for i in range(60)})
    observed = {"probe": "distributions", "layers": 900, "shown": 60}
    run.add(Event(-1, EventKind.OBSERVED, Site("net"), {**observed}))
    figure = histograms_figure(Canvas(run), shown(run))
    assert len(figure["layout"]["yaxis"]["ticktext"]) == MOST_HISTOGRAMS
    assert left_out(run, shown(run)) == [
        "Of 900 layers, 60 evenly spaced ones were looked at.",
        "Histograms are drawn of 24 of 60 layers, evenly spaced.",
    ]


def test_layers_of_like_widths_have_a_linear_axis() -> None:
    run = run_of({name: {"output": FLAT} for name in "abc"}, scale=2.0)
    figure = quantiles_figure(Canvas(run), shown(run))
    median, outer = figure["data"][-1], figure["data"][0]
    assert "tickvals" not in figure["layout"]["yaxis"]
    assert outer["y"] == pytest.approx([-0.75, -1.5, -3, 3, 1.5, 0.75])
    assert median["y"] == [0, 0, 0]
    assert "99 % 0.75" in median["text"][0]


def test_layers_of_unlike_widths_have_an_axis_with_powers_of_ten_on_both_sides() -> None:
    run = run_of({name: {"output": FLAT} for name in "abcd"}, scale=1e-2)
    figure = quantiles_figure(Canvas(run), shown(run))
    ticks = dict(zip(figure["layout"]["yaxis"]["ticktext"], figure["layout"]["yaxis"]["tickvals"],
                     strict=True))  # fmt: skip
    assert ticks["0"] == 0
    assert ticks["10<sup>-2</sup>"] == -ticks["-10<sup>-2</sup>"] > 0
    assert [*ticks.values()] == sorted(ticks.values())
    outer = figure["data"][0]["y"]
    assert outer[:4] == sorted(outer[:4])  # the funnel closes


def test_a_vector_of_another_length_is_not_drawn() -> None:
    assert distributed(run_of({"a": {"output": FLAT[:-1]}})) == []


def test_infinite_quantiles_are_left_out() -> None:
    run = run_of({"a": {"output": FLAT}, "b": {"output": FLAT}}, scale=math.inf)
    figure = quantiles_figure(Canvas(run), shown(run))
    assert len(figure["data"][0]["x"]) == 2
