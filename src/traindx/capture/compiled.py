"""`CompiledActivations`: compiled models run eagerly where they are measured, if that is wanted.

From the beginning of a measured step to its first backward pass torch.compile is told to run
everything eagerly, and module calls are listened to; never one without the other, since what
dynamo compiles must not hold our listener. Eager and compiled arithmetic round differently, and
draw other random numbers: so a model that draws any is left as it is. Whether one does is seen from
its modules and, since dropout may be a function, from the random state around a forward pass that
is still compiled.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor, nn

from traindx.capture.models import TrackedModel, unwrapped
from traindx.capture.modes import differ, random_states
from traindx.capture.taps import Observer, Taps
from traindx.messages import Message, say

_TRIES = 3
"""Steps in which numbers may be drawn that perhaps no model draws (an epoch's shuffling)."""
_DROPOUTS = (
    *(nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d),
    *(nn.AlphaDropout, nn.FeatureAlphaDropout),
)
_ALWAYS = (nn.RReLU, nn.FractionalMaxPool2d, nn.FractionalMaxPool3d)
_INSIDE = (nn.MultiheadAttention, nn.RNNBase)
"""Modules with a dropout of their own."""

_EAGER = say(
    "torch.compile is used: steps whose activations are measured run eagerly, so losses agree with "
    "those of a training without traindx to rounding only"
)
_DRAWN = say("the forward pass draws random numbers")
_UNCLEAR = say("random numbers are drawn between the steps, perhaps by the model")
_INSIDE_A_REGION = say("backward is called inside a compiled function")
_SCRIPTS_OWN = say("the script sets torch.compile's stance itself")


Tell = Callable[[str], None]


class CompiledActivations:
    """Opens compiled models to our listening for a while, and closes them again.

    Args:
        taps: What listens to module calls.
        note: Told what the reader of the run must know.
        tell: Told what the user must know at once.
        wanted: Whether to do anything at all.

    Attributes:
        wanted: Whether models are to be opened; no longer, once it is seen that they must not be.
        open: Whether modules can be listened to now.
    """

    def __init__(self, taps: Taps, note: Tell, tell: Tell, *, wanted: bool) -> None:
        self.wanted = wanted
        self.open = False
        self._taps = taps
        self._note = note
        self._tell = tell
        self._ours: Any = None
        self._paused = False
        self._proven = False
        self._told = False
        self._tries = 0
        self._round: list[Tensor] | None = None
        self._forward: list[Tensor] | None = None
        self._clean = False

    def compiling(self) -> None:
        """torch.compile is used, perhaps once more: it must find all as it was."""
        self.close()
        self._proven = self._clean = False
        self._round = self._forward = None

    def round_starts(self, models: Iterable[TrackedModel]) -> None:
        """A step that will be measured begins."""
        self.close()
        if not self.wanted:
            return
        self._proven = self._proven or self._clean
        self._clean, self._forward = False, None
        if not self._proven:
            self._round = random_states()
        else:
            self._open()
            self._close_if_drawing(models)

    def forward_starts(self, model: TrackedModel) -> None:
        """The outermost module of a training forward is called, where torch.compile is used."""
        self._close_if_drawing([model])  # its modes may have changed since
        self._forward = random_states() if self.wanted else None

    def forward_without_gradient(self) -> None:
        """The outermost module is called for an evaluation: as compiled as ever."""
        if self.open:
            self.close()
            self._paused = True

    def forward_ended(self) -> None:
        """The outermost module has returned."""
        if self._paused:
            self._open()
        elif self._forward is not None:
            drawn = differ(self._forward, random_states())
            self._forward = self._round = None
            self._clean = True
            if drawn:
                self._refuse(_DRAWN)

    def backward_starts(self) -> None:
        """A loss is about to be differentiated."""
        if self._round is not None:  # no module was seen: a function is compiled, or all in place
            drawn = differ(self._round, random_states())
            self._round = None
            self._clean = self._clean or not drawn
            self._tries += drawn
            if self._tries == _TRIES:
                self._refuse(_UNCLEAR)
        self.close()

    def close(self) -> None:
        """Compiled code runs compiled again."""
        if self.open:
            self._taps.remove_calls()
        self.open = self._paused = False
        # Not ours any more if the script has set one since; and ours again, after we have taken it
        # back, where a `with` of the script's ends that began while it was in force.
        if self._ours is not None and _stance() is self._ours.stance:
            with suppress(RuntimeError):  # inside a compiled region; the next call will do it
                self._ours.__exit__(None, None, None)

    def observer(self, model: TrackedModel, output: Observer) -> Observer:
        """An observer for whom torch.compile's wrapper and the model in it are one, called once."""
        root = model.root
        inner = None if root is None else unwrapped(root)
        if root is None or inner is None or inner is root:
            return output
        seen = False

        def observe(module: nn.Module, result: object) -> None:
            nonlocal seen
            is_root = module is root or module is inner
            if not (is_root and seen):
                output(inner if is_root else module, result)
            seen = seen or is_root

        return observe

    def _close_if_drawing(self, models: Iterable[TrackedModel]) -> None:
        if self.open and (drawing := _drawing(models)) is not None:
            self._refuse(drawing)

    def _open(self) -> None:
        if _stance().stance != "default":
            self._refuse(_SCRIPTS_OWN)
            return
        try:
            self._ours = torch.compiler.set_stance("force_eager")
        except RuntimeError:
            self._refuse(_INSIDE_A_REGION)
            return
        self._taps.add_calls()
        self.open, self._paused = True, False
        if not self._told:
            self._told = True
            self._note(_EAGER)

    def _refuse(self, reason: Message) -> None:
        self.wanted = False
        self.close()
        self._tell(say("Compiled activations are not measured: {reason}.", reason=reason))


def _stance() -> Any:
    """What torch.compile is to do at present."""
    return sys.modules["torch._dynamo.eval_frame"]._stance


def _drawing(models: Iterable[TrackedModel]) -> Message | None:
    """The first module that draws random numbers as it is now."""
    for model in models:
        for fqn, module in model.modules():
            if module.training and _draws(module):
                where = f"{model.name}.{fqn}" if fqn else model.name
                return say("`{module}` draws random numbers", module=where)
    return None


def _draws(module: Any) -> bool:
    if isinstance(module, _DROPOUTS):
        return module.p > 0
    return isinstance(module, _ALWAYS) or (isinstance(module, _INSIDE) and module.dropout > 0)
