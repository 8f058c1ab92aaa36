"""Probe: parameters, memory for activations, and time of a step."""

from __future__ import annotations

import time
from collections.abc import Iterator

import torch
from torch import Tensor

from traindx.preflight.case import Case
from traindx.preflight.probe import STEP, probe
from traindx.records import Item, Scalar, Site

_WRITES = (
    *("probe.parameters", "probe.trainable_parameters", "probe.parameter_bytes"),
    *("probe.activation_bytes", "probe.forward_seconds", "probe.backward_seconds"),
)
_TIMES = 2


@probe(needs=("loss",), writes=_WRITES, passes=_TIMES + 0.5)
def cost(case: Case) -> Iterator[Item]:
    """Parameters, what autograd keeps of a batch, and the time of a forward and backward pass."""
    params = list(case.model.parameters())
    kept = _kept(case)
    forward, backward = zip(*(_timed(case) for _ in range(_TIMES)), strict=True)
    numbers = {
        "probe.parameters": sum(p.numel() for p in params),
        "probe.trainable_parameters": sum(p.numel() for p in params if p.requires_grad),
        "probe.parameter_bytes": sum(p.numel() * p.element_size() for p in params),
        "probe.activation_bytes": kept,
        "probe.forward_seconds": min(forward),
        "probe.backward_seconds": min(backward),
    }
    for quantity, value in numbers.items():
        yield Scalar(STEP, quantity, float(value), Site(case.name))


def _kept(case: Case) -> int:
    """Bytes of the storages that autograd keeps for backward, without parameters and buffers."""
    own = {
        t.untyped_storage().data_ptr() for t in (*case.model.parameters(), *case.model.buffers())
    }
    found: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        if tensor.layout is torch.strided and not tensor.is_meta:
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in own:
                found[storage.data_ptr()] = storage.nbytes()
        return tensor

    def unpack(tensor: Tensor) -> Tensor:
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        loss = case.loss()
    del loss  # until here its graph holds every one of them, so that no address is used twice
    return sum(found.values())


def _timed(case: Case) -> tuple[float, float]:
    """Seconds of a forward and of a backward pass."""
    _wait(case)
    began = time.perf_counter()
    loss = case.loss()
    _wait(case)
    between = time.perf_counter()
    torch.autograd.backward(loss)
    _wait(case)
    return between - began, time.perf_counter() - between


def _wait(case: Case) -> None:
    if case.device.type == "cuda":
        torch.cuda.synchronize(case.device)
