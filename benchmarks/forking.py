"""Runs something in a forked process of its own, which has loaded all that its parent has."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Generic, NoReturn, TypeVar

T = TypeVar("T")


class Fork(Generic[T]):
    """A forked process that works in a folder, with all that it says in a file there.

    Attributes:
        job: What it was started for.
        folder: Where it works.
        seconds: CPU time, once it has ended.
        late: Whether it was given up.
    """

    def __init__(self, job: T, act: Callable[[], None], folder: Path, patience: float) -> None:
        self.job = job
        self.folder = folder
        self.seconds = 0.0
        self.late = False
        self._deadline = time.monotonic() + patience
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            _act(act, folder)

    def has_ended(self) -> bool:
        """Whether it is done; if it is overdue, it is ended."""
        pid, _, usage = os.wait4(self.pid, os.WNOHANG)
        if pid:
            self.seconds = usage.ru_utime + usage.ru_stime
            return True
        if time.monotonic() > self._deadline and not self.late:
            self.late = True
            self.end()
        return False

    def end(self) -> None:
        """Kill it and what it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def said(self) -> str:
        """The end of what it wrote to standard error."""
        file = self.folder / "said"
        text = file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""
        return text.strip()[-300:]


def side_by_side(
    wanted: Iterable[T], workers: int, start: Callable[[T], Fork[T]]
) -> Iterator[Fork[T]]:
    """Do jobs side by side, and give each fork as it ends."""
    waiting = list(reversed(list(wanted)))
    live: dict[int, Fork[T]] = {}
    try:
        while waiting or live:
            while waiting and len(live) < workers:
                fork = start(waiting.pop())
                live[fork.pid] = fork
            for pid in [pid for pid, fork in live.items() if fork.has_ended()]:
                yield live.pop(pid)
            time.sleep(0.02)
    finally:
        for fork in live.values():
            fork.end()


def _act(act: Callable[[], None], folder: Path) -> NoReturn:
    """What the child does; never returns."""
    code = 1
    try:
        os.setsid()
        os.chdir(folder)
        said = os.open(folder / "said", os.O_CREAT | os.O_WRONLY, 0o600)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream, number in ((nothing, 0), (nothing, 1), (said, 2)):
            os.dup2(stream, number)
        act()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
