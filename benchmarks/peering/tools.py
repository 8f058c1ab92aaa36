"""Tools of others, each as its own documentation uses it; they are imported when they are used."""

from __future__ import annotations

import copy
import importlib.metadata
import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from benchmarks.peering.debugger import Debugger, DebuggerByDefault
from benchmarks.peering.watching import Peer, Watch, tensors


class NonFinite(Peer):
    """Looks whether the loss and each gradient are finite, before each step."""

    def stepping(self, optimizer: Optimizer, loss: Tensor) -> None:
        if not loss.detach().isfinite().all():
            self.alarm("loss")
        for model, _ in self.watch.models:
            for name, param in model.named_parameters():
                if param.grad is not None and not _dense(param.grad).isfinite().all():
                    self.alarm("gradient", name)


def _dense(grad: Tensor) -> Tensor:
    return grad.coalesce().values() if grad.is_sparse else grad


class Anomaly(Peer):
    """PyTorch's anomaly mode: an error at the first NaN in a backward pass, which ends the run.

    It is on in backward passes only: they raise the same error without the stacks of the forward
    pass, which take most of the time and name lines, not modules.
    """

    def starting(self) -> None:
        torch.autograd.set_detect_anomaly(True)

    def backward(self, loss: Tensor) -> None:
        torch.autograd.set_detect_anomaly(False)

    def raised(self, error: BaseException) -> bool:
        """Whether an error that ended the program is this tool's alarm."""
        if "returned nan values" not in str(error):
            return False
        self.alarm("nan")
        return True


class UnderOverflow(Peer):
    """Hugging Face's DebugUnderflowOverflow; the place is the module whose frame it prints last."""

    def model(self, model: nn.Module, optimizer: Optimizer | None) -> None:
        from transformers.debug_utils import (  # pyright: ignore[reportMissingImports]
            DebugUnderflowOverflow,
        )

        peer = self

        class Recorded(DebugUnderflowOverflow):
            """Notes its own error, and is silent from then on, since it would have ended there."""

            def forward_hook(self, module: nn.Module, input: Any, output: Any) -> None:
                if peer.failure or peer.alarms:
                    return
                try:
                    super().forward_hook(module, input, output)
                except ValueError as error:
                    if "inf/nan detected" not in str(error):
                        raise
                    peer.alarm("inf or nan", self.module_names[module])
                except Exception as error:
                    if type(error).__name__ == "_StopRecomputationError":
                        raise  # a checkpointed part has computed again all that it has to
                    peer.failure = f"{type(error).__name__}: {error}"[:200]

        Recorded(model)


class Gradsnitch(Peer):
    """`watch(model, optimizer)`, and `log(step, loss, val_loss)` after each backward pass.

    What it says of a rate is said of the optimizer that it was given.
    """

    OF_RATES = ("GS008", "GS010")

    def __init__(self, watch: Watch) -> None:
        super().__init__(watch)
        self._monitors: list[tuple[Any, Optimizer]] = []
        self._validation: list[float] = []

    def model(self, model: nn.Module, optimizer: Optimizer | None) -> None:
        import gradsnitch  # pyright: ignore[reportMissingImports]

        if optimizer is not None:
            self._monitors.append((gradsnitch.watch(model, optimizer), optimizer))

    def validated(self, loss: float) -> None:
        self._validation.append(loss)

    def stepping(self, optimizer: Optimizer, loss: Tensor) -> None:
        held = self._validation
        value = sum(held) / len(held) if held else None
        for monitor, its in self._monitors:
            if its is optimizer:
                step = len(monitor.rows)
                monitor.log(step, float(loss.detach().float().mean()), val_loss=value)
                self._validation = []

    def finish(self) -> None:
        for monitor, optimizer in self._monitors:
            if self._validation and monitor.rows:
                monitor.rows[-1]["val_loss"] = sum(self._validation) / len(self._validation)
            for found in monitor.report():
                rates = found.code in self.OF_RATES
                self.alarm(found.code, type(optimizer).__name__ if rates else "")


class NnHtop(Peer):
    """The badges of its table, read at every tenth step as somebody who looks at it would.

    A red one counts at once; a yellow one if it stands at two readings in a row.
    """

    RED = ("NaN DETECTED", "EXPLODING")

    def __init__(self, watch: Watch) -> None:
        super().__init__(watch)
        self._monitors: list[Any] = []
        self._before: set[tuple[int, str, str]] = set()

    def model(self, model: nn.Module, optimizer: Optimizer | None) -> None:
        from nn_htop import Monitor  # pyright: ignore[reportMissingImports]

        self._monitors.append(Monitor(model))

    def stepped(self, optimizer: Optimizer) -> None:
        if self.watch.steps % 10 == 0:
            self._read()

    def finish(self) -> None:
        self._read()

    def _read(self) -> None:
        from nn_htop.ui import _get_health_badge as badge  # pyright: ignore[reportMissingImports]

        shown = {
            (i, name, str(badge(layer.mean_activation, layer.grad_norm, layer.layer_type)))
            for i, monitor in enumerate(self._monitors)
            for name, layer in monitor.get_stats().items()
        }
        for row in shown:
            _, name, said = row
            if said in self.RED or (said != "LEARNING" and row in self._before):
                self.alarm(said, name)
        self._before = shown


class Ormas(Peer):
    """`Monitor(model, optimizer)` and `step(loss)` before the optimizer's step.

    What it records as a warning, as critical or as proof is an alarm.
    """

    options: ClassVar[dict[str, int]] = {}

    def __init__(self, watch: Watch) -> None:
        super().__init__(watch)
        self._monitors: list[tuple[Any, Optimizer | None]] = []

    def model(self, model: nn.Module, optimizer: Optimizer | None) -> None:
        from ormas_monitor import Monitor  # pyright: ignore[reportMissingImports]

        out = Path(tempfile.mkdtemp(dir="."))
        options = {"out": out, "sinks": [self._hear], "verbose": False, **self.options}
        self._monitors.append((Monitor(model, optimizer, **options), optimizer))

    def _hear(self, kind: str, said: dict[str, Any]) -> None:
        if kind == "event" and said.get("severity") in ("warning", "critical", "proof"):
            event = said.get("diagnosis") or said["event"]
            self.alarm(event, said.get("layer") or "", *said.get("layers", ()))

    def stepping(self, optimizer: Optimizer, loss: Tensor) -> None:
        for monitor, its in self._monitors:
            if its is optimizer or its is None:
                monitor.step(loss)

    def finish(self) -> None:
        for monitor, _ in self._monitors:
            monitor.close(report=False)


class OrmasOften(Ormas):
    """The same, checked every fifth step, so that a short run has a history to compare with."""

    options: ClassVar[dict[str, int]] = {"check_every": 5}


class Torchlens(Peer):
    """`audit_trace` of a forward and backward pass, at the first step and the 50th.

    A copy of the model is traced, on the same inputs and random numbers, and the gradient that the
    loss gave the output is sent back through it.
    """

    AT = (0, 50)

    def __init__(self, watch: Watch) -> None:
        super().__init__(watch)
        # It refuses to trace in a fork, whose parent could trace at the same time; ours does not.
        if (display := sys.modules.get("torchlens.utils.display")) is not None:
            vars(display)["_WARN_PARALLEL_IMPORT_PID"] = os.getpid()
        self._next = 0
        self._before: tuple[nn.Module, Tensor] | None = None
        self._call: tuple[tuple[Any, ...], Any] | None = None
        self._outs: list[Tensor] = []
        self._grads: dict[int, Tensor] = {}

    def entered(self, module: nn.Module, name: str, args: tuple[Any, ...]) -> None:
        due = self._next < len(self.AT) and self.watch.steps >= self.AT[self._next]
        if due and not name and self._before is None and module is self.watch.models[0][0]:
            self._before = (_bare(module), torch.get_rng_state())

    def left(
        self, module: nn.Module, name: str, args: tuple[Any, ...], kwargs: Any, output: Any
    ) -> None:
        if self._before is None or self._call is not None or name:
            return
        if module is self.watch.models[0][0]:
            self._call = (_copied(args), _copied(kwargs))
            self._outs = [out for out in tensors(output) if out.requires_grad]
            for i, out in enumerate(self._outs):
                out.register_hook(lambda grad, i=i: self._grads.__setitem__(i, grad.detach()))

    def backward(self, loss: Tensor) -> None:
        if self._before is not None and self._call is not None and self._grads:
            with torch.random.fork_rng(devices=[]):
                self._audit()
            self._next += 1
            self._before, self._call, self._outs, self._grads = None, None, [], {}

    def _audit(self) -> None:
        import torchlens  # pyright: ignore[reportMissingImports]
        from torchlens.options import CaptureOptions  # pyright: ignore[reportMissingImports]

        assert self._before is not None
        assert self._call is not None
        model, state = self._before
        args, kwargs = self._call
        torch.set_rng_state(state)
        options = CaptureOptions(backward_ready=True, save_grads=True)
        trace = torchlens.trace(model, args, kwargs, capture=options)
        outs = [out for out in (trace[label].out for label in trace.output_layers) if _has(out)]
        if [out.shape for out in outs] == [out.shape for out in self._outs]:
            sent = [(outs[i] * grad).sum() for i, grad in self._grads.items()]
            trace.log_backward(torch.stack(sent).sum())
        for found in torchlens.debug.audit_trace(trace).findings:
            if found.severity in ("critical", "warning"):
                sites = (*found.modules, *(_module(trace, op) for op in found.ops))
                self.alarm(found.check, *(str(site).split(":")[0] for site in sites if site))


def _module(trace: Any, op: str) -> Any:
    """The module of an operation; nothing if its label stands for several calls."""
    try:
        return trace[op].module
    except (AttributeError, ValueError):
        return None


def _bare(model: nn.Module) -> nn.Module:
    """A copy of a model without the hooks of tools that watch it, too."""
    bare = copy.deepcopy(model)
    for module in bare.modules():
        module._forward_hooks.clear()
        module._backward_hooks.clear()
    return bare


def _has(out: Any) -> bool:
    return isinstance(out, Tensor) and out.requires_grad


def _copied(value: Any) -> Any:
    """What a module was called with, apart from the graph it came from."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: _copied(part) for key, part in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_copied(part) for part in value)
    return value


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool, and how it is had.

    Attributes:
        title: What it is called in the table.
        peer: What watches a run with it.
        group: Tools of one group watch the same run; those that change how a run is made, by hooks
            of backward passes or functions of torch, are in another one than those that do not.
        package: What has to be installed; empty for what is here or in torch.
        module: What that is imported as.
    """

    title: str
    peer: Callable[[Watch], Peer]
    group: str = "together"
    package: str = ""
    module: str = ""

    def missing(self) -> str:
        """Why it cannot be run here; empty if it can."""
        if not self.module or importlib.util.find_spec(self.module) is not None:
            return ""
        return f"{self.package} is not installed"

    def version(self) -> str:
        """Of the package, as far as there is one."""
        return importlib.metadata.version(self.package) if self.package else torch.__version__


TOOLS: dict[str, Tool] = {
    "nonfinite": Tool("non-finite checks", NonFinite),
    "anomaly": Tool("PyTorch anomaly mode", Anomaly),
    "hf": Tool(
        "HF DebugUnderflowOverflow", UnderOverflow, "together", "transformers", "transformers"
    ),
    "debugger": Tool("SageMaker rules, every step", Debugger),
    "debugger-500": Tool("SageMaker rules, every 500 steps", DebuggerByDefault),
    "gradsnitch": Tool("gradsnitch", Gradsnitch, "together", "gradsnitch", "gradsnitch"),
    "ormas": Tool("ormas-monitor", Ormas, "together", "ormas-monitor", "ormas_monitor"),
    "ormas-5": Tool(
        "ormas-monitor, every 5 steps", OrmasOften, "together", "ormas-monitor", "ormas_monitor"
    ),
    "nn-htop": Tool("nn-htop", NnHtop, "hooks", "nn-htop", "nn_htop"),
    "torchlens": Tool("torchlens audits", Torchlens, "hooks", "torchlens", "torchlens"),
}  # fmt: skip
