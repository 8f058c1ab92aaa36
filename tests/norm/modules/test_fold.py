"""Folding: the same function with fewer layers, or a reason."""

import copy
from collections.abc import Callable
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

from traindx.errors import UsageError
from traindx.norm.modules.fold import fold


def _used(model: nn.Module, seed: int = 0) -> nn.Module:
    """A model whose statistics and affine parameters are none of the initial ones."""
    generator = torch.Generator().manual_seed(seed)
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.running_mean is not None:
            assert module.running_var is not None
            module.running_mean.copy_(torch.randn(module.num_features, generator=generator))
            module.running_var.copy_(torch.rand(module.num_features, generator=generator) + 0.1)
            if module.affine:
                with torch.no_grad():
                    module.weight.copy_(torch.randn(module.num_features, generator=generator))
                    module.bias.copy_(torch.randn(module.num_features, generator=generator))
    return model


def _x(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(7)).double()


PAIRS: list[tuple[Callable[[], nn.Sequential], tuple[int, ...]]] = [
    (lambda: nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8)), (5, 6)),
    (lambda: nn.Sequential(nn.Linear(6, 8, bias=False), nn.BatchNorm1d(8, affine=False)), (5, 6)),
    (lambda: nn.Sequential(nn.Conv1d(4, 8, 3), nn.BatchNorm1d(8)), (5, 4, 9)),
    (lambda: nn.Sequential(nn.Conv2d(4, 8, 3, padding=1), nn.BatchNorm2d(8)), (5, 4, 6, 7)),
    (
        lambda: nn.Sequential(nn.Conv2d(4, 8, 3, groups=2, stride=2), nn.BatchNorm2d(8)),
        (5, 4, 6, 7),
    ),
    (lambda: nn.Sequential(nn.Conv3d(2, 3, 2, bias=False), nn.BatchNorm3d(3)), (2, 2, 3, 4, 5)),
    (lambda: nn.Sequential(nn.ConvTranspose2d(4, 6, 3), nn.BatchNorm2d(6)), (5, 4, 6, 7)),
    (
        lambda: nn.Sequential(nn.ConvTranspose1d(4, 6, 3, groups=2), nn.BatchNorm1d(6)),
        (5, 4, 6),
    ),
]


@pytest.mark.parametrize(("make", "shape"), PAIRS)
def test_a_pair_becomes_one_layer_of_the_same_function(
    make: Callable[[], nn.Sequential], shape: tuple[int, ...]
) -> None:
    model = _used(make()).double().eval()
    x = _x(*shape)
    state = copy.deepcopy(model.state_dict())
    folding = fold(model, x)
    assert [(pair.layer, pair.norm) for pair in folding.folded] == [("0", "1")]
    assert folding.refused == ()
    assert isinstance(cast(Any, folding.model)[1], nn.Identity)
    torch.testing.assert_close(folding.model(x), model(x), rtol=1e-12, atol=1e-12)
    assert folding.difference <= folding.allowed < 1e-10
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())


class Net(nn.Module):
    """Norms that can be folded, and norms that cannot for all reasons there are."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
        self.both, self.both_norm = nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4)
        self.twice, self.twice_norm = nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4)
        self.between, self.after = nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4)
        self.tied, self.tied_norm = nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4)
        self.other = nn.Conv2d(4, 4, 1)
        self.other.weight = self.tied.weight
        self.param, self.param_norm = weight_norm(nn.Conv2d(4, 4, 1)), nn.BatchNorm2d(4)
        self.free, self.free_norm = nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4, track_running_stats=False)
        self.unused = nn.BatchNorm2d(4)
        self.bad, self.bad_norm = nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(self.conv(x))
        y = self.both(x)
        x = self.both_norm(y) + y
        x = self.twice_norm(self.twice(x))
        x = self.twice_norm(self.twice(x))
        x = self.after(torch.relu(self.between(x)))
        x = self.other(self.tied_norm(self.tied(x)))
        x = self.param_norm(self.param(x))
        x = self.free_norm(self.free(x))
        return self.bad_norm(self.bad(x)).nan_to_num()


def test_what_cannot_be_folded_stays_and_says_why() -> None:
    model = cast(Any, _used(Net()).double())
    model.bad_norm.running_var[0] = -1.0
    folding = fold(model, _x(2, 3, 6, 6))
    assert [pair.norm for pair in folding.folded] == ["norm"]
    reasons = {refused.norm: str(refused.reason) for refused in folding.refused}
    assert reasons == {
        "both_norm": "the output of both is used elsewhere, too",
        "twice_norm": "it or twice is called several times",
        "after": "its input is not the output of a convolution or linear layer",
        "tied_norm": "the weight of tied is shared or parametrized",
        "param_norm": "the weight of param is shared or parametrized",
        "free_norm": (
            "it keeps no running statistics, so it depends on the batch in evaluation, too"
        ),
        "unused": "it was not called",
        "bad_norm": "its statistics are not finite, or its variance is negative",
    }


def test_a_norm_of_another_axis_is_not_taken_for_one_of_the_channels() -> None:
    model = _used(nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5))).double()
    (refused,) = fold(model, _x(2, 5, 6)).refused
    assert refused.reason == "it does not normalize the channels of 0"


def test_half_precision_is_folded_to_its_own_rounding() -> None:
    model = _used(nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))).bfloat16()
    folding = fold(model, _x(2, 3, 6, 6).bfloat16())
    assert len(folding.folded) == 1
    assert cast(Any, folding.model)[0].weight.dtype is torch.bfloat16


def test_a_frozen_model_is_folded_too() -> None:
    model = _used(nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))).requires_grad_(False)
    assert len(fold(model, _x(2, 3, 6, 6).float()).folded) == 1


class Hidden(nn.Module):
    """Uses an output in a way that no graph shows."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv(x)
        return self.norm(y) * y.detach().mean()


def test_a_folded_model_that_differs_is_not_given_out() -> None:
    with pytest.raises(UsageError, match="It is not given out"):
        fold(_used(Hidden()), _x(2, 3, 6, 6).float())


@pytest.mark.parametrize(
    ("model", "inputs", "words"),
    [
        (nn.Linear(2, 2), (torch.ones(1, 2),), "Folding needs BatchNorm layers; Linear has none"),
        (nn.BatchNorm1d(2), (torch.ones(1, 3),), "The model fails on its batch"),
    ],
)
def test_what_cannot_be_done_is_told(model: nn.Module, inputs: tuple[Any, ...], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        fold(model, *inputs)
