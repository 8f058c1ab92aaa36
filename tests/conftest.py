"""What all tests share: one thread a process, repeatable examples, and Chromium if it is there."""

from __future__ import annotations

import gc
import importlib
import os
import shutil
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.zoo.forks import Forks

# Before torch is imported anywhere, in child processes too: timings and rounding then depend
# neither on the machine's cores nor on what else runs on them.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Whoever runs the tests in Taiwan gets English sentences all the same.
os.environ["LC_ALL"] = "C.UTF-8"
# A shell starts what runs in the background with Ctrl-C ignored, which child processes inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A loaded machine must not turn a slow example into a failure; CI must see the same examples twice.
settings.register_profile("traindx", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("traindx")


def pytest_runtest_setup() -> None:
    """Every test starts from the same random numbers, whatever ran before it."""
    import torch

    torch.manual_seed(0)


def find_chromium() -> str | None:
    """The path of a Chromium or Chrome, if one is installed."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if find_chromium():
        return
    for item in items:
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.skip(reason="Chromium is not installed"))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Let no garbage collection look again at what is imported by now; many tests ask for one."""
    if not session.config.option.collectonly and len(session.items) > 100:
        importlib.import_module("torch._dynamo")  # as the first optimizer does
        gc.collect()
        gc.freeze()


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    """Runs programs and command lines in forks of one process that has torch loaded."""
    forks = Forks()
    yield forks
    forks.close()


@pytest.fixture
def chromium() -> str:
    """The path of the browser; only for tests marked `browser`."""
    path = find_chromium()
    assert path, "a test that uses `chromium` must be marked `browser`"
    return path
