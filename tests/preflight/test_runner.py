"""Probes are planned, isolated, timed, and what they do not say has a reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn

from tests.preflight.cases import case_of, classifier, labelled
from traindx.messages import say
from traindx.preflight.case import Case, DoesNotApplyError
from traindx.preflight.catalog import catalog
from traindx.preflight.probe import Probe, Steps, probe
from traindx.preflight.runner import Preflight
from traindx.quantities import QUANTITIES
from traindx.records import Event, EventKind, Item, Scalar
from traindx.rules.catalog import catalog as rules


def looking(**options: object) -> Probe:
    """A probe that runs a pass."""

    def passing(case: Case) -> Iterator[Item]:
        """A pass."""
        case.loss().backward()
        yield Scalar(-1, "probe.initial_loss", 1.0)

    return probe(**options)(passing)  # pyright: ignore[reportArgumentType]


@probe()
def refusing(_case: Case) -> Iterator[Item]:
    """Does not apply."""
    raise DoesNotApplyError(say("the model is too small"))
    yield


@probe()
def failing(_case: Case) -> Iterator[Item]:
    """Fails."""
    raise ZeroDivisionError("by us")
    yield


def told(*probes: Probe, quick: bool = False, case: Case | None = None) -> list[dict[str, object]]:
    """What is told of each probe."""
    case = case or case_of(classifier(), labelled(), nn.CrossEntropyLoss())
    flight = Preflight(case, quick=quick, probes=probes)
    return [
        dict(item.detail)
        for items in flight.items()
        for item in items
        if isinstance(item, Event) and item.kind is EventKind.PROBE
    ]


def test_a_probe_that_has_looked_is_told_with_its_seconds() -> None:
    (one,) = told(looking())
    assert one["name"] == "passing"
    assert 0 < float(str(one["seconds"])) < 10
    assert float(str(one["estimate"])) > 0
    assert "reason" not in one
    assert "trace" not in one


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (refusing, "the model is too small"),
        (failing, "the probe failed: ZeroDivisionError: by us"),
        (looking(needs=("optimizer",)), "no optimizer was found"),
        (looking(needs=("loaders",)), "no data loader was seen"),
    ],
)
def test_a_probe_that_has_not_says_why(broken: Probe, reason: str) -> None:
    (one,) = told(broken)
    assert one["reason"] == reason
    assert bool(one.get("failed")) == (broken is failing)


def test_quick_leaves_out_what_trains() -> None:
    one, two = told(looking(trains=True), looking(), quick=True)
    assert one["reason"] == "left out by `--quick`: it trains"
    assert "reason" not in two


def test_without_a_loss_the_reason_is_the_finder_s() -> None:
    case = case_of(classifier(), labelled()[:1])
    (one,) = told(looking(needs=("loss",)), case=case)
    assert one["reason"] == "no loss was given, and the model returns none"


def test_a_probe_starts_without_gradients_with_a_seed_and_what_is_left_is_cleared() -> None:
    seen: list[tuple[bool, float]] = []

    @probe()
    def drawing(case: Case) -> Iterator[Item]:
        """Draws."""
        seen.append((all(p.grad is None for p in case.model.parameters()), torch.rand(()).item()))
        case.loss().backward()
        yield from ()

    case = case_of(classifier(), labelled(), nn.CrossEntropyLoss())
    case.loss().backward()
    told(drawing, drawing, case=case)
    assert seen[0] == seen[1]
    assert seen[0][0]
    assert all(param.grad is not None for param in case.model.parameters())


def test_the_estimate_is_passes_times_a_pass() -> None:
    case = case_of(classifier(), labelled(), nn.CrossEntropyLoss())
    ticks = iter(range(1000))
    flight = Preflight(case, probes=[looking(passes=8.0)], clock=lambda: float(next(ticks)))
    (planned,) = flight.plan().planned
    assert planned.seconds == 8 * 1.0 + 1.0
    assert planned.least < planned.seconds < planned.most
    assert flight.plan().seconds == planned.seconds


def test_a_probe_that_may_stop_early_is_estimated_by_a_step_that_is_timed() -> None:
    case = case_of(classifier(), labelled(), nn.CrossEntropyLoss())
    ticks = iter(range(1000))
    taken: list[int] = []
    steps = Steps(lambda _case: lambda: taken.append(next(ticks)), least=3, typical=10, most=200)
    probe = looking(passes=0.0, steps=steps)
    flight = Preflight(case, probes=[probe], clock=lambda: float(next(ticks)))
    (planned,) = flight.plan().planned
    step = 2.0  # a tick at its end, and one that it takes itself
    assert taken
    assert planned.seconds == 10 * step + 1.0
    assert planned.least <= 3 * step
    assert planned.most >= 200 * step


def test_a_step_that_cannot_be_taken_costs_nothing() -> None:
    def ready(_case: Case) -> Callable[[], object]:
        raise DoesNotApplyError(say("the model is too small"))

    case = case_of(classifier(), labelled(), nn.CrossEntropyLoss())
    probe = looking(passes=0.0, steps=Steps(ready, 1, 10, 200))
    ticks = iter(range(1000))
    flight = Preflight(case, probes=[probe], clock=lambda: float(next(ticks)))
    assert flight.plan().seconds == 1.0


def test_a_probe_that_is_not_wanted_is_left_out() -> None:
    case = case_of(classifier(), labelled(), nn.CrossEntropyLoss())
    flight = Preflight(case, probes=[looking()], without=["passing"])
    (planned,) = flight.plan().planned
    assert (planned.seconds, planned.most) == (0.0, 0.0)
    assert planned.reason == "left out, as the settings say"


def test_a_model_that_cannot_be_run_again_is_said_once_for_all() -> None:
    class Once(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.called = classifier(), []

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            counter["calls"] += 1
            if counter["calls"] > 1:
                raise RuntimeError("only once")
            return self.body(x)

    counter = {"calls": 0}
    one, two = told(looking(), refusing, case=case_of(Once(), labelled(), nn.CrossEntropyLoss()))
    assert one["reason"] == two["reason"]
    assert "cannot be run on its batch again: RuntimeError: only once" in str(one["reason"])


# -- the catalogue ---------------------------------------------------------------------------------

PROBES = pytest.mark.parametrize("one", catalog().values(), ids=lambda one: one.name)


@PROBES
def test_a_probe_stands_in_a_file_of_its_name_and_says_what_it_does(one: Probe) -> None:
    assert one.look.__module__.rpartition(".")[2] == one.name.replace("-", "_")
    assert one.summary.endswith(".")


@PROBES
def test_a_probe_writes_quantities_that_are_known(one: Probe) -> None:
    assert set(one.writes) <= set(QUANTITIES)


def test_every_rule_that_needs_a_probe_reads_what_one_writes() -> None:
    written = {name for one in catalog().values() for name in one.writes}
    probed = [rule for rule in rules().values() if rule.source == "probe"]
    assert not [rule.code for rule in probed if not set(rule.reads) & written]


@PROBES
def test_what_trains_comes_last(one: Probe) -> None:
    trains = [probe.trains for probe in catalog().values()]
    assert trains == sorted(trains)
    case = case_of(classifier(), labelled(), nn.CrossEntropyLoss())
    assert one.missing(case) or one.cost(case) >= 0
