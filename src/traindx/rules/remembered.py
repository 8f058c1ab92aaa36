"""What a rule has found out of a run, until something that it looked at has changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar
from weakref import WeakKeyDictionary

from traindx.run import Run

T = TypeVar("T")
_FOUND: WeakKeyDictionary[Run, dict[object, tuple[object, object]]] = WeakKeyDictionary()


def remembered(run: Run, what: object, state: object, find: Callable[[], T]) -> T:
    """What `find` returns; it is asked again only once the state is another.

    Rules are asked after every measured step, and much of what they look at changes seldom.

    Args:
        run: The run.
        what: What is looked for, one of a kind among all rules: its function, and of which model.
        state: All that it follows from, to compare.
        find: How to find it. The result is shared: it is not to be changed.
    """
    known = _FOUND.setdefault(run, {})
    found = known.get(what)
    if found is None or found[0] != state:
        found = known[what] = state, find()
    return found[1]  # type: ignore[return-value]  # what was found under `what` is of its type
