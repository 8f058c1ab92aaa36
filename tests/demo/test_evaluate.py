"""Accuracy with batch statistics and with running statistics."""

from __future__ import annotations

import torch
from torch import nn

from traindx.demo.evaluate import accuracy_batch_and_running

IMAGES = torch.tensor([[9.0], [11.0], [9.0], [11.0]])
LABELS = torch.tensor([0, 1, 0, 1])


def sign_classifier(running_mean: float) -> nn.Sequential:
    """Calls an image 1 where its normalized value is positive."""
    norm, linear = nn.BatchNorm1d(1), nn.Linear(1, 2, bias=False)
    assert norm.running_mean is not None
    norm.running_mean.fill_(running_mean)
    with torch.no_grad():
        linear.weight.copy_(torch.tensor([[-1.0], [1.0]]))
    return nn.Sequential(norm, nn.Dropout(0.5), linear)


def test_batch_statistics_centre_the_batch_and_running_ones_what_they_remember():
    assert accuracy_batch_and_running(sign_classifier(10.0), IMAGES, LABELS, 4) == (1.0, 1.0)
    assert accuracy_batch_and_running(sign_classifier(0.0), IMAGES, LABELS, 4) == (1.0, 0.5)


def test_no_image_is_left_to_a_batch_of_its_own():
    images, labels = torch.cat([IMAGES, IMAGES[:1]]), torch.cat([LABELS, LABELS[:1]])
    model = sign_classifier(0.0)
    assert accuracy_batch_and_running(model, images, labels, 4) == (1.0, 0.4)


def test_the_model_comes_back_as_it_was():
    model = sign_classifier(3.0)
    model[1].eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    accuracy_batch_and_running(model, IMAGES, LABELS, 2)
    assert [module.training for module in model.modules()] == [True, True, False, True]
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_no_random_number_is_drawn_so_dropout_stays_off():
    model = sign_classifier(0.0)
    state = torch.get_rng_state()
    accuracy_batch_and_running(model, IMAGES, LABELS, 4)
    assert torch.equal(torch.get_rng_state(), state)
