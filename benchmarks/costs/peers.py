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
    """Histograms of all parameters and gradients, offline."""

    def __init__(self, training: Training, folder: Path) -> None:
        super().__init__(training, folder)
        import wandb  # pyright: ignore[reportMissingImports]

        self._run = wandb.init(mode="offline", project="cost", dir=str(folder))
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


class Torchlens(Setting):
    """A trace of the model, as one more forward pass, before each step."""

    def __init__(self, training: Training, folder: Path) -> None:
        super().__init__(training, folder)
        import torchlens  # pyright: ignore[reportMissingImports]

        self._trace = torchlens.trace

    def before_step(self) -> None:
        self._trace(self.training.model, self.training.inputs)


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
            tensor = output[0] if isinstance(output, tuple) else output
            self._log(name, "output", cast(Tensor, tensor).detach())

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


PEERS: dict[str, Choice] = {
    "wandb": Choice("wandb.watch all, every step", Wandb, "wandb"),
    "tensorboard": Choice("TensorBoard histograms, every step", TensorBoard, "tensorboard"),
    "torchlens": Choice("torchlens trace, every step", Torchlens, "torchlens"),
    "hf": Choice("HF DebugUnderflowOverflow", UnderOverflow, "transformers"),
    "anomaly": Choice("PyTorch anomaly mode", Anomaly),
    "inspect": Choice("nvdlfw-inspect, 6 statistics, every step", Inspect, "nvdlfw_inspect"),
}
CHOICES: dict[str, Choice] = {**OURS, **PEERS}


def installed(choice: Choice) -> bool:
    """Whether what it needs is there."""
    return importlib.util.find_spec(choice.module) is not None
