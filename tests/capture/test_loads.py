"""What is loaded into modules: which names fit, which do not, and what was theirs already."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel

from tests.capture.watched import Recording, mlp, train, watched
from traindx.records import EventKind


def loads(recording: Recording) -> list[dict[str, object]]:
    return recording.events(EventKind.LOADED)


def wrapped(model: nn.Module) -> dict[str, Any]:
    return {f"module.{name}": value for name, value in model.state_dict().items()}


def evaluate(_model: nn.Module) -> None:
    with torch.no_grad():
        _model(torch.randn(2, 6))


def test_a_load_of_everything_is_told_once_the_model_trains():
    with watched() as recording:
        net = mlp()
        keys = net.load_state_dict(mlp().state_dict())
        train(net)
    assert keys.missing_keys == keys.unexpected_keys == []
    (event,) = recording.run.events(EventKind.LOADED)
    assert event.site == ("net", "")
    assert (event.step, event.detail["at"]) == (0, 0)
    told = {name: event.detail[name] for name in ("parameters", "loaded", "given", "used", "same")}
    assert told == {"parameters": 4, "loaded": 4, "given": 4, "used": 4, "same": 0}


@pytest.mark.parametrize(
    ("rename", "own", "given"),
    [
        ("-module.", "{}", "module.{}"),
        ("-model.backbone.", "{}", "model.backbone.{}"),
        ("+body.", "body.{}", "{}"),
        ("-_orig_mod", "body.{}", "body._orig_mod.{}"),
    ],
)
def test_names_that_would_fit_behind_another_prefix_are_counted(rename: str, own: str, given: str):
    inner = mlp()
    with watched() as recording:
        net = nn.ModuleDict({"body": inner}) if own.startswith("body") else inner
        state = {given.format(name): value.clone() for name, value in inner.state_dict().items()}
        net.load_state_dict(state, strict=False)
        train(inner)
    (found,) = loads(recording)
    assert (found["rename"], found["fits"], found["used"], found["loaded"]) == (rename, 4, 0, 0)
    assert found["missing"] == [own.format(n) for n in ("0.bias", "0.weight", "2.bias", "2.weight")]
    assert found["unexpected"] == [
        given.format(name) for name in ("0.bias", "0.weight", "2.bias", "2.weight")
    ]


def test_names_of_other_shapes_do_not_fit():
    with watched() as recording:
        net = mlp()
        net.load_state_dict(wrapped(mlp(sizes=(6, 9, 3))), strict=False)
        train(net)
    (found,) = loads(recording)
    assert found["fits"] == 1  # of 0.weight, 0.bias, 2.weight and 2.bias the last one


def test_a_part_of_a_model_is_named():
    with watched() as recording:
        net = mlp()
        net[0].load_state_dict(nn.Linear(6, 8).state_dict())
        train(net)
    (event,) = recording.run.events(EventKind.LOADED)
    assert event.site == ("net", "0")


def test_what_is_kept_by_reference_is_seen_to_be_the_models_own():
    with watched() as recording:
        net = mlp()
        best, kept = net.state_dict(), copy.deepcopy(net.state_dict())
        train(net)
        net.load_state_dict(kept)
        net.load_state_dict(best)
    assert [(found["at"], found["same"]) for found in loads(recording)] == [(3, 0), (3, 4)]


def test_tensors_that_become_the_models_own_by_assigning_are_not():
    with watched() as recording:
        net = mlp()
        net.load_state_dict(mlp().state_dict(), assign=True)
        train(net)
    (found,) = loads(recording)
    assert found["same"] == 0


def test_a_model_that_is_evaluated_only_is_told_at_its_first_call():
    with watched() as recording:
        net, teacher = mlp(), mlp()
        teacher.load_state_dict(wrapped(teacher), strict=False)
        evaluate(teacher)
        del teacher
        train(net)
    assert [event.site.model for event in recording.run.events(EventKind.LOADED)] == ["teacher"]


def test_what_is_loaded_into_a_module_that_is_never_called_is_not_told():
    with watched() as recording:
        mlp().load_state_dict(mlp().state_dict())
        net = mlp()
        train(net)
    assert loads(recording) == []


def test_of_many_loads_few_are_looked_at():
    with watched() as recording:
        net, target = mlp(), mlp()
        evaluate(target)
        for _ in range(40):
            train(net, steps=1)
            target.load_state_dict(net.state_dict())
    assert [found["at"] for found in loads(recording)] == [1, 2, 3, 4, 8, 16, 32]


def test_a_load_that_fails_raises_as_before_and_is_not_told():
    with watched() as recording:
        net = mlp()
        with pytest.raises(RuntimeError, match="Missing key"):
            net.load_state_dict({})
        train(net)
    assert loads(recording) == []


def test_odd_states_are_loaded_as_before():
    with watched() as recording:
        net = mlp()
        average = AveragedModel(net)
        net.load_state_dict({}, strict=False)
        average.load_state_dict(average.state_dict())
        nn.Identity().load_state_dict({})
        train(net)
        evaluate(average)
    (found, _) = loads(recording)
    assert (found["given"], found["used"], found["parameters"]) == (0, 0, 4)
