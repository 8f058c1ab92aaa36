"""Models that the user names are watched from the start, and others are left alone."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from tests.capture.watched import Recording, batch, mlp, train
from traindx.capture.capture import Capture
from traindx.records import EventKind


@contextmanager
def watching(*models: nn.Module, optimizers: tuple[Any, ...] = ()) -> Iterator[Recording]:
    """Watch only these at every step."""
    recording = Recording()
    capture = Capture([recording], every=1, warn=recording.warnings.append)
    capture.arm()
    capture.expect(models, optimizers)
    try:
        yield recording
    finally:
        capture.close(0)
    assert recording.warnings == []


def test_a_generator_that_was_given_alone_is_told_apart_from_its_critic():
    generator, critic = mlp(sizes=(6, 8, 6)), mlp(sizes=(6, 8, 1))
    steps = torch.optim.SGD(generator.parameters(), lr=0.1)
    judges = torch.optim.SGD(critic.parameters(), lr=0.1)
    x, _ = batch()
    theirs, own = [], []
    with watching(generator) as recording:
        for _ in range(4):
            for _ in range(3):
                judges.zero_grad()
                loss = critic(generator(x).detach()).mean()
                loss.backward()
                judges.step()
                theirs.append(loss.item())
            steps.zero_grad()
            loss = -critic(generator(x)).mean()
            loss.backward()
            steps.step()
            own.append(loss.item())
    run = recording.run
    assert (set(run.models), set(run.optimizers)) == ({"generator"}, {"SGD"})
    assert run.steps == run.measured_steps == 4
    assert recording.series("loss").site.model == "generator"
    assert len(recording.values("loss")) == 4
    assert recording.values("loss")[-1] == own[-1]
    assert set(recording.values("loss")).isdisjoint(theirs)


def test_an_optimizer_that_gets_the_models_parameters_later_is_watched_from_then_on():
    net, other = mlp(), mlp()
    optimizer = torch.optim.SGD(other.parameters(), lr=0.1)
    with watching(net) as recording:
        train(other, optimizer=optimizer, steps=2)
        optimizer.add_param_group({"params": list(net.parameters())})
        train(net, optimizer=optimizer, steps=3)
    assert recording.run.steps == 3


def test_an_exponential_average_of_a_given_model_is_no_model_of_its_own():
    net = mlp()
    average = copy.deepcopy(net)
    with watching(net) as recording:
        train(net, steps=3)
        with torch.no_grad():
            average(batch()[0])
        net.eval()
        with torch.no_grad():
            net(batch()[0])
    assert recording.models == {"net"}
    assert [event["forwards"] for event in recording.events(EventKind.EVALUATION)] == [1]


def test_a_model_given_after_one_of_its_parts_is_one_model():
    net = mlp()
    with watching(net[0], net) as recording:
        train(net)
    assert len(recording.models) == 1
    assert recording.sites("output.rms") == {"0", "1", "2"}


def test_a_head_put_on_a_given_model_later_is_measured_with_it():
    net = mlp()
    with watching(net) as recording:
        net.append(nn.ReLU())
        net.append(nn.Linear(3, 3))
        train(net)
    assert "4" in recording.sites("output.rms")
    assert recording.models == {"net"}
