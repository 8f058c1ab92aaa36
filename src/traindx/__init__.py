"""traindx says why a PyTorch training run does not learn.

Each public name is loaded on its first use, so that `import traindx` costs a blink and never torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from traindx.findings import Evidence, Finding, Severity
    from traindx.preflight.checking import preflight
    from traindx.recording import log
    from traindx.rules.rule import rule
    from traindx.run import Run
    from traindx.watcher import watch

__version__ = "0.1.0"

__all__ = [
    "Evidence",
    "Finding",
    "Run",
    "Severity",
    "__version__",
    "log",
    "preflight",
    "rule",
    "watch",
]

# No name here may be that of a submodule: importing the submodule would put it in the name's place.
# The package `preflight` can be called, for it is its own function.
_HOMES = {
    "Evidence": "traindx.findings",
    "Finding": "traindx.findings",
    "Run": "traindx.run",
    "Severity": "traindx.findings",
    "log": "traindx.recording",
    "rule": "traindx.rules.rule",
    "watch": "traindx.watcher",
}


def __getattr__(name: str) -> object:
    if name == "preflight":
        return import_module("traindx.preflight")
    if name not in _HOMES:
        raise AttributeError(f"module `traindx` has no attribute `{name}`")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
