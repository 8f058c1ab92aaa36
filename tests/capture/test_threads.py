"""Which thread is watched, told apart by more than the number that the system gives it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from traindx.capture.threads import TrainingThread, this_thread


def in_a_thread(work: Callable[[], object]) -> object:
    results: list[object] = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    thread.join()
    return results[0]


def test_a_thread_is_not_taken_for_a_dead_one_whose_number_it_got() -> None:
    seen = [in_a_thread(lambda: (threading.get_ident(), this_thread())) for _ in range(8)]
    tokens = [token for _, token in seen]  # pyright: ignore[reportGeneralTypeIssues]
    assert len(set(map(id, tokens))) == len(tokens)


def test_the_training_of_a_dead_thread_is_taken_over_by_one_only() -> None:
    training = TrainingThread(lambda _text: None)
    assert in_a_thread(training.claim)
    assert training.claim()
    assert not any(in_a_thread(training.may_be_this) for _ in range(8))
    assert training.may_be_this()
