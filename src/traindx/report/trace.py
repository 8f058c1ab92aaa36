"""`traindx norm trace`: the intermediates of a layer as text, Markdown or JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any, cast

from traindx.facts import Json
from traindx.messages import say
from traindx.norm.trace import Line
from traindx.report.untrusted import told
from traindx.report.wrapping import padded, width_of


def render(title: str, lines: Sequence[Line], *, digits: int = 9, language: str = "en") -> str:
    """A line each: name, formula, and its numbers in rows beneath."""
    name = max(width_of(line.name) for line in lines) + 2
    parts = [title, ""]
    for line in lines:
        parts.append(padded(line.name, name) + line.formula)
        parts += [" " * name + row for row in _rows(line.value, digits)]
    parts += ["", told(_note(digits), language)]
    return "\n".join(parts)


def markdown(title: str, lines: Sequence[Line], *, digits: int = 9, language: str = "en") -> str:
    """A table of name, formula and value."""
    heads = (say("name"), say("formula"), say("value"))
    head = " | ".join(told(word, language) for word in heads)
    parts = [f"### {title}", "", f"| {head} |", "| --- | --- | --- |"]
    for line in lines:
        rows = "<br>".join(_rows(line.value, digits))
        formula = line.formula.replace("|", "\\|")
        parts.append(f"| `{line.name}` | {formula} | {rows} |")
    return "\n".join([*parts, "", told(_note(digits), language)])


def document(spec: str, lines: Sequence[Line], **_: object) -> str:
    """Every number in full; those that are not finite as strings."""
    content: dict[str, Json] = {
        "schema": 1,
        "spec": spec,
        "lines": [
            {
                "name": line.name,
                "formula": line.formula,
                "shape": [int(extent) for extent in line.value.shape],
                "value": _json(line.value.tolist()),
            }
            for line in lines
        ],
    }
    return json.dumps(content, indent=2, ensure_ascii=False)


FORMATS: dict[str, Callable[..., str]] = {
    "text": render,
    "markdown": markdown,
    "json": document,
}


def _note(digits: int) -> str:
    return say("Computed in float64; shown to {digits} significant digits.", digits=digits)


def _rows(value: Any, digits: int) -> list[str]:
    """Rows of the last axis, with the place of each along the others where there are several."""
    if not value.shape:
        return [_number(float(value), digits)]
    if value.ndim == 1:
        return [_row(value.tolist(), digits)]
    found: list[str] = []
    for place in _places(value.shape[:-1]):
        where = "" if value.ndim == 2 else f"[{', '.join(map(str, place))}]  "
        found.append(where + _row(value[place].tolist(), digits))
    return found


def _places(shape: Sequence[int]) -> list[tuple[int, ...]]:
    places: list[tuple[int, ...]] = [()]
    for extent in shape:
        places = [(*place, i) for place in places for i in range(extent)]
    return places


def _row(numbers: Sequence[float], digits: int) -> str:
    return "  ".join(_number(number, digits) for number in numbers)


def _number(value: float, digits: int) -> str:
    return f"{value:.{digits}g}"


def _json(value: object) -> Json:
    if isinstance(value, list):
        return [_json(element) for element in cast("list[object]", value)]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, int | float) else str(value)
