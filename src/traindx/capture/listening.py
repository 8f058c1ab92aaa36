"""`Listening`: the life of a capture, from `arm` to `close`, or to a failure of our own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import torch
from torch import Tensor, nn

from traindx.capture.compiled import CompiledActivations
from traindx.capture.given import Given
from traindx.capture.guard import apart, guarded, place
from traindx.capture.journal import Journal
from traindx.capture.owners import Owners
from traindx.capture.rounds import Rounds
from traindx.capture.taps import Taps
from traindx.capture.threads import TrainingThread
from traindx.capture.transfer import Host
from traindx.facts import Json
from traindx.messages import say
from traindx.records import EventKind, Sink


class Listening(ABC):
    """What listens to torch in this process, whatever it makes of it.

    Attributes:
        active: Whether it is listening.
        given: What the user has named, if anything.
        is_training_thread: Whether no other thread's training is being watched.
    """

    _opened: CompiledActivations
    _taps: Taps

    def __init__(
        self,
        sinks: Sequence[Sink],
        warn: Callable[[str], None],
        clock: Callable[[], float],
        host: Host,
        patience: float,
    ) -> None:
        self.active = False
        self.given = Given(self._note)
        self._thread = TrainingThread(self._note)
        self.is_training_thread = self._thread.may_be_this
        self._warn = warn
        self._journal = Journal(sinks, clock, self._say, host, patience=patience)
        self._owners = Owners()
        self._rounds = Rounds()
        self._host = host
        self._captured = False

    def is_capturing(self) -> bool:
        """Whether what is done now becomes a part of a CUDA graph; told once."""
        if not self._host.capturing():
            return False
        if not self._captured:
            self._captured = True
            self._note(say("a CUDA graph is captured: what its replays do is not measured"))
        return True

    def arm(self) -> None:
        """Begin to listen to torch in this process."""
        self._taps.install()
        self.active = True

    def disarm(self) -> None:
        """Put torch back as it was and write nothing more."""
        self.active = False
        self._opened.close()
        self._taps.remove()

    @apart
    def give_up(self, error: Exception) -> None:
        """Step aside after a failure of our own: the training goes on."""
        if not self.active:
            return
        self.disarm()
        text = say(
            "measuring stopped at step {step}: {error}",
            step=self._rounds.step,
            error=f"{error!r}{place(error)}",
        )
        self._note(text)
        with suppress(Exception):  # there may be nowhere to say it
            self._warn(say("{what}. Your training goes on.", what=text))

    def close(self, exit_code: int | None) -> None:
        """Stop listening and write what is left, with the run's end."""
        self._finish()
        self.disarm()
        self._journal.event(self._rounds.step, EventKind.ENDED, self._summary(exit_code))
        self._journal.close(self._rounds.step)

    @guarded
    def catch_up(self) -> None:
        """Write what waits for more steps: somebody asks for the run."""
        self._journal.hand_on()

    @abstractmethod
    def _finish(self) -> None:
        """Write what is left."""

    @abstractmethod
    def _summary(self, exit_code: int | None) -> dict[str, Json]:
        """What is known of the run at its end."""

    @guarded
    def log(self, values: Mapping[object, object]) -> None:
        """The program logs numbers of its own."""
        if not torch.compiler.is_compiling():
            self._journal.logged.note(self._rounds.step, values)

    @guarded
    def child_registered(self, parent: nn.Module, name: str, child: nn.Module | None) -> None:
        """A module has got a child."""
        self._owners.child_registered(parent, name, child)

    @guarded
    def param_registered(self, module: nn.Module, name: str, param: Tensor | None) -> None:
        """A module has got a parameter."""
        self._owners.param_registered(module, name, param)

    def _note(self, text: str) -> None:
        self._journal.note(self._rounds.step, text)

    def _say(self, text: str) -> None:
        self._note(text)
        self._warn(text)
