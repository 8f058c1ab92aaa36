"""The most memory a training ever needs: hardly more when it is watched."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the peak"),
]

SCRIPT = """
import sys
import torch
from torch import nn
import traindx

way, folder, trap_nan = sys.argv[1], sys.argv[2], sys.argv[1] == "trap"


def resident(name):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(name))


torch.manual_seed(0)
x = torch.randn(6144, 512)
layers = [(nn.Linear(512, 512), nn.BatchNorm1d(512), nn.ReLU()) for _ in range(8)]
net = nn.Sequential(*[part for layer in layers for part in layer])
optimizer = torch.optim.AdamW(net.parameters())
watcher = None
if way != "bare":
    every = None if way == "ladder" else 1
    watcher = traindx.watch(net, optimizer, folder=folder, every=every, trap_nan=trap_nan)
before = resident("VmRSS")
for _ in range(3):
    optimizer.zero_grad()
    net(x).square().mean().backward()
    optimizer.step()
print(resident("VmHWM") - before)
if watcher is not None:
    watcher.close()
"""

# Memory of tensors then comes from the system and goes back to it: the peak is not the allocator's.
EXACT = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}


def kib(way: str, folder: Path) -> int:
    """How much a training needs at most, beyond what it has before its first step."""
    environment = {**os.environ, **EXACT, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", SCRIPT, way, str(folder)]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300, check=True
    )
    return int(done.stdout.split()[0])


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> int:
    needed = kib("bare", tmp_path_factory.mktemp("bare"))
    assert needed > 200_000
    return needed


@pytest.mark.parametrize("way", ["ladder", "every step", "trap"])
def test_watching_needs_at_most_a_twentieth_more(way: str, bare: int, tmp_path: Path):
    more = kib(way, tmp_path) - bare
    assert more <= 0.05 * bare
    # And what it needs is code and bookkeeping, which are the same however large the tensors are.
    assert more <= 12_000
