"""What is measured of a model's signal, and that the model does not notice."""

import copy
import random
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from traindx.errors import UsageError
from traindx.preflight.propagation import passages
from traindx.signal.layers import Elementwise, Signal, Weighted
from traindx.signal.profile import Passage, expected
from traindx.signal.repair import jacobian_bound


class Functional(nn.Module):
    """Functions between modules, as most write them."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(256, 256), nn.Linear(256, 256)
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.function(self.first(x)).view(len(x), -1))


def _batch(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


def _sigmoids() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(*(m for _ in range(20) for m in (nn.Linear(100, 100), nn.Sigmoid())))


def test_theory_meets_what_is_measured_of_twenty_sigmoid_layers() -> None:
    measured = passages(_sigmoids(), [_batch(256, 100)])
    theory = expected(measured)
    for passage, each in zip(measured, theory, strict=True):
        assert passage.made is not None
        assert each.chained is not None
        assert each.chained.rms == pytest.approx(passage.made.rms, rel=0.2)
        assert passage.backward is None or each.backward == pytest.approx(passage.backward, rel=0.1)
        if passage.made.share > 1e-12:
            assert each.chained.share == pytest.approx(passage.made.share, rel=0.6)
    first = measured[0].gradient
    assert first is not None
    assert theory[0].gradient == pytest.approx(first, rel=0.25)  # of 5e-34
    bound = jacobian_bound(measured)
    assert bound is not None
    assert bound < 1e-10


@pytest.mark.parametrize("inplace", [False, True])
def test_a_relu_in_place_is_measured_like_any_other(inplace: bool) -> None:
    torch.manual_seed(0)
    layers = [m for _ in range(4) for m in (nn.Linear(512, 512), nn.ReLU(inplace=inplace))]
    measured = passages(nn.Sequential(*layers), [_batch(128, 512)])
    for passage, each in zip(measured, expected(measured), strict=True):
        assert passage.gradient is not None
        assert each.backward == pytest.approx(passage.backward, rel=0.12)
        assert passage is measured[-1] or each.gradient == pytest.approx(passage.gradient, rel=0.3)
    for passage in measured:
        if passage.kind == "ReLU":
            assert passage.given is not None
            assert passage.made is not None
            assert passage.given.mean_square > 1.5 * passage.made.mean_square


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (F.relu, "ReLU"),
        (F.gelu, "GELU"),
        (F.silu, "SiLU"),
        (torch.tanh, "Tanh"),
        (torch.sigmoid, "Sigmoid"),
        (F.elu, "ELU"),
        (F.selu, "SELU"),
        (F.leaky_relu, "LeakyReLU"),
        (F.mish, "Mish"),
        (F.hardswish, "Hardswish"),
        (F.softplus, "Softplus"),
        (lambda x: F.celu(x, 0.5), "CELU"),
        (lambda x: F.gelu(x, approximate="tanh"), "GELU"),
    ],
)
def test_a_function_between_two_modules_is_followed(
    function: Callable[[Tensor], Tensor], name: str
) -> None:
    torch.manual_seed(0)
    measured = passages(Functional(function), [_batch(200, 256)])
    first, between, second = measured
    assert (between.sources, second.sources) == ((0,), (1,))
    assert isinstance(between.layer, Elementwise)
    assert between.layer.activation.name == name
    theory = expected(measured)
    assert _rms(theory[2].chained) == pytest.approx(_rms(second.made), rel=0.1)
    assert theory[0].gradient == pytest.approx(first.gradient, rel=0.1)


def _rms(signal: Signal | None) -> float:
    assert signal is not None
    return signal.rms


@pytest.mark.parametrize(
    ("around", "kinds"),
    [
        (lambda x, f: x + torch.relu(f), ["relu", "+"]),
        (lambda x, f: 0.5 * x - f / 3, ["*", "/", "+"]),
        (lambda x, f: torch.cat([x, f], 1)[:, 1:], None),
        (lambda x, f: torch.cat([x, torch.tanh(f)], 1), ["tanh", "cat"]),
    ],
)
def test_ways_around_a_block_are_followed_until_they_meet(
    around: Callable[[Tensor, Tensor], Tensor], kinds: list[str] | None
) -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem, self.branch = nn.Linear(256, 256), nn.Linear(256, 256)
            self.head = nn.LazyLinear(256)

        def forward(self, x: Tensor) -> Tensor:
            x = self.stem(x)
            return self.head(around(x, self.branch(x)))

    torch.manual_seed(0)
    model, x = Block(), _batch(200, 256)
    model(x)
    measured = passages(model, [x])
    stem, head = measured[0], measured[-1]
    theory = expected(measured)
    if kinds is None:
        assert head.broken == "its input comes out of a function, Slice"
        assert theory[0].gradient is None
        return
    assert [each.kind for each in measured if not each.fqn] == kinds
    assert not head.broken
    assert _rms(theory[-1].chained) == pytest.approx(_rms(head.made), rel=0.05)
    assert theory[0].gradient == pytest.approx(stem.gradient, rel=0.1)


def _padded(kind: type[nn.Module], *shape: int, **options: int) -> tuple[Passage, Weighted]:
    torch.manual_seed(0)
    _, passage = passages(nn.Sequential(nn.Identity(), kind(**options)), [_batch(*shape)])
    assert isinstance(passage.layer, Weighted)
    return passage, passage.layer


@pytest.mark.parametrize(
    ("kind", "shape", "options"),
    [
        (nn.Conv2d, (16, 8, 7, 9), {"kernel_size": 3, "padding": 1}),
        (nn.Conv2d, (16, 8, 7, 9), {"kernel_size": 3, "padding": 1, "stride": 2, "groups": 4}),
        (nn.Conv1d, (16, 8, 20), {"kernel_size": 5, "dilation": 3, "padding": 4}),
        (nn.ConvTranspose2d, (16, 8, 5, 6), {"kernel_size": 4, "stride": 2, "padding": 1}),
        (nn.Conv3d, (8, 8, 4, 5, 6), {"kernel_size": 3, "padding": 1}),
    ],
)
def test_a_convolution_sums_less_at_its_border(
    kind: type[nn.Module], shape: tuple[int, ...], options: dict[str, int]
) -> None:
    passage, layer = _padded(kind, *shape, in_channels=8, out_channels=64, **options)
    assert passage.made is not None
    assert passage.given is not None
    step = layer.step(passage.given)
    assert step.output.mean_square == pytest.approx(passage.made.mean_square, rel=0.1)
    assert step.backward == pytest.approx(passage.backward, rel=0.1)


def test_what_theory_cannot_say_has_a_reason() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(10, 8), nn.LSTM(8, 8, batch_first=True), nn.Identity())

    class First(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = model

        def forward(self, tokens: Tensor) -> Tensor:
            out, _ = self.body[1](self.body[0](tokens))
            return self.body[2](out)

    embedding, lstm, _ = passages(First(), [torch.arange(10).view(2, 5)])
    assert embedding.reason == "its input is not made of real numbers"
    assert lstm.reason == "theory has no formula for LSTM"


def _busy() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        *(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.Dropout(0.5)),
        *(nn.Flatten(), nn.Linear(8 * 36, 4)),
    )


def test_nothing_of_the_model_or_the_random_state_is_changed() -> None:
    model, x = _busy(), _batch(16, 3, 8, 8)
    model(x).sum().backward()
    state, given = copy.deepcopy(model.state_dict()), x.clone()
    gradients = [parameter.grad for parameter in model.parameters()]
    values = [gradient.clone() for gradient in gradients if gradient is not None]
    random = torch.get_rng_state()
    passages(model, [x])
    assert torch.equal(torch.get_rng_state(), random)
    assert torch.equal(x, given)
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    after = [parameter.grad for parameter in model.parameters()]
    assert all(a is b for a, b in zip(after, gradients, strict=True))
    present = [gradient for gradient in after if gradient is not None]
    assert all(torch.equal(a, b) for a, b in zip(values, present, strict=True))
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_the_same_seed_gives_the_same_picture() -> None:
    model, x = _busy(), _batch(16, 3, 8, 8)
    assert passages(model, [x], seed=3) == passages(model, [x], seed=3)
    assert passages(model, [x], seed=3) != passages(model, [x], seed=4)


def test_a_model_that_fails_is_told_with_its_error_and_left_without_hooks() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(5, 5))
    with pytest.raises(UsageError, match=r"The model fails on its batch: RuntimeError"):
        passages(model, [_batch(2, 4)])
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_a_frozen_model_is_told_to_give_no_gradient() -> None:
    class Counting(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.detach().round()

    with pytest.raises(UsageError, match="takes no gradient"):
        passages(Counting(), [_batch(2, 4)])


class _Leaving(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        raise SystemExit(0)


def _scripted() -> nn.Module:
    return nn.Sequential(
        nn.Linear(4, 4), cast(Any, torch.jit.trace(nn.Linear(4, 4), torch.ones(2, 4)))
    )


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (nn.Sequential(nn.LazyLinear(4)), "`0.weight` is lazy"),
        (nn.Linear(4, 4, device="meta"), "`weight` lies on the device meta"),
        (_Leaving(), "The model fails on its batch: SystemExit: 0"),
        (nn.Sequential(nn.Flatten(), nn.Linear(4, 4)), "No layer of the model makes real numbers"),
    ],
)
def test_what_cannot_be_tried_is_told(model: nn.Module, words: str) -> None:
    rows = 0 if "No layer" in words else 2
    with pytest.raises(UsageError, match=words):
        passages(model, [torch.ones(rows, 4)])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_is_compiled_into_torchscript_is_told() -> None:
    with pytest.raises(UsageError, match="compiled into TorchScript"):
        passages(_scripted(), [torch.ones(2, 4)])


def test_a_gradient_that_cannot_flow_back_is_told() -> None:
    class Overwriting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            y = torch.sigmoid(self.first(x))
            z = self.second(y)
            y[:, 0] = 0
            return z + y

    with pytest.raises(UsageError, match="The gradient cannot flow back through the model"):
        passages(Overwriting(), [_batch(3, 4)])


def test_a_model_that_changes_itself_is_put_back() -> None:
    class Restless(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Linear(4, 4)
            self.register_buffer("seen", torch.zeros(()))
            self.register_buffer("cache", None)

        def forward(self, x: Tensor) -> Tensor:
            self.seen = self.seen + 1
            self.cache = x.detach()
            self.register_buffer("late", x.detach())
            self.eval()
            random.random()
            np.random.rand()
            with torch.no_grad():
                self.body.weight.add_(1)
            return self.body(x)

    model = Restless()
    weight, version, seen = model.body.weight.clone(), model.body.bias._version, model.seen
    states = random.getstate(), str(np.random.get_state())
    passages(model, [_batch(3, 4)])
    assert torch.equal(model.body.weight, weight)
    assert model.body.bias._version == version  # what did not change was not written
    assert model.seen is seen
    assert (model.cache, list(model._buffers)) == (None, ["seen", "cache"])
    assert model.training
    assert (random.getstate(), str(np.random.get_state())) == states


def test_weights_used_twice_are_named() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.head = nn.Embedding(9, 4), nn.Linear(4, 9, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, tokens: Tensor) -> Tensor:
            return self.head(torch.relu(self.embed(tokens)))

    measured = passages(Twice(), [torch.arange(9).view(3, 3)])
    assert [passage.tied for passage in measured] == ["", "", "embed"]


def test_parametrized_layers_are_layers_and_attention_is_one() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Parameter(torch.randn(1, 5, 8))
            self.norm, self.attend = nn.LayerNorm(8), nn.MultiheadAttention(8, 2, batch_first=True)
            self.out = nn.utils.parametrizations.weight_norm(nn.Linear(8, 4))

        def forward(self, *, signal: Tensor) -> Tensor:
            h = self.norm(signal + self.embed)
            x = signal + self.attend(query=h, key=h, value=h)[0]
            return self.out(input=x)

    torch.manual_seed(0)
    x = _batch(6, 5, 8)
    measured = passages(Model(), [{"signal": x}])
    names = [passage.fqn or passage.kind for passage in measured]
    assert names == ["input", "parameter", "+", "norm", "attend", "+", "out"]
    assert measured[4].reason == "theory has no formula for MultiheadAttention"
    assert isinstance(measured[-1].layer, Weighted)
    theory = expected(measured)
    assert not any(each.restarts for each in theory)
    assert _rms(theory[2].chained) == pytest.approx(_rms(measured[3].given), rel=0.05)


def test_theory_meets_a_residual_network() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.up, self.down = nn.LayerNorm(256), *(nn.Linear(256, 256) for _ in "ab")

        def forward(self, x: Tensor) -> Tensor:
            return x + self.down(F.gelu(self.up(self.norm(x))))

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 256), *(Block() for _ in range(6)), nn.LayerNorm(256))
    measured = passages(model, [_batch(128, 256)])
    theory = expected(measured)
    for passage, each in zip(measured[:-1], theory, strict=False):
        assert passage.made is None or _rms(each.chained) == pytest.approx(_rms(passage.made), 0.05)
        assert passage.made is None or each.gradient == pytest.approx(passage.gradient, rel=0.1)
