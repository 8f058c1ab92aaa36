"""torch's layers become ours in place, and go back."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.norm.modules.layer_cases import same, state
from traindx.norm import modules as ours
from traindx.norm.modules import convert, report, revert


def _model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 6, 3),
        nn.BatchNorm2d(6),
        nn.Sequential(nn.GroupNorm(2, 6), nn.InstanceNorm2d(6), nn.GELU()),
        nn.Flatten(),
        nn.Linear(6 * 16, 8),
        nn.LayerNorm(8),
        nn.RMSNorm(8),
        nn.BatchNorm1d(8),
    )


def test_converted_layers_stay_the_objects_they_are() -> None:
    model = _model()
    before = dict(model.named_modules())
    tensors = {k: v.data_ptr() for k, v in model.state_dict(keep_vars=True).items()}
    assert convert(model) is model
    assert dict(model.named_modules()) == before
    assert {k: v.data_ptr() for k, v in model.state_dict(keep_vars=True).items()} == tensors
    kinds = {type(m).__name__: type(m) for m in model.modules()}
    for name in (
        "BatchNorm1d",
        "BatchNorm2d",
        "GroupNorm",
        "InstanceNorm2d",
        "LayerNorm",
        "RMSNorm",
    ):
        assert kinds[name] is getattr(ours, name)
    assert revert(model) is model
    assert all(type(m).__module__.startswith("torch.nn") for m in model.modules())


def test_a_training_goes_the_same_way_before_and_after() -> None:
    converted, plain = convert(_model()), _model()
    for model in (converted, plain):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        torch.manual_seed(1)
        for step in range(6):
            if step == 3 and model is converted:
                revert(convert(model))
            optimizer.zero_grad()
            model(torch.randn(4, 3, 6, 6)).square().sum().backward()
            optimizer.step()
    assert same(state(converted), state(plain))


def test_hooks_modes_and_optimizers_keep_hold_of_a_converted_layer() -> None:
    layer, seen = nn.BatchNorm1d(3), list[str]()
    layer.register_forward_hook(lambda *_: seen.append("hook"))
    optimizer = torch.optim.SGD(layer.parameters(), lr=1.0)
    convert(layer.eval())
    assert not layer.training
    layer(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    assert seen == ["hook"]
    assert layer.bias.tolist() == [-2, -2, -2]


def test_a_converted_layer_guards_and_counts() -> None:
    model = convert(_model())
    model(torch.full((4, 3, 6, 6), float("nan")))
    assert [each.fqn for each in report(model)] == ["1", "7"]
    model(torch.randn(4, 3, 6, 6))
    assert all(value.isfinite().all() for value in model.state_dict().values())


def test_layers_of_other_classes_are_left_alone() -> None:
    class Mine(nn.BatchNorm1d):
        pass

    model = convert(nn.Sequential(Mine(3), nn.LazyBatchNorm1d(), nn.Linear(3, 3)))
    assert [type(m) for m in model] == [Mine, nn.LazyBatchNorm1d, nn.Linear]


def test_a_pitfall_is_warned_of_where_a_layer_is_converted() -> None:
    with pytest.warns(UserWarning, match="momentum=-1"):
        convert(nn.BatchNorm1d(3, momentum=-1))


def test_sync_batch_norm_is_made_of_the_others() -> None:
    model = convert(_model())
    made = ours.SyncBatchNorm.convert_sync_batchnorm(model)
    kinds = [type(m) for m in made.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    assert kinds == [ours.SyncBatchNorm, ours.SyncBatchNorm]
    made(torch.full((4, 3, 6, 6), float("nan")))
    assert len(report(made)) == 2
