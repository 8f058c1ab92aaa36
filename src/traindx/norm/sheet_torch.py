"""The worked example by torch's own layers; the only file of this folder that needs torch."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from traindx.norm import sheet
from traindx.norm.sheet import Arithmetic, Table, X, floats

VERSION: str = torch.__version__


def by_torch() -> Arithmetic:
    """The example by torch in float64 on the CPU."""
    used = _batch_norm()
    _apply(used, X)
    used.eval()
    return Arithmetic(
        batch_mean=lambda x: _row(_tensor(x).mean(dim=0)),
        biased_var=lambda x: _row(_tensor(x).var(dim=0, correction=0)),
        unbiased_var=lambda x: _row(_tensor(x).var(dim=0, correction=1)),
        train=lambda x: _apply(_batch_norm(), x),
        running_mean=_row(used.get_buffer("running_mean")),
        running_var=_row(used.get_buffer("running_var")),
        evaluate=lambda x: _apply(used, x),
        layer_norm=lambda x: _apply(_layer_norm(), x),
        chain_derivative=_chain_derivative(),
    )


def _batch_norm() -> nn.BatchNorm1d:
    eps, momentum = float(sheet.EPS), float(sheet.MOMENTUM)
    layer = nn.BatchNorm1d(len(X[0]), eps=eps, momentum=momentum, dtype=torch.float64)
    weight, bias = _tensor([sheet.WEIGHT, sheet.BIAS])
    layer.load_state_dict({"weight": weight, "bias": bias}, strict=False)
    return layer


def _layer_norm() -> nn.LayerNorm:
    eps = float(sheet.EPS)
    return nn.LayerNorm(len(X[0]), eps=eps, elementwise_affine=False, dtype=torch.float64)


def _apply(layer: nn.Module, x: Table) -> list[list[float]]:
    with torch.no_grad():
        return layer(_tensor(x)).tolist()


def _chain_derivative() -> float:
    start = torch.zeros((), dtype=torch.float64, requires_grad=True)
    h = start
    for weight, bias in zip(*floats([sheet.CHAIN_WEIGHTS, sheet.CHAIN_BIASES]), strict=True):
        h = torch.sigmoid(weight * h + bias)
    (derivative,) = torch.autograd.grad(h, start)
    return derivative.item()


def _row(tensor: Tensor) -> list[float]:
    return [float(number) for number in tensor]


def _tensor(table: Table) -> Tensor:
    return torch.tensor(floats(table), dtype=torch.float64)
