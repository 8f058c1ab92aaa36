"""Every module's output, and the gradient of the loss with respect to it."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from traindx.capture.collectors import Collector
from traindx.capture.models import TrackedModel
from traindx.capture.recorder import Place, Recorder
from traindx.records import Point

_no_hooks: Callable[[], Any] = OrderedDict
OnGradient = Callable[[Place, int, Tensor | None], None]


class Activations(Collector):
    """Outputs as modules return them, before anything can change them in place.

    Args:
        recorder: Where statistics go.
        on_gradient: Told of an output's place, step and gradient when backward reaches it.
    """

    def __init__(self, recorder: Recorder, on_gradient: OnGradient) -> None:
        super().__init__(recorder)
        self._on_gradient = on_gradient
        self._last: tuple[int, int, int | None] | None = None

    def output(
        self, model: TrackedModel, fqn: str, module: nn.Module, tensor: Tensor | None
    ) -> None:
        """Measure the first tensor of an output, unless the last child returned that very one."""
        if tensor is None:
            return
        node: Any = tensor.grad_fn
        # What no other output has; one changed in place since then is another. Told by numbers
        # alone: a weak reference would hang on the user's tensor.
        if node is not None:
            mark = id(tensor), tensor._version, node._sequence_nr()
        else:
            mark = id(tensor), -1 if tensor.is_inference() else tensor._version, None
        last, self._last = self._last, mark
        if last == mark:
            return
        # One that a module passes on unchanged, as on the way around a block, is read once.
        same = None if node is None else mark
        measured = self.recorder.tensor((model, fqn, Point.OUTPUT), tensor, zeros=True, same=same)
        # A leaf (an embedding weight returned as it is) would keep the hook for good.
        if measured and node is not None:
            place, step = (model, fqn, Point.OUTPUT_GRAD), self.recorder.step
            _hook(tensor, node, functools.partial(self._on_gradient, place, step))

    def round_ends(self, model: TrackedModel) -> None:
        """Note the size of the batch."""
        if model.batch_size is not None:
            self.recorder.scalar(model, "", "batch.size", float(model.batch_size))

    def let_go(self) -> None:
        """Forget the gradients."""
        self.recorder.let_go()


def _hook(tensor: Any, node: Any, hook: Callable[[Tensor | None], None]) -> None:
    """`Tensor.register_hook` without a handle to remove it by, which takes most of its time.

    Args:
        tensor: It requires a gradient, and is no leaf.
        node: The operation that made it.
        hook: What it calls; each may be given once.
    """
    hooks: Any = tensor._backward_hooks
    if hooks is None:
        hooks = tensor._backward_hooks = _no_hooks()
        node._register_hook_dict(tensor)
    hooks[hook] = hook
