"""Comparisons of several steps at once: those of each alone, whenever they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from threading import Thread

import numpy as np
import pytest
import torch

from tests.capture.test_running import norms, see
from traindx.capture import late_norms
from traindx.capture.late_norms import LateNorms
from traindx.capture.running import OnHost, Setting, Snapshot


def snapshots(dtype: torch.dtype, steps: int) -> tuple[Setting, list[Snapshot]]:
    """Of layers of all kinds, one of them without an update in some steps."""
    layers = norms(dtype)
    setting = Setting.of(layers)
    where = OnHost(setting)
    taken = [where.snapshot(layers)]
    for step in range(steps):
        layers[0][1].train(step % 3 > 0)
        see(layers, step)
        taken.append(where.snapshot(layers))
    return setting, taken


def alone(setting: Setting, taken: Sequence[Snapshot]) -> list[dict[tuple[str, str], float]]:
    """Each step compared for itself."""
    layers, found = OnHost(setting), list[dict[tuple[str, str], float]]()
    for old, new in pairwise(taken):
        with np.errstate(all="ignore"):
            told = layers.counted(new) | layers.compared(old, new).by_layer
        found.append(
            {
                (fqn, f"norm.{name}"): value
                for name, values in told.items()
                for fqn, value in zip(setting.layers, values.tolist(), strict=True)
            }
        )
    return found


def put_off(late: LateNorms, taken: Sequence[Snapshot]) -> list[Callable[[], Sequence[float]]]:
    return [late.step(old, new) for old, new in pairwise(taken)]


def interrupt(_values: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("at_once", [1, 60, 8192])
@pytest.mark.parametrize("steps", [1, 19, 70])
def test_steps_compared_at_once_are_to_the_bit_what_each_is_alone(
    steps, at_once, dtype, monkeypatch
):
    monkeypatch.setattr(late_norms, "_AT_ONCE", at_once)
    setting, taken = snapshots(dtype, steps)
    late = LateNorms(OnHost(setting))
    made = [make() for make in put_off(late, taken)]
    expected = alone(setting, taken)
    assert len(made) == len(expected) == steps
    for numbers, one in zip(made, expected, strict=True):
        wanted = [one[name] for name in late.names]
        assert len(wanted) == len(one)
        assert np.array_equal(numbers, wanted, equal_nan=True)


def test_they_may_be_asked_for_in_any_order_at_any_time_and_again():
    setting, taken = snapshots(torch.float32, 6)
    late = LateNorms(OnHost(setting))
    first = put_off(late, taken[:4])
    numbers = {2: first[2](), 0: first[0]()}
    numbers |= {3 + i: make() for i, make in enumerate(put_off(late, taken[3:]))}
    expected = alone(setting, taken)
    for i in (0, 2, 3, 4, 5):
        wanted = [expected[i][name] for name in late.names]
        assert np.array_equal(numbers[i], wanted, equal_nan=True)
    assert first[0]() == numbers[0]


def test_of_many_steps_that_nobody_asks_for_the_snapshots_are_let_go():
    setting, taken = snapshots(torch.float32, 200)
    late = LateNorms(OnHost(setting))
    for old, new in pairwise(taken):
        late.step(old, new)
        assert len(late._waiting) < 64


def test_whoever_is_interrupted_may_ask_again(monkeypatch):
    setting, taken = snapshots(torch.float32, 6)
    late = LateNorms(OnHost(setting))
    makers = put_off(late, taken)
    with monkeypatch.context() as interrupted:
        interrupted.setattr(late_norms, "numbers", interrupt)
        with pytest.raises(KeyboardInterrupt):
            makers[0]()
    for make, one in zip(makers, alone(setting, taken), strict=True):
        assert np.array_equal(make(), [one[name] for name in late.names], equal_nan=True)


def test_two_threads_lose_no_step():
    setting, taken = snapshots(torch.float32, 400)
    late = LateNorms(OnHost(setting))
    makers: list[Callable[[], Sequence[float]]] = []
    lengths: list[int] = []

    def ask() -> None:
        while len(lengths) < 400:
            lengths.extend([len(make()) for make in makers[len(lengths) :]])

    thread = Thread(target=ask)
    thread.start()
    for old, new in pairwise(taken):
        makers.append(late.step(old, new))
    thread.join()
    assert lengths == [len(late.names)] * 400
