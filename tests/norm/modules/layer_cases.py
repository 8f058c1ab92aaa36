"""Our layers beside torch's, on small inputs of every shape they take."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from traindx.norm import modules as ours


@dataclass(frozen=True)
class Case:
    """A layer by name and options, and the shape of its input."""

    name: str
    shape: tuple[int, ...]
    args: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.name}{self.shape}{self.options or ''}"

    def torchs(self, **more: Any) -> Any:
        torch.manual_seed(0)
        return _trained(getattr(nn, self.name)(*self.args, **self.options, **more))

    def ours(self, **more: Any) -> Any:
        torch.manual_seed(0)
        return _trained(getattr(ours, self.name)(*self.args, **self.options, **more))

    def input(self, seed: int = 0, **more: Any) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        return torch.randn(self.shape, generator=generator, dtype=torch.float64).to(**more) * 2 + 1


def _trained(layer: nn.Module) -> nn.Module:
    """With weights and statistics that are not those of a new one."""
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.uniform_(0.5, 2)
        for name in ("running_mean", "running_var"):
            if (buffer := getattr(layer, name, None)) is not None:
                buffer.uniform_(0.5, 2)
    return layer


BATCH = [
    Case("BatchNorm1d", (6, 5), (5,)),
    Case("BatchNorm1d", (4, 5, 7), (5,), {"momentum": 0.3}),
    Case("BatchNorm2d", (3, 5, 2, 7), (5,)),
    Case("BatchNorm2d", (3, 5, 2, 7), (5,), {"affine": False, "eps": 1e-3}),
    Case("BatchNorm3d", (2, 5, 2, 3, 4), (5,)),
    Case("SyncBatchNorm", (3, 5, 2, 7), (5,)),
]
"""Those that keep running statistics, and count their batches."""
TRACKED = [
    Case("InstanceNorm1d", (3, 5, 7), (5,), {"track_running_stats": True, "affine": True}),
    Case("InstanceNorm2d", (3, 5, 2, 7), (5,), {"track_running_stats": True}),
    Case("InstanceNorm3d", (2, 5, 2, 3, 4), (5,), {"track_running_stats": True}),
]
"""Those that keep running statistics, and count nothing, as in torch."""
STATELESS = [
    Case("BatchNorm2d", (3, 5, 2, 7), (5,), {"track_running_stats": False}),
    Case("InstanceNorm1d", (5, 7), (5,)),
    Case("InstanceNorm2d", (3, 5, 2, 7), (5,), {"affine": True}),
    Case("InstanceNorm3d", (2, 5, 2, 3, 4), (5,)),
    Case("LayerNorm", (3, 5, 7), (7,)),
    Case("LayerNorm", (3, 5, 7), ((5, 7),), {"elementwise_affine": False}),
    Case("GroupNorm", (3, 6, 2, 7), (3, 6)),
    Case("GroupNorm", (3, 6), (2, 6)),
    Case("RMSNorm", (3, 5, 7), (7,)),
    Case("RMSNorm", (3, 5, 7), ((5, 7),), {"eps": 1e-6}),
]
ALL = [*BATCH, *TRACKED, *STATELESS]


def state(layer: nn.Module) -> dict[str, Tensor]:
    """A copy of what the layer would save."""
    return copy.deepcopy(layer.state_dict())


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    """Whether two states hold the same keys, bits and dtypes; a NaN is itself."""
    return one.keys() == other.keys() and all(
        one[key].dtype == other[key].dtype and one[key].equal(other[key]) for key in one
    )
