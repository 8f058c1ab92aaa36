"""What the page shows, as plain data; page.js only lays it out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from traindx import __version__
from traindx.facts import Json, ModelFacts
from traindx.findings import Finding
from traindx.quantities import QUANTITIES
from traindx.records import Site
from traindx.report import story
from traindx.report.html.figures import evidence_figures, loss_figure
from traindx.report.html.grid import grids
from traindx.report.html.measured import last_of
from traindx.report.layers import Layer, layers, where
from traindx.report.untrusted import plain, plain_lines
from traindx.run import Run


def content(run: Run, steps: int, rows: int) -> Json:
    """Everything on the page."""
    points = 2 * steps  # A curve keeps the least and the greatest value of each stretch.
    verdict = story.judged(run)
    return {
        "title": story.script(run),
        "verdict": {
            "words": story.verdict_words(run),
            "extent": story.extent_words(run),
            "level": story.level(run),
        },
        "facts": [[*pair] for pair in _facts(run)],
        "findings": [_root(run, root, points) for root in story.roots(verdict)],
        "cleared": [_finding(run, finding, points // 4) for finding in story.cleared(verdict)],
        "unevaluated": [[codes, reason] for reason, codes in story.unevaluated(run)],
        "unmeasured": [*story.unmeasured(run)],
        "notes": [*story.notes(run)],
        "loss": loss_figure(run, points),
        "grids": [*grids(run, steps, rows)],
        "models": [_model(run, model) for model in run.models.values()],
        "details": [[*pair] for pair in _details(run)],
    }


def _facts(run: Run) -> Iterator[tuple[str, str]]:
    """The few things said of the run at the top of the page."""
    started = run.header.get("started")
    if started is not None:
        yield "started", plain(str(started))
    if run.models:
        yield "model" if len(run.models) == 1 else "models", ", ".join(map(plain, run.models))
    yield from _versions(run)


def _versions(run: Run) -> Iterator[tuple[str, str]]:
    versions = run.header.get("versions")
    if isinstance(versions, dict):
        for name, version in versions.items():
            yield plain(name), plain(str(version))


def _root(run: Run, root: story.Root, points: int) -> dict[str, Json]:
    card = _finding(run, root.finding, points)
    card["symptoms"] = [_finding(run, symptom, points // 4) for symptom in root.symptoms]
    return card


def _finding(run: Run, finding: Finding, points: int) -> dict[str, Json]:
    evidence = finding.evidence
    return {
        "id": finding.id,
        "code": plain(finding.code),
        "name": plain(finding.name),
        "severity": finding.severity.value,
        "where": where(run, evidence.site),
        "message": plain(evidence.message),
        "measures": [*story.measures(finding)],
        "cause": plain(evidence.cause),
        "fix": "\n".join(plain_lines(evidence.fix)),
        "fix_is_code": story.is_code(evidence.fix),
        "excluded": [plain(text) for text in evidence.excluded],
        "seen": story.seen(finding),
        "figures": [*evidence_figures(run, finding, points)],
    }


def _model(run: Run, model: ModelFacts) -> Json:
    marks = _marks(run)
    return {
        "name": plain(model.name),
        "kind": plain(model.kind),
        "compiled": model.compiled,
        "layers": [_layer(run, layer, marks) for layer in layers(model)],
    }


def _layer(run: Run, layer: Layer, marks: dict[Site, str]) -> Json:
    own = [layer.site, *(Site(layer.site.model, param.fqn) for param in layer.params)]
    return {
        "fqn": plain(layer.site.fqn) or plain(layer.site.model),
        "kind": plain(layer.kind),
        "position": layer.position,
        "params": layer.num_params,
        "grad": _last(run, "grad.rms", layer.main_param),
        "ratio": _last(run, "update.ratio", layer.main_param),
        "mark": next((marks[site] for site in own if site in marks), None),
    }


def _marks(run: Run) -> dict[Site, str]:
    """The worst severity found at each site; verdicts list the most severe first."""
    marks: dict[Site, str] = {}
    for finding in story.judged(run).findings:
        if finding.active:
            marks.setdefault(finding.evidence.site, finding.severity.value)
    return marks


def _last(run: Run, quantity: str, site: Site | None) -> str | None:
    value = last_of(run, QUANTITIES[quantity], site) if site else None
    return None if value is None else story.number(value)


def _details(run: Run) -> Iterator[tuple[str, str]]:
    """The run itself, for whoever wants to repeat it."""
    yield "command", story.command(run)
    for key in ("id", "exit_code", "seconds"):
        if run.header.get(key) is not None:
            yield key.replace("_", " "), plain(str(run.header[key]))
    yield "cost", story.cost(run)
    yield "run file", plain(str(run.path)) if run.path else ""
    yield from chain(_optimizers(run), _losses(run))
    yield "rules evaluated", ", ".join(sorted(story.judged(run).evaluated))
    yield "reported by", f"traindx {__version__}"


def _optimizers(run: Run) -> Iterator[tuple[str, str]]:
    for optimizer in run.optimizers.values():
        rates = ", ".join(str(group.get("lr")) for group in optimizer.groups)
        text = f"{optimizer.kind}, {optimizer.num_params} tensors, lr {rates}"
        yield f"optimizer {plain(optimizer.name)}", plain(text)


def _losses(run: Run) -> Iterator[tuple[str, str]]:
    for loss in run.losses.values():
        name = (loss.loss or loss.operation).removesuffix("0").removesuffix("Backward")
        yield f"loss of {plain(loss.models)}", plain(name)
