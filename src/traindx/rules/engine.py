"""The engine: judges a run after every measured step, live or from a file, with equal findings.

It is a sink like the store. A rule is asked when a measured step is complete and once at the end,
and looks back only; so it does not matter in what portions the items come. One of what lasts rests
where steps are measured one after another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from traindx.errors import UsageError
from traindx.findings import Context, Evidence, Finding, NotEvaluated, Silenced, Verdict
from traindx.messages import say
from traindx.records import Event, EventKind, Item, Site
from traindx.rules.catalog import catalog, find
from traindx.rules.causes import arrange
from traindx.rules.contexts import contexts_of, names
from traindx.rules.coverage import has_any, hindrance
from traindx.rules.judging import Judging, Options
from traindx.rules.order import Places
from traindx.rules.rule import Rule
from traindx.rules.track import Track
from traindx.run import Run

if TYPE_CHECKING:
    from traindx.store.stretch import Stretch

_BEGINNING = 64
"""Measured steps at the start of a run after each of which every rule is asked."""
_REST = 4
"""Optimizer steps for which a rule of what lasts is not asked again, after that."""


class Engine:
    """A sink that applies rules to the run it is given, item by item.

    Args:
        rules: The rules to apply; all of the catalogue if None.
        options: Thresholds to use in place of their defaults.
        run: An empty run to fill, for others to read; a new one if None.
        judging: What the user selects, ignores and declares; `options` come on top of it.

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
        judging: Judging | None = None,
    ) -> None:
        judging = judging or Judging()
        self.run = Run() if run is None else run
        self._judging = judging
        offered = tuple(catalog().values() if rules is None else rules)
        self._rules = tuple(rule for rule in offered if judging.selected(rule))
        self._unselected = [rule.code for rule in offered if not judging.selected(rule)]
        self._thresholds = _thresholds(offered, {**judging.thresholds, **(options or {})})
        self._tracks: dict[str, dict[Site, Track]] = {rule.code: {} for rule in self._rules}
        self._hushed: dict[str, dict[Site, tuple[Track, str]]] = {r.code: {} for r in self._rules}
        self._contexts: dict[str, list[Context]] = {}
        self._evaluated: set[str] = set()
        self._fed: tuple[int, list[Rule]] = -1, []
        self._restless: list[Rule] = []  # those of what the next step may take away
        self._failed: dict[str, str] = {}
        self._measured_step = self._asked_at = -1
        self._news: tuple[int, int] = 0, 0

    def write(self, items: Sequence[Item]) -> None:
        """Take items, in order of step, and judge every measured step among them."""
        for item in items:
            self.run.add(item)
            if isinstance(item, Event) and item.kind is EventKind.MEASURED:
                self._judge(item.step)

    def replay(self, stretch: Stretch) -> None:
        """Take what was read of a file, and judge every measured step in it."""
        for measured in self.run.replay(stretch):
            self._judge(measured.step)

    def close(self) -> None:
        """Judge what came after the last measured step, and leave the verdict in the run."""
        self._ask_all()
        self.run.verdict = self.verdict

    @property
    def verdict(self) -> Verdict:
        """What the rules say of everything written so far."""
        evaluated = self._evaluated - self._failed.keys()
        reasons = [(r.code, self._reason(r)) for r in self._rules if r.code not in evaluated]
        reasons += [(code, say("not selected")) for code in self._unselected]
        findings, passed_over = self._findings()
        explained_by = {rule.code: rule.explained_by for rule in self._rules}
        return Verdict(
            arrange(findings, explained_by, Places(self.run)),
            tuple(sorted(evaluated)),
            tuple(NotEvaluated(code, reason) for code, reason in sorted(reasons)),
            tuple(sorted([*self._silenced(findings), *passed_over], key=_place)),
            self._all_contexts(),
        )

    def _findings(self) -> tuple[list[Finding], list[Silenced]]:
        """The findings, and those that the user does not want to see."""
        findings: list[Finding] = []
        passed_over: list[Silenced] = []
        for code, tracks in self._tracks.items():
            for track in tracks.values():
                if track.found:
                    finding = track.finding(self._thresholds[code])
                    if reason := self._judging.passed_over(finding):
                        passed_over.append(Silenced(code, finding.evidence.site, reason))
                    else:
                        findings.append(finding)
        return findings, passed_over

    def _silenced(self, findings: list[Finding]) -> list[Silenced]:
        """What would be a finding but for a context, and is none for another reason either."""
        told = {finding.fingerprint for finding in findings}
        return [
            Silenced(code, site, reason)
            for code, tracks in self._hushed.items()
            for site, (track, reason) in tracks.items()
            if track.found and track.finding({}).fingerprint not in told
        ]

    def _all_contexts(self) -> tuple[Context, ...]:
        return tuple(context for name in names() for context in self._contexts_if_known(name))

    def _contexts_if_known(self, name: str) -> list[Context]:
        """Where a context holds; a rule that asks for one that fails is told to have failed."""
        try:
            return contexts_of(self.run, name, self._judging.contexts)
        except Exception:
            return []

    def _judge(self, step: int) -> None:
        """Ask after a measured step: all rules, or only those that cannot wait.

        What lasts is not looked for at each of many steps in a row, unless something has just
        ceased to be finite or is measured for the first time. The measured steps and their numbers
        decide it, so a run that is read again is judged at the same steps.
        """
        self._measured_step = step
        news = self.run.breaks, self.run.num_quantities
        rested = step - self._asked_at >= _REST or news != self._news
        if rested or self.run.measured_steps <= _BEGINNING:
            self._asked_at, self._news = step, news
            self._ask_all()
        else:
            self._ask(self._restless)

    def _ask_all(self) -> None:
        # Most rules read what is never measured: they are asked for once something new is.
        if self._fed[0] != self.run.num_quantities:
            self._fed = self.run.num_quantities, [*filter(self._is_fed, self._rules)]
        self._ask(self._fed[1])
        # One that does not apply so far may wait to be asked whether it does.
        self._restless = [
            rule for rule in self._fed[1] if not rule.lasting and rule.code in self._evaluated
        ]

    def _ask(self, rules: Iterable[Rule]) -> None:
        self._contexts = {}
        for rule in rules:
            if rule.code not in self._failed:
                self._apply(rule)

    def _apply(self, rule: Rule) -> None:
        """Ask one rule; if it fails, that is reported in its place, and training goes on."""
        code = rule.code
        if code not in self._evaluated:
            if self._is_hindered(rule):
                return
            self._evaluated.add(code)
        try:
            evidence = list(rule.check(self.run, **self._thresholds[code]))
            if evidence or self._tracks[code] or self._hushed[code]:
                self._note(rule, evidence)
        except Exception as error:
            self._failed[code] = _failure(error)

    def _note(self, rule: Rule, evidence: list[Evidence]) -> None:
        tracks, hushed = self._tracks[rule.code], self._hushed[rule.code]
        reasons = [self._excuse(rule, hit) for hit in evidence]
        counted = [hit for hit, reason in zip(evidence, reasons, strict=True) if not reason]
        for hit in counted:
            tracks.setdefault(hit.site, Track(rule, hit)).hit(hit)
        for site in tracks.keys() - {hit.site for hit in counted}:
            tracks[site].miss(self._measured_step)
        for hit, reason in zip(evidence, reasons, strict=True):
            if reason:
                track, _ = hushed.get(hit.site, (Track(rule, hit), ""))
                track.hit(hit)
                hushed[hit.site] = track, reason
        for site in hushed.keys() - {hit.site for hit in evidence}:
            hushed[site][0].miss(self._measured_step)

    def _excuse(self, rule: Rule, hit: Evidence) -> str:
        """The context in which a hit of this rule means nothing, empty if there is none."""
        for name in rule.silent_in:
            for context in self._contexts_named(name):
                if context.covers(hit.site, hit.step):
                    return say("{context}: {reason}", context=name, reason=context.reason)
        return ""

    def _contexts_named(self, name: str) -> list[Context]:
        """Where a context holds, looked up once a measured step and only if it is asked for."""
        if name not in self._contexts:
            self._contexts[name] = contexts_of(self.run, name, self._judging.contexts)
        return self._contexts[name]

    def _is_hindered(self, rule: Rule) -> bool:
        try:
            return bool(rule.applies(self.run))
        except Exception:
            return True

    def _is_fed(self, rule: Rule) -> bool:
        try:
            return has_any(rule, self.run)
        except Exception:
            return False

    def _hindrance(self, rule: Rule) -> str:
        try:
            return hindrance(rule, self.run)
        except Exception as error:
            return _failure(error)

    def _reason(self, rule: Rule) -> str:
        # A rule that can be judged only since the last measured step waits for the next one.
        return self._failed.get(rule.code) or self._hindrance(rule) or say("not judged yet")


def judge(
    items: Iterable[Item],
    rules: Iterable[Rule] | None = None,
    options: Options | None = None,
    judging: Judging | None = None,
) -> Verdict:
    """The verdict on a recorded run, equal to the one that was reached while it trained."""
    engine = Engine(rules, options, judging=judging)
    engine.write(list(items))
    engine.close()
    return engine.verdict


def _place(silenced: Silenced) -> tuple[str, Site]:
    return silenced.code, silenced.site


def _failure(error: Exception) -> str:
    return say("the rule failed: {error}", error=f"{type(error).__name__}: {error}")


def _thresholds(rules: Sequence[Rule], options: Options) -> dict[str, dict[str, float]]:
    thresholds = {rule.code: rule.options for rule in rules}
    for code, changes in options.items():
        rule = next((rule for rule in rules if rule.code == code), None) or find(code)
        if unknown := sorted(changes.keys() - rule.options.keys()):
            raise UsageError(_no_option(rule, unknown[0]))
        thresholds[rule.code] = {**rule.options, **changes}
    return thresholds


def _no_option(rule: Rule, option: str) -> str:
    if not rule.options:
        return say("{code} has no options.", code=rule.code)
    names = ", ".join(f"`{name}`" for name in rule.options)
    return say(
        "{code} has no option `{option}`. It has {options}.",
        code=rule.code,
        option=option,
        options=names,
    )
