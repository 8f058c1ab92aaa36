"""Watching keeps nothing of the training alive."""

from __future__ import annotations

import gc
import weakref

import torch
import torch.nn.functional as F
from torch import nn

from tests.capture.test_taps import hooks_left
from tests.capture.watched import batch, train, watched
from traindx.capture.given import Given
from traindx.capture.models import Models, TrackedModel
from traindx.capture.owners import Owners


def net_with_norms() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(inplace=True), nn.Dropout(0.2), nn.Linear(8, 3)
    )


def live_tensors() -> int:
    gc.collect()
    return sum(type(held) in (torch.Tensor, nn.Parameter) for held in gc.get_objects())


def tensors_after_training(steps: int = 50) -> int:
    """How many more tensors live after the last of so many steps than before the first."""
    before = live_tensors()
    net = net_with_norms()
    optimizer = torch.optim.Adam(net.parameters())
    x, y = batch()
    for _ in range(steps):
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
    assert not hooks_left(net, optimizer)
    return live_tensors() - before


def test_as_many_tensors_live_after_fifty_watched_steps_as_after_bare_ones():
    bare = tensors_after_training()
    with watched():
        measured = tensors_after_training()
    assert (
        measured - bare <= 3 + 1 + 1 + 1
    )  # a norm's buffers and their first state, entries of a gradient, and a ReLU's active units


def test_no_tensor_is_left_once_watching_ends():
    with watched():
        tensors_after_training()
    before = live_tensors()
    with watched():
        tensors_after_training()
    assert live_tensors() == before


def test_the_number_of_live_tensors_does_not_grow_with_the_steps():
    with watched():
        assert tensors_after_training(60) == tensors_after_training(20)


def live(kind: type) -> list[object]:
    gc.collect()
    return [held for held in gc.get_objects() if type(held) is kind]


def test_models_that_are_gone_are_forgotten_and_what_was_measured_of_them_is_kept():
    with watched() as recording:
        for _ in range(80):
            net = net_with_norms()
            train(net, steps=2)
            net.eval()
            with torch.no_grad():
                net(batch()[0])
            alive = weakref.ref(net)
            del net
            assert alive() is None
        held = {model.name for model in live(TrackedModel) if isinstance(model, TrackedModel)}
    assert len(held) < 45
    assert len(recording.models) == 80
    for name in recording.models:
        assert len(recording.series("update.ratio", "0.weight", name)) == 2


def test_the_model_that_is_left_is_the_only_one_again():
    models = Models(Owners(), Given(lambda _: None))
    for _ in range(3):
        net = net_with_norms()
        models.of(net, None)
    only = models.only()
    assert only is not None
    assert only.root is net


def test_tensors_of_models_that_are_gone_are_let_go():
    def after(trials: int) -> int:
        before = live_tensors()
        for _ in range(trials):
            net = net_with_norms()
            train(net, steps=2)
            del net
        return live_tensors() - before

    with watched():
        after(20)  # of the last ones something is remembered
        assert after(10) <= 0
