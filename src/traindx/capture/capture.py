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

from traindx.capture.cadence import BUDGET, Cadence
from traindx.capture.collectors import Collector, Places
from traindx.capture.compiled import CompiledActivations
from traindx.capture.first_weights import FirstWeights
from traindx.capture.guard import apart, guarded, in_training, within
from traindx.capture.manual import BY_HAND, ManualUpdates, trained
from traindx.capture.measuring import WALKED, Measuring
from traindx.capture.models import TrackedModel, confirm, is_compiled
from traindx.capture.optimizers import TrackedOptimizer, is_idle
from traindx.capture.recorder import Place
from traindx.capture.taps import Args, Kwargs, Taps, in_graph_task
from traindx.capture.transfer import Host, TorchHost
from traindx.capture.trap import Trap
from traindx.capture.uncompiled import leave_uncompiled
from traindx.facts import Json
from traindx.messages import say
from traindx.nested import first_tensor
from traindx.records import EventKind, Point, Sink, Site

is_grad_enabled = torch.is_grad_enabled
Names = dict[tuple[TrackedModel, str], None]
"""Parameters by model and fqn, in order."""


class Capture(Measuring):
    """Watches the training in this process and writes items to sinks."""

    def __init__(
        self,
        sinks: Sequence[Sink],
        *,
        every: int | None = None,
        budget: float = BUDGET,
        trap_nan: bool = False,
        compiled_activations: bool = False,
        first_weights: bool = True,
        warn: Callable[[str], None],
        clock: Callable[[], float] = time.perf_counter,
        host: Host | None = None,
        patience: float = 0.0,
    ) -> None:
        self._taps = Taps(self)
        cadence = Cadence(every, budget=budget, clock=clock)
        host = host or TorchHost()
        super().__init__(sinks, cadence, self._taps, warn, clock, host, patience)
        self._opened = CompiledActivations(
            self._taps, self._note, self._say, wanted=compiled_activations
        )
        self._first_weights = FirstWeights(wanted=first_weights)
        self._trap = Trap(self._found, self._taps.calls, armed=trap_nan)
        self._manual = ManualUpdates()
        self._in_backward = False
        self._in_step = False
        self._scaler_stepped: bool | None = None
        self._stepping: dict[str, Names] = {}

    # -- life ------------------------------------------------------------------------------------

    @guarded
    def expect(self, models: Sequence[nn.Module], optimizers: Sequence[Optimizer]) -> None:
        """These are to be watched; if there are models among them, then no others."""
        self._quiet.leave()
        self._models.expect(models, inspect.currentframe())
        if any(is_compiled(model) for model in models):
            self.compiling()
        for optimizer in optimizers:
            self.given.add_optimizer(optimizer)
            self._optimizers.of(optimizer)
            self._made.add(optimizer, self._rounds.step)

    @guarded
    @apart
    def _finish(self) -> None:
        self._quiet.leave()
        if not self._thread.is_elsewhere:  # it may be training still
            self._end_manual_round()
            if self._rounds.pending():
                self._end_round()
        self._losses.reader.release()
        self._evaluations.ends()
        taken = self._take(self._rounds.step)
        seen = self._first_weights.parts(self._rounds.step)
        self._journal.write([*taken, *self._evaluations.events(self._rounds.step), *seen])

    @guarded
    def compiling(self) -> None:
        """torch.compile is used: dynamo must find module calls as they are.

        Only calls of its wrapper are still seen, which are outside the compiled graph.
        """
        self._opened.compiling()
        if self._compiled:
            return
        self._compiled = self._trap.compiled = True
        self._quiet.leave()
        self._taps.remove_calls()
        from torch._dynamo import OptimizedModule

        leave_uncompiled()
        self._taps.listen_to(OptimizedModule)
        if not self._opened.wanted:
            self._note(say("torch.compile is used: activations are not measured"))

    # -- forward -----------------------------------------------------------------------------------

    @in_training
    def forward_starts(self, module: nn.Module, args: Args, kwargs: Kwargs) -> None:
        """The outermost module of a forward pass is called."""
        if is_tracing():
            return
        self._quiet.leave()
        model = self._models.of(module, inspect.currentframe())
        if model is None:
            return
        model.called_here()
        self._loads.called(self._models, self._rounds.step)
        if in_graph_task():  # checkpointing runs a segment again: measured if it was not before
            self._observe(model, again=True)
        elif torch.is_grad_enabled():
            if self._rounds.step < WALKED and model.fqn_of(module) == "":
                self._losses.reader.drop(model)  # nobody may ever differentiate the one before
            self._training_forward(model, module, (*args, *kwargs.values()))
            self._trap.forward_starts(model, module, args, kwargs)
        else:
            self._evaluations.without_gradient(model)
            self._loads.place(self._models, self._rounds.step)
            if module is model.root:
                self._evaluated_inputs.evaluated(model, (*args, *kwargs.values()))
            hears = self._copies.evaluated(model, self._models.confirmed(), self._rounds.step)
            self._copies.has_replicas(model, self._models, self._rounds.step)
            self._opened.forward_without_gradient()
            if hears and not self._compiled:
                self._taps.calls.observer = self._copy_hears

    def _training_forward(self, model: TrackedModel, module: nn.Module, inputs: Args) -> None:
        if self._manual.watching:
            self._end_manual_round()
        if self._evaluations.with_gradient(model):
            self._recorder.drop_outputs(model)
            model.calls = {}
        model.called, model.called_at = True, self._rounds.step
        if self._measuring:
            if self._compiled:
                self._opened.forward_starts(model)
            model.note_batch(first_tensor(inputs))
            self._tell(Collector.forward_starts, model, inputs)
            if module is model.root and self._recorder.due(dense=16, every=8, apart=1):
                self._evaluated_inputs.trained(model, inputs)
            self._observe(model)

    @in_training
    def forward_ended(self, module: nn.Module, output: object) -> None:
        """The outermost module of a forward pass has returned."""
        self._trap.forward_ended(module, output)
        self._evaluations.forward_ended()
        self._copies.forward_ended()
        self._opened.forward_ended()

    @in_training
    def _copy_hears(self, module: nn.Module, output: object) -> None:
        self._copies.hear(module, output)

    @in_training
    def forward_failed(self) -> None:
        """The outermost module of a forward pass has raised."""
        self._opened.close()
        self._refer_to_no_tensor()
        self._evaluations.forward_failed()
        self._copies.forward_failed()
        self._trap.forward_failed()

    def _observe(self, model: TrackedModel, *, again: bool = False) -> None:
        if self._measuring and (self._opened.open or not self._compiled):
            model.refresh()
            self._watching = self._watch()
            output = functools.partial(self._output, model, again)
            self._taps.calls.observer = self._opened.observer(model, output)

    @within
    def _output(self, model: TrackedModel, again: bool, module: nn.Module, output: object) -> None:
        fqn = model.fqns.get(id(module))
        if fqn is None or not is_grad_enabled() or not self.is_training_thread():
            return
        if again and self._recorder.has((model, fqn, Point.OUTPUT)):
            return
        tensor = output if type(output) is Tensor else first_tensor(output)
        if tensor is not None and not tensor.is_cpu and self.is_capturing():
            return  # a model may capture a part of itself
        model.note_call(fqn)
        if self._measuring:
            for watch in self._watching:
                watch(model, fqn, module, tensor)
        if fqn == "" and self._rounds.step < WALKED:
            self._losses.reader.keep(model, tensor)

    # -- backward ----------------------------------------------------------------------------------

    @guarded
    def backward_starts(self, tensors: object) -> None:
        """The user calls `backward` on a loss."""
        if self._thread.claim():
            self._backward_starts(tensors)
        else:
            self._others_backward_starts(tensors)

    @in_training
    def _backward_starts(self, tensors: object) -> None:
        self._quiet.leave()
        only = self._models.only()
        if only is None or not only.is_of_this_thread:
            self._models.drop_those_of_other_threads()
        if self._manual.watching:
            self._end_manual_round()
        self._opened.backward_starts()
        self._in_backward = True
        self._backwards += 1
        self._round_backwards += 1
        self._evaluations.backward_starts()
        walk = self._rounds.step < WALKED
        loss = self._losses.backward_starts(tensors, inspect.currentframe(), walk)
        self._trap.backward_starts(loss, self._models)
        if self._measuring:
            self._measured_backward_starts(loss)

    def _measured_backward_starts(self, loss: Tensor | None) -> None:
        if loss is not None:
            self._tell(Collector.loss_found, loss)
        for tracked in self._optimizers.of_this_thread():
            tracked.clearing.backward_starts()
        for model in self._models:
            # Calls inside a compiled graph are not seen, so it is taken to be called always.
            now = self._compiled or model.called_at == self._rounds.step
            if model.called and now:
                self._tell(Collector.before_backward, model)

    @within
    def _output_gradient(self, place: Place, step: int, gradient: Tensor | None) -> None:
        # A graph may be differentiated again, later or by autograd.grad: not this loss. A function
        # of the user's may pass on no gradient.
        if gradient is None or not self._in_backward or self._rounds.step != step:
            return
        if gradient.is_cpu or not self.is_capturing():
            self._recorder.gradient(place, gradient, self._losses.scale)

    @in_training
    def backward_ended(self) -> None:
        """Gradients are as backward left them."""
        self._in_backward = False
        reached = self._losses.backward_ended(self._rounds.step)
        self._trap.backward_ended(self._models, scaled=self._losses.scale is not None)
        if self._measuring:
            for tracked in self._optimizers.of_this_thread():
                tracked.clearing.backward_ended()
            for model in self._models:
                self._tell(Collector.after_backward, model, self._losses.scale)
        self._losses.forget()
        if self._by_hand():
            places = trained(reached)
            self._manual.backward_ended(places)
            self._tell(Collector.before_step, places)

    @in_training
    def backward_failed(self) -> None:
        """`backward` has raised; the user may go on."""
        self._in_backward = False
        self._trap.backward_failed()
        self._losses.forget()

    @guarded
    @apart
    def loss_scaled(self, scaled: object, scaler: object) -> None:
        """A GradScaler has multiplied a loss."""
        if not self.is_capturing():
            self._losses.tape.scaled_by(scaled, scaler)
            self._clipping.loss_scaled(scaler, self._rounds.step)

    def _found(self, site: Site, detail: dict[str, Json]) -> None:
        """The trap has found where the first number that is not finite was born, or has not."""
        self._journal.event(self._rounds.step, EventKind.ORIGIN, detail, site)
        self._cadence.skip_time()

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
        if not self.given.trains(optimizer):
            return
        self._in_step = True
        self._quiet.leave()
        tracked = self._optimizers.of(optimizer)
        if self._rounds.repeats(tracked.name):
            self._losses.tape.belongs_to(self._rounds.step + 1)
            self._end_round()
        if self._measuring:
            tracked.clearing.step_starts()
        if self._measuring or not tracked.steps:
            self._manual.forget()
            places = self._placed(tracked)
            self._stepping[tracked.name] = dict.fromkeys([place[:2] for place in places])
            self._tell(Collector.before_step, places)

    def _placed(self, tracked: TrackedOptimizer) -> Places:
        """The parameters an optimizer holds, in their models, which are now known to train."""
        params = tracked.params()
        fed = tracked.note_fed(params)
        places = self._models.places(params, inspect.currentframe())
        confirm(places)
        if len(places) < len(params) or not fed:
            self._models.confirm_reached()  # it holds tensors of no model, or not of this one
        return places

    @in_training
    def step_ended(self, optimizer: Optimizer) -> None:
        """An optimizer has stepped."""
        if not self.given.trains(optimizer):
            return
        self._in_step = False
        tracked = self._optimizers.of(optimizer)
        names = self._stepping.pop(tracked.name, None) if self._stepping else None
        if is_idle(optimizer):
            return
        self._optimizers.may_be_idle(self._rounds.step, optimizer)
        self._scaler_stepped = True
        if names:  # of the parameters, since a step that fails would keep them alive
            self._tell(Collector.after_step, _named(names))
        tracked.step_ended()
        self._losses.tape.turn_ended()
        if self._rounds.took_turn(tracked.name):
            self._end_round()

    @in_training
    def scaler_step_starts(self, optimizer: Optimizer) -> None:
        """A GradScaler decides whether to step."""
        if not self.given.trains(optimizer):
            return
        self._scaler_stepped = False
        self._clipping.scaler_steps()
        self._quiet.leave()

    @in_training
    def scaler_step_ended(self, optimizer: Optimizer) -> None:
        """A GradScaler has stepped or skipped."""
        if not self.given.trains(optimizer):
            return
        if self._scaler_stepped is False:
            detail: dict[str, Json] = {"optimizer": self._optimizers.of(optimizer).name}
            self._journal.event(self._rounds.step, EventKind.AMP_SKIPPED, detail)
        self._scaler_stepped = None


def _named(names: Names) -> Places:
    """The parameters of these names."""
    return [
        (model, fqn, param)
        for model in dict.fromkeys([model for model, _ in names])
        for fqn, param in model.parameters()
        if (model, fqn) in names
    ]
