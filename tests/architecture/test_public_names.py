"""The names that other programs may import: growth is a deliberate edit of this file."""

import inspect
import subprocess
import sys
from importlib import import_module

import pytest

import traindx

PUBLIC = [
    *("Evidence", "Finding", "Run", "Severity", "__version__", "log", "preflight", "rule", "watch"),
]
# A package that is its own function: importing a part of it puts itself in its own place.
CALLABLE_PACKAGE = "preflight"


def test_the_public_names_are_these() -> None:
    assert sorted(traindx.__all__) == PUBLIC
    assert dir(traindx) == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_can_be_imported(name: str) -> None:
    assert getattr(traindx, name) is not None


@pytest.mark.parametrize(
    "name", [name for name in PUBLIC if name not in ("__version__", CALLABLE_PACKAGE)]
)
def test_a_public_name_is_never_hidden_by_a_module(name: str) -> None:
    home = getattr(traindx, name).__module__
    import_module(home)
    assert not inspect.ismodule(getattr(traindx, name))
    assert f"traindx.{name}" not in sys.modules


def test_the_package_of_preflight_can_be_called() -> None:
    import_module("traindx.preflight.checking")
    assert traindx.preflight is sys.modules["traindx.preflight"]
    assert [*inspect.signature(traindx.preflight).parameters][:3] == ["model", "batch", "loss"]
    with pytest.raises(TypeError, match=r"A model is a `torch\.nn\.Module`"):
        traindx.preflight(None, None)  # pyright: ignore[reportArgumentType]


FIRST = [
    "import traindx, traindx.preflight",
    "import traindx; traindx.preflight; import traindx.preflight.case",
    "from traindx.preflight.given import case_of; import traindx",
    "import traindx; from traindx import preflight; assert preflight is traindx.preflight",
    "import traindx; from traindx import testing",
]
IN_FORKS = """
import os, sys, torch, torch._dynamo
for code in sys.argv[1:]:
    if os.fork() == 0:
        exec(code, {})
        os._exit(0)
    assert os.wait()[1] == 0, code
"""


def test_preflight_can_be_called_whatever_was_imported_before() -> None:
    """In forks of one process that has loaded torch already, and nothing of ours."""
    code = "\nfrom torch import nn, ones\nnet = nn.Linear(2, 1)\n"
    code += "run = traindx.preflight(net, ones(4, 2), quick=True)\nassert 'net' in run.models"
    codes = [f"{first}{code}" for first in FIRST]
    subprocess.run([sys.executable, "-c", IN_FORKS, *codes], check=True)


def test_an_unknown_name_is_an_attribute_error_that_names_it() -> None:
    with pytest.raises(AttributeError, match="`traindx` has no attribute `wacht`"):
        traindx.wacht  # noqa: B018  # pyright: ignore


@pytest.mark.parametrize("name", PUBLIC)
def test_no_public_name_loads_torch_before_it_is_used(name: str) -> None:
    code = f"import sys; from traindx import {name}; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
