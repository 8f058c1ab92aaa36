"""Everything real training does, with and without traindx: the same to the last bit.

Losses, parameters, optimizer state, random states, exceptions, warnings, and what is left in memory
after each step. And each of them is watched to the end.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator

import pytest
import torch

from tests.capture.matrix import autograd, modules, optimizing, processes, randomness, tensors
from tests.capture.matrix.training import Case, Net, Training, batch, compared, outcome, plain
from tests.capture.watched import watched

CASES: list[Case] = [
    case
    for file in (optimizing, modules, autograd, randomness, tensors, processes)
    for case in file.CASES.values()
]

each_case = pytest.mark.parametrize(
    "case",
    [pytest.param(c, id=c.name, marks=[pytest.mark.slow] * c.slow) for c in CASES],
)
every_case = pytest.mark.parametrize(
    "case", [pytest.param(c, id=c.name, marks=pytest.mark.slow) for c in CASES]
)
# The trap keeps a call until its loss is differentiated or the step is over: a case that never
# differentiates one is followed without it only.
followed = pytest.mark.parametrize(
    ("case", "trap_nan"),
    [
        pytest.param(c, trap, id=f"{c.name}-{'trap' if trap else 'plain'}", marks=pytest.mark.slow)
        for c in CASES
        if c.references
        for trap in (False, True)
        if not (trap and c.awaited)
    ],
)


@pytest.fixture(autouse=True)
def _every_warning_every_time() -> Iterator[None]:
    """What torch says once a process would else be heard in the first of two trainings alone."""
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(False)


def assert_seen(case: Case, steps: int) -> None:
    assert (steps == 0) == bool(case.unseen)


@each_case
def test_a_training_is_the_same_when_every_step_is_measured(case: Case):
    assert_seen(case, compared(case).run.steps)


@every_case
def test_a_training_is_the_same_with_the_trap(case: Case):
    assert_seen(case, compared(case, trap_nan=True).run.steps)


@every_case
def test_a_training_is_the_same_when_every_third_step_is_measured(case: Case):
    assert_seen(case, compared(case, every=3).run.steps)


@followed
def test_nothing_of_a_training_is_in_memory_longer(case: Case, trap_nan: bool):
    compared(case, references=True, trap_nan=trap_nan)


def test_an_output_that_is_never_differentiated_is_let_go_when_the_next_one_is_made():
    net = Net()
    x, _ = batch()
    with watched():
        for _ in range(3):
            hidden = net(x)
            seen = weakref.ref(hidden)
            del hidden
        net.first.register_forward_hook(lambda *_: alive.append(seen() is not None))
        alive: list[bool] = []
        net(x)
    assert alive == [False]


def test_the_comparison_finds_what_is_held_and_what_is_changed():
    def held() -> Training:
        kept: list[object] = []
        net = Net()
        net.first.register_forward_hook(lambda module, given, out: kept.append(out.detach()))
        return plain(net)

    def moved() -> Training:
        net = Net()
        return plain(net, after=lambda i: net.last.bias.data.mul_(1 + 2**-23) and None)

    bare = outcome(lambda: plain(Net()), references=True)
    assert outcome(held, references=True).alive != bare.alive
    assert outcome(moved).state != bare.state
    assert outcome(lambda: plain(Net(), after=lambda i: None)).steps == bare.steps
