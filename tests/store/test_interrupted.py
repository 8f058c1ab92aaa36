"""Whoever presses Ctrl+C in the middle of a write, and goes on, has a run file that opens."""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from traindx.records import Event, EventKind, Point, Record, Scalar, Site, TensorStats
from traindx.run import Run
from traindx.store.writer import Writer

STATS = TensorStats(4, 0.0, 1.0, -1.0, 1.0)


class _Interrupt:
    """Raises KeyboardInterrupt at a line of the store's sources that is run: the n-th."""

    def __init__(self, line: int) -> None:
        self.left = line

    def __call__(self, frame: Any, event: str, _arg: object) -> Any:
        if "/traindx/store/" not in frame.f_code.co_filename:
            return None
        if event == "line":
            self.left -= 1
            if not self.left:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self


def write(writer: Writer, step: int) -> None:
    site = Site("net", f"layer{step % 3}")
    writer.write([Scalar(step, "loss", float(step)), Record(step, site, Point.GRAD, STATS)])
    writer.write([Event(step, EventKind.MEASURED)])
    writer.commit()


def interrupted(path: Path, line: int) -> bool:
    """Whether a step was interrupted at this line; if so, the file must hold the others."""
    told: list[str] = []
    writer = Writer(path, interval=0.0, warn=told.append)
    write(writer, 0)
    before, done = sys.gettrace(), False
    sys.settrace(_Interrupt(line))
    try:
        write(writer, 1)
        done = True
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    for step in (2, 3, 4):
        write(writer, step)
    writer.close()
    assert told == []
    assert writer.complete
    steps = Run.load(path).series("loss")[0].steps.tolist()
    assert steps in ([0, 1, 2, 3, 4], [0, 2, 3, 4])
    return not done


@pytest.mark.parametrize("stride", [pytest.param(1, marks=pytest.mark.slow), 11])
def test_an_interrupt_at_any_line_of_a_write_costs_that_step_at_most(tmp_path: Path, stride: int):
    lines = count(1, stride)
    assert next(n for n in lines if not interrupted(tmp_path / f"{n}.traindx", n)) > 40


@pytest.mark.parametrize("value", [1e400, "no number"])
def test_an_item_that_cannot_be_taken_leaves_the_others_as_they_were(tmp_path: Path, value: Any):
    writer = Writer(tmp_path / "run.traindx", warn=lambda text: pytest.fail(text))
    write(writer, 0)
    huge = TensorStats(2**80 if value == 1e400 else 4, value, 1.0, -1.0, 1.0)
    with pytest.raises((OverflowError, TypeError)):
        writer.write([Record(1, Site("net"), Point.GRAD, huge)])
    write(writer, 2)
    writer.close()
    assert Run.load(writer.path).series("loss")[0].steps.tolist() == [0, 2]
