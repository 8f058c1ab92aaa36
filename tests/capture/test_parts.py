"""The modules of a model: learnt once, and again as soon as anything is held that was not."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from tests.capture.watched import mlp, train, watched
from traindx.capture.parts import Parts


def net() -> Any:
    return nn.Sequential(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), nn.Linear(4, 4), nn.Module())


def parts_of(model: nn.Module) -> Parts:
    return Parts([*model.named_modules()])


def move_a_child(model: Any) -> None:
    """Give what the first child holds last to the child behind it, which a walk meets next."""
    child = model[0]._modules.pop("1")
    model[0][0]._modules["1"] = child


def share_a_parameter(model: Any) -> None:
    model[1]._parameters["weight"] = model[0][0].weight


CHANGES: dict[str, Callable[[Any], object]] = {
    "a child is replaced": lambda model: model.__setitem__(1, nn.Linear(4, 4)),
    "a child is replaced behind torch's back": lambda model: model._modules.update(
        {"1": nn.Linear(4, 4)}
    ),
    "a child is added": lambda model: model.append(nn.ReLU()),
    "a child is added to a leaf": lambda model: model[2].add_module("late", nn.ReLU()),
    "a child is removed": lambda model: model.__delitem__(1),
    "a child gets another name": lambda model: model._modules.update(
        {"last": model._modules.pop("2")}
    ),
    "a child moves": move_a_child,
    "a child becomes nothing": lambda model: model.add_module("1", None),
    "a parameter is added": lambda model: model[2].register_parameter(
        "scale", nn.Parameter(torch.ones(1))
    ),
    "a parameter is removed": lambda model: model[1].__delattr__("bias"),
    "a parameter becomes nothing": lambda model: setattr(model[1], "bias", None),
    "a parameter is shared": share_a_parameter,
    "a parameter is computed from others": lambda model: nn.utils.parametrizations.weight_norm(
        model[1]
    ),
}


def test_parts_tell_the_modules_and_parameters_of_a_model():
    model = net()
    parts = parts_of(model)
    assert [*parts.modules()] == [*model.named_modules()]
    found = parts.parameters()
    assert [fqn for fqn, _ in found] == [fqn for fqn, _ in model.named_parameters()]
    assert all(a is b for (_, a), b in zip(found, model.parameters(), strict=True))
    assert parts.are_those_of(model)
    assert not parts.are_those_of(net())


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_it_is_noticed_that(change):
    model = net()
    parts = parts_of(model)
    change(model)
    assert not parts.are_those_of(model)
    assert parts_of(model).are_those_of(model)


def test_another_mode_and_other_values_are_no_other_parts():
    model = net()
    parts = parts_of(model)
    model.eval().requires_grad_(False)
    for param in model.parameters():
        param.data = torch.zeros(2)
    assert parts.are_those_of(model)


def test_parts_keep_no_module_alive():
    model = net()
    parts = parts_of(model)
    first = model[0]
    del model
    gc.collect()
    assert [fqn for fqn, _ in parts.modules()] == ["0", "0.0", "0.1"]
    assert [fqn for fqn, _ in parts.parameters()] == ["0.0.weight", "0.0.bias"]
    assert not parts.are_those_of(first)


def test_of_a_module_that_is_walked_in_its_own_way_nothing_is_taken_as_known():
    class Chosen(nn.Sequential):
        def named_modules(self, *args: Any, **kwargs: Any) -> Any:
            return [named for named in super().named_modules(*args, **kwargs) if named[0] != "1"]

    model = Chosen(nn.Linear(4, 4), nn.ReLU())
    assert not parts_of(model).are_those_of(model)


def test_a_layer_that_is_exchanged_behind_torchs_back_is_measured_from_then_on():
    with watched() as recording:
        model = mlp()
        train(model, steps=3)
        model._modules["1"] = nn.Tanh()
        model._modules["2"] = nn.Linear(8, 3, bias=False)
        train(model, steps=2)
    assert recording.module("1").kind == "Tanh"
    assert len(recording.series("update.ratio", "2.weight")) == 5
    assert len(recording.series("update.ratio", "2.bias")) == 3
