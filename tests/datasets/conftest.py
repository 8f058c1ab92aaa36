"""A machine with none of the usual places of the full set, and a small set of four files."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from traindx.datasets import fashion_mnist
from traindx.datasets.fashion_mnist import Source
from traindx.datasets.idx import encode_idx


@pytest.fixture(autouse=True)
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, in whose folder `work` the test runs."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.delenv("TRAINDX_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(fashion_mnist, "SYSTEM_ROOT", tmp_path / "system")
    return tmp_path


@pytest.fixture
def small_files(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Four small files in place of the publisher's, by name: what they unpack to."""
    random = np.random.default_rng(0)
    shapes = ((5, 28, 28), (5,), (2, 28, 28), (2,))
    names = [source.name for source in fashion_mnist.SOURCES]
    arrays = [random.integers(0, 10, shape, dtype=np.uint8) for shape in shapes]
    files = dict(zip(names, map(encode_idx, arrays), strict=True))
    sources = tuple(
        Source(name, len(data), hashlib.sha256(data).hexdigest()) for name, data in files.items()
    )
    monkeypatch.setattr(fashion_mnist, "SOURCES", sources)
    return files
