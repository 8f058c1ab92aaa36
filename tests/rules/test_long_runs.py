"""A long run, of which most is kept no more, has the findings of one that is kept whole."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.rules.recording import Recording, batchnorm_net, chain, failures
from traindx import columns, events, series, thinning
from traindx.facts import OptimizerFacts, PathFacts
from traindx.findings import Verdict
from traindx.records import EventKind, Item, Point, Record, Site, TensorStats
from traindx.rules.engine import Engine, judge
from traindx.store.reader import Stored
from traindx.store.writer import Writer

STEPS = 1000
BAD = TensorStats(10, math.nan, math.nan, math.nan, math.nan, nonfinite=4)


def fine(rms: float) -> TensorStats:
    return TensorStats(10, 0.0, 10 * rms * rms, -rms, rms)


class Net(Recording):
    """Three layers, of which everything is measured at every step, and two normalizations."""

    def __init__(self) -> None:
        paths = [PathFacts(n, 0, -0.6 * n) for n in (3, 2, 1)]
        optimizer = OptimizerFacts("SGD", "SGD", ({"lr": 0.1},), 3)
        norms = replace(batchnorm_net("bn1", "bn2", momentum=0.01), name="normed")
        super().__init__(chain(3, paths), norms, optimizer)
        self.rng = random.Random(0)

    def step(self, step: int, loss: float, grads: Sequence[TensorStats], params: float = 1.0):
        for i, grad in enumerate(grads):
            output = BAD if math.isnan(loss) and i else fine(1 + self.rng.random())
            self.items.append(Record(step, Site("net", str(i)), Point.OUTPUT, output))
            self.items.append(Record(step, Site("net", str(i)), Point.OUTPUT_GRAD, grad))
            self.items.append(Record(step, Site("net", f"{i}.weight"), Point.GRAD, grad))
            self.scalar(step, "param.rms", params, f"{i}.weight")
            self.scalar(step, "update.ratio", 0.02 * self.rng.random(), f"{i}.weight")
            self.scalar(step, "grad.absent", 0.0, f"{i}.weight")
        self.scalar(step, "lr", min(0.1, 0.002 * (step + 1)), "SGD", model="")
        self.scalar(step, "grad.uncleared", step < 40, "SGD", model="")
        for fqn, kept in (("bn1", 0.999), ("bn2", 0.5)):
            self.scalar(step, "norm.training", step < 900, fqn, "normed")
            gap = 1.0 + 0.3 * self.rng.random() if step < 300 else 0.1
            self.scalar(step, "norm.running_gap", gap, fqn, "normed")
            self.scalar(step, "norm.tracked", step + 1, fqn, "normed")
            self.scalar(step, "norm.updates", 1.0, fqn, "normed")
            self.scalar(step, "norm.initial_weight", kept ** (step + 1), fqn, "normed")
        self.scalar(step, "loss", loss)
        self.measured(step)


def healthy(net: Net, step: int) -> None:
    grads = [fine(1 + net.rng.random()) for _ in range(3)]
    net.step(step, 1 / (1 + step) + net.rng.random(), grads)


def evaluated_once(net: Net, step: int) -> None:
    """Statistics that were used early on, and never again."""
    if step == 200:
        net.evaluated(step, "normed")
    healthy(net, step)


def evaluated_often(net: Net, step: int) -> None:
    net.evaluated(step, "normed", training=step % 3 != 0)
    healthy(net, step)


def born_at_a_layer(net: Net, step: int) -> None:
    """A NaN in a forward pass, after steps that were skipped for harmless overflows."""
    if step in (3, 70, 400):
        net.event(step, EventKind.AMP_SKIPPED)
        net.step(step, 1.0, [BAD, fine(1.0), BAD])
    elif step < 450:
        healthy(net, step)
    else:
        net.step(step, math.nan, [BAD] * 3, 1.0 if step == 450 else math.nan)


def exploding(net: Net, step: int) -> None:
    """Gradients that grow toward the input, until they overflow at one layer after another."""
    growth = 1.02 ** min(step, 500)
    grads = [fine(growth**3), fine(growth**2), fine(growth)]
    broken = max(0, min(3, (step - 480) // 10))
    net.step(step, growth if broken < 3 else math.nan, [BAD] * broken + grads[broken:])


SCENES: list[Callable[[Net, int], None]] = [
    healthy, evaluated_once, evaluated_often, born_at_a_layer, exploding
]  # fmt: skip


def items_of(scene: Callable[[Net, int], None]) -> list[Item]:
    net = Net()
    for step in range(STEPS):
        scene(net, step)
    net.ended(STEPS)
    return net.items


def keep_little(patch: pytest.MonkeyPatch) -> None:
    """So that a short run is a long one."""
    for module in (thinning, events):
        patch.setattr(module, "HEAD", 32)
        patch.setattr(module, "TAIL", 80)
    for module in (series, columns, events):
        patch.setattr(module, "MOST", 256)
        patch.setattr(module, "SPANS", 8)


def told(verdict: Verdict) -> str:
    assert not failures(verdict)
    return repr(verdict)


@pytest.mark.parametrize("scene", SCENES)
def test_what_is_kept_no_more_changes_no_finding(
    scene: Callable[[Net, int], None], monkeypatch: pytest.MonkeyPatch
):
    items = items_of(scene)
    whole = judge(items)
    assert bool(whole.findings)
    keep_little(monkeypatch)
    assert told(judge(items)) == told(whole)


@pytest.mark.parametrize("scene", SCENES)
def test_a_long_run_is_judged_from_its_file_as_it_was_live(
    scene: Callable[[Net, int], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    keep_little(monkeypatch)
    live, saved = Engine(), Engine()
    writer = Writer(tmp_path / "run.traindx", interval=0)
    items = items_of(scene)
    for start in range(0, len(items), 700):
        live.write(items[start : start + 700])
        writer.write(items[start : start + 700])
    writer.close()
    live.close()
    for stretch in Stored(tmp_path / "run.traindx"):
        saved.replay(stretch)
    saved.close()
    assert told(saved.verdict) == told(live.verdict)
    for name in ("loss", "grad.rms", "output.max", "param.rms", "norm.tracked"):
        pairs = zip(live.run.series(name), saved.run.series(name), strict=True)
        for one, other in pairs:
            assert (one.site, one.count) == (other.site, other.count)
            assert repr(list(one)) == repr(list(other))
