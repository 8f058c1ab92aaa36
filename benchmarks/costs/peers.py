"""Other tools, where they are installed, at settings comparable with measuring every step."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from benchmarks.costs.programs import Training
from benchmarks.costs.settings import OURS, Choice, Setting


class Wandb(Setting):
    """Histograms of all parameters and gradients; offline, and the loss with them."""

    def __init__(self, training: Training, folder: Path) -> None:
        super().__init__(training, folder)
        import wandb  # pyright: ignore[reportMissingImports]

        self._run: Any = wandb.init(mode="offline", project="cost", dir=str(folder))
        self._run.watch(training.model, log="all", log_freq=1)

    def after_step(self, loss: Tensor) -> None:
        self._run.log({"loss": loss.item()})

    def finish(self) -> None:
        self._run.finish()


class TensorBoard(Setting):
    """Histograms of all parameters and gradients."""

    def __init__(self, training: Training, folder: Path) -> None:
        super().__init__(training, folder)
        from torch.utils.tensorboard import SummaryWriter

        self._writer: Any = cast(Any, SummaryWriter)(str(folder))
        self._step = 0

    def after_backward(self) -> None:
        for name, param in self.training.model.named_parameters():
            self._writer.add_histogram(name, param, self._step)
            if param.grad is not None:
                self._writer.add_histogram(f"{name}.grad", param.grad, self._step)
        self._step += 1

    def finish(self) -> None:
        self._writer.close()


class TensorBoardOutputs(TensorBoard):
    """Histograms of the modules' outputs, too."""

    def __init__(self, training: Training, folder: Path) -> None:
        super().__init__(training, folder)
        self._hooks = [
            module.register_forward_hook(self._hook(name or "model"))
            for name, module in training.model.named_modules()
        ]

    def _hook(self, name: str) -> Any:
        def hook(_module: object, _inputs: object, output: object) -> None:
            self._writer.add_histogram(f"{name}.output", _first(output), self._step)

        return hook

    def finish(self) -> None:
        for hook in self._hooks:
            hook.remove()
        super().finish()


class Torchlens(Setting):
    """A trace of the forward pass that is trained, with every operation's output."""

    gradients = False

    def __init__(self, training: Training, folder: Path) -> None:
        super().__init__(training, folder)
        import torchlens  # pyright: ignore[reportMissingImports]
        from torchlens.options import CaptureOptions  # pyright: ignore[reportMissingImports]

        self._trace: Any = torchlens.trace
        self._options = CaptureOptions(backward_ready=True, save_grads=self.gradients)
        self._log: Any = None

    def forward(self) -> Tensor:
        self._log = self._trace(self.training.model, self.training.inputs, capture=self._options)
        return self._log[self._log.output_layers[0]].out

    def after_step(self, loss: Tensor) -> None:
        self._log = None


class TorchlensBackward(Torchlens):
    """And of the backward pass, with every operation's gradient."""

    gradients = True

    def backward(self, loss: Tensor) -> None:
        self._log.log_backward(loss)


class UnderOverflow(Setting):
    """Hugging Face's look at each module's weights, inputs and outputs."""

    def __init__(self, training: Training, folder: Path) -> None:
        super().__init__(training, folder)
        from transformers.debug_utils import (  # pyright: ignore[reportMissingImports]
            DebugUnderflowOverflow,
        )

        self._debugging = DebugUnderflowOverflow(training.model)


class Anomaly(Setting):
    """PyTorch's anomaly mode."""

    def __init__(self, training: Training, folder: Path) -> None:
        super().__init__(training, folder)
        torch.autograd.set_detect_anomaly(True)

    def finish(self) -> None:
        torch.autograd.set_detect_anomaly(False)


_INSPECT = """
all:
  enabled: True
  layers:
    layer_name_regex_pattern: .*
  LogTensorStats:
    enabled: True
    tensors_struct:
      - tensor: output
        stats: [min, max, mean, std, l1_norm, l2_norm]
        freq: 1
      - tensor: grad
        stats: [min, max, mean, std, l1_norm, l2_norm]
        freq: 1
      - tensor: param
        stats: [min, max, mean, std, l1_norm, l2_norm]
        freq: 1
"""


class Inspect(Setting):
    """NVIDIA's six statistics of outputs, gradients and parameters; the hooks are ours."""

    def __init__(self, training: Training, folder: Path) -> None:
        super().__init__(training, folder)
        import nvdlfw_inspect.api as inspect  # pyright: ignore[reportMissingImports]

        (folder / "inspect.yaml").write_text(_INSPECT)
        inspect.initialize(config_file=str(folder / "inspect.yaml"), log_dir=str(folder))
        self._inspect: Any = inspect
        for name, module in training.model.named_modules():
            module.register_forward_hook(self._hook(name or "model"))

    def _hook(self, name: str) -> Any:
        def hook(_module: object, _inputs: object, output: object) -> None:
            self._log(name, "output", _first(output).detach())

        return hook

    def _log(self, layer: str, kind: str, tensor: Tensor) -> None:
        self._inspect.log_tensor_stats(layer, tensor_name=kind, tensor=tensor, skip_reduction=True)

    def after_backward(self) -> None:
        for name, param in self.training.model.named_parameters():
            self._log(name, "param", param.detach())
            if param.grad is not None:
                self._log(name, "grad", param.grad)

    def after_step(self, loss: Tensor) -> None:
        self._inspect.step()

    def finish(self) -> None:
        self._inspect.end_debug()


def _first(output: object) -> Tensor:
    """What a module returns, or the first part of it."""
    return cast(
        Tensor, cast("tuple[object, ...]", output)[0] if isinstance(output, tuple) else output
    )


def _peer(title: str, attach: Any, module: str, collects: str, *, leaves: bool = False) -> Choice:
    return Choice(title, attach, module, leaves=leaves, peer=True, collects=collects)


PEERS: dict[str, Choice] = {
    "wandb": _peer(
        "wandb.watch all, every step", Wandb, "wandb",
        "64-bin histograms of parameters and their gradients; offline",
    ),
    "tensorboard": _peer(
        "TensorBoard histograms, every step", TensorBoard, "tensorboard",
        "histograms of parameters and their gradients", leaves=True,
    ),
    "tensorboard-all": _peer(
        "TensorBoard with activations", TensorBoardOutputs, "tensorboard",
        "and histograms of every module's output", leaves=True,
    ),
    "torchlens": _peer(
        "torchlens trace, every step", Torchlens, "torchlens",
        "the output of every operation of the forward pass, kept until the step is over",
    ),
    "torchlens-all": _peer(
        "torchlens with gradients", TorchlensBackward, "torchlens",
        "and the gradient of every operation",
    ),
    "hf": _peer(
        "HF DebugUnderflowOverflow", UnderOverflow, "transformers",
        "smallest and largest magnitude, NaN and infinity of weights, inputs and outputs; "
        "no gradients",
    ),
    "anomaly": _peer(
        "PyTorch anomaly mode", Anomaly, "torch",
        "NaN in gradients of operations, with the stack of their forward pass", leaves=True,
    ),
    "inspect": _peer(
        "nvdlfw-inspect, every step", Inspect, "nvdlfw_inspect",
        "six statistics of outputs, parameters and their gradients; the hooks are ours",
    ),
}  # fmt: skip
CHOICES: dict[str, Choice] = {**OURS, **PEERS}


def installed(choice: Choice) -> bool:
    """Whether what it needs is there."""
    return importlib.util.find_spec(choice.module) is not None
