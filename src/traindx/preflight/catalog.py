"""Every probe there is, found by walking the folder: adding one is adding a file."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

from traindx.preflight import probes
from traindx.preflight.probe import Probe


@cache
def catalog() -> dict[str, Probe]:
    """Every probe by its name: those that train come last, the rest by name."""
    found: list[Probe] = []
    for file in pkgutil.iter_modules(probes.__path__, f"{probes.__name__}."):
        values = vars(import_module(file.name)).values()
        found += [value for value in values if isinstance(value, Probe)]
    ordered = sorted(found, key=lambda probe: (probe.trains, probe.name))
    return {probe.name: probe for probe in ordered}
