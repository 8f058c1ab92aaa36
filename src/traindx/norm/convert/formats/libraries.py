"""The packages that read and write the formats: each is imported only where it is needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from traindx.errors import UsageError
from traindx.messages import say


def library(package: str, module: str = "") -> Any:
    """A package, or a module of it.

    Raises:
        UsageError: It is not installed.
    """
    try:
        return import_module(module or package)
    except ImportError as error:
        text = say(
            "Such files are read and written by the package {package}, which is not installed: "
            "`pip install {package}`.",
            package=package,
        )
        raise UsageError(text) from error
