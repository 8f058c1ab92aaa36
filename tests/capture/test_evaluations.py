"""Forward passes that train nothing: counted, their mode noted, never measured."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from tests.capture.watched import batch, mlp, train, watched
from traindx.records import EventKind, Point


def passes(recording) -> list[tuple[int, int, bool]]:
    """Step, forwards and mode of each evaluation event."""
    return [
        (event.step, event.detail["forwards"], event.detail["training"])
        for event in recording.run.events(EventKind.EVALUATION)
    ]


@pytest.mark.parametrize("without_gradient", [torch.no_grad, torch.inference_mode])
def test_evaluation_without_gradient_is_counted_with_its_mode(without_gradient):
    with watched() as recording:
        net = mlp()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(2):
            train(net, steps=2, optimizer=optimizer)
            net.eval()
            with without_gradient():
                for _ in range(3):
                    net(batch()[0])
            net.train()
    assert passes(recording) == [(2, 3, False), (4, 3, False)]


def test_forgetting_eval_is_seen():
    with watched() as recording:
        net = mlp()
        train(net, steps=2)
        with torch.no_grad():
            net(batch()[0])
    assert passes(recording) == [(2, 1, True)]


def test_evaluation_with_gradients_enabled_is_counted_and_not_measured():
    with watched() as recording:
        net = mlp()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(2):
            train(net, steps=2, optimizer=optimizer)
            net.eval()
            for _ in range(3):
                net(batch(rows=50)[0])
            net.train()
    assert passes(recording) == [(2, 3, False), (4, 3, False)]
    counts = {s.count for s in recording.run.stats(Point.OUTPUT, site(recording)).values()}
    assert counts == {5 * 8}
    assert recording.module("0").calls == 1


def site(recording):
    return recording.series("output.mean", "0").site


def test_evaluation_before_training_is_counted_once_the_model_trains():
    with watched() as recording:
        net = mlp()
        net.eval()
        with torch.no_grad():
            net(batch()[0])
        net(batch()[0])
        net.train()
        train(net, steps=2)
    assert passes(recording) == [(0, 2, False)]


def test_only_evaluation_says_nothing_of_any_model():
    with watched() as recording:
        net = mlp()
        with torch.no_grad():
            net(batch()[0])
        for _ in range(5):
            net(batch()[0])
    assert recording.run.steps == 0
    assert recording.run.header["backwards"] == 0
    assert recording.models == set()
    assert [type(item).__name__ for item in recording.items] == ["Event"]


def test_a_model_that_trains_in_eval_mode_is_measured():
    with watched() as recording:
        net = mlp().eval()
        train(net, steps=3)
    assert recording.values("mode.training") == [0.0] * 3
    assert len(recording.values("output.mean", "0")) == 3
    assert passes(recording) == []


def test_an_evaluation_of_two_passes_a_step_does_not_hide_the_training_pass():
    with watched() as recording:
        net = mlp()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        x, y = batch()
        for _ in range(3):
            with torch.no_grad():
                net(x)
                net(x)
            optimizer.zero_grad()
            F.cross_entropy(net(x), y).backward()
            optimizer.step()
    assert recording.values("mode.training") == [1.0] * 3
    assert passes(recording) == [(step, 2, True) for step in range(3)]
    assert recording.last_stats(Point.OUTPUT, "0").count == 40


def test_outputs_of_an_evaluation_with_gradients_are_not_kept_alive():
    import weakref

    with watched():
        net = mlp()
        last = [weakref.ref(net(batch()[0])) for _ in range(4)]
        assert sum(ref() is not None for ref in last) <= 1
