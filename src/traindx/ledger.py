"""The numbers of a run by place: taken a row at a time, and filed place by place when asked for.

A measured step brings thousands of numbers, of which rules look at the newest ones all at once and
at the past of a few. So a row is kept as it comes, and appended to what each of its places has had
before once somebody asks for that, or when many rows wait.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from traindx.records import Site

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]
    Reals = NDArray[np.float64]

NEVER = -(2**62)
"""The step at which what was never measured was measured last."""
RECENT = 16
"""Rows that can be looked at together."""
_MOST_WAITING = 256
_FEW = 8
_SHARED = 64
"""Tuples of sites, and layouts, that are remembered at most."""
_MOST_GROUPS = 1024


class Past(Protocol):
    """What was measured at one place."""

    def append(self, step: int, value: Any, /) -> None:
        """Take what was measured at a later step."""


K = TypeVar("K", bound=str)
P = TypeVar("P", bound=Past)


class Newest(NamedTuple):
    """What was measured last at some sites, each at a step of its own.

    Attributes:
        steps: [n]; `NEVER` where nothing was.
        values: [n], or [n, fields] of statistics; NaN where nothing was.
    """

    steps: Integers
    values: Reals


class _Latest:
    """The newest numbers of all sites, and where each is; the first place is that of no site."""

    def __init__(self, width: int | None) -> None:
        import numpy as np

        self._shape = () if width is None else (width,)
        self.index: dict[Site, int] = {}
        self.steps: Integers = np.full(1, NEVER, np.int64)
        self.values: Reals = np.full((1, *self._shape), np.nan)
        self._found: dict[object, tuple[object, int, Any]] = {}

    def places(self, sites: Sequence[Site]) -> NDArray[np.intp]:
        """Where the numbers of some sites are; there is room for those that are new."""
        import numpy as np

        new = [site for site in dict.fromkeys(sites) if site not in self.index]
        if new:
            self.index.update((site, len(self.steps) + i) for i, site in enumerate(new))
            self.steps = np.concatenate([self.steps, np.full(len(new), NEVER, np.int64)])
            self.values = np.concatenate([self.values, np.full((len(new), *self._shape), np.nan)])
        return np.array([self.index[site] for site in sites], np.intp)

    def find(self, sites: tuple[Site, ...]) -> Any:
        """Where the numbers of some sites are; of those never measured, the first place."""
        found = self._found.get(id(sites))
        if found is None or found[1] != len(self.index):
            places = [self.index.get(site, 0) for site in sites]
            found = self._remember(id(sites), sites, places)
        return found[2]

    def find_model(self, model: str) -> Any:
        """Where the numbers of a model's sites are, in the order they were first measured."""
        found = self._found.get(model)
        if found is None or found[1] != len(self.index):
            places = [i for site, i in self.index.items() if site.model == model]
            found = self._remember(model, model, places)
        return found[2]

    def _remember(self, key: object, what: object, places: list[int]) -> tuple[object, int, Any]:
        """Nothing moves, so a place is looked up again only when sites have come."""
        import numpy as np

        if len(self._found) >= _SHARED:
            self._found.clear()
        found = self._found[key] = what, len(self.index), _in_a_row(np.array(places, np.intp))
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _Group(Generic[P]):
    """The places of a row that hold the same quantity, one object for all rows with these.

    Attributes:
        sites: Of each.
        places: Where in the newest numbers each is.
        pasts: What was measured before at each.
    """

    sites: tuple[Site, ...]
    places: Any
    pasts: list[P]


class _Kind(Generic[P]):
    """All numbers of one quantity.

    Attributes:
        pasts: What was measured before at each place, as far as it is filed.
        waiting: Rows to be filed.
        recent: The last rows, as long as each addition is one.
        additions: How often something was added.
        step: At which something was added last.
        behind: Whether the last row is not yet among the newest numbers.
    """

    def __init__(self, width: int | None) -> None:
        self._latest = _Latest(width)
        self.pasts: dict[Site, P] = {}
        self.waiting: list[tuple[_Group[P], int, Reals]] = []
        self.recent: deque[tuple[_Group[P], int, Reals]] = deque(maxlen=RECENT)
        self.additions = 0
        self.step = NEVER
        self.behind = False

    def latest(self) -> _Latest:
        """The newest numbers; most rows are followed by others before anybody asks for them."""
        if self.behind:
            group, step, values = self.recent[-1]
            self._latest.steps[group.places] = step
            self._latest.values[group.places] = values
            self.behind = False
        return self._latest


@dataclass(frozen=True, slots=True, eq=False)
class Layout(Generic[K, P]):
    """What the numbers of a row stand for.

    Attributes:
        names: What and where, of each number.
        groups: The same, what by what, and where in the row; none if a place comes twice.
    """

    names: tuple[tuple[K, Site], ...]
    groups: tuple[tuple[K, _Kind[P], Any, _Group[P]], ...]


class Ledger(Generic[K, P]):
    """The numbers of one kind: scalars, or statistics of tensors.

    Args:
        make: What holds the past of one place.
        extend: Adds to many of them what was measured at some steps, a row of values [m] or
            [m, width] to each.
        width: How many numbers a place has in a row; None if it is one, and not a row of one.

    Attributes:
        num_quantities: Of how many quantities something was added.
    """

    def __init__(
        self,
        make: Callable[[K, Site], P],
        extend: Callable[[Sequence[P], Integers, Reals], None],
        width: int | None = None,
    ) -> None:
        self.num_quantities = 0
        self._make = make
        self._extend = extend
        self._kinds: defaultdict[K, _Kind[P]] = defaultdict(lambda: _Kind(width))
        self._layouts: dict[tuple[tuple[K, Site], ...], Layout[K, P]] = {}
        self._shared: dict[tuple[K, tuple[Site, ...]], _Group[P]] = {}
        self._by_id: dict[int, Layout[K, P]] = {}
        self._chosen: dict[tuple[int, int], tuple[object, object, int, Any]] = {}

    # -- writing ---------------------------------------------------------------------------------

    def layout(self, names: tuple[tuple[K, Site], ...]) -> Layout[K, P]:
        """How rows are divided whose numbers stand for this."""
        known = self._by_id.get(id(names))
        if known is None:
            if len(self._by_id) >= _SHARED:
                self._by_id.clear()
                self._layouts.clear()
            alike = self._layouts.get(names) or self._divided(names)
            self._layouts[names] = alike
            known = self._by_id[id(names)] = replace(alike, names=names)  # which keeps its id taken
        return known

    def _divided(self, names: tuple[tuple[K, Site], ...]) -> Layout[K, P]:
        import numpy as np

        columns: dict[K, list[int]] = {}
        for i, (key, _) in enumerate(names):
            columns.setdefault(key, []).append(i)
        if len(set(names)) < len(names):
            return Layout(names, ())
        groups: list[tuple[K, _Kind[P], Any, _Group[P]]] = []
        for key, some in columns.items():
            group = self._group(key, tuple(names[i][1] for i in some))
            groups.append((key, self._kinds[key], _in_a_row(np.array(some, np.intp)), group))
        return Layout(names, tuple(groups))

    def _group(self, key: K, sites: tuple[Site, ...]) -> _Group[P]:
        """The places of some sites, the same for rows that are alike in this quantity only."""
        found = self._shared.get((key, sites))
        if found is None:
            if len(self._shared) >= _MOST_GROUPS:
                self._shared.clear()
            kind = self._kinds[key]
            for site in sites:
                if site not in kind.pasts:
                    kind.pasts[site] = self._make(key, site)
            places = _in_a_row(kind.latest().places(sites))
            held = [kind.pasts[site] for site in sites]
            found = self._shared[key, sites] = _Group(sites, places, held)
        return found

    def before(self, layout: Layout[K, P]) -> Iterator[tuple[K, Any, Newest]]:
        """Of each quantity of a row its numbers' columns, and the newest ones so far."""
        for key, kind, columns, group in layout.groups:
            latest, places = kind.latest(), group.places
            yield key, columns, Newest(latest.steps[places], latest.values[places])

    def is_later(self, layout: Layout[K, P], step: int) -> bool:
        """Whether a step is later than all at which a place of a row was measured."""
        return all(
            kind.step < step or bool((kind.latest().steps[group.places] < step).all())
            for _, kind, _, group in layout.groups
        )

    def put(self, layout: Layout[K, P], step: int, values: Reals) -> None:
        """Take a row, of a layout whose places are all different."""
        for key, kind, columns, group in layout.groups:
            if kind.behind and kind.recent[-1][0] is not group:
                kind.latest()
            row = group, step, values[columns]
            kind.recent.append(row)
            kind.waiting.append(row)
            kind.behind = True
            kind.step = step
            if not kind.additions:
                self.num_quantities += 1
            kind.additions += 1
            if len(kind.waiting) >= _MOST_WAITING:
                self.file(key)

    def open(self, key: K, site: Site) -> P:
        """What was measured at a place, to add to it; `set_newest` has to follow."""
        kind = self._kinds[key]
        if kind.waiting:
            self.file(key)
        past = kind.pasts.get(site)
        if past is None:
            past = kind.pasts[site] = self._make(key, site)
        return past

    def set_newest(self, key: K, site: Site, step: int, value: Any, added: int = 1) -> None:
        """Note what was added last at a place that was opened, and how much was."""
        kind = self._kinds[key]
        latest = kind.latest()
        place = latest.index.get(site)
        if place is None:
            place = int(latest.places((site,))[0])
        latest.steps[place] = kind.step = step
        latest.values[place] = value
        self.num_quantities += not kind.additions
        kind.additions += added
        kind.recent.clear()  # no row of all sites any more

    def file_all(self) -> None:
        """File every row that waits."""
        for key in tuple(self._kinds):
            self.file(key)

    def file(self, key: K) -> None:
        """File the rows of one quantity that wait."""
        import numpy as np

        kind = self._kinds[key]
        waiting, kind.waiting = kind.waiting, []
        for group, some in groupby(waiting, key=itemgetter(0)):
            rows = list(some)
            if len(rows) < _FEW:
                for _, step, own in rows:
                    for past, value in zip(group.pasts, own.tolist(), strict=True):
                        past.append(step, value)
            else:
                steps = np.array([step for _, step, _ in rows], np.int64)
                turned = np.ascontiguousarray(np.moveaxis(_stacked(rows), 1, 0))
                self._extend(group.pasts, steps, turned)

    # -- reading ---------------------------------------------------------------------------------

    def of(self, key: K) -> dict[Site, P]:
        """What was measured of one quantity, by site, in the order they were first measured."""
        kind = self._kinds.get(key)
        if kind is None:
            return {}
        if kind.waiting:
            self.file(key)
        return kind.pasts

    def additions(self, key: K) -> int:
        """How often something was added to a quantity."""
        kind = self._kinds.get(key)
        return kind.additions if kind else 0

    def newest(
        self,
        key: K,
        sites: tuple[Site, ...] | None = None,
        model: str | None = None,
        values: Callable[[Reals], Reals] | None = None,
    ) -> Newest:
        """The newest numbers of a quantity: at these sites, at a model's, or at all.

        With `values`, what that makes of those of all places is given in their place.
        """
        latest = self._kinds[key].latest()
        found = latest.values if values is None else values(latest.values)
        if sites is not None:
            places = latest.find(sites)
        elif model is not None:
            places = latest.find_model(model)
        else:
            return Newest(latest.steps[1:], found[1:])
        return Newest(latest.steps[places], found[places])

    def recent(self, key: K, sites: tuple[Site, ...], window: int) -> Reals | None:
        """The last numbers of some sites together: [window, n], or with the fields behind.

        None if the last rows do not hold all of these sites, or there are too few.
        """
        kind = self._kinds.get(key)
        if kind is None or not sites or not 0 < window <= len(kind.recent):
            return None
        last = list(kind.recent)[-window:]
        group = last[-1][0]
        if any(row[0] is not group for row in last):
            return None
        chosen = self._columns(group, kind.latest(), sites)
        return None if chosen is None else _stacked(last)[:, chosen]

    def _columns(self, group: _Group[P], latest: _Latest, sites: tuple[Site, ...]) -> Any:
        """Where in the numbers of a group those of some sites are; None if it lacks one."""
        import numpy as np

        names = id(group), id(sites)
        known = self._chosen.get(names)
        if known is None or known[2] != len(latest.steps):
            if len(self._chosen) >= _SHARED:
                self._chosen.clear()
            columns = np.full(len(latest.steps), -1, np.intp)
            columns[group.places] = np.arange(len(group.sites))
            found = columns[latest.find(sites)]
            where = None if found.min() < 0 else _in_a_row(found)
            known = self._chosen[names] = group, sites, len(latest.steps), where
        return known[3]


def _stacked(rows: Sequence[tuple[_Group[P], int, Reals]]) -> Reals:
    """Rows of one group as one array, [rows, n] or with the fields behind."""
    import numpy as np

    values = [own for _, _, own in rows]
    whole: Reals = np.reshape(np.concatenate(values), (len(values), *values[0].shape))
    return whole


def _in_a_row(places: NDArray[np.intp]) -> Any:
    """A slice where that says the same: it copies nothing."""
    if not len(places):
        return places
    first, length = int(places[0]), len(places)
    if int(places[-1]) == first + length - 1 and (places[1:] > places[:-1]).all():
        return slice(first, first + length)
    return places
