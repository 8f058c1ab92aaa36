"""A training on a few samples with nothing but the data in its loss, and no noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.dropout import _DropoutNd  # pyright: ignore[reportPrivateUsage]

from traindx.messages import say
from traindx.preflight.case import Case, Compared, DoesNotApplyError
from traindx.preflight.comparing import without_graph

LEAST_KNOWN = (
    *("cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"),
    *("binary_cross_entropy", "binary_cross_entropy_with_logits"),
)
"""Losses whose least value on given targets is known."""


def without_dropout(model: nn.Module) -> None:
    """Switch off what makes a model random; the caller puts it back."""
    for module in model.modules():
        if isinstance(module, _DropoutNd):
            module.p = 0.0
        elif isinstance(module, nn.MultiheadAttention | nn.RNNBase):
            module.dropout = 0.0


def data_loss(case: Case) -> Tensor:
    """The data terms of the loss over their least possible value, each a mean over its terms.

    Raises:
        DoesNotApplyError: There is none whose least value is known.
    """
    return cast(Tensor, sum(excess_of(one) for one in _known(case)))


def _known(case: Case) -> list[Compared]:
    found = [one for one in case.terms() if one.function in LEAST_KNOWN]
    if not found:
        raise DoesNotApplyError(say("no loss whose least value is known was seen"))
    return found


def of_a_guess(case: Case) -> float:
    """The same of the best answer that does not look at the input.

    Raises:
        DoesNotApplyError: There is no loss whose least value is known.
    """
    return without_graph(lambda: float(sum(guess_of(one) for one in _known(case))))


def _again(compared: Compared, prediction: Tensor) -> Tensor:
    """A loss function once more, without smoothing, as a mean."""
    options = {**compared.options, "reduction": "mean"}
    if "label_smoothing" in options:
        options["label_smoothing"] = 0.0
    function: Callable[..., Tensor] = getattr(functional, compared.function)
    return function(prediction, compared.target, **options)


def _least(compared: Compared) -> float:
    """Its value for the right answer: the entropy of soft targets, else 0."""
    target = compared.target.detach()
    if not target.is_floating_point() or compared.function.endswith("l1_loss"):
        return 0.0
    if compared.function in ("cross_entropy", "nll_loss"):
        return float(-_xlogx(target).sum(1).mean())
    if compared.function.startswith("binary"):
        return float(-(_xlogx(target) + _xlogx(1 - target)).mean())
    return 0.0


def _xlogx(x: Tensor) -> Tensor:
    """Of each element, x ln x, which is 0 at 0."""
    return cast(Any, torch).xlogy(x, x)


def excess_of(compared: Compared) -> Tensor:
    """A loss over its least possible value, as a mean over its terms."""
    return _again(compared, compared.prediction) - _least(compared)


def guess_of(compared: Compared) -> float:
    """The same of the best answer that does not look at the input."""
    prediction, target = compared.prediction, compared.target.detach()
    if compared.function in ("cross_entropy", "nll_loss"):
        classes = prediction.shape[1 if prediction.dim() > 1 else 0]
        return math.log(classes) - _least(compared)
    if compared.function.startswith("binary"):
        return math.log(2) - _least(compared)
    guess = target.mean(0, keepdim=True) if target.dim() else target
    return float(_again(compared, guess.expand_as(target)))


class Adam:
    """Adam with its usual settings (Kingma & Ba 2015), and nothing to import for its first step."""

    def __init__(self, params: Sequence[Tensor], lr: float) -> None:
        self._params = list(params)
        self._lr = lr
        self._steps = 0
        self._first = [torch.zeros_like(param) for param in params]
        self._second = [torch.zeros_like(param) for param in params]

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor | None]) -> None:
        """Take a step; a parameter without a gradient stays."""
        self._steps += 1
        ones, twos = 1 - 0.9**self._steps, 1 - 0.999**self._steps
        moments = zip(self._params, gradients, self._first, self._second, strict=True)
        for param, gradient, first, second in moments:
            if gradient is None:
                continue
            if gradient.is_sparse:
                gradient = gradient.to_dense()
            first.lerp_(gradient, 0.1)
            second.mul_(0.999).addcmul_(gradient, gradient.conj(), value=0.001)
            scale = (second / twos).sqrt_().add_(1e-8)
            param.addcdiv_(first, scale, value=-self._lr / ones)


def seeded(case: Case, function: Callable[[Case], Any]) -> Any:
    """Call with the same random numbers every time."""
    with cast(Any, torch).random.fork_rng():
        cast(Any, torch).manual_seed(0)
        return function(case)
