"""The one recording of this process, if any, and what a program tells it: `traindx.log`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Protocol, cast


class Recording(Protocol):
    """What is being recorded."""

    def log(self, values: Mapping[object, object]) -> None:
        """Take numbers by name."""
        ...


_current: Recording | None = None


def current() -> Recording | None:
    """What is being recorded in this process, None if nothing is."""
    return _current


def begin(recording: Recording) -> None:
    """From now on it gets what is logged."""
    global _current
    _current = recording


def end(recording: Recording) -> None:
    """Nothing more goes to it."""
    global _current
    if _current is recording:
        _current = None


def log(values: Mapping[str, object] | None = None, /, **named: object) -> None:
    """Note numbers of your own, such as validation results, in the run that is being recorded.

    ```python
    traindx.log(val_loss=0.31, val_accuracy=0.87)
    traindx.log({"val/loss": loss})  # a tensor on a device is read later, never waited for
    ```

    Works under `traindx run` and `traindx.watch`; anywhere else, and in forked children, it does
    nothing and costs nothing. The numbers stand at the step going on, which is the number of
    optimizer steps completed; of several with one name in one step, the last one counts. It never
    raises: a value that is no single number is left out, and the run says so.

    Args:
        values: Numbers by name, for names that are no Python identifiers.
        **named: Numbers by name.
    """
    recording = _current
    if recording is None:
        return
    recording.log({**_named(values), **named})


def _named(values: object) -> dict[object, object]:
    if values is None:
        return {}
    if isinstance(values, Mapping):
        with suppress(Exception):  # whatever a mapping of the user's does
            return {**cast("Mapping[object, object]", values)}
    return {"": values}
