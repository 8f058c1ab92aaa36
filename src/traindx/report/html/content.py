"""What the page shows, as plain data; its scripts only lay it out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from traindx import __version__
from traindx.facts import Json
from traindx.findings import Finding
from traindx.languages import translate
from traindx.messages import Message, say
from traindx.report import story
from traindx.report.figures import distributions, filters
from traindx.report.figures.canvas import Page, series
from traindx.report.figures.depth import OFFERED, depth_figure, frames, models_with
from traindx.report.figures.evidence import evidence_figures
from traindx.report.figures.layers import layers_figure, left_out, thinned
from traindx.report.figures.losses import events_left_out, loss_figure
from traindx.report.figures.panels import TEMPLATE
from traindx.report.figures.quantiles import quantiles_figure
from traindx.report.figures.updates import updates_figure, updates_words
from traindx.report.html.network import Network
from traindx.report.html.words import strings
from traindx.report.layers import where
from traindx.report.untrusted import plain, plain_lines
from traindx.run import Run

_MOST_STEPS = 400
_NUMBERS = 1_500_000
"""Numbers of curves and heatmaps in a page: 5.3 bytes each."""


def content(run: Run, language: str) -> dict[str, Json]:
    """Everything on the page."""
    canvas = Page(run, most=_MOST_STEPS, numbers=_NUMBERS, language=language)
    network = Network(canvas)
    verdict = story.judged(run)
    words = canvas.words
    shown: dict[str, Json] = {
        "language": language,
        "strings": strings(language),
        "title": words(story.script(run)),
        "verdict": {
            "words": words(story.verdict_words(run)),
            "extent": words(story.extent_words(run)),
            "level": story.level(run),
            "first": _first(canvas),
        },
        "facts": [[*pair] for pair in _facts(canvas)],
        "findings": [_root(canvas, network, root) for root in story.roots(verdict)],
        "cleared": [_finding(canvas, network, finding) for finding in story.cleared(verdict)],
        "unchecked": _unchecked(canvas),
        "notes": [words(note) for note in story.notes(run)],
        "template": TEMPLATE,
        "preflight": run.is_preflight,
        "probed": [*_probed(canvas)],
        "timeline": _timeline(canvas),
        "heatmaps": [*_heatmaps(canvas)],
        "depths": [*_depths(canvas)],
        "updates": _updates(canvas),
        "first_layers": [*_first_layers(canvas)],
        "distributions": [*_distributions(canvas)],
        "models": network.models(),
        "layers": network.layers(),
        "details": [[*pair] for pair in _details(canvas)],
    }
    shown["stored"], shown["listed"] = canvas.stored, canvas.listed
    shown["grids"], shown["parts"] = canvas.grids, canvas.parts
    return shown


def _first(canvas: Page) -> str:
    """The first root in a few words."""
    root = next(iter(story.roots(story.judged(canvas.run))), None)
    if root is None:
        return ""
    found = root.finding
    name = plain(f"{found.code} {found.name}")
    place = where(canvas.run, found.evidence.site)
    if len(story.roots(story.judged(canvas.run))) == 1:
        return canvas.words(say("{name} at {where}", name=name, where=place))
    return canvas.words(say("First {name} at {where}", name=name, where=place))


def _facts(canvas: Page) -> Iterator[tuple[str, str]]:
    """The few things said of the run at the top of the page."""
    run = canvas.run
    started = run.header.get("started")
    if started is not None:
        yield canvas.words(say("started")), plain(str(started))
    if run.models:
        name = say("model") if len(run.models) == 1 else say("models")
        yield canvas.words(name), ", ".join(map(plain, run.models))
    versions = run.header.get("versions")
    if isinstance(versions, dict):
        for name, version in versions.items():
            yield plain(name), plain(str(version))


# -- findings ------------------------------------------------------------------------------------


def _root(canvas: Page, network: Network, root: story.Root) -> dict[str, Json]:
    card = _finding(canvas, network, root.finding)
    card["symptoms"] = [_finding(canvas, network, symptom) for symptom in root.symptoms]
    return card


def _finding(canvas: Page, network: Network, finding: Finding) -> dict[str, Json]:
    evidence, words = finding.evidence, canvas.words
    fix = translate(evidence.fix, canvas.language)
    return {
        "id": finding.id,
        "code": plain(finding.code),
        "name": plain(finding.name),
        "severity": finding.severity.value,
        "severity_word": words(story.severity_word(finding.severity)),
        "where": words(where(canvas.run, evidence.site)),
        "message": words(evidence.message),
        "measures": [words(text) for text in story.measures(finding)],
        "cause": words(evidence.cause),
        "fix": "\n".join(plain_lines(fix)),
        "fix_is_code": story.is_code(evidence.fix),
        "excluded": [words(text) for text in evidence.excluded],
        "seen": words(story.seen(finding)),
        "layers": [*network.concerned(evidence)],
        "figures": [*evidence_figures(canvas, finding)],
    }


def _unchecked(canvas: Page) -> dict[str, Json]:
    """What the verdict does not cover, and why."""
    run, words = canvas.run, canvas.words
    return {
        "rules": [[words(codes), words(reason)] for reason, codes in story.unevaluated(run)],
        "places": [words(text) for text in story.unmeasured(run)],
        "probes": [words(text) for text in story.unprobed(run)],
        "silenced": [words(text) for text in story.silenced(run)],
        "contexts": [words(text) for text in story.contexts(run)],
    }


# -- figures -------------------------------------------------------------------------------------


def _said(canvas: Page, messages: Iterator[Message]) -> str:
    return " ".join(canvas.words(message) for message in messages)


def _timeline(canvas: Page) -> Json:
    figure = loss_figure(canvas)
    if figure is None:
        return None
    return {"title": "", "caption": _said(canvas, _timeline_words(canvas)), "figure": figure}


def _timeline_words(canvas: Page) -> Iterator[Message]:
    loss = canvas.table("loss")
    if loss and loss.is_thinned:
        yield thinned(len(loss.steps) // 2, loss.measured)
    events = events_left_out(canvas)
    if events:
        yield events


_FEW_PLACES = 4
"""Places up to which what was probed is told in a table; more are told layer by layer."""


def _probed(canvas: Page) -> Iterator[Json]:
    """What was measured before training of a few places: quantity, place, value, meaning."""
    for name in canvas.quantities if canvas.run.is_preflight else ():
        table = canvas.table(name)
        if table is None or name in _AT_SITES or len(table.sites) > _FEW_PLACES:
            continue
        for site in table.sites:
            row = series(canvas, name, site)
            if row is not None:
                value = canvas.words(story.number(float(row[1][-1])))
                yield [name, plain(str(site)), value, canvas.words(table.quantity.meaning)]


_AT_SITES = ("loss", "lr", "logged", "step.seconds", "backwards")
"""What belongs to the run as a whole, and makes no row of layers."""


def _heatmaps(canvas: Page) -> Iterator[Json]:
    if canvas.run.is_preflight:
        return  # there is one step
    offered = [name for name in canvas.quantities if name not in _AT_SITES]
    first = [name for name in ("grad.rms", "output.rms", "update.ratio") if name in offered]
    for name in dict.fromkeys([*first, *offered]):
        figure, table = layers_figure(canvas, name), canvas.table(name)
        if figure is None or table is None:
            continue
        yield {
            "quantity": name,
            "meaning": canvas.words(table.quantity.meaning),
            "caption": _said(canvas, iter(left_out(canvas.run, table))),
            "figure": figure,
        }


def _depths(canvas: Page) -> Iterator[Json]:
    for quantity in OFFERED:
        for depth in models_with(canvas.run, quantity):
            last = depth.steps[-1]
            first = depth.steps[:1] if len(depth.steps) > 1 else []
            yield {
                "quantity": quantity,
                "model": plain(depth.model.name),
                "caption": canvas.words(depth.theory_words()),
                "figure": depth_figure(canvas, depth, [*first, last]),
                "frames": frames(canvas, depth),
                "fixed": len(first),
            }


def _updates(canvas: Page) -> Json:
    figure = updates_figure(canvas)
    if figure is None:
        return None
    return {"title": "", "caption": _said(canvas, iter(updates_words(canvas))), "figure": figure}


# -- pictures ------------------------------------------------------------------------------------


def _first_layers(canvas: Page) -> Iterator[Json]:
    for layer in filters.first_layers(canvas.run):
        yield {
            "title": canvas.words(where(canvas.run, layer.site)),
            "caption": canvas.words(story.at_step(layer.step)),
            "label": _said(canvas, filters.shown_words(layer)),
            "guide": [
                _said(canvas, filters.shown_words(layer)),
                *map(canvas.words, filters.reading_words(layer)),
            ],
            "figure": filters.filters_figure(canvas, layer),
        }


def _distributions(canvas: Page) -> Iterator[Json]:
    for own in distributions.distributed(canvas.run):
        yield {
            "model": plain(own[0].model.name),
            "left_out": [canvas.words(text) for text in distributions.left_out(canvas.run, own[0])],
            "kinds": [
                {
                    "title": canvas.words(distributions.title(one.kind)),
                    "reading": canvas.words(distributions.reading_words(one.kind)),
                    "quantiles": quantiles_figure(canvas, one),
                    "histograms": distributions.histograms_figure(canvas, one),
                }
                for one in own
            ],
        }


# -- the run -------------------------------------------------------------------------------------


def _details(canvas: Page) -> Iterator[tuple[str, str]]:
    """The run itself, for whoever wants to repeat it."""
    run, words = canvas.run, canvas.words
    yield words(say("command")), story.command(run)
    for key, name in (
        ("id", say("id")), ("exit_code", say("exit code")), ("seconds", say("seconds")),
    ):  # fmt: skip
        if run.header.get(key) is not None:
            yield words(name), plain(str(run.header[key]))
    yield words(say("cost")), words(story.cost(run))
    yield words(say("probed")), "; ".join(words(text) for text in story.probes(run))
    yield words(say("run file")), plain(str(run.path)) if run.path else ""
    yield from chain(_optimizers(canvas), _losses(canvas))
    yield words(say("rules evaluated")), ", ".join(sorted(story.judged(run).evaluated))
    yield words(say("reported by")), f"traindx {__version__}"


def _optimizers(canvas: Page) -> Iterator[tuple[str, str]]:
    for optimizer in canvas.run.optimizers.values():
        rates = ", ".join(str(group.get("lr")) for group in optimizer.groups)
        text = say("{kind}, {tensors} tensors, lr {rates}", kind=plain(optimizer.kind),
                   tensors=optimizer.num_params, rates=plain(rates))  # fmt: skip
        name = say("optimizer {name}", name=plain(optimizer.name))
        yield canvas.words(name), canvas.words(text)


def _losses(canvas: Page) -> Iterator[tuple[str, str]]:
    for loss in canvas.run.losses.values():
        name = (loss.loss or loss.operation).removesuffix("0").removesuffix("Backward")
        yield canvas.words(say("loss of {models}", models=plain(loss.models))), plain(name)
    for only in canvas.run.series("loss"):
        if len(only) == 1 and not canvas.run.is_preflight:  # it has no curve
            when, value = story.at_step(int(only.step)), story.number(only.last)
            yield canvas.words(say("loss, {when}", when=when)), canvas.words(value)
