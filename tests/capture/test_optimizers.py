"""Missing zero_grad, seen exactly, and what else is known of optimizers."""

from __future__ import annotations

import weakref

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.capture.watched import batch, mlp, train, watched
from traindx.facts import OptimizerFacts
from traindx.records import Description


def keep(net, optimizer):
    """Nothing is cleared."""


def default(net, optimizer):
    optimizer.zero_grad()


def zeroed(net, optimizer):
    optimizer.zero_grad(set_to_none=False)


def of_model(net, optimizer):
    net.zero_grad()


def of_model_zeroed(net, optimizer):
    net.zero_grad(set_to_none=False)


def to_none_by_hand(net, optimizer):
    for param in net.parameters():
        param.grad = None


def to_zero_by_hand(net, optimizer):
    for param in net.parameters():
        if param.grad is not None:
            param.grad.zero_()


def unseen_by_hand(net, optimizer):
    for param in net.parameters():
        if param.grad is not None:
            param.grad.data.zero_()


def replaced(net, optimizer):
    for param in net.parameters():
        param.grad = torch.zeros_like(param)


def uncleared(clear, make=torch.optim.SGD, *, micro_batches: int = 1, after: bool = False):
    """The fraction of uncleared steps at each measured step."""
    with watched() as recording:
        net = mlp()
        optimizer = make(net.parameters(), lr=0.1)
        x, y = batch()
        for _ in range(5):
            if not after:
                clear(net, optimizer)
            for _ in range(micro_batches):
                F.cross_entropy(net(x), y).backward()
            optimizer.step()
            if after:
                clear(net, optimizer)
    return recording.values("grad.uncleared")


ways = [
    default,
    zeroed,
    of_model,
    of_model_zeroed,
    to_none_by_hand,
    to_zero_by_hand,
    unseen_by_hand,
    replaced,
]
each_way = pytest.mark.parametrize("clear", ways)


@each_way
@pytest.mark.parametrize("after", [False, True], ids=["before-backward", "after-step"])
def test_cleared_gradients_are_seen_in_every_way_of_clearing(clear, after):
    assert uncleared(clear, after=after) == [0.0] * 4


@pytest.mark.parametrize("make", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW])
def test_a_missing_zero_grad_is_seen_at_every_step_but_the_first(make):
    assert uncleared(keep, make) == [1.0] * 4


def test_accumulation_that_clears_once_a_step_is_healthy():
    assert uncleared(default, micro_batches=3) == [0.0] * 4


def test_accumulation_that_never_clears_is_seen():
    assert uncleared(keep, micro_batches=3) == [1.0] * 4


def test_clearing_every_second_step_is_seen_at_the_others():
    with watched(every=1) as recording:
        net = mlp()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        x, y = batch()
        for step in range(6):
            if step % 2 == 0:
                optimizer.zero_grad()
            F.cross_entropy(net(x), y).backward()
            optimizer.step()
    assert recording.values("grad.uncleared") == [1.0, 0.0, 1.0, 0.0, 1.0]


def test_a_change_to_a_way_of_clearing_that_does_not_show_is_one_odd_step():
    ways = iter([default, default, default, unseen_by_hand, unseen_by_hand])
    assert uncleared(lambda *both: next(ways)(*both)) == [0.0, 0.0, 1.0, 0.0]


def test_a_generator_that_dirties_the_critics_gradients_is_healthy():
    with watched() as recording:
        generator, critic = mlp(sizes=(4, 8, 6)), mlp(sizes=(6, 8, 1))
        for_generator = torch.optim.Adam(generator.parameters())
        for_critic = torch.optim.Adam(critic.parameters())
        for _ in range(6):
            for_critic.zero_grad()
            critic(generator(torch.randn(5, 4)).detach()).mean().backward()
            for_critic.step()
            for_generator.zero_grad()
            critic(generator(torch.randn(5, 4))).mean().backward()
            for_generator.step()
    for series in recording.run.series("grad.uncleared"):
        assert set(series.values) == {0.0}


def test_a_critic_that_never_clears_what_its_generator_left_is_seen():
    with watched() as recording:
        generator, critic = mlp(sizes=(4, 8, 6)), mlp(sizes=(6, 8, 1))
        for_generator = torch.optim.Adam(generator.parameters())
        for_critic = torch.optim.Adam(critic.parameters())
        for _ in range(6):
            critic(generator(torch.randn(5, 4)).detach()).mean().backward()
            for_critic.step()
            for_generator.zero_grad()
            critic(generator(torch.randn(5, 4))).mean().backward()
            for_generator.step()
    by_name = {
        series.site.fqn: set(series.values) for series in recording.run.series("grad.uncleared")
    }
    assert by_name == {"Adam": {1.0}, "Adam#2": {0.0}}


def test_passes_of_another_model_say_nothing_of_an_optimizer():
    with watched() as recording:
        first, second = mlp(), mlp()
        of_first = torch.optim.SGD(first.parameters(), lr=0.1)
        of_second = torch.optim.SGD(second.parameters(), lr=0.1)
        x, y = batch()
        for step in range(6):
            of_second.zero_grad()
            F.cross_entropy(second(x), y).backward()
            of_second.step()
            if step % 2 == 0:
                F.cross_entropy(first(x), y).backward()
                of_first.step()
                of_first.zero_grad()
    values = {s.site.fqn: set(s.values) for s in recording.run.series("grad.uncleared")}
    assert values == {"SGD": {0.0}, "SGD#2": {0.0}}


def test_lbfgs_clears_inside_its_closure():
    with watched() as recording:
        net = mlp()
        optimizer = torch.optim.LBFGS(net.parameters(), max_iter=3)
        x, y = batch()

        def closure():
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            return loss

        for _ in range(4):
            optimizer.step(closure)
    assert set(recording.values("grad.uncleared")) <= {0.0}


def test_clipping_does_not_pass_for_clearing():
    with watched() as recording:
        net = mlp()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        x, y = batch()
        for _ in range(4):
            F.cross_entropy(net(x), y).backward()
            nn.utils.clip_grad_norm_(net.parameters(), 0.1)
            optimizer.step()
    assert recording.values("grad.uncleared") == [1.0] * 3


def test_the_learning_rate_of_a_schedule_is_noted_at_each_measured_step():
    with watched(every=2) as recording:
        net = mlp()
        optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        for _ in range(6):
            train(net, steps=1, optimizer=optimizer)
            schedule.step()
    assert recording.values("lr") == [1.0, 0.25, 0.0625]


def test_an_optimizer_is_described_by_its_groups():
    with watched() as recording:
        net = mlp()
        groups = [{"params": net[0].parameters(), "lr": 0.1}, {"params": net[2].parameters()}]
        train(net, optimizer=torch.optim.SGD(groups, lr=0.2, momentum=0.9))
    facts = recording.run.optimizers["SGD"]
    assert [group["lr"] for group in facts.groups] == [0.1, 0.2]
    assert [group["momentum"] for group in facts.groups] == [0.9, 0.9]
    assert facts.num_params == 4


def test_an_optimizer_is_described_anew_when_a_setting_changes_however_late():
    described: list[list[object]] = []
    with watched() as recording:
        net = mlp()
        optimizer = torch.optim.Adam(net.parameters(), lr=0.5)
        for step in range(8):
            if step == 5:
                optimizer.param_groups[0]["lr"] = 0.25
            if step == 6:
                optimizer.param_groups[0]["betas"] = (0.5, 0.75)
            train(net, steps=1, optimizer=optimizer)
    for item in recording.items:
        if isinstance(item, Description) and isinstance(item.facts, OptimizerFacts):
            (group,) = item.facts.groups
            described.append([item.step, group["lr"], group["betas"]])
    assert described == [[0, 0.5, [0.9, 0.999]], [5, 0.25, [0.9, 0.999]], [6, 0.25, [0.5, 0.75]]]


def test_a_setting_that_is_a_tensor_is_neither_compared_nor_kept():
    with watched():
        net = mlp()
        rate = torch.tensor(0.1)
        optimizer = torch.optim.SGD(net.parameters(), lr=rate, foreach=False)
        train(net, steps=5, optimizer=optimizer)
        held = weakref.ref(rate)
        optimizer.defaults["lr"] = optimizer.param_groups[0]["lr"] = torch.tensor(0.2)
        del rate
        assert held() is None
        train(net, steps=2, optimizer=optimizer)


def test_a_subclass_that_calls_its_parents_step_steps_once():
    class Mine(torch.optim.SGD):
        def step(self, closure=None):
            return super().step(closure)

    with watched() as recording:
        net = mlp()
        train(net, steps=4, optimizer=Mine(net.parameters(), lr=0.1))
    assert recording.run.steps == 4


def test_an_optimizer_around_another_does_not_double_the_steps():
    class Lookahead(torch.optim.Optimizer):
        def __init__(self, inner):
            self.inner = inner
            super().__init__(inner.param_groups, {})

        def step(self, closure=None):
            return self.inner.step(closure)

    with watched() as recording:
        net = mlp()
        inner = torch.optim.SGD(net.parameters(), lr=0.1)
        train(net, steps=6, optimizer=Lookahead(inner))
    assert recording.run.steps in (6, 7)  # the outer one joins after the inner one's first step
    assert len(recording.values("loss")) == 6


def discarded(clear, *, put_back: bool = False) -> list[float]:
    """Lost passes at each measured step of four passes, with `clear` before each of them."""
    with watched() as recording:
        net = mlp()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        x, y = batch()
        for _ in range(4):
            for _ in range(4):
                clear(net, optimizer)
                F.cross_entropy(net(x), y).backward()
            if put_back:
                for param in net.parameters():
                    param.grad = torch.zeros_like(param)
            optimizer.step()
            optimizer.zero_grad()
    return [v for series in recording.run.series("grad.discarded") for v in series.values]


def test_passes_that_are_cleared_before_the_step_are_counted():
    assert discarded(default) == [3.0, 3.0, 3.0]  # which parameter to watch is known after a step


def test_passes_that_add_up_and_gradients_put_back_are_not_counted():
    assert discarded(keep) == []
    assert discarded(default, put_back=True) == []


def test_settings_of_several_numbers_are_told():
    with watched() as recording:
        net = mlp()
        optimizer = torch.optim.Adam(net.parameters(), betas=(0.8, 0.99))
        x, y = batch()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
    (facts,) = recording.run.optimizers.values()
    assert facts.groups[0]["betas"] == [0.8, 0.99]


def test_an_optimizer_that_counts_as_false_is_known_as_any_other():
    class Empty(torch.optim.SGD):
        def __len__(self):
            return 0

    with watched() as recording:
        net = mlp()
        optimizer = Empty(net.parameters(), lr=0.5)
        x, y = batch()
        for _ in range(4):
            optimizer.zero_grad()
            F.cross_entropy(net(x), y).backward()
            optimizer.step()
    assert recording.values("lr") == [0.5] * 4
    assert recording.values("grad.uncleared") == [0.0] * 3


def test_an_optimizer_may_lose_all_that_it_trains():
    with watched() as recording:
        net = mlp()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
        train(net, steps=2, optimizer=optimizer)
        optimizer.register_step_post_hook(lambda *_: optimizer.param_groups.clear())
        train(net, steps=2, optimizer=optimizer)
    assert recording.run.steps == 4
