"""The layers as the page lists them: how each is, and everything that was measured of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx.facts import Json
from traindx.findings import Evidence
from traindx.messages import say
from traindx.quantities import QUANTITIES
from traindx.records import Site
from traindx.report import story
from traindx.report.figures import exponents, norm
from traindx.report.figures.canvas import Figure, Page, series
from traindx.report.figures.site import GAP, MAIN, REST, layer_sites, site_figure
from traindx.report.layers import Layer, layers, signals
from traindx.report.untrusted import plain

_CHANNEL_NUMBERS = 350_000
_HISTOGRAMS = 40_000


class Network:
    """All layers of all models, in network order."""

    def __init__(self, canvas: Page) -> None:
        self.canvas = canvas
        run = canvas.run
        self._models = list(run.models.values())
        self._layers = [
            (i, layer) for i, model in enumerate(self._models) for layer in layers(model)
        ]
        self._worst, self._codes = _marks(canvas)
        self._gap = next((f.thresholds["gap"] for f in story.judged(run).findings
                          if f.code == "N001" and "gap" in f.thresholds), GAP)  # fmt: skip
        histograms = sum(len(run.vectors(name)) for name in exponents.QUANTITIES)
        self._histogram_steps = max(6, min(32, _HISTOGRAMS // max(1, histograms)))
        norms = len(run.vectors("norm.batch_mean"))
        per_norm = _CHANNEL_NUMBERS // max(1, norms)
        self._norm_steps = max(2, min(24, per_norm // (4 * self._num_channels())))

    def _num_channels(self) -> int:
        found = self.canvas.run.vectors("norm.batch_mean").values()
        return max((len(vectors[0].values) for vectors in found if vectors), default=1)

    def models(self) -> list[Json]:
        """The models."""
        return [
            {"name": plain(m.name), "kind": plain(m.kind), "compiled": m.compiled}
            for m in self._models
        ]

    def layers(self) -> list[Json]:
        """Each layer, and everything measured of it."""
        return [self._layer(i, layer) for i, layer in self._layers]

    def _figure(self, figure: Figure) -> dict[str, Json]:
        """Its parts stored once, and its height, which the page needs before it draws."""
        layout = figure["layout"]
        assert isinstance(layout, dict)
        return {"height": layout["height"], "figure": self.canvas.shared(figure)}

    def _stacked(self, figure: Figure | None) -> Json:
        return figure and self._figure(figure)

    def concerned(self, evidence: Evidence) -> Iterator[int]:
        """The layers that it names, that its site holds or lies in, by their places in the list."""
        site, named = evidence.site, set(evidence.layers)
        for i, (_, layer) in enumerate(self._layers):
            own = layer.site
            inside = own.fqn == site.fqn or own.fqn.startswith(f"{site.fqn}." if site.fqn else "")
            owns = any(param.fqn == site.fqn for param in layer.params)
            if own.model == site.model and (inside or owns or own.fqn in named):
                yield i

    def _layer(self, model: int, layer: Layer) -> Json:
        sites = layer_sites(layer)
        main = layer.main_param
        output, gradient = signals(self.canvas.run, layer)
        return {
            "model": model,
            "fqn": plain(layer.site.fqn) or plain(layer.site.model),
            "kind": plain(layer.kind),
            "position": layer.position,
            "params": layer.num_params,
            "health": self._health(sites),
            "codes": [*dict.fromkeys(code for s in sites for code in self._codes.get(s, ()))],
            "output": self._spark(*output),
            "grad": self._spark(*gradient),
            "ratio": self._spark("update.ratio", main),
            "main": self._stacked(site_figure(self.canvas, sites, MAIN, gap=self._gap)),
            "rest": self._stacked(site_figure(self.canvas, sites, REST)),
            "exponents": [*self._exponents(sites)],
            "norm": self._norm(layer.site),
            "probed": [*self._probed(sites)] if self.canvas.run.is_preflight else [],
        }

    def _health(self, sites: list[Site]) -> str:
        worst = next((self._worst[site] for site in sites if site in self._worst), None)
        if worst:
            return worst
        tables = map(self.canvas.table, self.canvas.quantities)
        measured = any(site in found.places for found in tables if found for site in sites)
        return "clear" if measured else "unmeasured"

    def _spark(self, quantity: str, site: Site | None) -> Json:
        """The last value in words, and where its curve is stored."""
        row = series(self.canvas, quantity, site) if site else None
        if row is None:
            return None
        last = self.canvas.words(story.number(float(row[1][-1])))
        return [last, self.canvas.place(row[1]), bool(np.isfinite(row[1]).all())]

    def _probed(self, sites: list[Site]) -> Iterator[Json]:
        """What probes have measured of a layer and its parameters, in words."""
        for quantity in self.canvas.quantities:
            for site in sites:
                row = series(self.canvas, quantity, site)
                if row is not None:
                    own = site.fqn.removeprefix(f"{sites[0].fqn}.") if site != sites[0] else ""
                    value = self.canvas.words(story.number(float(row[1][-1])))
                    yield [plain(f"{own} {quantity}".strip()), value]

    def _exponents(self, sites: list[Site]) -> Iterator[Json]:
        for quantity in exponents.QUANTITIES:
            for site in sites:
                figure = exponents.exponents_figure(
                    self.canvas, quantity, site, self._histogram_steps
                )
                if figure:
                    yield {
                        "title": quantity,
                        "caption": plain(site.fqn or site.model),
                        **self._figure(figure),
                    }

    def _norm(self, site: Site) -> Json:
        channels = norm.Channels(self.canvas, site, self._norm_steps)
        if not channels.steps:
            return None
        return {
            "title": self.canvas.words(say("batch against running statistics")),
            "caption": self.canvas.words(
                say(
                    "One mark a channel ({entries}). On the dashed line both agree.",
                    entries=QUANTITIES["norm.batch_mean"].entries,
                )
            ),
            **self._figure(norm.norm_figure(self.canvas, channels, channels.steps[-1])),
            "frames": norm.frames(self.canvas, channels),
        }


def _marks(canvas: Page) -> tuple[dict[Site, str], dict[Site, list[str]]]:
    """The worst severity and the rules' codes at each site; the most severe come first."""
    worst: dict[Site, str] = {}
    codes: dict[Site, list[str]] = {}
    for finding in story.judged(canvas.run).findings:
        if finding.active:
            worst.setdefault(finding.evidence.site, finding.severity.value)
            codes.setdefault(finding.evidence.site, []).append(plain(finding.code))
    return worst, codes
