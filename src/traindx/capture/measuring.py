"""`Measuring`: what a capture measures with, and what it does between two steps."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from torch import Tensor
from torch.optim.optimizer import Optimizer

from traindx.capture.cadence import Cadence
from traindx.capture.clipping import Clipping
from traindx.capture.collectors import Collector
from traindx.capture.collectors.catalog import collectors
from traindx.capture.compiled import CompiledActivations
from traindx.capture.copies import Copies
from traindx.capture.drawn import Drawn
from traindx.capture.evaluated_inputs import EvaluatedInputs
from traindx.capture.evaluations import Evaluations
from traindx.capture.first_weights import FirstWeights
from traindx.capture.freezing import Freezing
from traindx.capture.guard import apart, guarded
from traindx.capture.inventory import Inventory
from traindx.capture.listening import Listening
from traindx.capture.loads import Loads
from traindx.capture.losses import Losses
from traindx.capture.made import MadeOptimizers
from traindx.capture.models import Models, TrackedModel
from traindx.capture.moments import Watch, moments, watchers, watching
from traindx.capture.optimizers import Optimizers
from traindx.capture.quiet import Quiet, Timed
from traindx.capture.recorder import Place, Recorder
from traindx.capture.steering import Steering
from traindx.capture.taps import Taps
from traindx.capture.threads import leaves_of
from traindx.capture.transfer import Host, Part, Portion
from traindx.capture.trap import Trap
from traindx.capture.unregistered import Unregistered
from traindx.facts import Json
from traindx.records import Description, Event, EventKind, Scalar, Sink

WALKED = 2
"""Steps in which the autograd graph behind each loss is read."""
A_CALL = 1e-6
"""Seconds that a call of a module takes longer for us, about; to time each would cost more."""


class Measuring(Listening):
    """What is known of the training, and the end of each of its steps."""

    _opened: CompiledActivations
    _trap: Trap
    _first_weights: FirstWeights

    def __init__(
        self,
        sinks: Sequence[Sink],
        cadence: Cadence,
        taps: Taps,
        warn: Callable[[str], None],
        clock: Callable[[], float],
        host: Host,
        patience: float,
    ) -> None:
        super().__init__(sinks, warn, clock, host, patience)
        self._clock = clock
        self._started = clock()
        self._calls = taps.calls
        self._cadence = cadence
        self._models = Models(self._owners, self.given)
        self._optimizers = Optimizers()
        self._inventory = Inventory(self._models, self._optimizers)
        self._losses = Losses(self._models, self._inventory)
        self._evaluations = Evaluations()
        self._evaluated_inputs = EvaluatedInputs()
        self._copies = Copies()
        self._loads = Loads()
        self._recorder = Recorder()
        self._clipping = Clipping()
        self._made = MadeOptimizers(self._owners)
        self._drawn = Drawn(self.drawn)
        self._unregistered = Unregistered()
        self._freezing = Freezing()
        self._steering = Steering(self.steered, lambda: self._rounds.step)
        every = collectors(self._recorder, self._output_gradient, self._calls)
        self._moments = moments(every)
        self._watch = functools.partial(watching, watchers(every))
        self._watching: tuple[Watch, ...] = ()
        self._quiet = Quiet(self._rounds, self._losses.tape, cadence, clock, self)
        self._timed = Timed(self._quiet, self._pass_untimed)
        self._measuring = True
        self._compiled = False
        self._backwards = 0
        self._round_backwards = 0
        self._measured_steps = 0

    @abstractmethod
    def _output_gradient(self, place: Place, step: int, gradient: Tensor | None) -> None:
        """The gradient of the loss with respect to an output measured is there."""

    def arm(self) -> None:
        """Begin to listen to torch in this process."""
        super().arm()
        self._drawn.install()
        self._steering.install()

    def disarm(self) -> None:
        """Put torch back as it was and write nothing more."""
        self._drawn.remove()
        self._steering.remove()
        self._quiet.leave()
        super().disarm()
        self._refer_to_no_tensor()
        if self._models.loose is not None:
            self._models.loose.forget()

    @guarded
    def swap_starts(self, *tensors: object) -> None:
        """What two tensors hold is about to be exchanged, as conversions of a model may do it.

        Torch refuses if anything refers to them weakly, and we do to a gradient within a step and
        to tensors that no module holds.
        """
        self._refer_to_no_tensor()
        if self._models.loose is not None:
            self._models.loose.let_go(tensors)

    @guarded
    def swap_ended(self, *_tensors: object) -> None:
        """That has been done, or has failed."""
        if self._models.loose is not None:
            self._models.loose.take_back()

    def _refer_to_no_tensor(self) -> None:
        for let_go in self._moments[Collector.let_go]:
            let_go()

    @property
    def backwards(self) -> int:
        """Backward passes seen."""
        return self._backwards + self._quiet.backwards

    def _summary(self, exit_code: int | None) -> dict[str, Json]:
        return {
            "exit_code": exit_code,
            "steps": self._rounds.step,
            "measured_steps": self._measured_steps,
            "backwards": self.backwards,
            "overhead_fraction": self._cadence.fraction,
            "listening_fraction": self._cadence.spending.listening_fraction,
            **self._cadence.kept(),
            "sink_seconds": round(self._journal.seconds, 4),
            "seconds": round(self._clock() - self._started, 4),
        }

    def _tell(self, moment: Callable[..., None], *what: object) -> None:
        for tell in self._moments[moment] if self._measuring else ():
            tell(*what)

    def _end_round(self) -> None:
        step, models = self._rounds.step, [*self._models]
        if self._measuring:
            self._write(self._measured(step, models), measured=True)
            self._refer_to_no_tensor()
            if reason := self._cadence.adapt(step):
                detail: dict[str, Json] = {"every": self._cadence.every, "reason": reason}
                self._journal.event(step + 1, EventKind.CADENCE, detail)
            self._cadence.skip_time()  # of the next step, saving and judging are no part
        else:
            self._cadence.step_ended(measured=False, step=step)
            overdue = self._cadence.mark >= self._journal.overdue_at
            if self._evaluations.pending or overdue:
                taken = self._take(step, fetch=overdue)
                self._write([*self._evaluations.events(step), *taken], fetch=overdue)
        self._begin_round(models)

    def _write(
        self, parts: Portion | list[Part], *, fetch: bool = True, measured: bool = False
    ) -> None:
        before = self._journal.seconds
        if handed_on := self._journal.write(parts, fetch=fetch, measured=measured):
            self._cadence.spending.follow(self._journal.seconds - before, handed_on)

    def _take(self, step: int, *, fetch: bool = True) -> list[Part]:
        """What every step leaves behind, up to this one."""
        self._loads.place(self._models, step)
        told = [*self._optimizers.idle(fetch=fetch), *self._losses.tape.take(step, fetch=fetch)]
        told += self._evaluated_inputs.take(step)
        return [*told, *self._copies.take(), *self._loads.take()]

    def _measured(self, step: int, models: Sequence[TrackedModel]) -> Portion:
        """Everything of a measured step; the event that says it is complete comes last."""
        trained = [model for model in models if model.confirmed]
        for model in trained:
            self._tell(Collector.round_ends, model)
            self._first_weights.note(model)
        parts: list[Part] = [*self._evaluations.events(step)]
        parts += [*self._recorder.parts(), *self._recorder.skips(), *self._losses.reader.take(step)]
        parts += [Description(step, facts) for facts in self._inventory.news(step, models)]
        parts += [self._optimizers.unread(step), *self._take(step)]
        parts += self._steering.scalars(step, self._optimizers)
        parts += self._freezing.parts(step, trained, self._held)
        parts += [*self._left_out(step, trained), *self._clipping.unread(step)]
        parts.append(Scalar(step, "backwards", float(self._round_backwards)))
        portion = self._journal.gather(parts)
        seconds = self._cadence.step_ended(measured=True, step=step)
        if step:
            portion.append(Scalar(step, "step.seconds", seconds))
        self._measured_steps += 1
        portion.append(Event(step, EventKind.MEASURED))
        return portion

    def _left_out(self, step: int, models: Iterable[TrackedModel]) -> Iterator[Scalar]:
        """What no optimizer trains, and optimizers that do not, or not for long."""
        compiled = self._compiled
        yield from self._made.scalars(step, self._models, self._optimizers, compiled=compiled)
        yield from self._drawn.scalars(step)
        if new := [model for model in models if self._unregistered.looks_at(model)]:
            held = self._held()
            for model in new:
                yield from self._unregistered.scalars(step, model, held)

    @guarded
    def drawn(self, iterator: Any, batch: Any) -> None:
        """A data loader has given a batch, or None as its pass ended."""
        if self.is_training_thread():
            self._drawn.note(iterator, batch)

    def _held(self) -> set[int]:
        """Ids of the parameters that some optimizer holds."""
        return self._optimizers.held() | self._made.held()

    @guarded
    @apart
    def steered(self, note: Callable[..., None], *what: object) -> None:
        """Something was loaded into an optimizer, read from a file, or told to a scheduler."""
        if self.is_training_thread():
            note(*what)

    @guarded
    def optimizer_made(self, optimizer: Optimizer) -> None:
        """An optimizer has got its parameters."""
        self._made.add(optimizer, self._rounds.step)

    @guarded
    @apart
    def loaded(self, args: tuple[object, ...], kwargs: dict[str, object], keys: object) -> None:
        """A state has been loaded into a module."""
        if self.is_training_thread():
            self._steering.resumed.loaded(args[0])
            self._loads.loaded(args, kwargs, keys, self._rounds.step)
            self._loads.place(self._models, self._rounds.step)

    @guarded
    @apart
    def clipped(self, largest: object, norm: object) -> None:
        """Gradients have been clipped."""
        if self.is_training_thread() and not self.is_capturing():
            optimizers = self._optimizers.of_this_thread()
            step, norm = self._rounds.step, norm if self._measuring else None
            self._clipping.clipped(largest, norm, step, self.backwards, optimizers)

    @apart
    def _others_backward_starts(self, tensors: object) -> None:
        """Another thread calls `backward`: it may have been given a model or optimizer of ours."""
        leaves = leaves_of(tensors)
        self._models.trained_here(leaves)
        self._optimizers.trained_here(leaves)

    def _begin_round(self, models: Sequence[TrackedModel]) -> None:
        self._quiet.leave()
        for model in models:
            model.part_with()
        self._rounds.end()
        self._trap.round_ends()
        self._clipping.round_begins(self._rounds.step, self.backwards)
        self._round_backwards = 0
        self._recorder.step = self._rounds.step
        due = self._rounds.any_due(self._cadence.due)
        self._measuring = due and self._cadence.affords(self._rounds.step)
        if self._measuring:
            models = [model for model in models if model.confirmed]
            for model in models:
                model.calls = {}
                self._tell(Collector.round_starts, model)
            for tracked in self._optimizers.of_this_thread():
                tracked.clearing.keep_entries()
            if self._compiled:
                self._opened.round_starts(models)
        else:
            self._pass_quietly()

    def _pass_quietly(self) -> None:
        """Let the steps up to the next measured one pass, if they are plain ones."""
        name, model = self._rounds.alone(), self._models.only()
        if name is None or model is None or not self._is_plain(model):
            return
        count = self._rounds.count(name)
        steps = self._cadence.next_due(count) - count - 1  # whose end begins no measured one
        for tracked in self._optimizers:
            if tracked.name == name and steps:
                self._quiet.begin(model, tracked, steps, self._journal.overdue_at)
                self._calls.passing = self._timed

    def _is_plain(self, model: TrackedModel) -> bool:
        known = model.confirmed and model.called and self._rounds.step >= WALKED
        waiting = self._evaluations.pending or self._evaluations.undecided
        return known and self._thread.is_here and not (waiting or self._trap.armed)

    def _pass_untimed(self) -> None:
        seconds, model = self._timed.typical, self._models.only()
        if seconds is not None and model is not None:
            self._cadence.spending.listening = seconds + A_CALL * sum(model.calls.values())
        self._calls.passing = self._quiet
