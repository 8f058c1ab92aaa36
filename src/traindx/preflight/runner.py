"""Runs the probes on a case, one after another, each isolated and timed."""

from __future__ import annotations

import gc
import time
import warnings
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module

import torch

from traindx.facts import Json
from traindx.messages import Message, listed, say
from traindx.preflight.case import Case, DoesNotApplyError
from traindx.preflight.catalog import catalog
from traindx.preflight.describing import described
from traindx.preflight.isolation import State
from traindx.preflight.locating import located
from traindx.preflight.probe import FEW, STEP, Probe, Steps
from traindx.preflight.structures import named_tensors
from traindx.records import RUN, Description, Event, EventKind, Item
from traindx.trial import described as described_error

Clock = Callable[[], float]
_NOTHING = Message("")
_PART = 0.3
"""What they are taken to cost, of a batch, where they cannot be tried."""
_LONG = 2.0
"""Seconds of a pass from which on one is enough to know."""
_ADDITIONS, _KNOWN = 2000, 0.0075
"""Small additions, and the seconds that they took where the costs of probes were measured."""
_TIMES, _ENOUGH = 20, 0.2
"""Passes that are timed at most, and seconds after which no more are."""
_APART, _STEP_APART = 2.5, 1.5
"""By which factors what probes take, and a step that was timed, may be off what is expected."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A probe that will look, or why it will not.

    Attributes:
        probe: The probe.
        seconds: What it is expected to take.
        least: What it takes at least.
        most: What it takes at most.
        reason: Why it will not look; empty if it will.
    """

    probe: Probe
    seconds: float = 0.0
    least: float = 0.0
    most: float = 0.0
    reason: Message = _NOTHING


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be done, and what it is expected to cost.

    Attributes:
        planned: Every probe.
    """

    planned: tuple[Planned, ...]

    @property
    def seconds(self) -> float:
        """What all are expected to take."""
        return sum(one.seconds for one in self.planned)

    @property
    def least(self) -> float:
        """What all take at least."""
        return sum(one.least for one in self.planned)

    @property
    def most(self) -> float:
        """What all take at most."""
        return sum(one.most for one in self.planned)

    @property
    def probes(self) -> int:
        """How many will look."""
        return sum(not one.reason for one in self.planned)


class Preflight:
    """The probes of one case.

    Args:
        case: The case.
        quick: Whether to leave out the probes that train.
        probes: The probes; all if None.
        without: Names of probes that are not wanted.
        clock: Seconds.

    Attributes:
        failure: Why the case cannot be run again; empty if it can.
        losses: The loss functions of torch in its loss.
    """

    def __init__(
        self,
        case: Case,
        *,
        quick: bool = False,
        probes: Iterable[Probe] | None = None,
        without: Collection[str] = (),
        clock: Clock = time.perf_counter,
    ) -> None:
        self._case = case
        self._clock = clock
        self._quick = quick
        self._without = without
        self._probes = list(catalog().values() if probes is None else probes)
        self._state = State(case)
        self._around = 0.0
        self._facts: list[Item] = []
        self._locate()
        self.losses: tuple[str, ...] = ()
        self.failure = self._described()
        self._pass = 0.0 if self.failure else self._timed(self._case)
        self._few = 0.0 if self.failure else self._timed_few()
        self._slowness = _slowness(clock)

    @property
    def case(self) -> Case:
        """What is probed."""
        return self._case

    def _locate(self) -> None:
        """Find out which axis counts the samples."""
        try:
            with quietly():
                self._state.begin()
                self._case = located(self._case)
        finally:
            self._state.restore()

    def _described(self) -> Message:
        """Describe the case by a pass; why it cannot be run, empty if it can."""
        try:
            with quietly():
                self._state.begin()
                self._facts = [Description(STEP, facts) for facts in described(self._case)]
                if self._case.loss_found is not None:
                    compared = self._case.compared(self._case.output())
                    self.losses = tuple(one.function for one in compared)
        except Exception as error:
            return say(
                "the model cannot be run on its batch again: {error}",
                error=described_error(error),
            )
        finally:
            began = self._clock()
            self._state.restore()
            self._around = self._clock() - began
        return Message("")

    def _timed_few(self) -> float:
        """Seconds of such a pass of a few samples; a part of the whole where there is none."""
        try:
            return self._timed(self._case.subset(FEW))
        except DoesNotApplyError:
            return self._pass * _PART
        finally:
            self._state.restore()

    def _timed(self, case: Case) -> float:
        """Seconds of a forward and a backward pass."""
        try:
            with quietly():
                self._state.begin()
                return self._mean(lambda: self._one_pass(case))
        except Exception:  # whatever it is, a probe will tell
            return 0.0
        finally:
            self._state.restore()

    def _mean(self, work: Callable[[], object]) -> float:
        """Seconds that something takes: the mean of several times, if they are short.

        The mean, since on a machine that does other things every probe is held up as much.
        """
        taken = list[float]()
        first = self._once(work)  # which may have to load and to allocate
        while sum(taken) < _ENOUGH and len(taken) < _TIMES and first < _LONG:
            taken.append(self._once(work))
        return sum(taken) / len(taken) if taken else first

    def _once(self, work: Callable[[], object]) -> float:
        began = self._clock()
        work()
        return self._clock() - began

    def _one_pass(self, case: Case) -> None:
        output = case.output()
        if case.loss_found is not None:
            total = case.loss_of(output)
        else:
            total = sum(t.float().sum() for _, t in named_tensors(output) if t.grad_fn is not None)
        if isinstance(total, torch.Tensor) and total.requires_grad:
            torch.autograd.backward(total)

    # -- the plan --------------------------------------------------------------------------------

    def plan(self) -> Plan:
        """What will be done, and what it is expected to cost."""
        planned = tuple(self._planned(probe) for probe in self._probes)
        if any("optimizer" in one.probe.needs and one.probe.trains and not one.reason
               for one in planned):  # fmt: skip
            import_module("torch._dynamo")  # a first step would, for a second or two
        return Plan(planned)

    def _planned(self, probe: Probe) -> Planned:
        if self.failure:
            return Planned(probe, reason=self.failure)
        if self._quick and probe.trains:
            return Planned(probe, reason=say("left out by `--quick`: it trains"))
        if probe.name in self._without:
            return Planned(probe, reason=say("left out, as the settings say"))
        if reason := probe.missing(self._case):
            return Planned(probe, reason=reason)
        cost = probe.cost(self._case, self._pass, self._few, self._slowness) + self._around
        seconds, least, most = cost, cost / _APART, cost * _APART
        if probe.steps is not None:
            step = self._timed_step(probe.steps)
            seconds += probe.steps.typical * step
            least += probe.steps.least * step / _STEP_APART
            most += probe.steps.most * step * _STEP_APART
        return Planned(probe, seconds, least, most)

    def _timed_step(self, steps: Steps) -> float:
        """Seconds of a step; 0 where it takes none, which the probe will tell."""
        try:
            with quietly():
                self._state.begin()
                return self._mean(steps.ready(self._case))
        except Exception:
            return 0.0
        finally:
            self._state.restore()

    # -- the probes ------------------------------------------------------------------------------

    def items(self, plan: Plan | None = None) -> Iterator[list[Item]]:
        """What is known of the case, then what each probe has measured."""
        yield self._facts
        for planned in (plan or self.plan()).planned:
            yield self._looked(planned)

    def _looked(self, planned: Planned) -> list[Item]:
        probe = planned.probe
        told: dict[str, Json] = {
            "name": probe.name,
            "writes": list(probe.writes),
            "trains": probe.trains,
        }
        if planned.reason:
            return [Event(STEP, EventKind.PROBE, RUN, {**told, "reason": str(planned.reason)})]
        began = self._clock()
        items, reason, failed = self._measured(probe)
        traces = self._state.restore()
        seconds = self._clock() - began
        told |= {"seconds": seconds, "estimate": planned.seconds}
        told |= {"least": planned.least, "most": planned.most}
        if reason:
            told["reason"] = str(reason)
            told["failed"] = failed
        if traces:
            told["trace"] = str(listed(traces[:8]))
        return [*items, Event(STEP, EventKind.PROBE, RUN, told)]

    def _measured(self, probe: Probe) -> tuple[list[Item], Message, bool]:
        """What it has measured, or why it has nothing to say, and whether that is a failure."""
        try:
            with quietly():
                self._state.begin()
                return list(probe.look(self._case)), Message(""), False
        except DoesNotApplyError as error:
            return [], error.reason, False
        except Exception as error:
            gc.collect()  # a graph in the traceback may hold much memory
            return [], say("the probe failed: {error}", error=described_error(error)), True

    @property
    def digest(self) -> str:
        """A hash of everything that the probes must leave as it is."""
        return self._state.digest


def _slowness(clock: Clock) -> float:
    """How many times as long work takes here and now as what is known of it."""
    ones, began = torch.ones(64, device="cpu"), clock()
    for _ in range(_ADDITIONS):
        ones.add(1)
    return (clock() - began) / _KNOWN


@contextmanager
def quietly() -> Generator[None]:
    """Inside, the user's model warns of nothing: it has been called before, and will be again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def failures(items: Sequence[Item]) -> list[str]:
    """The reasons why probes did not look."""
    events = (item for item in items if isinstance(item, Event) and item.kind is EventKind.PROBE)
    return [str(event.detail["reason"]) for event in events if "reason" in event.detail]
