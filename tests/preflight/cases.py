"""Cases and probed runs for the tests of probes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer

from traindx.findings import Finding
from traindx.preflight import given
from traindx.preflight.case import Case
from traindx.preflight.catalog import catalog
from traindx.preflight.runner import Preflight
from traindx.records import RUN, Event, EventKind
from traindx.rules.engine import Engine
from traindx.rules.probed import looked
from traindx.run import Run


def case_of(
    model: nn.Module,
    batch: Any,
    loss: Callable[..., Any] | None = None,
    optimizer: Optimizer | None = None,
) -> Case:
    """A case as `traindx.preflight` makes it; the model is called `net`."""
    return given.case_of(model, batch, loss, optimizer, name="net")


def probed(case: Case, *names: str, quick: bool = False) -> Run:
    """The judged run of some probes, isolated; that they leave no trace is asserted."""
    flight = Preflight(case, quick=quick, probes=[catalog()[name] for name in names])
    assert not flight.failure, flight.failure
    engine = Engine()
    engine.write([Event(-1, EventKind.STARTED, RUN, {"kind": "preflight"})])
    for items in flight.items():
        engine.write(items)
    engine.write([Event(-1, EventKind.MEASURED)])
    engine.close()
    assert not [probe.trace for probe in looked(engine.run) if probe.trace]
    return engine.run


def reason(run: Run) -> str:
    """Why its only probe has not looked; empty if it has."""
    (probe,) = looked(run)
    return probe.reason


def finding(run: Run, code: str) -> Finding:
    """The only finding of a rule."""
    assert run.verdict is not None
    (found,) = (finding for finding in run.verdict.findings if finding.code == code)
    return found


def codes(run: Run) -> list[str]:
    """The rules that have found something."""
    assert run.verdict is not None
    return [finding.code for finding in run.verdict.findings]


def classifier(*hidden: nn.Module, features: int = 20, classes: int = 10) -> nn.Sequential:
    """A small classifier, of these layers between its first and its last."""
    torch.manual_seed(0)
    layers = hidden or (nn.ReLU(),)
    return nn.Sequential(nn.Linear(features, 32), *layers, nn.Linear(32, classes))


def labelled(samples: int = 32, features: int = 20, classes: int = 10) -> tuple[Any, Any]:
    """A batch of standard normal features, and labels."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(samples, features, generator=generator)
    return x, torch.randint(0, classes, (samples,), generator=generator)


def names(run: Run) -> Iterator[str]:
    """The probes that have looked."""
    return (probe.name for probe in looked(run) if not probe.reason)


class NormByHand(nn.Module):
    """Normalizes by the batch in training; in evaluation as well unless it follows the mode."""

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, *, follows_mode: bool) -> None:
        super().__init__()
        self.follows_mode = follows_mode
        self.register_buffer("running_mean", torch.zeros(32))
        self.register_buffer("running_var", torch.ones(32))

    def forward(self, x: Tensor) -> Tensor:
        by_batch = self.training or not self.follows_mode
        return F.batch_norm(x, self.running_mean, self.running_var, training=by_batch)
