"""A case probed and judged: the items of step -1 go to the engine that judges every run."""

from __future__ import annotations

import inspect
import platform
import secrets
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim.optimizer import Optimizer

from traindx import __version__
from traindx.capture.owners import name_in_frames
from traindx.config import load
from traindx.facts import Json
from traindx.preflight.case import Case
from traindx.preflight.given import case_of
from traindx.preflight.probe import STEP
from traindx.preflight.runner import Plan, Preflight
from traindx.records import RUN, Event, EventKind, Item, Sink
from traindx.rules.engine import Engine
from traindx.rules.judging import Judging
from traindx.run import Run
from traindx.store.writer import Writer, open_writer

FIRST_WEIGHTS = "first-weights"
"""The probe that keeps weights."""


def check(
    case: Case,
    *,
    quick: bool = False,
    first_weights: bool = True,
    judging: Judging | None = None,
    script: str = "",
    command: Sequence[str] | None = None,
    tell: Callable[[Plan], None] | None = None,
    store: Writer | None = None,
) -> Run:
    """Probe a case and judge what was measured.

    Args:
        case: The case; everything in it is as before afterwards.
        quick: Whether to leave out the probes that train.
        first_weights: Whether to keep the weights of the first layer.
        judging: Which rules, with what thresholds, and what to pass over.
        script: What it was found in.
        command: The command line to note.
        tell: Told what will be done and what it is expected to cost, before it begins.
        store: The run file to fill, which is closed at the end; nothing is saved if None.
    """
    with _kept(store):
        flight = Preflight(case, quick=quick, without=() if first_weights else (FIRST_WEIGHTS,))
        plan = flight.plan()
        engine = Engine(run=Run(path=store and store.path), judging=judging)
        if tell is not None:
            tell(plan)
        began = time.perf_counter()
        sinks: list[Sink] = [engine] if store is None else [store, engine]
        header = _header(flight.case, quick, plan, flight)
        header |= {"script": script, "command": None if command is None else [*command]}
        _write(sinks, [Event(STEP, EventKind.STARTED, RUN, header)])
        for items in flight.items(plan):
            _write(sinks, items)
        _write(sinks, _end(time.perf_counter() - began))
        engine.close()
        if store is not None:
            store.write_verdict(engine.verdict)
            store.close()
        return engine.run


@contextmanager
def _kept(store: Writer | None) -> Generator[None]:
    """Half a preflight is not kept: it would be what `check` judges by default."""
    try:
        yield
    except BaseException:
        if store is not None:
            store.discard()
        raise


def _write(sinks: Sequence[Sink], items: Sequence[Item]) -> None:
    for sink in sinks:
        sink.write(items)


def _end(seconds: float) -> list[Item]:
    ended: dict[str, Json] = {
        "exit_code": None,
        "steps": 0,
        "measured_steps": 0,
        "seconds": seconds,
    }
    return [Event(STEP, EventKind.MEASURED), Event(STEP, EventKind.ENDED, RUN, ended)]


def _header(case: Case, quick: bool, plan: Plan, flight: Preflight) -> dict[str, Json]:
    versions: dict[str, Json] = {
        "traindx": __version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
    }
    return {
        "id": secrets.token_hex(8),
        "kind": "preflight",
        "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "versions": versions,
        "platform": sys.platform,
        "quick": quick,
        "estimate": plan.seconds,
        "least": plan.least,
        "most": plan.most,
        "state": flight.digest,
        "case": _case(case, flight),
    }


def _case(case: Case, flight: Preflight) -> dict[str, Json]:
    """What was found to probe."""
    return {
        "model": case.name,
        "batch_size": case.batch_size,
        "loss": ("+".join(flight.losses) or "own") if case.loss_found else None,
        "why_no_loss": None if case.loss_found else str(case.why_no_loss),
        "failure": str(flight.failure) or None,
        "optimizer": type(case.optimizer).__name__ if case.optimizer is not None else None,
        "training_loader": case.loaders.training is not None,
        "other_loaders": [*case.loaders.others],
    }


def preflight(
    model: nn.Module,
    batch: Any,
    loss: Callable[..., Any] | None = None,
    optimizer: Optimizer | None = None,
    *,
    quick: bool = False,
    name: str | None = None,
    loader: Any = None,
    config: str | Path | None = None,
    contexts: Sequence[str] | None = None,
    folder: str | Path | None = None,
) -> Run:
    """Probe a model before it is trained, and judge what the probes have seen.

    ```python
    run = traindx.preflight(model, (images, labels), nn.CrossEntropyLoss(), optimizer)
    print(run.verdict.findings)
    ```

    The model, its buffers, gradients and modes, the optimizer and the random state are afterwards
    what they were, bit for bit.

    Args:
        model: The model, in the mode it is trained in.
        batch: What it is called with: a tuple or list of arguments, of which with a loss the last
            one is the target; a dict of keyword arguments; or its one argument.
        loss: `loss(output, target)` or `loss(output)`; None takes the one that the model returns.
        optimizer: The optimizer, if there is one.
        quick: Whether to leave out the probes that train.
        name: What to call the model; by default the name of its variable.
        loader: The data loader, if there is one.
        config: A file with settings; the nearest `pyproject.toml` by default.
        contexts: What is so by design, such as `pretrained`.
        folder: Where to save it as a run file; None saves nothing.

    Raises:
        WrongTypeError: Something is of another kind.
        UsageError: The model fails on its batch, or the loss on the output.
        CannotStoreError: There can be no run file in that folder.
    """
    settings = load(None if config is None else Path(config)).over(
        "`{}`", contexts=None if contexts is None else list(contexts)
    )
    called = name or name_in_frames(model, inspect.currentframe())
    case = case_of(model, batch, loss, optimizer, name=called, loader=loader)
    stem = f"{called or case.name}-preflight"
    store = None if folder is None else open_writer(Path(folder), stem, datetime.now())
    return check(
        case,
        quick=quick,
        first_weights=settings.first_weights,
        judging=settings.judging(),
        store=store,
    )
