"""An end to waiting for a layer of the user's that does not return."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager

from traindx.messages import say
from traindx.norm.conformance.target import NoAnswerError

SECONDS = 60.0
"""What a layer may take for one answer; one of these inputs takes a millisecond."""


@contextmanager
def patience(name: str) -> Generator[None]:
    """Inside, wait for a while only; for ever where there is no alarm (Windows, other threads).

    Raises:
        NoAnswerError: The time is over.
    """

    def ring(_number: int, _frame: object) -> None:
        raise NoAnswerError(
            say(
                "`{name}` has given no answer within {seconds:.0f} s. Let it return for an input "
                "of a few hundred numbers.",
                name=name,
                seconds=SECONDS,
            )
        )

    main = threading.current_thread() is threading.main_thread()
    if not main or not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
