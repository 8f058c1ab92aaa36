"""What judging a measured step costs does not depend on how many were judged before it."""

from __future__ import annotations

import math
import sys
from types import FrameType

import pytest

from tests.rules.recording import Recording, linear, weight
from traindx.facts import ModelFacts, ModuleFacts, OptimizerFacts
from traindx.records import Item
from traindx.rules.engine import Engine

_LAYERS = [f"layers.{i}" for i in range(6)]


def _network() -> Recording:
    norm = ModuleFacts("norm", "BatchNorm1d", 9, 1, {"track_running_stats": True, "momentum": 0.1})
    modules = (ModuleFacts("", "Net", 0, 1), *(linear(f, i) for i, f in enumerate(_LAYERS)), norm)
    model = ModelFacts("net", "Net", modules, tuple(weight(fqn) for fqn in _LAYERS))
    return Recording(model, OptimizerFacts("SGD", "SGD", ({"lr": 0.1},), len(_LAYERS)))


def _measured(run: Recording, step: int, scale: float) -> None:
    for layer, fqn in enumerate(_LAYERS):
        run.grad(step, f"{fqn}.weight", scale * (1 + step % 3 + layer))
        run.scalar(step, "grad.absent", 0, f"{fqn}.weight")
        run.scalar(step, "param.rms", scale, f"{fqn}.weight")
        run.scalar(step, "update.ratio", 0.5, f"{fqn}.weight")
        run.scalar(step, "output.batch_share", 0.5, fqn)
        run.scalar(step, "units.dead_fraction", 0.5, fqn)
        run.scalar(step, "units.samples", 2048, fqn)
    for quantity in ("gap", "initial_weight", "training", "tracked", "updates", "variance_noise"):
        run.scalar(step, f"norm.{quantity.replace('gap', 'running_gap')}", 1, "norm")
    run.scalar(step, "batch.size", 4)
    run.scalar(step, "lr", 0.1, "SGD", "")
    run.scalar(step, "grad.uncleared", step % 2, "SGD", "")
    run.scalar(step, "loss", scale * (2 + step % 2))
    if step == 3:
        run.evaluated(step)
    run.measured(step)


def _calls(engine: Engine, items: list[Item]) -> int:
    """How many functions are called, or generators resumed, while the engine takes the items."""
    count = 0

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        engine.write(items)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("broken_at", [math.inf, 20])
def test_a_measured_step_costs_the_same_late_in_a_run(broken_at: float):
    run, engine, costs = _network(), Engine(), dict[int, int]()
    early, late = range(60, 80), range(220, 240)
    for step in range(240):
        _measured(run, step, math.nan if step >= broken_at else 1.0)
        if step in early or step in late:  # to count takes much longer than to judge
            costs[step] = _calls(engine, run.items)
        else:
            engine.write(run.items)
        run.items = []
    assert {"F006", "G001", "G002", "G003", "N001", "O001"} <= set(engine.verdict.evaluated)
    assert max(map(costs.__getitem__, late)) < 1.1 * max(map(costs.__getitem__, early))
