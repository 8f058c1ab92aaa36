"""Models and losses described as facts: what rules and pages need to know besides numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from torch import Tensor, nn

from traindx.capture.models import TrackedModel
from traindx.facts import Json, ModelFacts, ModuleFacts, ParamFacts

_OPTIONS = (
    "eps", "momentum", "affine", "elementwise_affine", "track_running_stats", "num_features",
    "num_groups", "num_channels", "normalized_shape", "p", "in_features", "out_features",
    "in_channels", "out_channels", "kernel_size", "stride", "padding", "groups", "inplace",
    "num_embeddings", "embedding_dim", "hidden_size", "num_layers", "negative_slope",
)  # fmt: skip


def describe(model: TrackedModel, holders: dict[int, tuple[str, ...]]) -> ModelFacts:
    """A model as it stands.

    Args:
        model: The model.
        holders: Names of the optimizers that hold each parameter, by id.
    """
    return ModelFacts(
        model.name,
        model.kind,
        tuple(_module(model, fqn, module) for fqn, module in model.modules()),
        tuple(_param(model, fqn, param, holders) for fqn, param in model.parameters()),
        model.compiled,
    )


def _module(model: TrackedModel, fqn: str, module: nn.Module) -> ModuleFacts:
    options: dict[str, Json] = {
        name: plain for name in _OPTIONS if (plain := _plain(vars(module).get(name))) is not None
    }
    if "momentum" in vars(module):
        options["momentum"] = _plain(vars(module)["momentum"])  # None means a cumulative average
    statistics = vars(module).get("_buffers", {}).get("running_mean")
    if isinstance(statistics, Tensor) and statistics.element_size() < 4:
        options["running_dtype"] = str(statistics.dtype).removeprefix("torch.")
    return ModuleFacts(
        fqn, type(module).__name__, model.order.get(fqn), model.calls.get(fqn, 0), options
    )


def _plain(value: object) -> Json:
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple | list):
        return [_plain(element) for element in cast("Iterable[object]", value)]
    return None


def _param(
    model: TrackedModel, fqn: str, param: Tensor, holders: dict[int, tuple[str, ...]]
) -> ParamFacts:
    return ParamFacts(
        fqn,
        tuple(param.shape),
        str(param.dtype).removeprefix("torch."),
        param.requires_grad,
        holders.get(id(param), ()),
        model.paths.get(fqn),
    )
