"""Saves what the built-in rules of SageMaker Debugger look at, and asks them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from benchmarks.peering.builtin_rules import RULES, Rule, Saved
from benchmarks.peering.watching import Peer, Watch, tensors


class Debugger(Peer):
    """All rules over what is saved every so many steps, each optimizer with steps of its own."""

    interval = 1

    def __init__(self, watch: Watch) -> None:
        super().__init__(watch)
        self._steps: Counter[int] = Counter()
        self._rules: dict[int, list[Rule]] = {}
        self._saved = Saved(0)

    @property
    def _saves(self) -> bool:
        """Whether the next step of any optimizer is one to save."""
        return any(step % self.interval == 0 for step in self._steps.values() or (0,))

    def entered(self, module: nn.Module, name: str, args: tuple[Any, ...]) -> None:
        given = next(iter(tensors(args)), None)
        if given is None or not self._saves:
            return
        given, saved = given.detach(), self._saved
        if isinstance(module, nn.ReLU):
            saved.relu_inputs[name] = given.clone()
        elif isinstance(module, nn.Tanh):
            saved.tanh_inputs[name] = given.clone()
        elif isinstance(module, nn.Sigmoid):
            saved.sigmoid_inputs[name] = given.clone()
        elif isinstance(module, nn.Embedding):
            saved.tokens[name] = given
        if not name and given.ndim == 4 and given.shape[1] in (1, 3) and given.is_floating_point():
            saved.images.append(given)

    def left(
        self, module: nn.Module, name: str, args: tuple[Any, ...], kwargs: Any, output: Any
    ) -> None:
        if isinstance(module, nn.ReLU) and isinstance(output, Tensor) and self._saves:
            self._saved.relu_outputs[name] = output.detach().clone()

    def scored(self, name: str, inputs: Tensor, target: Any) -> None:
        classes = name in ("cross_entropy", "nll_loss") and not target.is_floating_point()
        if classes and inputs.ndim == 2 and target.ndim == 1 and self._saves:
            self._saved.classes.append((inputs.detach(), target))

    def validated(self, loss: float) -> None:
        self._saved.validation.append(loss)

    def stepping(self, optimizer: Optimizer, loss: Tensor) -> None:
        key = id(optimizer)
        step = self._steps[key]
        self._steps[key] += 1
        saved = self._saved
        if step % self.interval:
            self._saved = Saved(0, validation=saved.validation)
            return
        self._saved = Saved(0)
        saved.step, saved.loss = step, float(loss.detach().float().mean())
        first = key == next(iter(self._steps))
        for model, its in self.watch.models:
            if its is optimizer or (its is None and first):
                _save(saved, model)
        self._look(key, saved)

    def finish(self) -> None:
        for key in self._rules:
            self._look(key, Saved(self._steps[key], validation=self._saved.validation))

    def _look(self, key: int, saved: Saved) -> None:
        for rule in self._rules.setdefault(key, [rule() for rule in RULES]):
            found = list(rule.look(saved))
            if found:
                self.alarm(type(rule).__name__, *found)


class DebuggerByDefault(Debugger):
    """What is saved every 500 steps, which is the default."""

    interval = 500


def _save(saved: Saved, model: nn.Module) -> None:
    for name, param in model.named_parameters():
        if "weight" in name:
            saved.weights[name] = param.detach().clone()
        if param.grad is not None:
            grad = param.grad.detach()
            saved.gradients[name] = grad.to_dense() if grad.is_sparse else grad
