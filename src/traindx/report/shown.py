"""`traindx show`: a place of a run with all that was measured there, or every layer at a glance."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from rich.text import Text

from traindx.facts import ModelFacts, ModuleFacts, ParamFacts
from traindx.findings import Finding
from traindx.messages import Message, counted, in_turn, listed, say
from traindx.quantities import QUANTITIES
from traindx.records import Event, EventKind, Point, Site
from traindx.report import story
from traindx.report.layers import Layer, layers, params_by_module, signals, where
from traindx.report.places import findings_at, findings_of
from traindx.report.sparkline import BLOCKS, sparkline
from traindx.report.text import STYLES, Layout, painted
from traindx.report.untrusted import plain, told
from traindx.report.wrapping import clipped, padded, width_of
from traindx.run import Run, Series

_LEFT_OUT = {"l2", "count"}
"""Statistics that follow from what is shown: the norm from the RMS, the count from the shape."""
_NUMBER = 11
_LEAST_LINE, _MOST_LINE = 8, 32


def render(
    run: Run,
    sites: Sequence[Site],
    *,
    width: int = 88,
    color: bool = False,
    language: str = "en",
    levels: str = BLOCKS,
) -> str:
    """Everything known of some places, one after another."""
    page = _Places(run, max(width, 60), language, levels)
    return painted(page.places(sites), color=color)


def render_layers(run: Run, *, width: int = 88, color: bool = False, language: str = "en") -> str:
    """The layers of every model in network order, with what was found at each."""
    page = _Places(run, max(width, 60), language, BLOCKS)
    return painted(page.overview(), color=color)


class _Places(Layout):
    """The layout of places."""

    def __init__(self, run: Run, width: int, language: str, levels: str) -> None:
        super().__init__(width, language)
        self._run = run
        self._levels = levels

    # -- one place -------------------------------------------------------------------------------

    def places(self, sites: Sequence[Site]) -> Iterator[Text]:
        named = set(sites)
        for i, site in enumerate(site for site in sites if not self._is_told_with(site, named)):
            if i:
                yield Text()
            yield from self._place(site)

    def _is_told_with(self, site: Site, named: set[Site]) -> bool:
        """Whether a parameter is shown with its layer anyway."""
        owner = Site(site.model, site.fqn.rpartition(".")[0])
        return bool(site.fqn) and owner in named and site.fqn not in _modules(self._run, site)

    def _place(self, site: Site) -> Iterator[Text]:
        run = self._run
        yield from self.title(where(run, site))
        yield from self._facts(site)
        params = _params_at(run, site)
        yield from self._measured(site, [Site(site.model, param.fqn) for param in params])
        for finding in self._findings(site, params, active=True):
            yield Text()
            yield from self.finding(run, finding)
        cleared = [story.brief(run, f) for f in self._findings(site, params, active=False)]
        yield from self.list(say("cleared"), cleared)
        yield from self.list(say("events"), list(_events(run, site)))

    def _findings(
        self, site: Site, params: Sequence[ParamFacts], *, active: bool
    ) -> Iterator[Finding]:
        own = (Site(site.model, param.fqn) for param in params)
        for place in dict.fromkeys((site, *own)):
            yield from findings_at(self._run, place, active=active)

    def _facts(self, site: Site) -> Iterator[Text]:
        module = _modules(self._run, site).get(site.fqn)
        if module and module.options:
            options = listed(f"{plain(k)}={plain(str(v))}" for k, v in module.options.items())
            yield from self.field(say("options"), options)
        if module:
            yield from self.field(say("called"), _calls(module))
        for param in _params_at(self._run, site):
            yield from self.field(say("parameter"), _about(param))

    # -- what was measured -----------------------------------------------------------------------

    def _measured(self, site: Site, params: Sequence[Site]) -> Iterator[Text]:
        rows = [
            (name, series)
            for place in dict.fromkeys((site, *params))
            for name, series in _series_at(self._run, place, apart=place.fqn if params else "")
        ]
        yield Text()
        if not rows:
            yield from self.title(say("nothing was measured here"))
            return
        label = min(max(width_of(name) for name, _ in rows), self.width // 3) + 2
        heads = (say("first"), say("last"), say("least"), say("greatest"))
        words = "".join(self._right(told(head, self.language)) for head in heads)
        head = padded(told(say("measured"), self.language), label)
        yield Text.assemble(" " * 2, (head + words, "bold"))
        for name, series in rows:
            yield self._row(name, series, label)
        yield from self._legend([self._drawn(series, label) for _, series in rows])

    def _legend(self, drawn: Sequence[tuple[str, bool]]) -> Iterator[Text]:
        """What `log` behind a line and `x` in it mean, where they are used."""
        notes: list[Message] = []
        if any(is_log for _, is_log in drawn):
            notes.append(say("log: the line is drawn on a logarithmic scale"))
        if any("x" in line for line, _ in drawn):
            notes.append(say("x: a value that is not finite"))
        for note in notes:
            for line in self.entry(note):
                line.stylize("dim")
                yield line

    def _row(self, name: str, series: Series, label: int) -> Text:
        values = list(series.tail(len(series)))
        numbers = (values[0], values[-1], _least(values), -_least([-v for v in values]))
        cells = "".join(self._right(told(story.number(n), self.language)) for n in numbers)
        drawn, is_log = self._drawn(series, label)
        scale = " log" if is_log else ""
        name = padded(clipped(name, label - 2), label)
        return Text.assemble(" " * 2, name, cells, "  ", (drawn, "cyan"), scale)

    def _drawn(self, series: Series, label: int) -> tuple[str, bool]:
        room = self.width - 2 - label - 4 * _NUMBER - 2 - 4
        line = sparkline(
            series.tail(len(series)), max(_LEAST_LINE, min(room, _MOST_LINE)), self._levels
        )
        return line.text, line.is_log

    def _right(self, text: str) -> str:
        return " " * (_NUMBER - width_of(text)) + text if width_of(text) < _NUMBER else f" {text}"

    # -- all layers ------------------------------------------------------------------------------

    def overview(self) -> Iterator[Text]:
        yield from self.title(story.headline(self._run), STYLES.get(story.level(self._run), "bold"))
        for model in self._run.models.values():
            yield Text()
            yield from self._model(model)
        if not self._run.models:
            yield from self.title(say("no model was seen"))

    def _model(self, model: ModelFacts) -> Iterator[Text]:
        found = layers(model)
        yield from self.title(where(self._run, Site(model.name)))
        if not found:
            return
        name = min(max(width_of(plain(layer.site.fqn)) for layer in found), self.width // 3) + 2
        kind = min(max(width_of(plain(layer.kind)) for layer in found), 24) + 2
        heads = (say("output RMS"), say("gradient RMS"))
        words = [told(head, self.language) for head in heads]
        widths = [max(width_of(word) + 2, _NUMBER) for word in words]
        line = padded(told(say("layer"), self.language), name + 4) + " " * kind
        line += "".join(" " * (w - width_of(t)) + t for t, w in zip(words, widths, strict=True))
        yield Text.assemble("  ", (line + "  " + told(say("found"), self.language), "bold"))
        for layer in found:
            yield self._layer(layer, name, kind, widths)

    def _layer(self, layer: Layer, name: int, kind: int, widths: Sequence[int]) -> Text:
        number = "-" if layer.position is None else str(layer.position)
        told_by = signals(self._run, layer)
        series = [site and self._run.at(quantity, site) for quantity, site in told_by]
        cells = [_last(one, self.language) for one in series]
        numbers = "".join(" " * (w - width_of(c)) + c for c, w in zip(cells, widths, strict=True))
        fqn, about = plain(layer.site.fqn), plain(layer.kind)
        words = Text.assemble(
            "  ",
            f"{number:>3} ",
            padded(clipped(fqn, name - 2), name),
            padded(clipped(about, kind - 2), kind),
            numbers,
            "  ",
        )
        for finding in findings_of(self._run, layer):
            words.append(plain(finding.code), STYLES[finding.severity.value])
            words.append(" ")
        return words


def _least(values: Sequence[float]) -> float:
    return min((value for value in values if not math.isnan(value)), default=math.nan)


def _last(series: Series | None, language: str) -> str:
    return told(story.number(series.last), language) if series is not None and len(series) else "-"


def _modules(run: Run, site: Site) -> dict[str, ModuleFacts]:
    model = run.models.get(site.model)
    return {module.fqn: module for module in model.modules} if model else {}


def _params_at(run: Run, site: Site) -> list[ParamFacts]:
    """The parameter itself, or those that a module owns."""
    model = run.models.get(site.model)
    if model is None:
        return []
    own = [param for param in model.params if param.fqn == site.fqn]
    return own or params_by_module(model).get(site.fqn, [])


def _calls(module: ModuleFacts) -> Message:
    if not module.calls:
        return say("never seen called")
    return counted(module.calls, "once in a forward pass", "{n} times in a forward pass")


def _about(param: ParamFacts) -> Message:
    shape = "x".join(map(str, param.shape)) or say("a single number")
    words: list[str] = [plain(param.fqn.rpartition(".")[2]), shape, plain(param.dtype)]
    if not param.trainable:
        words.append(say("frozen"))
    elif param.optimizers:
        words.append(
            say("trained by {optimizers}", optimizers=listed(map(plain, param.optimizers)))
        )
    else:
        words.append(say("held by no optimizer"))
    return listed(words)


def _series_at(run: Run, site: Site, apart: str) -> Iterator[tuple[str, Series]]:
    """Every series measured at a place, by the name to show."""
    leaf = apart.rpartition(".")[2]
    for name, quantity in QUANTITIES.items():
        if name.partition(".")[2] in _LEFT_OUT or quantity.entries:
            continue
        series = run.at(name, site)
        if series is not None and _says_something(name, series):
            of_param = leaf and quantity.point not in (Point.OUTPUT, Point.OUTPUT_GRAD)
            is_module = site.fqn in _modules(run, site)
            yield (name if is_module or not of_param else f"{plain(leaf)} {name}"), series


def _says_something(name: str, series: Series) -> bool:
    values = series.tail(len(series))
    if name.endswith("nonfinite") or name == "grad.absent":
        return any(values)
    return any(not math.isnan(value) for value in values)


def _events(run: Run, site: Site) -> Iterator[Message]:
    for event in _at(run, EventKind.SKIPPED, site):
        point, reason = event.detail.get("point"), event.detail.get("reason")
        yield say(
            "step {step}: {point} not measured: {reason}",
            step=event.step,
            point=plain(str(point)),
            reason=Message(plain(str(reason))),
        )
    for event in _at(run, EventKind.ORIGIN, site):
        yield say(
            "step {step}: the first value that is not finite arose here ({detail})",
            step=event.step,
            detail=in_turn(f"{plain(k)} {plain(str(v))}" for k, v in event.detail.items()),
        )
    passes = list(_at(run, EventKind.EVALUATION, site))
    if passes:
        times = counted(len(passes), "{n} time", "{n} times")
        yield say("evaluated {times}, last before step {step}", times=times, step=passes[-1].step)


def _at(run: Run, kind: EventKind, site: Site) -> Iterable[Event]:
    return (event for event in run.events(kind) if event.site == site)
