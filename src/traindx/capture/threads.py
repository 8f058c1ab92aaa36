"""Which thread's training is watched: one at a time, since gradients are nobody's but its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any, cast

from torch import Tensor

from traindx.capture.nodes import accumulates
from traindx.messages import say

_OTHERS = say("models are called in another thread, too: only one thread's training is measured")


class Token:
    """What stands for a thread: the system gives the number of a dead one to the next."""

    def __init__(self) -> None:
        self._thread = threading.current_thread()

    @property
    def is_elsewhere(self) -> bool:
        """Whether it is another thread's, which lives."""
        return self is not _tokens.here and self._thread.is_alive()


class _Tokens(threading.local):
    """A token of each thread's own."""

    def __init__(self) -> None:
        self.here = Token()


_tokens = _Tokens()


def this_thread() -> Token:
    """The token of the calling thread."""
    return _tokens.here


def leaves_of(tensors: object) -> set[int]:
    """Ids of the tensors whose gradients a backward pass from these will free and make."""
    # An iterator is torch's to consume.
    roots = cast("Iterable[object]", tensors) if isinstance(tensors, list | tuple) else (tensors,)
    stack: list[Any] = [root.grad_fn for root in roots if isinstance(root, Tensor)]
    seen: set[Any] = {None}
    leaves: set[int] = set()
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            if accumulates(node):
                leaves.add(id(node.variable))
            stack.extend(child for child, _ in node.next_functions)
    return leaves


class TrainingThread:
    """The thread in which the first backward pass started, for as long as it lives.

    Args:
        tell: Told once that there is another.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._told = False
        self._lock = threading.Lock()
        self._claimed: Token | None = None

    def may_be_this(self) -> bool:
        """Whether no other living thread has been found to train."""
        if self._claimed is _tokens.here:
            return True
        here = not self.is_elsewhere
        if not (here or self._told):
            self._told = True
            self._tell(_OTHERS)
        return here

    @property
    def is_elsewhere(self) -> bool:
        """Whether another living thread is the one."""
        return self._claimed is not None and self._claimed.is_elsewhere

    @property
    def is_here(self) -> bool:
        """Whether the calling thread is the one."""
        return self._claimed is _tokens.here

    def claim(self) -> bool:
        """A backward pass starts in the calling thread; True if it is now the one."""
        if self._claimed is _tokens.here:
            return True
        with self._lock:
            if self.may_be_this():
                self._claimed = _tokens.here
                return True
            return False
