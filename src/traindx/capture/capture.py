"""`Capture`: what happens at each moment of a training step, in the order it happens.

forward_starts, outputs, backward_starts, backward_ended, step_starts, step_ended; then the round
ends: one copy to the host, items to the sinks. All of it runs inside the user's training, so every
entry is `guarded`: whatever fails here is said once, and the training goes on.
"""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.jit._trace import is_tracing
from torch.optim.optimizer import Optimizer

from traindx.capture.cadence import Cadence
from traindx.capture.collectors import Collector, Places
from traindx.capture.collectors.activations import Activations, first_tensor
from traindx.capture.collectors.gradients import Gradients
from traindx.capture.collectors.norms import Norms
from traindx.capture.collectors.updates import Updates
from traindx.capture.evaluations import Evaluations
from traindx.capture.guard import guarded, in_training, place
from traindx.capture.inventory import Inventory
from traindx.capture.journal import Journal
from traindx.capture.losses import Losses
from traindx.capture.manual import BY_HAND, ManualUpdates
from traindx.capture.models import Models, TrackedModel, confirm
from traindx.capture.optimizers import Optimizers, TrackedOptimizer, is_idle
from traindx.capture.owners import Owners
from traindx.capture.recorder import Place, Recorder
from traindx.capture.rounds import Rounds
from traindx.capture.taps import Taps, in_graph_task
from traindx.capture.threads import TrainingThread
from traindx.facts import Json
from traindx.records import Description, Event, EventKind, Item, Point, Scalar, Sink

_WALKED = 2
"""Steps in which the autograd graph behind each loss is read."""


class Capture:
    """Watches the training in this process and writes items to sinks.

    Attributes:
        active: Whether it is listening.
        backwards: Backward passes seen.
        is_training_thread: Whether no other thread's training is being watched.
    """

    def __init__(
        self,
        sinks: Sequence[Sink],
        *,
        every: int | None = None,
        budget: float = 0.03,
        warn: Callable[[str], None],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.active = False
        self.backwards = 0
        self._thread = TrainingThread(lambda text: self._journal.note(self._rounds.step, text))
        self.is_training_thread = self._thread.may_be_this
        self._warn = warn
        self._journal = Journal(sinks, clock)
        self._clock = clock
        self._started = clock()
        self._taps = Taps(self)
        self._owners = Owners()
        self._models = Models(self._owners)
        self._optimizers = Optimizers()
        self._inventory = Inventory(self._models, self._optimizers)
        self._losses = Losses(self._models, self._inventory)
        self._evaluations = Evaluations()
        self._manual = ManualUpdates()
        self._rounds = Rounds()
        self._cadence = Cadence(every, budget=budget, clock=clock)
        self._recorder = Recorder()
        self._collectors: tuple[Collector, ...] = (
            Activations(self._recorder, self._output_gradient),
            Gradients(self._recorder),
            Updates(self._recorder),
            Norms(self._recorder),
        )
        self._measuring = True
        self._compiled = False
        self._in_backward = False
        self._in_step = False
        self._scaler_stepped: bool | None = None
        self._places: dict[str, Places] = {}
        self._round_backwards = 0
        self._measured_steps = 0

    # -- life ------------------------------------------------------------------------------------

    def arm(self) -> None:
        """Begin to listen to torch in this process."""
        self._taps.install()
        self.active = True

    def disarm(self) -> None:
        """Put torch back as it was and write nothing more."""
        self.active = False
        self._taps.remove()

    def give_up(self, error: Exception) -> None:
        """Step aside after a failure of our own: the training goes on."""
        if not self.active:
            return
        self.disarm()
        text = f"measuring stopped at step {self._rounds.step}: {error!r}{place(error)}"
        self._warn(f"{text}. Your training goes on.")
        self._journal.note(self._rounds.step, text)

    def close(self, exit_code: int | None) -> None:
        """Stop listening and write what is left, with the run's end."""
        self._finish()
        self.disarm()
        self._journal.event(self._rounds.step, EventKind.ENDED, self._summary(exit_code))
        self._journal.write([])

    @guarded
    def _finish(self) -> None:
        self._end_manual_round()
        if self._rounds.pending():
            self._end_round()
        self._losses.reader.release()
        self._evaluations.ends()
        losses = self._losses.tape.read(self._rounds.step, wait=True)
        self._journal.write([*losses, *self._evaluations.events(self._rounds.step)])

    def _summary(self, exit_code: int | None) -> dict[str, Json]:
        return {
            "exit_code": exit_code,
            "steps": self._rounds.step,
            "measured_steps": self._measured_steps,
            "backwards": self.backwards,
            "overhead_fraction": self._cadence.fraction,
            "sink_seconds": round(self._journal.seconds, 4),
            "seconds": round(self._clock() - self._started, 4),
        }

    @guarded
    def child_registered(self, parent: nn.Module, name: str, child: nn.Module | None) -> None:
        """A module has got a child."""
        self._owners.child_registered(parent, name, child)

    @guarded
    def param_registered(self, module: nn.Module, name: str, param: Tensor | None) -> None:
        """A module has got a parameter."""
        self._owners.param_registered(module, name, param)

    @guarded
    def compiling(self) -> None:
        """torch.compile is used: dynamo must find module calls as they are.

        Only calls of its wrapper are still seen, which are outside the compiled graph.
        """
        if self._compiled:
            return
        self._compiled = True
        self._taps.remove_calls()
        from torch._dynamo import OptimizedModule

        self._taps.listen_to(OptimizedModule)
        self._journal.note(self._rounds.step, "torch.compile is used: activations are not measured")

    # -- forward -----------------------------------------------------------------------------------

    @in_training
    def forward_starts(self, module: nn.Module, inputs: tuple[object, ...]) -> None:
        """The outermost module of a forward pass is called."""
        if is_tracing():
            return
        model = self._models.of(module, inspect.currentframe())
        if model is None:
            return
        model.called_here()
        if in_graph_task():  # checkpointing runs a segment again: measured if it was not before
            self._observe(model, again=True)
        elif torch.is_grad_enabled():
            self._training_forward(model, inputs)
        else:
            self._evaluations.without_gradient(model)

    def _training_forward(self, model: TrackedModel, inputs: tuple[object, ...]) -> None:
        if self._manual.watching:
            self._end_manual_round()
        if self._evaluations.with_gradient(model):
            self._recorder.drop_outputs(model)
            model.calls = {}
        model.called, model.called_at = True, self._rounds.step
        if self._measuring:
            batch = first_tensor(inputs)
            model.batch_size = batch.shape[0] if batch is not None and batch.dim() else None
            self._observe(model)

    def _observe(self, model: TrackedModel, *, again: bool = False) -> None:
        if self._measuring and not self._compiled:
            model.refresh()
            self._taps.calls.observer = functools.partial(self._output, model, again)

    @in_training
    def _output(self, model: TrackedModel, again: bool, module: nn.Module, output: object) -> None:
        fqn = model.fqn_of(module)
        if fqn is None or not torch.is_grad_enabled():
            return
        if again and self._recorder.has((model, fqn, Point.OUTPUT)):
            return
        model.note_call(fqn)
        self._tell(Collector.output, model, fqn, module, output)
        if fqn == "" and self._rounds.step < _WALKED:
            self._losses.reader.keep(model, first_tensor(output))

    # -- backward ----------------------------------------------------------------------------------

    @in_training
    def backward_starts(self, tensors: object) -> None:
        """The user calls `backward` on a loss."""
        if not self._thread.claim():
            return
        if self._models.only() is None:
            self._models.drop_those_of_other_threads()
        if self._manual.watching:
            self._end_manual_round()
        self._in_backward = True
        self.backwards += 1
        self._round_backwards += 1
        self._evaluations.backward_starts()
        walk = self._rounds.step < _WALKED
        self._losses.backward_starts(tensors, inspect.currentframe(), walk)
        if self._measuring:
            self._measured_backward_starts()

    def _measured_backward_starts(self) -> None:
        for tracked in self._optimizers:
            tracked.clearing.backward_starts()
        for model in self._models:
            # Calls inside a compiled graph are not seen, so it is taken to be called always.
            now = self._compiled or model.called_at == self._rounds.step
            if model.called and now:
                self._tell(Collector.before_backward, model)

    @guarded
    def _output_gradient(self, place: Place, step: int, gradient: Tensor) -> None:
        # A graph may be differentiated again, later or by autograd.grad: not this loss.
        if self._in_backward and self._rounds.step == step:
            self._recorder.tensor(place, gradient, scale=self._losses.scale)

    @in_training
    def backward_ended(self) -> None:
        """Gradients are as backward left them."""
        self._in_backward = False
        reached = self._losses.backward_ended(self._rounds.step)
        if self._measuring:
            for tracked in self._optimizers:
                tracked.clearing.backward_ended()
            for model in self._models:
                self._tell(Collector.after_backward, model, self._losses.scale)
        self._losses.forget()
        if self._by_hand():
            places = [(model, *place) for model in reached for place in model.trainable()]
            self._manual.backward_ended(places)
            self._tell(Collector.before_step, places)

    @in_training
    def backward_failed(self) -> None:
        """`backward` has raised; the user may go on."""
        self._in_backward = False
        self._losses.forget()

    @guarded
    def loss_scaled(self, scaled: object, scaler: object) -> None:
        """A GradScaler has multiplied a loss."""
        self._losses.tape.scaled_by(scaled, scaler)

    def _by_hand(self) -> bool:
        """Whether an update now would be nobody's: no optimizer is in use or at work.

        A closure's gradients belong to the step that calls it.
        """
        return not (self._rounds.turned() or self._in_step)

    def _end_manual_round(self) -> None:
        places = self._manual.changed() if self._by_hand() else []
        if not places:
            return
        confirm(places)
        if self._rounds.step == 0:
            self._journal.note(0, BY_HAND)
        self._tell(Collector.after_step, places)
        self._end_round()

    # -- optimizer step ----------------------------------------------------------------------------

    @in_training
    def step_starts(self, optimizer: Optimizer) -> None:
        """An optimizer is about to step."""
        self._in_step = True
        tracked = self._optimizers.of(optimizer)
        if self._rounds.repeats(tracked.name):
            self._losses.tape.belongs_to(self._rounds.step + 1)
            self._end_round()
        if self._measuring:
            tracked.clearing.step_starts()
        if self._measuring or not tracked.steps:
            self._manual.forget()
            self._places[tracked.name] = self._placed(tracked)
            self._tell(Collector.before_step, self._places[tracked.name])

    def _placed(self, tracked: TrackedOptimizer) -> Places:
        """The parameters an optimizer holds, in their models, which are now known to train."""
        tracked.note_fed()
        params = tracked.params()
        places = self._models.places(params, inspect.currentframe())
        confirm(places)
        if len(places) < len(params) or all(param.grad is None for param in params):
            self._models.confirm_reached()  # it holds tensors of no model, or not of this one
        return places

    @in_training
    def step_ended(self, optimizer: Optimizer) -> None:
        """An optimizer has stepped."""
        self._in_step = False
        tracked = self._optimizers.of(optimizer)
        places = self._places.pop(tracked.name, []) if self._places else []
        if is_idle(optimizer):
            return
        self._scaler_stepped = True
        if places:
            self._tell(Collector.after_step, places)
        tracked.step_ended()
        self._losses.tape.turn_ended()
        if self._rounds.took_turn(tracked.name):
            self._end_round()

    @in_training
    def scaler_step_starts(self, optimizer: Optimizer) -> None:
        """A GradScaler decides whether to step."""
        self._scaler_stepped = False

    @in_training
    def scaler_step_ended(self, optimizer: Optimizer) -> None:
        """A GradScaler has stepped or skipped."""
        if self._scaler_stepped is False:
            detail: dict[str, Json] = {"optimizer": self._optimizers.of(optimizer).name}
            self._journal.event(self._rounds.step, EventKind.AMP_SKIPPED, detail)
        self._scaler_stepped = None

    def _tell(self, moment: Callable[..., None], *what: object) -> None:
        for collector in self._collectors if self._measuring else ():
            getattr(collector, moment.__name__)(*what)

    # -- end of a round ----------------------------------------------------------------------------

    def _end_round(self) -> None:
        step = self._rounds.step
        if self._measuring:
            self._journal.write([*self._evaluations.events(step), *self._measured(step)])
            if reason := self._cadence.adapt(step):
                detail: dict[str, Json] = {"every": self._cadence.every, "reason": reason}
                self._journal.event(step + 1, EventKind.CADENCE, detail)
            self._cadence.skip_time()  # writing and judging are told apart
        else:
            self._cadence.step_ended(measured=False, step=step)
            if self._evaluations.pending or self._journal.overdue(self._cadence.mark):
                losses = self._losses.tape.read(step, wait=False)
                self._journal.write([*self._evaluations.events(step), *losses])
        self._begin_round()

    def _measured(self, step: int) -> list[Item]:
        """Everything of a measured step; the event that says it is complete comes last."""
        for model in self._models.confirmed():
            self._tell(Collector.round_ends, model)
        items = [*self._recorder.items(), *self._recorder.skips()]
        items += [Description(step, facts) for facts in self._inventory.news(step)]
        items += [*self._optimizers.scalars(step), *self._losses.tape.read(step, wait=True)]
        items.append(Scalar(step, "backwards", float(self._round_backwards)))
        seconds = self._cadence.step_ended(measured=True, step=step)
        if step:
            items.append(Scalar(step, "step.seconds", seconds))
        self._measured_steps += 1
        return [*items, Event(step, EventKind.MEASURED)]

    def _begin_round(self) -> None:
        self._rounds.end()
        self._round_backwards = 0
        self._recorder.step = self._rounds.step
        self._measuring = self._rounds.any_due(self._cadence.due)
        if self._measuring:
            for model in self._models.confirmed():
                model.calls = {}
                self._tell(Collector.round_starts, model)
            for tracked in self._optimizers:
                tracked.clearing.keep_entries()
