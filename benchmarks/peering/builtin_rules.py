"""The built-in rules of Amazon SageMaker Debugger, written anew from their documentation.

Their code is closed. Conditions and defaults are those of the developer guide, "List of Debugger
built-in rules"; what is collected is what `smdebug-rulesconfig` 1.0.1 asks for. Where the guide
leaves something open, the reading that accuses less is taken. A user of PyTorch has to name layers
so that the rules find them (`.*relu_output`); here they find them by their type.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

SIMPLE = ("VanishingGradient", "LossNotDecreasing", "WeightUpdateRatio")
"""The group that `smdebug-rulesconfig` has for PyTorch."""
LEFT_OUT = {
    "SimilarAcrossRuns": "compares with another run",
    "StalledTraining": "waits for half an hour",
    "TensorVariance": "has no thresholds of its own",
    "Confusion": "as documented fails for any two classes",
    "TreeDepth and FeatureImportanceOverweight": "are for XGBoost",
}

Named = dict[str, Tensor]


@dataclass(slots=True)
class Saved:
    """What is saved at a step, by collection: tensors by the names they have in the model.

    Attributes:
        step: Of its optimizer.
        loss: Of training; None if there is none.
        weights: Parameters with `weight` in their names, which is what that collection holds.
        gradients: Of all parameters that have one.
        relu_inputs: Of ReLU modules.
        relu_outputs: Of ReLU modules.
        tanh_inputs: Of tanh modules.
        sigmoid_inputs: Of sigmoid modules.
        images: What a model was called with, if it looks like images.
        tokens: What embeddings were called with.
        classes: Pairs of scores, `(N, C)`, and class numbers, `(N,)`.
        validation: Losses without gradients since the step before.
    """

    step: int
    loss: float | None = None
    weights: Named = field(default_factory=dict)
    gradients: Named = field(default_factory=dict)
    relu_inputs: Named = field(default_factory=dict)
    relu_outputs: Named = field(default_factory=dict)
    tanh_inputs: Named = field(default_factory=dict)
    sigmoid_inputs: Named = field(default_factory=dict)
    images: list[Tensor] = field(default_factory=list)
    tokens: Named = field(default_factory=dict)
    classes: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)


class Rule:
    """A rule: looks at each saved step, and gives the name of each tensor it objects to."""

    def look(self, saved: Saved) -> Iterator[str]:
        """What it objects to; an empty name is the loss or the data."""
        raise NotImplementedError


class VanishingGradient(Rule):
    """The mean magnitude of a gradient is below 1e-7."""

    def look(self, saved: Saved) -> Iterator[str]:
        for name, grad in saved.gradients.items():
            if grad.abs().mean() < 1e-7:
                yield name


class ExplodingTensor(Rule):
    """A saved tensor holds NaN or infinity."""

    def look(self, saved: Saved) -> Iterator[str]:
        if saved.loss is not None and not torch.tensor(saved.loss).isfinite():
            yield ""
        for part in (saved.weights, saved.gradients, saved.relu_outputs):
            for name, tensor in part.items():
                if not tensor.isfinite().all():
                    yield name


class DeadRelu(Rule):
    """More than 50 % of a layer's units are active less than 1 % of the time."""

    def look(self, saved: Saved) -> Iterator[str]:
        for name, out in saved.relu_outputs.items():
            if out.numel() and _idle(by_unit(out) > 0) > 0.5:
                yield name


class SaturatedActivation(Rule):
    """More than 50 % of a layer's units are within the bounds less than 1 % of the time.

    They are (-9.4999, 9.4999) for tanh, (-23, 16.99999) for the sigmoid.
    """

    def look(self, saved: Saved) -> Iterator[str]:
        layers = [(saved.tanh_inputs, -9.4999, 9.4999), (saved.sigmoid_inputs, -23.0, 16.99999)]
        for inputs, low, high in layers:
            for name, given in inputs.items():
                units = by_unit(given)
                if given.numel() and _idle((units > low) & (units < high)) > 0.5:
                    yield name


def by_unit(tensor: Tensor) -> Tensor:
    """A layer's values as `(samples, units)`: channels of images, features of anything else."""
    if tensor.ndim >= 4:
        return tensor.movedim(1, -1).flatten(0, -2)
    return tensor.reshape(-1, tensor.shape[-1]) if tensor.ndim > 1 else tensor.reshape(1, -1)


def _idle(active: Tensor) -> float:
    """The share of units that are active less than 1 % of the time."""
    return float((active.float().mean(0) < 0.01).float().mean())


class PoorWeightInitialization(Rule):
    """In the first ten steps: variances of inputs, spread of gradients, or a loss that stays.

    The largest variance of a ReLU's inputs is more than ten times the smallest; the 5th and 95th
    percentile of some gradient are within 0.001; or the loss is not lower for five steps.
    """

    def __init__(self) -> None:
        self._best = float("inf")
        self._waited = 0
        self._steps = 0

    def look(self, saved: Saved) -> Iterator[str]:
        self._steps += 1
        if self._steps > 10:
            return
        spread = {name: float(x.float().var()) for name, x in saved.relu_inputs.items()}
        if len(spread) > 1 and max(spread.values()) > 10 * min(spread.values()):
            yield from (min(spread, key=spread.__getitem__), max(spread, key=spread.__getitem__))
        for name in saved.weights.keys() & saved.gradients.keys():
            grad = saved.gradients[name].float().flatten()
            low, high = torch.quantile(grad, torch.tensor([0.05, 0.95]))
            if high - low < 0.001:
                yield name
        if saved.loss is not None:
            self._waited = 0 if saved.loss < self._best else self._waited + 1
            self._best = min(self._best, saved.loss)
            if self._waited >= 5:
                yield ""


class WeightUpdateRatio(Rule):
    """Between two saved steps, a weight moved by more than 10 times itself, or less than 1e-8."""

    def __init__(self) -> None:
        self._before: Named = {}

    def look(self, saved: Saved) -> Iterator[str]:
        for name, weight in saved.weights.items():
            before = self._before.get(name)
            if before is not None and before.shape == weight.shape:
                ratio = float((weight - before).norm() / (before.norm() + 1e-9))
                if ratio > 10 or ratio < 1e-8:
                    yield name
        self._before = saved.weights


class UnchangedTensor(Rule):
    """`allclose(rtol=1e-5, atol=1e-8)` holds for a weight over three saved steps."""

    def __init__(self) -> None:
        self._before: deque[Named] = deque(maxlen=2)

    def look(self, saved: Saved) -> Iterator[str]:
        for name, weight in saved.weights.items():
            olds = [old[name] for old in self._before if name in old]
            if len(olds) == 2 and all(_close(weight, old) for old in olds):
                yield name
        self._before.append(saved.weights)


def _close(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.allclose(one, other, rtol=1e-5, atol=1e-8)


class AllZero(Rule):
    """All values of a weight, or of its gradient, are zero."""

    def look(self, saved: Saved) -> Iterator[str]:
        for name, weight in saved.weights.items():
            grad = saved.gradients.get(name)
            if not weight.any() or (grad is not None and not grad.any()):
                yield name


class LossNotDecreasing(Rule):
    """At every tenth step, the loss is not lower than ten steps before."""

    def __init__(self) -> None:
        self._checked: tuple[int, float] | None = None

    def look(self, saved: Saved) -> Iterator[str]:
        if saved.loss is None:
            return
        if self._checked is None:
            self._checked = (saved.step, saved.loss)
        step, before = self._checked
        if saved.step - step >= 10:
            self._checked = (saved.step, saved.loss)
            if not saved.loss < before:
                yield ""


class Overfit(Rule):
    """The mean loss of a validation is more than 10 % above the mean loss of training before it."""

    def __init__(self) -> None:
        self._losses: list[float] = []

    def look(self, saved: Saved) -> Iterator[str]:
        if saved.validation and self._losses:
            trained = sum(self._losses) / len(self._losses)
            validated = sum(saved.validation) / len(saved.validation)
            if trained > 0 and (validated - trained) / trained > 0.1:
                yield ""
            self._losses = []
        if saved.loss is not None:
            self._losses.append(saved.loss)


class Overtraining(Rule):
    """Neither loss improved by 0.1 any more: five steps of training, ten validations."""

    def __init__(self) -> None:
        self._train = _Patience(5)
        self._validation = _Patience(10)

    def look(self, saved: Saved) -> Iterator[str]:
        if saved.validation:
            self._validation.see(sum(saved.validation) / len(saved.validation))
        if saved.loss is not None:
            self._train.see(saved.loss)
        if self._train.is_over() and self._validation.is_over():
            yield ""


class _Patience:
    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._best = float("inf")
        self._waited = 0

    def see(self, loss: float) -> None:
        if loss < self._best - 0.1:
            self._best, self._waited = loss, 0
        else:
            self._waited += 1

    def is_over(self) -> bool:
        return self._waited >= self._limit


class ClassImbalance(Rule):
    """Among 500 labels, classes differ more than tenfold, or one is mistaken in over 70 %."""

    def __init__(self) -> None:
        self._seen: Counter[int] = Counter()
        self._wrong: Counter[int] = Counter()

    def look(self, saved: Saved) -> Iterator[str]:
        for scores, labels in saved.classes:
            self._seen.update(labels.tolist())
            self._wrong.update(labels[scores.argmax(1) != labels].tolist())
        if self._seen.total() >= 500:
            counts = self._seen.values()
            mistaken = any(self._wrong[label] > 0.7 * self._seen[label] for label in self._seen)
            if mistaken or max(counts) > 10 * min(counts):
                yield ""
            self._seen, self._wrong = Counter(), Counter()


class CheckInputImages(Rule):
    """The mean of 500 images is further than 0.2 from zero."""

    def __init__(self) -> None:
        self._count = 0
        self._sum = 0.0

    def look(self, saved: Saved) -> Iterator[str]:
        for images in saved.images:
            self._count += len(images)
            self._sum += float(images.mean()) * len(images)
        if self._count >= 500:
            if abs(self._sum / self._count) > 0.2:
                yield ""
            self._count, self._sum = 0, 0.0


class NLPSequenceRatio(Rule):
    """More than half of the tokens are zero."""

    def look(self, saved: Saved) -> Iterator[str]:
        for name, tokens in saved.tokens.items():
            if tokens.numel() and (tokens == 0).float().mean() > 0.5:
                yield name


RULES: tuple[type[Rule], ...] = (
    *(VanishingGradient, ExplodingTensor, DeadRelu, SaturatedActivation),
    *(PoorWeightInitialization, WeightUpdateRatio, UnchangedTensor, AllZero, LossNotDecreasing),
    *(Overfit, Overtraining, ClassImbalance, CheckInputImages, NLPSequenceRatio),
)
