"""Each guard, with the case in which torch's own layer goes wrong."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop

from tests.norm.modules.layer_cases import BATCH, STATELESS, TRACKED, Case, same, state
from traindx.norm.modules import BatchNorm1d, BatchNorm2d, InstanceNorm1d, Skipped, report

tracked = pytest.mark.parametrize("case", [*BATCH, *TRACKED], ids=str)
counted = pytest.mark.parametrize("case", BATCH, ids=str)
BAD = (math.nan, math.inf, -math.inf, 1e38)


def _bad(case: Case, value: float) -> Tensor:
    """A batch with one bad value in one channel."""
    x = case.input(dtype=torch.float32)
    x.view(-1)[0] = value
    return x


def _pair(*args: Any, **options: Any) -> tuple[Any, Any]:
    return BatchNorm1d(*args, **options), nn.BatchNorm1d(*args, **options)


def _skipped(layer: Any) -> int:
    return int(layer.skipped_batches)


def _finite(layer: Any) -> bool:
    return bool(layer.running_mean.isfinite().all() and layer.running_var.isfinite().all())


@pytest.mark.parametrize("value", BAD)
@tracked
def test_a_batch_that_is_not_finite_leaves_statistics_and_counter_as_they_were(
    case: Case, value: float
) -> None:
    layer, twin = case.ours(), case.torchs()
    before, x = state(layer), _bad(case, value)
    y, theirs = layer(x), twin(x)
    assert not _finite(twin)
    assert y.equal(theirs) or (y.isnan() == theirs.isnan()).all()
    assert same(state(layer), before)
    assert _skipped(layer) == 1


@tracked
def test_after_a_bad_batch_training_goes_on_as_if_it_had_not_been(case: Case) -> None:
    layer, twin = case.ours(), case.torchs()
    for seed in range(3):
        layer(_bad(case, math.nan))
        layer(case.input(seed, dtype=torch.float32))
        twin(case.input(seed, dtype=torch.float32))
    assert same(state(layer), state(twin))


@pytest.mark.parametrize("value", [math.nan, 1e38])
def test_a_cumulative_average_leaves_a_bad_batch_out(value: float) -> None:
    layer, twin = _pair(2, momentum=None)
    bad = torch.tensor([[value, 1.0], [0.0, 2.0]])
    for x in (torch.tensor([[1.0, 4.0], [3.0, 6.0]]), bad, torch.tensor([[3.0, 6.0], [5.0, 8.0]])):
        layer(x)
        twin(x)
    assert not _finite(twin)
    assert layer.running_mean.tolist() == [3, 6]
    assert layer.running_var.tolist() == [2, 2]
    assert int(layer.num_batches_tracked) == 2


def test_the_gradients_of_a_bad_batch_are_torchs() -> None:
    layer, twin = BatchNorm1d(5), nn.BatchNorm1d(5)
    grads: list[Tensor] = []
    for each in (layer, twin):
        x = _bad(BATCH[0], math.nan).requires_grad_()
        each(x).square().sum().backward()
        assert x.grad is not None
        grads.append(x.grad.nan_to_num(7.0))
    assert grads[0].equal(grads[1])


def test_half_precision_statistics_that_overflow_are_skipped() -> None:
    x = torch.tensor([[-424.0], [424.0]], dtype=torch.float16).repeat(2, 1)
    layer, twin = (each.half() for each in _pair(1, momentum=1.0))
    assert layer(x).equal(twin(x))
    assert twin.running_var.isinf().all()
    assert layer.running_var.item() == 1
    assert _skipped(layer) == 1


def test_values_near_the_largest_are_kept() -> None:
    layer, twin = _pair(3, momentum=1.0)
    x = torch.tensor([[1e19, 1e19, 1e19], [-1e19, -1e19, -1e19]])
    layer(x)
    twin(x)
    assert same(state(layer), state(twin))
    assert layer.running_var[0] > 1e38


@pytest.mark.parametrize("reentrant", [False, True])
@tracked
def test_checkpointing_updates_statistics_once(case: Case, reentrant: bool) -> None:
    x = case.input(dtype=torch.float32).requires_grad_()
    plain, layer, twin = case.ours(), case.ours(), case.torchs()
    plain(x).square().sum().backward()
    wanted, x.grad = x.grad, None
    for each in (layer, twin):
        with set_checkpoint_early_stop(False):  # else torch's InstanceNorm is stopped just in time
            checkpoint(each, x, use_reentrant=reentrant).square().sum().backward()
        assert x.grad is not None
        assert x.grad.equal(wanted)
        x.grad = None
    assert same(state(layer), state(plain))
    assert not same(state(twin), state(plain))


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_bad_batch_under_checkpointing_is_counted_once(reentrant: bool) -> None:
    layer = BatchNorm1d(5)
    x = _bad(BATCH[0], math.nan).requires_grad_()
    checkpoint(layer, x, use_reentrant=reentrant).sum().backward()
    assert _skipped(layer) == 1


def test_nested_checkpoints_and_a_cumulative_average_update_once() -> None:
    model = nn.Sequential(BatchNorm1d(5, momentum=None), nn.Tanh(), BatchNorm1d(5, momentum=None))
    plain = copy.deepcopy(model)
    x = BATCH[0].input(dtype=torch.float32).requires_grad_()

    def inner(x: Tensor) -> Any:
        return checkpoint(model[1:], model[0](x), use_reentrant=False)

    loss: Tensor = checkpoint(inner, x, use_reentrant=False)  # pyright: ignore
    loss.square().sum().backward()
    plain(x)
    assert same(state(model), state(plain))


@counted
def test_one_sample_is_refused_as_by_torch_but_not_counted(case: Case) -> None:
    layer, twin = case.ours(), case.torchs()
    one = torch.ones(1, 5, *[1] * (len(case.shape) - 2))
    before = state(layer)
    for each in (layer, twin):
        with pytest.raises(ValueError, match="more than 1 value per channel"):
            each(one)
    assert int(twin.num_batches_tracked) == 1
    assert same(state(layer), before)
    assert _skipped(layer) == 0


@counted
def test_an_empty_batch_is_not_counted(case: Case) -> None:
    layer, twin = case.ours(), case.torchs()
    before, empty = state(layer), torch.ones(0, *case.shape[1:])
    assert layer(empty).shape == twin(empty).shape
    assert int(twin.num_batches_tracked) == 1
    assert same(state(layer), before)
    assert _skipped(layer) == 0


def test_an_empty_batch_does_not_poison_an_instance_norm() -> None:
    layer = InstanceNorm1d(3, track_running_stats=True)
    twin = nn.InstanceNorm1d(3, track_running_stats=True)
    empty = torch.ones(0, 3, 4)
    assert layer(empty).shape == twin(empty).shape
    assert twin.running_mean is not None
    assert twin.running_mean.isnan().all()
    assert _finite(layer)
    assert _skipped(layer) == 0


@counted
def test_the_gradient_of_an_evaluation_is_of_the_statistics_it_used(case: Case) -> None:
    def grad(layer: Any, between: bool) -> Tensor:
        x = case.input(dtype=torch.float32).requires_grad_()
        loss = layer.eval()(x).square().sum()
        if between:
            layer.train()(case.input(1, dtype=torch.float32) * 9)
        loss.backward()
        assert x.grad is not None
        return x.grad

    right = grad(case.torchs(), between=False)
    assert grad(case.ours(), between=True).equal(right)
    assert not grad(case.torchs(), between=True).allclose(right)


def test_two_training_passes_before_one_backward_give_torchs_gradients() -> None:
    grads: list[Tensor | None] = []
    for layer in (BatchNorm1d(5), nn.BatchNorm1d(5)):
        x = BATCH[0].input(dtype=torch.float32).requires_grad_()
        (layer(x) * layer(x + x.detach().square())).sum().backward()
        grads.append(x.grad)
    assert grads[0] is not None
    assert grads[1] is not None
    assert grads[0].equal(grads[1])


def test_the_report_names_the_layers_that_skipped_and_a_reset_begins_anew() -> None:
    conv, last = nn.Conv2d(3, 4, 1), BatchNorm2d(4)
    model = nn.Sequential(BatchNorm2d(3), conv, last, nn.GELU())
    model(torch.randn(2, 3, 4, 4))
    assert report(model) == ()
    with torch.no_grad():
        conv.weight[0] = math.nan
    for _ in range(2):
        model(torch.randn(2, 3, 4, 4))
    assert report(model) == (Skipped("2", 2),)
    assert report(model)[0].message == (
        "`2` has left 2 of its batches out of its running statistics, which they would have made "
        "infinite or NaN."
    )
    last.reset_running_stats()
    assert report(model) == ()


def test_counts_survive_a_move_and_a_cast() -> None:
    layer = BatchNorm1d(5)
    layer(_bad(BATCH[0], math.nan))
    assert _skipped(layer.double().float().to("cpu")) == 1


def test_a_layer_made_without_memory_counts_from_nothing() -> None:
    layer = BatchNorm1d(5, device="meta")
    layer.to_empty(device="cpu").reset_parameters()
    assert _skipped(layer) == 0
    layer(_bad(BATCH[0], math.nan))
    assert _skipped(layer) == 1


def test_statistics_that_torch_would_not_update_are_not_updated() -> None:
    layer = BatchNorm1d(5)
    layer.track_running_stats = False
    before = state(layer)
    layer(BATCH[0].input(dtype=torch.float32))
    assert same(state(layer), before)


READS = (
    "item",
    "tolist",
    "__bool__",
    "__float__",
    "__int__",
    "__index__",
    "nonzero",
    "cpu",
    "numpy",
)


@pytest.fixture
def unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no value of a tensor can be had."""

    def refuse(*_args: object, **_kwargs: object) -> None:
        raise AssertionError("a value was brought to the host")

    for name in READS:
        monkeypatch.setattr(Tensor, name, refuse)


@pytest.mark.usefixtures("unreadable")
@pytest.mark.parametrize("case", [*BATCH, *TRACKED, *STATELESS], ids=str)
def test_no_value_is_read_in_training_and_evaluation(case: Case) -> None:
    layer = case.ours()
    for x in (case.input(dtype=torch.float32), _bad(case, math.nan)):
        layer.train()(x.requires_grad_()).sum().backward()
        layer.eval()(x).sum().backward()


@pytest.mark.parametrize("momentum", [0.1, None])
def test_no_value_is_read_where_there_is_none(momentum: float | None) -> None:
    layer = BatchNorm2d(3, momentum=momentum, device="meta")
    x = torch.empty(2, 3, 4, 4, device="meta", requires_grad=True)
    layer(x).sum().backward()
    assert layer.skipped_batches is not None
    assert layer.skipped_batches.is_meta
    with pytest.raises(RuntimeError, match="meta"):
        float(layer.skipped_batches)


@pytest.mark.usefixtures("unreadable")
def test_no_value_is_read_for_a_cumulative_average() -> None:
    BatchNorm2d(3, momentum=None)(torch.randn(2, 3, 4, 4))
    with pytest.raises(AssertionError, match="brought to the host"):
        nn.BatchNorm2d(3, momentum=None)(torch.randn(2, 3, 4, 4))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda m: m.BatchNorm1d(3, momentum=1.5), "momentum=1.5"),
        (lambda m: m.InstanceNorm1d(3, track_running_stats=True, momentum=None), "reads as 0"),
        (lambda m: m.LayerNorm(3, eps=-1), "eps=-1"),
        (lambda m: m.GroupNorm(1, 3, eps=-1), "eps=-1"),
        (lambda m: m.RMSNorm(3, eps=-1), "eps=-1"),
    ],
)
def test_a_pitfall_among_the_options_is_warned_of_where_torch_is_silent(
    make: Callable[[Any], nn.Module], words: str
) -> None:
    from traindx.norm import modules

    make(nn)
    with pytest.warns(UserWarning, match=words):
        make(modules)
