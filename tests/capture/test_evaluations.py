"""Forward passes that train nothing: counted, their mode noted, never measured."""

from __future__ import annotations

import gc

import pytest
import torch
import torch.nn.functional as F

from tests.capture.watched import batch, mlp, train, watched
from traindx.capture.evaluations import Evaluations
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


def test_evaluations_of_a_model_that_is_gone_before_it_trained_are_waited_for_no_more():
    with watched():
        other = mlp()
        with torch.no_grad():
            other(batch()[0])
        del other
        train(mlp())
        gc.collect()
        waiting = [held.pending for held in gc.get_objects() if type(held) is Evaluations]
    assert waiting
    assert not any(waiting)


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


class Own(torch.nn.Module):
    """A normalization of one's own that writes its statistics whatever its mode, if it writes."""

    def __init__(self, *, by_batch: bool) -> None:
        super().__init__()
        self.by_batch = by_batch
        self.register_buffer("running_mean", torch.zeros(8))
        self.register_buffer("running_var", torch.ones(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean, var = self.get_buffer("running_mean"), self.get_buffer("running_var")
        return F.batch_norm(x, mean, var, training=self.by_batch)


def details(*layers: torch.nn.Module, training: bool, part: str = "") -> list[dict[str, object]]:
    """What is told of an evaluation of a model with these layers, one of them in train mode."""
    with watched() as recording:
        net = mlp()
        net.insert(1, torch.nn.Sequential(*layers))
        train(net, steps=2)
        net.train(training)
        if part:
            net.get_submodule(part).train()
        with torch.no_grad():
            net(batch()[0])
            net(batch()[0])
    return recording.events(EventKind.EVALUATION)


def test_dropout_and_batchnorm_that_act_as_in_training_are_counted():
    layers = (torch.nn.Dropout(0.5), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.0))
    (seen,) = details(*layers, training=True)
    assert seen == {
        "forwards": 2,
        "training": True,
        "dropping": 1,
        "batch_norms": 1,
        "first": "1.0",
        "drawing": 2,
    }
    (seen,) = details(*layers, training=False)
    assert seen == {"forwards": 2, "training": False}
    (seen,) = details(*layers, training=False, part="1.1")
    assert (seen["training"], seen["batch_norms"], seen["first"]) == (False, 1, "1.1")
    assert "dropping" not in seen


def test_batchnorm_without_statistics_has_no_mode_to_forget():
    norm = torch.nn.BatchNorm1d(8, track_running_stats=False)
    assert details(norm, training=True) == [{"forwards": 2, "training": True}]


def test_random_numbers_that_a_function_draws_are_seen():
    class Dropping(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return F.dropout(x, 0.5)

    (seen,) = details(Dropping(), training=False)
    assert (seen["training"], seen["drawing"]) == (False, 2)


def test_statistics_written_in_eval_mode_are_named():
    (seen,) = details(Own(by_batch=True), training=False)
    assert seen["written"] == ["1.0.running_mean", "1.0.running_var"]
    (seen,) = details(Own(by_batch=False), training=False)
    assert "written" not in seen


def test_statistics_that_no_batch_has_touched_are_named():
    (seen,) = details(Own(by_batch=False), torch.nn.BatchNorm1d(8), training=False)
    assert seen["initial"] == ["1.0"]
    (seen,) = details(Own(by_batch=False), training=True)
    assert "initial" not in seen


def test_statistics_that_were_reset_between_two_passes_are_named():
    with watched() as recording:
        net = mlp()
        net.insert(1, torch.nn.BatchNorm1d(8))
        train(net, steps=2)
        net.eval()
        with torch.no_grad():
            net(batch()[0])
            net[1].reset_running_stats()
            net(batch()[0])
    (seen,) = recording.events(EventKind.EVALUATION)
    assert (seen["forwards"], seen["initial"]) == (2, ["1"])


def test_passes_that_were_set_in_two_ways_are_told_apart():
    with watched() as recording:
        net = mlp()
        net.insert(1, torch.nn.Dropout(0.5))
        train(net, steps=2)
        net.eval()
        with torch.no_grad():
            net(batch()[0])
            net[1].train()
            net(batch()[0])
    first, second = recording.events(EventKind.EVALUATION)
    assert not {"dropping", "last"} & first.keys()
    assert (second["dropping"], second["last"]) == (1, True)


def test_a_pass_that_fails_is_counted_and_leaves_nothing_behind():
    with watched() as recording:
        net = mlp()
        train(net, steps=2)
        with torch.no_grad(), pytest.raises(RuntimeError):
            net(torch.zeros(2, 3))
        train(net, steps=1)
    assert passes(recording) == [(2, 1, True)]
