"""What every figure is drawn on: a run, its tables, and how numbers get into the figure.

In a notebook a figure holds its numbers; in the page it refers to numbers that are stored once,
since the same curve is drawn in several figures.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from traindx.facts import Json
from traindx.findings import Finding
from traindx.records import Site
from traindx.report.figures.tables import Table, measured_quantities, table, tables
from traindx.report.figures.thinning import ABSENT
from traindx.report.untrusted import told
from traindx.run import Run

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

Figure = dict[str, Any]

_LEAST_SHARED = 36
"""Characters from which on a part of a figure is stored once."""


class Canvas:
    """A run to draw, with figures that hold their numbers.

    Args:
        run: What to draw.
        most: Most points of a curve.
        language: What the figures' words are in.
    """

    def __init__(self, run: Run, *, most: int = 1000, language: str = "en") -> None:
        self.run = run
        self.most = most
        self.language = language
        self._tables: dict[str, Table] = {}

    def words(self, message: str) -> str:
        """A sentence in the figures' language."""
        return told(message, self.language)

    def table(self, quantity: str) -> Table | None:
        """Everything measured of a quantity, thinned; None if nothing was."""
        if quantity not in self._tables:
            whole = table(self.run, quantity)
            if whole is None:
                return None
            self._tables[quantity] = whole.thinned(self.most)
        return self._tables[quantity]

    def numbers(self, values: Array) -> Any:
        """A row of numbers, None for those that are absent or not finite."""
        kept = np.isfinite(values) & (values != ABSENT)
        return [v if ok else None for v, ok in zip(values.tolist(), kept.tolist(), strict=True)]

    def texts(self, texts: Sequence[str]) -> Any:
        """A row of texts."""
        return list(texts)

    def matrix(self, rows: Array, shows: str) -> Any:
        """Rows of numbers as `values`, `log10` of the positive ones, or 1 at `zero` or `broken`."""
        return [self.numbers(row) for row in shown(rows, shows)]

    def fractions(self, rows: Array, shows: str) -> Any:
        """Rows of fractions between 0 and 1, as `log10` or `percent`; None for 0."""
        with np.errstate(divide="ignore"):
            values = np.log10(rows) if shows == "log10" else np.where(rows > 0, 100 * rows, np.nan)
        return [self.numbers(row) for row in values]


def shown(rows: Array, shows: str) -> Array:
    """What a matrix shows of its numbers; `ABSENT` where it shows nothing."""
    there = rows != ABSENT
    with np.errstate(divide="ignore", invalid="ignore"):
        match shows:
            case "log10":
                return np.where(there & np.isfinite(rows) & (rows > 0), np.log10(rows), ABSENT)
            case "zero":
                return np.where(rows == 0, 1.0, ABSENT)
            case "broken":
                return np.where(np.isfinite(rows), ABSENT, 1.0)
            case _:
                return rows


class Page(Canvas):
    """The canvas of the page, which stores every array once.

    Args:
        run: What to draw.
        most: Most columns of a table.
        numbers: About as many numbers are stored in all; tables with many rows get fewer columns.
        language: What the figures' words are in.

    Attributes:
        quantities: The quantities with one number a step that were measured.
        stored: The arrays, packed.
        listed: The lists of texts.
        grids: The matrices, as the places of their rows in `stored`.
        parts: Parts of figures that several have.
    """

    def __init__(self, run: Run, *, most: int, numbers: int, language: str = "en") -> None:
        super().__init__(run, most=most, language=language)
        self.stored: list[Any] = []
        self.listed: list[Any] = []
        self.grids: list[Any] = []
        self.parts: list[Any] = []
        self._places: dict[bytes | tuple[str, ...] | tuple[int, ...], int] = {}
        self.quantities = measured_quantities(run)
        whole = {found.quantity.name: found for found in tables(run, self.quantities, 3 * most)}
        columns = _columns(whole, most, numbers)
        self._tables = {name: found.thinned(columns[name]) for name, found in whole.items()}

    def table(self, quantity: str) -> Table | None:
        """Everything measured of a quantity, thinned; None if nothing was."""
        return self._tables.get(quantity)

    def numbers(self, values: Array) -> Any:
        """Where the page finds this row."""
        return {"at": self.place(values)}

    def place(self, values: Array) -> int:
        """Where a row is stored, at the precision of float32."""
        packed = single(values)
        key = packed.tobytes()
        # Most are there already, since the same curve is drawn in several figures.
        return self._places[key] if key in self._places else self._new(key, _packed(packed))

    def _new(self, key: bytes, row: Any) -> int:
        return self._once(key, self.stored, row)

    def texts(self, texts: Sequence[str]) -> Any:
        """Where the page finds these texts."""
        return {"texts": self._once(("texts", *texts), self.listed, list(texts))}

    def matrix(self, rows: Array, shows: str) -> Any:
        """Where the page finds these rows, and what it shows of them."""
        places = tuple(self.place(row) for row in rows)
        return {"grid": self._once(places, self.grids, list(places)), "shows": shows}

    def fractions(self, rows: Array, shows: str) -> Any:
        """Fractions in one byte each, on a logarithmic scale from 1e-4 (1) to 1 (255)."""
        with np.errstate(divide="ignore"):
            levels = np.round(255 + 254 / 4 * np.log10(rows))
        clipped = np.minimum(np.maximum(levels, 1), 255)
        codes = np.where(rows > 0, clipped, 0).astype(np.uint8)
        at = self._once(b"u1" + codes.tobytes(), self.stored, _encoded(codes))
        return {"bytes": at, "columns": rows.shape[1], "shows": shows}

    def shared(self, node: Json) -> Json:
        """The same with its larger parts stored once, as axes that many figures have."""
        if isinstance(node, list):
            return [self.shared(child) for child in node]
        if not isinstance(node, dict):
            return node
        own: dict[str, Json] = {name: self.shared(child) for name, child in node.items()}
        text = repr(own)  # tells 1, 1.0 and True apart, and is quicker than JSON
        if len(text) < _LEAST_SHARED:
            return own
        return {"same": self._once(("same", text), self.parts, own)}

    def _once(
        self, key: bytes | tuple[str, ...] | tuple[int, ...], into: list[Any], value: Any
    ) -> int:
        if key not in self._places:
            self._places[key] = len(into)
            into.append(value)
        return self._places[key]


def _columns(tables: Mapping[str, Table], most: int, numbers: int) -> dict[str, int]:
    """Columns of each table: as many as the room allows, more of what is looked at first."""
    rows = {name: _num_varying(found) for name, found in tables.items()}
    first = {name for name in rows if name in _ALONE or name.endswith(_FIRST)}
    leading = sum(rows[name] for name in first)
    others = sum(rows.values()) - leading
    wide = min(most, max(80, int(0.72 * numbers / max(1, leading))))
    left = numbers - wide * leading
    narrow = min(wide, max(40, int(left / max(1, others))))
    # The run as a whole has few rows, and its loss is looked at closely.
    return {
        name: 3 * most if len(tables[name].sites) < 12 else wide if name in first else narrow
        for name in tables
    }


_FIRST = (".rms", ".ratio", ".running_gap", ".nonfinite")
_ALONE = ("loss", "lr", "logged")


def _num_varying(found: Table) -> int:
    """Rows that are not constant; the others take no room."""
    values = found.values
    return int((values != values[:, :1]).any(axis=1).sum())


def single(values: Array) -> NDArray[np.float32]:
    """At single precision; a number too small for it stays different from 0."""
    wide = np.asarray(values, np.float64)
    with np.errstate(over="ignore", under="ignore"):
        packed = wide.astype("<f4")
    lost = (packed == 0) & (wide != 0)
    if lost.any():
        packed[lost] = np.copysign(np.float32(2.0**-149), wide[lost])
    return packed


def _packed(values: NDArray[np.float32]) -> Any:
    """A constant row as its number and length, any other by its bytes."""
    first = float(values[0]) if len(values) > 1 else math.nan
    if math.isfinite(first) and values[-1] == first and (values == first).all():
        return [float(f"{first:.9g}"), len(values)]
    return _encoded(values)


def _encoded(values: Array) -> str:
    return base64.b64encode(values.tobytes()).decode()


def series(
    canvas: Canvas, quantity: str, site: Site
) -> tuple[NDArray[np.int64], NDArray[np.float64]] | None:
    """The steps and values of a quantity at one site, None if it was not measured there."""
    found = canvas.table(quantity)
    row = found.row(site) if found else None
    return row if row and len(row[0]) else None


def faulty(findings: Sequence[Finding]) -> set[Site]:
    """Where something is wrong now."""
    return {finding.evidence.site for finding in findings if finding.active}
