"""A script run up to its first optimizer step, probed there, and stopped.

It runs as `python SCRIPT` would, and torch is imported when the script does. Then it ends as by
`sys.exit()`: what it has opened is closed, and what it has left for the end is done.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from traindx.errors import UsageError
from traindx.messages import Message, counted, say
from traindx.on_import import when_imported

if TYPE_CHECKING:
    from traindx.preflight.case import Case
    from traindx.preflight.finding import Finder
    from traindx.run import Run

_PATIENCE = 2
"""Times a script may go on after it was stopped."""


class StoppedError(SystemExit):
    """Ends the script: all that was wanted of it is known."""


class Script:
    """A script on its way to its first step.

    Args:
        look: Probes the case, and judges it.
        insist: Called with the result if the script will not be stopped; ends the process.
    """

    def __init__(self, look: Callable[[Case], Run], insist: Callable[[Run], None]) -> None:
        self._look = look
        self._insist = insist
        self._finder: Finder | None = None
        self._run: Run | None = None
        self._failure: BaseException | None = None
        self._stops = 0

    def to_first_step(self, start: Callable[[], int]) -> Run:
        """Run it; what was found at its first step.

        Args:
            start: Runs the script to its end, and gives its exit code.

        Raises:
            UsageError: It never stepped, or failed before.
        """
        when_imported("torch", self._arm)
        code = start()
        if self._finder is not None:
            with contextlib.suppress(StoppedError):
                self._finder.ended()
            self._finder.disarm()
        if self._failure is not None:
            raise self._failure
        if self._run is None:
            raise UsageError(self._why_not(code))
        return self._run

    def _arm(self) -> None:
        from traindx.preflight.finding import Finder

        self._finder = Finder(self._found)
        self._finder.arm()

    def _found(self, case: Case) -> None:
        from torch.optim.optimizer import register_optimizer_step_pre_hook

        try:
            self._run = self._look(case)
        except Exception as error:  # ours; the script must not catch it
            self._failure = error
        register_optimizer_step_pre_hook(self._again)
        raise StoppedError

    def _again(self, *_step: Any) -> None:
        """The script has caught its own end and goes on."""
        self._stops += 1
        if self._stops >= _PATIENCE and self._run is not None:
            self._insist(self._run)
        raise StoppedError

    def _why_not(self, code: int) -> Message:
        if code:
            return say(
                "The script ended with exit code {code} before its first optimizer step, so there "
                "is nothing to probe.",
                code=code,
            )
        if self._finder is None:
            return say("The script never imported torch, so there is nothing to probe.")
        if self._finder.transformed:
            return say(
                "The script calls its model inside a transform of `torch.func`, where it cannot be "
                "probed. Give preflight a function that returns `model, batch, loss`: "
                "`traindx preflight file.py:name`."
            )
        if self._finder.backwards:
            passes = counted(self._finder.backwards, "{n} backward pass", "{n} backward passes")
            return say(
                "The script made {passes} and no optimizer step. Give preflight a function that "
                "returns `model, batch, loss`: `traindx preflight file.py:name`.",
                passes=passes,
            )
        return say(
            "The script's own process took no optimizer step. If it trains in processes that it "
            "starts, give preflight a function that returns `model, batch, loss`: "
            "`traindx preflight file.py:name`."
        )


@contextmanager
def apart() -> Generator[TextIO | None]:
    """Inside, what the process prints goes to standard error; gives the standard output kept.

    Whatever the script and its children print, standard output is the report's.
    """
    try:
        sys.stdout.flush()
        kept = os.dup(1)
        os.dup2(2, 1)
    except (AttributeError, OSError, ValueError):  # one of them is closed
        yield sys.stdout
        return
    try:
        with open(os.dup(kept), "w", encoding="utf-8", errors="replace") as stream:
            yield stream
    finally:
        with contextlib.suppress(AttributeError, OSError, ValueError):
            sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
