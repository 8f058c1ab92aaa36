"""`traindx norm audit`: what was found, layer by layer, and what was not looked at."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence

from rich.text import Text

from traindx.facts import Json
from traindx.findings import Severity
from traindx.messages import Message, counted, listed, say
from traindx.norm.audit.check import Audit, Found
from traindx.norm.audit.facts import Layer, Seen
from traindx.report import story
from traindx.report.text import STYLES, Layout, painted
from traindx.report.untrusted import plain, told
from traindx.report.wrapping import clipped, padded, width_of

_SHOWN = 6
"""Layers named of one check and message; the JSON has all."""
_ROWS = 20


def render(audit: Audit, *, width: int = 88, color: bool = False, language: str = "en") -> str:
    """The audit as text."""
    return painted(_Page(max(width, 60), language).lines(audit), color=color)


def document(audit: Audit) -> str:
    """The audit as JSON; numbers that are not finite are strings."""
    subject = audit.subject
    content: dict[str, Json] = {
        "schema": 1,
        "subject": subject.name,
        "live": subject.live,
        "batch": subject.batch,
        "steps": subject.steps,
        "findings": [_finding(found) for found in audit.found],
        "output_change": _json(subject.change),
        "interaction": _json(subject.rest),
        "not_attributed": str(subject.untried) or None,
        "random_batch": subject.random,
        "layers": [_layer(layer) for layer in subject.layers],
        "checked": list(audit.checked),
        "not_checked": [{"check": name, "reason": str(why)} for name, why in audit.unchecked],
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _finding(found: Found) -> dict[str, Json]:
    hit = found.hit
    return {
        "check": found.check,
        "severity": found.severity.value,
        "fqn": hit.fqn,
        "message": str(hit.message),
        "fix": str(hit.fix),
        "numbers": {name: _json(value) for name, value in hit.numbers.items()},
    }


def _layer(layer: Layer) -> dict[str, Json]:
    seen = layer.seen
    return {
        "fqn": layer.fqn,
        "kind": layer.kind,
        "gap": _json(seen.gap if seen else None),
        "share": _json(seen.share if seen else None),
    }


def _json(value: float | None) -> Json:
    return value if value is None or math.isfinite(value) else str(value)


class _Page(Layout):
    """The layout of an audit."""

    def lines(self, audit: Audit) -> Iterator[Text]:
        worst = audit.found[0].severity.value if audit.found else ""
        yield from self.title(_headline(audit), STYLES.get(worst, "bold green"))
        for group in _groups(audit.found):
            yield Text()
            yield from self._group(group)
        yield from self._gaps(audit)
        yield from self.list(say("not checked"), list(_unchecked(audit)))
        checked = say("{n} checks looked", n=len(audit.checked))
        yield from self.list(say("checked"), [checked])

    def _group(self, group: Sequence[Found]) -> Iterator[Text]:
        first = group[0]
        severity = told(story.severity_word(first.severity), self.language)
        yield Text.assemble(
            (severity, STYLES[first.severity.value]), " ", (plain(first.check), "bold")
        )
        said = _by_message(group)
        if len(said) == 1:
            yield from self.field(say("where"), _where(group))
            yield from self.field(say("what"), first.hit.message)
        for part in said[:_SHOWN] if len(said) > 1 else ():
            line = say("{what}: {reason}", what=_where(part), reason=part[0].hit.message)
            yield from self.field(say("where") if part is said[0] else Message(""), line)
        if len(said) > _SHOWN:
            yield from self.field(Message(""), say("and {n} more", n=len(said) - _SHOWN))
        yield from self.field(say("fix"), first.hit.fix)

    def _gaps(self, audit: Audit) -> Iterator[Text]:
        rows = [(x.fqn, x.seen) for x in audit.subject.layers if x.seen and x.seen.gap is not None]
        if not rows:
            return
        rows.sort(key=lambda row: -_size(row[1]))
        yield Text()
        yield from self.title(say("evaluation against the batch"))
        heads = [told(head, self.language) for head in (say("gap"), say("share of the change"))]
        widths = [max(10, width_of(head) + 2) for head in heads]
        name = min(max(width_of(plain(fqn)) for fqn, _ in rows), self.width - sum(widths) - 2)
        yield Text.assemble("  ", (" " * name + _right(heads, widths), "bold"))
        for fqn, seen in rows[:_ROWS]:
            cells = [told(cell, self.language) for cell in _cells(seen)]
            yield Text.assemble(
                "  ", padded(clipped(plain(fqn), name), name), _right(cells, widths)
            )
        for note in _notes(audit, len(rows)):
            yield from self.entry(note)


def _size(seen: Seen) -> float:
    gap = seen.gap or 0.0
    return math.inf if math.isnan(gap) else gap


def _right(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "".join(" " * (w - width_of(c)) + c for c, w in zip(cells, widths, strict=True))


def _cells(seen: Seen) -> tuple[str, str]:
    share = "-" if seen.share is None else f"{seen.share:.0%}"
    return story.number(seen.gap or 0.0), share


def _notes(audit: Audit, rows: int) -> Iterator[Message]:
    subject = audit.subject
    if rows > _ROWS:
        yield say("and {n} more with smaller gaps", n=rows - _ROWS)
    if subject.change is not None and subject.rest is not None:
        yield say(
            "from running to batch statistics the output changes by {change:.3g} of its size; "
            "{rest:.0%} of that is interaction: what layers do together, beyond each alone",
            change=subject.change,
            rest=subject.rest,
        )
    if subject.untried:
        yield say("the output's change was not attributed: {reason}", reason=subject.untried)


def _headline(audit: Audit) -> Message:
    subject = audit.subject
    number = len(subject.layers) + len(subject.malformed)
    layers = counted(number, "{n} normalization layer", "{n} normalization layers")
    name = plain(subject.name)
    if not audit.found:
        return say("{name}: {layers}, nothing found", name=name, layers=layers)
    counts = {s: sum(found.severity is s for found in audit.found) for s in Severity}
    return say("{name}: {layers}, {counts}", name=name, layers=layers, counts=_counts(counts))


def _counts(counts: Mapping[Severity, int]) -> Message:
    words = {
        Severity.ERROR: counted(counts[Severity.ERROR], "{n} error", "{n} errors"),
        Severity.WARNING: counted(counts[Severity.WARNING], "{n} warning", "{n} warnings"),
        Severity.INFO: counted(counts[Severity.INFO], "{n} hint", "{n} hints"),
    }
    return listed(words[severity] for severity in Severity if counts[severity])


def _groups(found: Sequence[Found]) -> list[list[Found]]:
    """What a check says of several layers, with the same to do."""
    groups: dict[tuple[str, Severity, str], list[Found]] = {}
    for one in found:
        groups.setdefault((one.check, one.severity, str(one.hit.fix)), []).append(one)
    return list(groups.values())


def _by_message(group: Sequence[Found]) -> list[list[Found]]:
    """What is said in the same words of several layers is told once."""
    parts: dict[str, list[Found]] = {}
    for one in group:
        parts.setdefault(str(one.hit.message), []).append(one)
    return list(parts.values())


def _where(group: Sequence[Found]) -> Message:
    names = [plain(one.hit.fqn) if one.hit.fqn else say("the model") for one in group]
    shown = listed(names[:_SHOWN])
    more = len(names) - _SHOWN
    return shown if more <= 0 else say("{names} and {n} more", names=shown, n=more)


def _unchecked(audit: Audit) -> Iterator[Message]:
    by_reason: dict[str, list[str]] = {}
    reasons: dict[str, Message] = {}
    for name, reason in audit.unchecked:
        by_reason.setdefault(str(reason), []).append(name)
        reasons[str(reason)] = reason
    for text, names in by_reason.items():
        yield say("{what}: {reason}", what=listed(names), reason=reasons[text])
