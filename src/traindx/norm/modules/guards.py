"""What our layers do around torch's kernels: which statistics are kept, and when.

Nothing here waits for the device. The kernel updates copies of the running statistics, and a
condition that stays on the device decides between them and what they were.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.fx import Proxy
from torch.nn.modules.batchnorm import _NormBase  # pyright: ignore[reportPrivateUsage]

from traindx.messages import Message, say

_INTERNALS: Any = torch._C  # pyright: ignore[reportPrivateUsage]
_norm: Callable[[Tensor, float], Tensor] = cast(Any, torch).linalg.vector_norm
# What GradScaler asks of gradients: (tensors, becomes 1 if one is not finite, their factor).
_check: Callable[[list[Tensor], Tensor, Tensor], None] = cast(
    Any, torch
)._amp_foreach_non_finite_check_and_unscale_
_is_compiling = torch.compiler.is_compiling
_graph_task: Callable[[], int] = _INTERNALS._current_graph_task_id
_in_transform: Callable[[], bool] = _INTERNALS._are_functorch_transforms_active


def recomputing() -> bool:
    """Whether this forward pass runs within a backward pass, as both forms of checkpointing do.

    Not known while a graph is traced, where torch itself keeps such changes out of the backward.
    """
    return not _is_compiling() and _graph_task() != -1


def _is_traced() -> bool:
    """Whether `torch.jit.trace` runs, which compares graphs with and without gradients."""
    return cast(Any, torch).jit.is_tracing()


def as_leaf(layer: nn.Module, proxy: Proxy) -> Tensor:
    """A call in a `torch.fx` graph, as torch's own layers stand in one: not looked into."""
    tracer = cast(Any, proxy.tracer)
    return tracer.create_proxy("call_module", tracer.path_of_module(layer), (proxy,), {})


def become(layer: nn.Module, kind: type[nn.Module]) -> None:
    """Make a layer one of another class with the same state; everything it holds stays its own."""
    layer.__class__ = kind
    if isinstance(layer, Warned):
        layer.warn()
    if isinstance(layer, Guarded):
        layer.place_counter()


class Warned(nn.Module):
    """Warns where it is made of what torch takes in silence and computes nonsense from."""

    # Every constructor of torch's ends here, so its signature need not be written again.
    def reset_parameters(self) -> None:
        """As torch's, and a warning of each pitfall among the options."""
        cast(Any, super()).reset_parameters()
        self.warn()

    def warn(self) -> None:
        """A `UserWarning` of each pitfall among the options."""
        for pitfall in self.pitfalls():
            warnings.warn(pitfall, UserWarning, stacklevel=4)

    def pitfalls(self) -> list[Message]:
        """Of the options it has, in words."""
        eps = cast("float | None", cast(Any, self).eps)
        if eps is None or eps >= 0:
            return []
        return [
            say(
                "{layer} has eps={eps}: where a variance is smaller, it gives NaN. "
                "Give an eps that is not negative.",
                layer=type(self).__name__,
                eps=eps,
            )
        ]


class Guarded(Warned, _NormBase):
    """A layer whose running statistics no batch can poison, nor a backward pass move.

    - A batch after which a running statistic would be infinite or NaN is left out of all of them
      and of `num_batches_tracked`, and counted in `skipped_batches`. Its output is torch's.
    - A batch that is empty, or that torch refuses, leaves statistics and counters alone.
    - A forward pass within a backward pass, which is how checkpointing computes anew what it had
      dropped, changes neither.
    - A gradient through an evaluation is that of the statistics that it used, also when a training
      pass has moved them before `backward`.

    Statistics that are not finite already stay so: see `reset_running_stats` and `recalibrate`.
    They have the dtype of the module, as torch's: after `.half()` they overflow beyond 65504,
    which is skipped and counted, and stall where an update is below their precision, which only
    `traindx norm audit` tells.
    """

    # Neither buffers, which a state dict or DDP's broadcast from rank 0 would hold, nor a number,
    # which the host would have to wait for. In float32, as what is added to it comes.
    _skipped: Tensor | None = None
    _one: Tensor | None = None

    @property
    def skipped_batches(self) -> Tensor | None:
        """Batches left out since `reset_running_stats` (), int64, on the device.

        None if there are no running statistics. Within `torch.func` transforms nothing is counted.
        """
        return None if self._skipped is None else self._skipped.long()

    def reset_running_stats(self) -> None:
        """As torch's; the count of skipped batches begins anew, too."""
        super().reset_running_stats()
        self._skipped = None
        self.place_counter()

    def place_counter(self) -> None:
        """Bring the count of skipped batches to where the running statistics are."""
        mean, skipped = self.running_mean, self._skipped
        if mean is None:
            self._skipped = self._one = None
        elif skipped is None or skipped.device != mean.device:
            self._one = torch.ones((), dtype=torch.float32, device=mean.device)
            if skipped is None or skipped.is_meta:
                skipped = torch.zeros_like(self._one)
            self._skipped = skipped.to(mean.device)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        cast(Any, super())._apply(fn, recurse)
        self.place_counter()
        return self

    def pitfalls(self) -> list[Message]:
        """Of the options it has, in words."""
        found = super().pitfalls()
        if self.track_running_stats and self.momentum is not None and not 0 <= self.momentum <= 1:
            found.append(
                say(
                    "{layer} has momentum={momentum}: its running variance can become negative, "
                    "and evaluation NaN. Give a momentum from 0 to 1.",
                    layer=type(self).__name__,
                    momentum=self.momentum,
                )
            )
        return found

    # Each layer of a step comes here: nothing is looked up twice, and little is called.
    def updating(
        self, x: Tensor, mean: Tensor, var: Tensor, tracked: Tensor | None, momentum: float | None
    ) -> Tensor:
        """The output of the kernel in training, and the update of the running statistics.

        Args:
            x: The input of the kernel.
            mean: The running mean (C,).
            var: The running variance (C,).
            tracked: The counter of kept batches (), if they are counted.
            momentum: Of the update; None makes the cumulative average over `tracked`.
        """
        new_mean, new_var = mean.clone(), var.clone()
        y = self.kernel(x, new_mean, new_var, 1.0 if momentum is None else momentum)
        if (x.numel() == 0 and self.ranks() == 1) or recomputing():
            return y
        if momentum is None:
            new_mean = self._cumulative(mean, new_mean)
            new_var = self._cumulative(var, new_var)
        good = self._keep(mean, var, new_mean, new_var)
        if tracked is not None:
            tracked.add_(good)
        return y

    def kernel(
        self, x: Tensor, mean: Tensor | None, var: Tensor | None, momentum: float, /
    ) -> Tensor:
        """Torch's kernel, which updates these statistics (C,) if it updates any."""
        raise NotImplementedError

    def ranks(self) -> int:
        """How many processes share the statistics of a batch."""
        return 1

    def _keep(self, mean: Tensor, var: Tensor, new_mean: Tensor, new_var: Tensor) -> Tensor:
        """Whether the new statistics are finite (), after they have taken the old ones' place."""
        if _in_transform():  # which know neither of the two operations below
            # NaN is the largest of all to this norm, and smaller than nothing.
            good = _norm(torch.cat((new_mean, new_var)), math.inf) < math.inf
            mean.copy_(torch.where(good, new_mean, mean))
            var.copy_(torch.where(good, new_var, var))
            return good
        skipped, one = self._skipped, self._one
        if skipped is None or one is None or one.device != mean.device:
            self.place_counter()  # moved by what does not go through `_apply`
            skipped, one = cast(Tensor, self._skipped), cast(Tensor, self._one)
        bad = torch.zeros_like(one)
        _check([new_mean, new_var], bad, one)
        good = bad.logical_not()
        torch.where(good, new_mean, mean, out=mean)
        torch.where(good, new_var, var, out=var)
        skipped.add_(bad)
        return good

    def _cumulative(self, old: Tensor, batch: Tensor) -> Tensor:
        """The mean over batches of their statistics (C,), without reading how many there were."""
        counted = cast(Tensor, self.num_batches_tracked) + 1
        wide = torch.promote_types(old.dtype, torch.float32)
        share = counted.to(wide).reciprocal()
        return torch.lerp(old.to(wide), batch.to(wide), share).to(old.dtype)

    def fixed(self) -> tuple[Tensor | None, Tensor | None]:
        """The running statistics for an evaluation: copies, where a gradient will need them."""
        mean, var = self.running_mean, self.running_var
        if mean is None or var is None or not torch.is_grad_enabled() or _is_traced():
            return mean, var
        return mean.clone(), var.clone()
