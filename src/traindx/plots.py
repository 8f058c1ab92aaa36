"""The figures of a run as methods of it: plotly figures, the same as in the page."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from traindx.records import Site


class Plots:
    """What `Run` can draw; each figure is made by the report, which lies above the run.

    Raises:
        UsageError: There is no such place, quantity or measured step; it names the nearest.
    """

    def plot_losses(self) -> Any:
        """Losses, learning rates, logged values and events over steps."""
        return _drawn("losses", self)

    def plot_layers(self, quantity: str = "grad.rms") -> Any:
        """A quantity of every layer over measured steps, as a heatmap."""
        return _drawn("over_layers", self, quantity)

    def plot_depth(self, quantity: str = "grad.rms", step: int | None = None) -> Any:
        """A quantity along the depth at a measured step, or the first, a middle and the last."""
        return _drawn("depth", self, quantity, step)

    def plot_site(self, site: Site | str, quantity: str | None = None) -> Any:
        """What was measured of a module and its parameters, or of one parameter."""
        return _drawn("site", self, site, quantity)

    def plot_exponents(self, fqn: Site | str, quantity: str = "output.exponents") -> Any:
        """Exponent histograms of a module or parameter over measured steps."""
        return _drawn("exponents", self, fqn, quantity)

    def plot_norm(self, fqn: Site | str, step: int | None = None) -> Any:
        """A normalization's batch statistics against its running ones, a mark a channel."""
        return _drawn("norm", self, fqn, step)

    def plot_updates(self) -> Any:
        """Update ratios of the layers over steps."""
        return _drawn("updates", self)

    def plot_first_weights(self, model: str | None = None) -> Any:
        """The weights of a model's first layer as pictures: at the end, in a preflight before."""
        return _drawn("first_weights", self, model)

    def plot_distributions(self, kind: str = "output", model: str | None = None) -> Any:
        """Histograms of every layer's `output`, `gradient` or `weight` in a preflight."""
        return _drawn("distributions", self, kind, model)

    def plot_quantiles(self, kind: str = "output", model: str | None = None) -> Any:
        """Quantiles of the same along the depth."""
        return _drawn("quantiles", self, kind, model)


def _drawn(name: str, run: Plots, *arguments: object) -> Any:
    # By name and on demand: whoever only reads a run needs no plotly.
    return getattr(import_module("traindx.report.figures.drawn"), name)(run, *arguments)
