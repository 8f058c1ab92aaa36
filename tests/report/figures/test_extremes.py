"""Figures of runs whose numbers are at the end of what a float holds."""

from __future__ import annotations

import pytest

from traindx.records import Event, EventKind, Scalar, Site
from traindx.report.html.page import render
from traindx.run import Run


@pytest.mark.parametrize("value", [-1.7e308, 1e308, 5e-324])
def test_a_loss_at_the_end_of_what_a_float_holds_has_a_page(value: float):
    items = [Scalar(step, "loss", value, Site("net")) for step in range(3)]
    assert "<html" in render(Run([*items, Event(2, EventKind.MEASURED)]))
