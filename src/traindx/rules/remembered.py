"""What a rule has found out of a run, until something that it looked at has changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from traindx.run import Run

T = TypeVar("T")


def remembered(run: Run, what: object, state: object, find: Callable[[], T]) -> T:
    """What `find` returns; it is asked again only once the state is another.

    Rules are asked after every measured step, and much of what they look at changes seldom.

    Args:
        run: The run.
        what: What is looked for, one of a kind among all rules: its function, and of which model.
        state: All that it follows from, to compare.
        find: How to find it. The result is shared: it is not to be changed.
    """
    known = run.remembered
    found = known.get(what)
    if found is None or found[0] != state:
        found = known[what] = state, find()
    return found[1]


def lately(
    run: Run,
    what: object,
    state: object,
    *,
    reads: tuple[str, ...],
    lasts: int,
    holds: Callable[[], bool],
) -> bool:
    """Whether something has held, fewer than `lasts` additions to any of some quantities ago.

    What takes several values in a row to go wrong need not be looked at each time it is well.

    Args:
        run: The run.
        what: What is looked for, as in `remembered`.
        state: All else that it follows from.
        reads: The quantities.
        lasts: How many new values of a place it takes for it not to hold any more.
        holds: Whether it does.
    """
    known = run.remembered
    additions = [run.additions(quantity) for quantity in reads]
    before, at = known.get(what, (None, additions))
    ago = [now - then for now, then in zip(additions, at, strict=True)]
    if before == state and max(ago) < lasts:
        return True
    if not holds():
        return False
    known[what] = state, additions
    return True
