"""Our layers within the rest of torch: compilation, transforms, mixed precision, DDP, tracing."""

from __future__ import annotations

import copy
import inspect
import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, stack_module_state, vmap
from torch.utils.checkpoint import checkpoint

from tests.norm.modules.layer_cases import same, state
from traindx.norm.modules import (
    BatchNorm1d,
    BatchNorm2d,
    SyncBatchNorm,
    batch_norm,
    convert,
    report,
    revert,
)

TRUE = torch.tensor(True, device="meta")


def _model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 6, 3),
        nn.BatchNorm2d(6),
        nn.GroupNorm(2, 6),
        nn.InstanceNorm2d(6, track_running_stats=True),
        nn.Flatten(),
        nn.Linear(96, 8),
        nn.LayerNorm(8),
        nn.RMSNorm(8),
        nn.BatchNorm1d(8, momentum=None),
    )


def _batches() -> list[Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(4, 3, 6, 6, generator=generator) for _ in range(3)]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Graphs of one test are not those of another."""
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.mark.parametrize("memory", [torch.contiguous_format, torch.channels_last], ids=str)
def test_a_whole_graph_trains_and_skips_as_without_compilation(memory: torch.memory_format) -> None:
    plain = convert(_model()).to(memory_format=memory)  # pyright: ignore
    model = copy.deepcopy(plain)
    compiled: Any = torch.compile(model, fullgraph=True, backend="aot_eager")
    first, bad, last = _batches()
    bad[0, 0, 0, 0] = math.nan
    for x in (first, bad, last):
        for each in (plain, compiled):
            each(x.contiguous(memory_format=memory)).square().sum().backward()
    assert same(state(model), state(plain))
    assert [(each.fqn, each.batches) for each in report(model)] == [("1", 1), ("3", 1), ("8", 1)]
    plain.eval()
    compiled.eval()
    assert compiled(last).equal(plain(last))


def test_a_checkpoint_within_a_compiled_graph_updates_once() -> None:
    layer = BatchNorm1d(5)
    x = torch.randn(8, 5, requires_grad=True)

    @torch.compile(fullgraph=True, backend="aot_eager")
    def run(x: Tensor) -> Any:
        return checkpoint(layer, x, use_reentrant=False)

    run(x).sum().backward()
    assert int(layer.num_batches_tracked) == 1  # pyright: ignore


@pytest.mark.filterwarnings("ignore:Mismatch dtype between input and weight")
def test_autocast_gives_torchs_numbers() -> None:
    model, twin = convert(_model()), _model()
    revert(model[8])  # whose cumulative average is rounded otherwise
    for each in (model, twin):
        for x in _batches():
            with torch.autocast("cpu", torch.bfloat16):
                y = each(x)
            y.float().square().sum().backward()
    assert same(state(model), state(twin))
    assert all(
        a.grad is not None and b.grad is not None and a.grad.equal(b.grad)
        for a, b in zip(model.parameters(), twin.parameters(), strict=True)
    )


def test_an_ensemble_under_vmap_keeps_only_what_is_finite() -> None:
    parameters, buffers = stack_module_state([BatchNorm1d(5) for _ in range(3)])
    base, x = BatchNorm1d(5), torch.randn(3, 8, 5)
    x[1, 0, 0] = math.nan

    def run(p: Any, b: Any, x: Tensor) -> Any:
        return functional_call(base, (p, b), (x,))

    vmap(run)(parameters, buffers, x)
    assert buffers["num_batches_tracked"].tolist() == [1, 0, 1]
    assert buffers["running_mean"].isfinite().all()
    assert buffers["running_mean"].ne(0).all(1).tolist() == [True, False, True]


def test_gradients_by_a_transform_are_torchs() -> None:
    x, results = torch.randn(8, 5), list[Any]()
    for layer in (BatchNorm1d(5), nn.BatchNorm1d(5)):
        buffers = dict(layer.named_buffers())

        def loss(p: Any, b: Any, layer: nn.Module = layer) -> Tensor:
            return functional_call(layer, (p, b), (x,)).square().sum()

        results.append((grad(loss)(dict(layer.named_parameters()), buffers), buffers))
    for ours, theirs in zip(*results, strict=True):
        assert same(ours, theirs)


def test_distributed_data_parallel_trains_as_with_torchs(tmp_path: Path) -> None:
    place = f"file://{tmp_path / 'store'}"
    torch.distributed.init_process_group("gloo", init_method=place, rank=0, world_size=1)
    try:
        model, twin = convert(_model()[:4]), _model()[:4]
        parallel = [nn.parallel.DistributedDataParallel(each) for each in (model, twin)]
        for x in _batches():
            for each in parallel:
                each(x).square().sum().backward()
        assert same(state(model), state(twin))
        parallel[0](x * math.nan)
        assert [each.fqn for each in report(model)] == ["1", "3"]
    finally:
        torch.distributed.destroy_process_group()


def test_graphs_of_fx_hold_the_layers_whole() -> None:
    model = convert(_model())
    graph = torch.fx.symbolic_trace(model)
    called = [node.target for node in graph.graph.nodes if node.op == "call_module"]
    assert called == ["0", "1", "2", "3", "4", "5", "8"]
    x = _batches()[0]
    assert graph(x).equal(convert(_model())(x))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_traced_or_exported_evaluation_is_torchs() -> None:
    model, x = convert(_model()).eval(), _batches()[0]
    wanted = _model().eval()(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.jit.trace(model, x)(x).equal(wanted)  # pyright: ignore
    assert torch.export.export(model, (x,)).module()(x).equal(wanted)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_model_is_scripted_after_it_is_reverted() -> None:
    x = _batches()[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scripted = torch.jit.script(revert(convert(_model())))
    assert scripted(x).equal(_model()(x))


def test_averaging_updating_and_fusing_take_our_layers() -> None:
    model, twin = convert(_model()), _model()
    for each in (model, twin):
        torch.optim.swa_utils.update_bn(_batches(), each)
    for key, value in twin.state_dict().items():
        torch.testing.assert_close(model.state_dict()[key], value)
    average = torch.optim.swa_utils.AveragedModel(model, use_buffers=True)
    average.update_parameters(model)
    assert same(state(average.module), state(model))
    conv, norm = nn.Conv2d(3, 6, 3).eval(), BatchNorm2d(6).eval()
    fused, x = torch.nn.utils.fusion.fuse_conv_bn_eval(conv, norm), _batches()[0]
    torch.testing.assert_close(fused(x), norm(conv(x)))


def test_training_without_gradients_updates_as_torch_does() -> None:
    layer, twin = BatchNorm1d(5), nn.BatchNorm1d(5)
    for each in (layer, twin):
        with torch.no_grad():
            each(torch.ones(4, 5))
        with torch.inference_mode():
            each(torch.arange(20.0).view(4, 5))
        each(torch.ones(4, 5)).sum().backward()
    assert same(state(layer), state(twin))


def test_several_ranks_go_to_torchs_function_and_an_empty_shard_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    layer = SyncBatchNorm(3, device="meta")
    calls: list[dict[str, Any]] = []
    names = list(inspect.signature(batch_norm._FUNCTION.forward).parameters)[1:]

    class Together:
        @staticmethod
        def apply(*args: Any) -> Tensor:
            calls.append(dict(zip(names, args, strict=True)))
            return args[0]

    monkeypatch.setattr(batch_norm, "_FUNCTION", Together)
    monkeypatch.setattr(SyncBatchNorm, "ranks", lambda _: 2)
    monkeypatch.setattr(SyncBatchNorm, "_group", lambda _: "all")
    kept: list[int] = []
    monkeypatch.setattr(SyncBatchNorm, "_keep", lambda _, *given: kept.append(len(given)) or TRUE)
    for count in (4, 0):
        layer(torch.empty(count, 3, 2, device="meta"))
    assert len(kept) == 2
    call = calls[0]
    assert call["weight"] is layer.weight
    assert call["running_mean"] is not layer.running_mean
    assert (call["eps"], call["momentum"], call["process_group"]) == (1e-5, 0.1, "all")
    assert call["world_size"] == 2
    with pytest.raises(ValueError, match="needs its input on an accelerator"):
        SyncBatchNorm(3)(torch.ones(4, 3, 2))
