"""The page of a preflight: pictures, and what was measured before training in place of curves."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tests.report.figures.test_distributions import FLAT, HOSTILE, run_of
from tests.report.figures.test_filters import run_of as filters_run
from tests.report.test_html import embedded
from traindx.facts import ModelFacts, ModuleFacts
from traindx.records import RUN, Description, Event, EventKind, Scalar, Site
from traindx.report.figures.filters import QUANTITY
from traindx.report.html import render
from traindx.run import Run


def preflight() -> Run:
    """Of a model whose first layer has a hostile name."""
    run = run_of({HOSTILE: {"output": FLAT, "gradient": FLAT, "weight": FLAT}, "b": {}})
    run.add(Event(-1, EventKind.STARTED, RUN, {"kind": "preflight", "script": "train"}))
    seen = filters_run(np.random.default_rng(0).normal(size=(4, 3, 5, 5)))
    (vector,) = seen.vectors(QUANTITY).values()
    site = Site("net", HOSTILE)
    run.add(type(vector[0])(-1, QUANTITY, site, vector[0].values))
    run.add(Event(-1, EventKind.OBSERVED, site, seen.events(EventKind.OBSERVED)[0].detail))
    for name, value, place in (
        ("probe.initial_loss", 2.3, Site("net")),
        ("probe.output_rms", 0.5, site),
        ("probe.gradient_rms", 1e-3, site),
        ("loss", 2.3, Site("net")),
    ):
        run.add(Scalar(-1, name, value, place))
    run.add(Event(-1, EventKind.MEASURED))
    run.add(Event(-1, EventKind.ENDED, RUN, {"steps": 0, "measured_steps": 0}))
    return run


@pytest.fixture(scope="module")
def data() -> Any:
    return embedded(render(preflight()))


def test_the_first_layer_is_shown_with_what_to_look_for(data: Any) -> None:
    (entry,) = data["first_layers"]
    assert HOSTILE in entry["title"]  # it becomes a text node
    assert entry["caption"] == "before training"
    assert "red, green and blue" in entry["guide"][0]
    assert entry["figure"]["data"][0]["source"].startswith("data:image/png;base64,")


def test_distributions_are_shown_by_kind(data: Any) -> None:
    (model,) = data["distributions"]
    titles = ["outputs", "gradients of the outputs", "weights"]
    assert [kind["title"] for kind in model["kinds"]] == titles
    assert all("should" in kind["reading"] for kind in model["kinds"])
    names = model["kinds"][0]["histograms"]["layout"]["yaxis"]["ticktext"]
    assert names == ["&lt;b>x&lt;/b>"]  # plotly would read the markup


def test_what_has_one_step_is_told_as_numbers_and_drawn_as_no_curve(data: Any) -> None:
    assert data["preflight"] is True
    assert data["timeline"] is None
    assert data["heatmaps"] == []
    assert [row[:3] for row in data["probed"]][:1] == [["probe.initial_loss", "net", "2.3"]]
    layer = data["layers"][0]
    assert (layer["output"][0], layer["grad"][0]) == ("0.5", "0.001")
    assert ["probe.output_rms", "0.5"] in layer["probed"]


def test_a_training_of_one_step_tells_its_loss_and_draws_no_curve() -> None:
    facts = ModelFacts("net", "Net", (ModuleFacts("", "Net"), ModuleFacts("a", "Linear")), ())
    run = Run([Description(0, facts), Scalar(0, "loss", 0.25, Site("net")),
               Scalar(0, "lr", 0.1), Event(0, EventKind.MEASURED)])  # fmt: skip
    shown = embedded(render(run))
    assert shown["timeline"] is None
    assert ["loss, step 0", "0.25"] in shown["details"]
    run.add(Scalar(1, "loss", 0.2, Site("net")))
    assert embedded(render(run))["timeline"] is not None


def test_the_pictures_speak_the_language_asked_for() -> None:
    shown = embedded(render(preflight(), "zh-Hant"))
    said = [*shown["first_layers"][0]["guide"], *shown["distributions"][0]["left_out"]]
    for kind in shown["distributions"][0]["kinds"]:
        said += [kind["title"], kind["reading"]]
    said += [row[3] for row in shown["probed"]]
    assert not [text for text in said if not re.search(r"[\u4e00-\u9fff]{2}", text)]
