"""A headless Chromium driven over its DevTools pipe, with nothing but the standard library."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_SWITCHES = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


class Page:
    """One page of a running browser, with everything that it reported.

    Attributes:
        problems: Console errors, uncaught exceptions and policy violations, as text.
        requests: The addresses it asked for.
    """

    def __init__(self, commands: int, replies: int) -> None:
        self.problems: list[str] = []
        self.requests: list[str] = []
        self._commands = commands
        self._replies = replies
        self._buffer = b""
        self._number = 0
        self._session = ""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Page.bringToFront")  # A page in the background draws no frames.

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One DevTools command and its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while (reply := self._next()).get("id") != self._number:
            self._note(reply)
        assert "error" not in reply, reply
        return reply["result"]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            assert select.select([self._replies], [], [], 60)[0], "the browser does not answer"
            chunk = os.read(self._replies, 1 << 16)
            assert chunk, "the browser closed its pipe"
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(line)

    def _note(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        match event["method"]:
            case "Runtime.exceptionThrown":
                self.problems.append(str(params["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning", "assert"):
                self.problems.append(str(params["args"]))
            case "Log.entryAdded" if params["entry"]["level"] in ("error", "warning"):
                self.problems.append(str(params["entry"]))
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
            case _:
                pass

    def size(self, width: int, height: int = 900) -> None:
        """Give the page this many CSS pixels."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)

    def media(self, kind: str = "screen", scheme: str = "light") -> None:
        """Show it on `screen` or in `print`, `light` or `dark`."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=kind, features=features)

    def open(self, path: Path) -> None:
        """Load a file from disk and wait until its scripts have run."""
        self.call("Page.navigate", url=path.as_uri())
        self.wait_for("document.readyState === 'complete' && location.protocol === 'file:'")

    def js(self, expression: str) -> Any:
        """The value of an expression in the page."""
        reply = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in reply, reply["exceptionDetails"]
        return reply["result"].get("value")

    def wait_for(self, condition: str, seconds: float = 30.0) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + seconds
        while not self.js(condition):
            assert time.monotonic() < end, f"still not so after {seconds} s: {condition}"
            time.sleep(0.05)

    def point_at(self, x: float, y: float) -> None:
        """Move the mouse there, from a little aside."""
        for shift in (2, 0):
            self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x + shift, y=y)

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        """The page as PNG, for eyes: the whole of it, or what fits its size."""
        reply = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(reply["data"]))


@contextmanager
def browser(chromium: str, profile: Path) -> Iterator[Page]:
    """A fresh browser, closed at the end."""
    theirs, commands = _pipe()
    replies, answers = _pipe()
    process = _start(chromium, profile, theirs, answers)
    os.close(theirs)
    os.close(answers)
    try:
        yield Page(commands, replies)
    finally:
        os.kill(process, signal.SIGTERM)
        os.waitpid(process, 0)
        os.close(commands)
        os.close(replies)


def _pipe() -> tuple[int, int]:
    """A pipe whose ends lie above 4, so that neither is overwritten on the way to the browser."""
    low = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in low]
    for end in low:
        os.close(end)
    return high[0], high[1]


def _start(chromium: str, profile: Path, commands: int, answers: int) -> int:
    # The browser reads commands from descriptor 3 and answers on 4.
    return os.posix_spawn(
        chromium,
        [chromium, *_SWITCHES, f"--user-data-dir={profile}"],
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_DUP2, commands, 3),
            (os.POSIX_SPAWN_DUP2, answers, 4),
        ],
    )
