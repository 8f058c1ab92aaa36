"""The engine: judges a run after every measured step, live or from a file, with equal findings.

It is a sink like the store. A rule is asked when a measured step is complete and once at the end,
and looks back only; so it does not matter in what portions the items come.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from traindx.errors import UsageError
from traindx.findings import NotEvaluated, Verdict
from traindx.records import Event, EventKind, Item, Site
from traindx.rules.catalog import catalog, find
from traindx.rules.causes import arrange
from traindx.rules.coverage import hindrance
from traindx.rules.order import Places
from traindx.rules.rule import Rule
from traindx.rules.track import Track
from traindx.run import Run

Options = Mapping[str, Mapping[str, float]]
"""Thresholds that differ from their defaults: by code, then by option."""


class Engine:
    """A sink that applies rules to the run it is given, item by item.

    Args:
        rules: The rules to apply; all of the catalogue if None.
        options: Thresholds to use in place of their defaults.
        run: An empty run to fill, for others to read; a new one if None.

    Attributes:
        run: Everything written so far.

    Raises:
        UsageError: An option belongs to no rule.
    """

    def __init__(
        self,
        rules: Iterable[Rule] | None = None,
        options: Options | None = None,
        run: Run | None = None,
    ) -> None:
        self.run = Run() if run is None else run
        self._rules = tuple(catalog().values() if rules is None else rules)
        self._thresholds = _thresholds(self._rules, options or {})
        self._tracks: dict[str, dict[Site, Track]] = {rule.code: {} for rule in self._rules}
        self._evaluated: set[str] = set()
        self._failed: dict[str, str] = {}
        self._measured_step = -1

    def write(self, items: Sequence[Item]) -> None:
        """Take items, in order of step, and judge every measured step among them."""
        for item in items:
            self.run.add(item)
            if isinstance(item, Event) and item.kind is EventKind.MEASURED:
                self._measured_step = item.step
                self._evaluate()

    def close(self) -> None:
        """Judge what came after the last measured step, and leave the verdict in the run."""
        self._evaluate()
        self.run.verdict = self.verdict

    @property
    def verdict(self) -> Verdict:
        """What the rules say of everything written so far."""
        evaluated = self._evaluated - self._failed.keys()
        reasons = [(r.code, self._reason(r)) for r in self._rules if r.code not in evaluated]
        findings = [
            track.finding(self._thresholds[code])
            for code, tracks in self._tracks.items()
            for track in tracks.values()
            if track.found
        ]
        explained_by = {rule.code: rule.explained_by for rule in self._rules}
        return Verdict(
            arrange(findings, explained_by, Places(self.run)),
            tuple(sorted(evaluated)),
            tuple(NotEvaluated(code, reason) for code, reason in sorted(reasons)),
        )

    def _evaluate(self) -> None:
        for rule in self._rules:
            if rule.code not in self._failed:
                self._apply(rule)

    def _apply(self, rule: Rule) -> None:
        """Ask one rule; if it fails, that is reported in its place, and training goes on."""
        if rule.code not in self._evaluated and self._hindrance(rule):
            return
        self._evaluated.add(rule.code)
        try:
            self._note(rule)
        except Exception as error:
            self._failed[rule.code] = _failure(error)

    def _note(self, rule: Rule) -> None:
        tracks = self._tracks[rule.code]
        evidence = list(rule.check(self.run, **self._thresholds[rule.code]))
        for hit in evidence:
            tracks.setdefault(hit.site, Track(rule, hit)).hit(hit)
        for site in tracks.keys() - {hit.site for hit in evidence}:
            tracks[site].miss(self._measured_step)

    def _hindrance(self, rule: Rule) -> str:
        try:
            return hindrance(rule, self.run)
        except Exception as error:
            return _failure(error)

    def _reason(self, rule: Rule) -> str:
        # A rule that can be judged only since the last measured step waits for the next one.
        return self._failed.get(rule.code) or self._hindrance(rule) or "not judged yet"


def judge(
    items: Iterable[Item], rules: Iterable[Rule] | None = None, options: Options | None = None
) -> Verdict:
    """The verdict on a recorded run, equal to the one that was reached while it trained."""
    engine = Engine(rules, options)
    engine.write(list(items))
    engine.close()
    return engine.verdict


def _failure(error: Exception) -> str:
    return f"the rule failed: {type(error).__name__}: {error}"


def _thresholds(rules: Sequence[Rule], options: Options) -> dict[str, dict[str, float]]:
    thresholds = {rule.code: rule.options for rule in rules}
    for code, changes in options.items():
        rule = next((rule for rule in rules if rule.code == code), None) or find(code)
        if unknown := sorted(changes.keys() - rule.options.keys()):
            names = ", ".join(f"`{name}`" for name in rule.options)
            raise UsageError(f"{rule.code} has no option `{unknown[0]}`. It has {names or 'none'}.")
        thresholds[rule.code] = {**rule.options, **changes}
    return thresholds
