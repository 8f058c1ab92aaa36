"""What a report tells, in the order and the words that every form for people shares."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from traindx.findings import Finding, Severity, Verdict
from traindx.records import EventKind, Site
from traindx.report.losses import broken_losses
from traindx.report.untrusted import plain
from traindx.run import Run

EXEMPT_STEPS = 200
"""Steps under which capture does not enforce its budget."""


@dataclass(frozen=True, slots=True)
class Root:
    """A finding that no other explains, and the findings it explains."""

    finding: Finding
    symptoms: tuple[Finding, ...]


def roots(verdict: Verdict) -> list[Root]:
    """The active findings, each symptom under the root of its chain of causes."""
    active = {finding.id: finding for finding in verdict.findings if finding.active}
    symptoms: dict[int, list[Finding]] = {}
    for finding in active.values():
        symptoms.setdefault(_root_of(finding, active), []).append(finding)
    return [
        Root(active[top], tuple(f for f in group if f.id != top))
        for top, group in sorted(symptoms.items())
    ]


def _root_of(finding: Finding, active: Mapping[int, Finding]) -> int:
    """The end of its chain of causes; of a circle its lowest id, so that none is lost."""
    seen: list[int] = []
    while finding.id not in seen:
        seen.append(finding.id)
        finding = next((active[i] for i in finding.caused_by if i in active), finding)
    return min(seen[seen.index(finding.id) :])


def cleared(verdict: Verdict) -> list[Finding]:
    """The findings whose rule has stopped seeing them."""
    return [finding for finding in verdict.findings if not finding.active]


def judged(run: Run) -> Verdict:
    """The verdict, an empty one where no rule has been run."""
    return run.verdict or Verdict()


def headline(run: Run) -> str:
    """The verdict in words, and of how many steps."""
    extent = extent_words(run)
    return f"{verdict_words(run)} in {extent}" if extent else verdict_words(run)


def verdict_words(run: Run) -> str:
    """The verdict in words."""
    if run.steps == 0:
        return "nothing to judge: no training step was recorded"
    if run.verdict is None:
        return "not judged: no rule has looked at the run"
    found = _found(run.verdict) or _nothing_found(run.verdict)
    return "; ".join([*(loss.headline for loss in broken_losses(run)), found])


def level(run: Run) -> str:
    """How bad it is: a severity, `clear`, or `unknown` where nothing could be judged."""
    verdict = judged(run)
    worst = verdict.worst()
    if broken_losses(run) and worst in (None, Severity.INFO):
        return Severity.WARNING.value
    looked_at = verdict.evaluated and run.steps
    return worst.value if worst else "clear" if looked_at else "unknown"


def _found(verdict: Verdict) -> str:
    """The roots by severity, and how many findings they explain; empty if there is none."""
    found = roots(verdict)
    counts = Counter(root.finding.severity for root in found)
    words = ", ".join(_count(counts[s], s.value) for s in Severity if counts[s])
    explained = sum(len(root.symptoms) for root in found)
    more = f", explaining {_count(explained, 'more finding')}" if explained else ""
    return words + more


def extent_words(run: Run) -> str:
    """How many steps the verdict is of; empty if there were none."""
    return f"{_count(run.steps, 'step')} ({run.measured_steps} measured)" if run.steps else ""


def _nothing_found(verdict: Verdict) -> str:
    evaluated = len(verdict.evaluated)
    known = evaluated + len(verdict.not_evaluated)
    if not evaluated:
        return f"not judged: none of {known} rules could be evaluated"
    return f"nothing found by {evaluated} of {_count(known, 'rule')}"


def _count(number: int, noun: str) -> str:
    plural = noun if number == 1 or noun == "info" else f"{noun}s"
    return f"{number} {plural}"


def number(value: float) -> str:
    """A number to four significant digits."""
    if math.isnan(value) or math.isinf(value):
        return {math.inf: "infinite", -math.inf: "-infinite"}.get(value, "NaN")
    return str(int(value)) if value == int(value) and abs(value) < 1e6 else f"{value:.4g}"


def measures(finding: Finding) -> list[str]:
    """Each number with its threshold, then the thresholds that have no number of their name."""
    numbers, thresholds = finding.evidence.numbers, finding.thresholds
    own = [
        f"{plain(name)} {number(value)}"
        + (f" (threshold {number(thresholds[name])})" if name in thresholds else "")
        for name, value in numbers.items()
    ]
    rest = [f"threshold {plain(k)} {number(v)}" for k, v in thresholds.items() if k not in numbers]
    return own + rest


def seen(finding: Finding) -> str:
    """At which steps the rule hit."""
    first, last = finding.first_step, finding.last_step
    if first == last:
        return f"step {first}"
    return f"steps {first} to {last}, in {_count(finding.count, 'measured step')}"


def unevaluated(run: Run) -> list[tuple[str, str]]:
    """Each reason for which rules were not evaluated, with their codes."""
    return _grouped((entry.reason, entry.code) for entry in judged(run).not_evaluated)


def unmeasured(run: Run) -> list[str]:
    """What was not measured, one line for each kind of place and reason."""
    skipped = (
        (f"{event.detail.get('point') or 'everything'}: {event.detail.get('reason', '')}", at)
        for event in run.events(EventKind.SKIPPED)
        for at in [_at(event.site)]
    )
    return [f"{what} ({which})" for what, which in _grouped(skipped)]


def _at(site: Site) -> str:
    return " · ".join(part for part in site if part) or "whole run"


def _grouped(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    groups: dict[str, dict[str, None]] = {}
    for reason, name in pairs:
        groups.setdefault(plain(reason), {})[plain(name)] = None
    return [(reason, _listed(list(names))) for reason, names in groups.items()]


def _listed(names: Sequence[str], most: int = 8) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def notes(run: Run) -> list[str]:
    """What a reader must know: how the run ended, and the notes written while it ran."""
    texts = (str(event.detail.get("text", "")) for event in run.events(EventKind.NOTE))
    losses = (loss.note for loss in broken_losses(run))
    return list(dict.fromkeys([*_ending(run), *losses, *map(plain, texts)]))


def _ending(run: Run) -> Iterator[str]:
    if not run.ended:
        yield "The recording has no end: the run goes on or was killed; judged as far as written."
    code = run.header.get("exit_code")
    if isinstance(code, int) and code:
        yield f"The script ended with exit code {code}."


def cost(run: Run) -> str:
    """What measuring, saving and judging cost; empty if none of it is known."""
    measuring, sinks = _header_number(run, "overhead_fraction"), _header_number(run, "sink_seconds")
    seconds = _header_number(run, "seconds")
    parts: list[str] = []
    if measuring is not None:
        parts.append(f"measuring cost {100 * measuring:.1f} % of the training time")
    if sinks is not None and seconds:
        parts.append(f"saving and judging took {100 * sinks / seconds:.1f} % of the whole time")
    if not parts:
        return ""
    exempt = run.steps < EXEMPT_STEPS and run.header.get("every") is None
    budget = f" (runs under {EXEMPT_STEPS} steps are exempt from the budget)" if exempt else ""
    return f"{', '.join(parts)}; listening at every step not included{budget}"


def _header_number(run: Run, name: str) -> float | None:
    value = run.header.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def is_code(fix: str) -> bool:
    """Whether a fix is code to paste, and not a sentence."""
    return "\n" in fix.strip("\n") or fix.lstrip().startswith("#")


def command(run: Run) -> str:
    """The command line as typed, empty if it was not recorded."""
    parts = run.header.get("command")
    return plain(shlex.join(map(str, parts))) if isinstance(parts, list) else ""


def script(run: Run) -> str:
    """The name of the script that trained."""
    parts = run.header.get("command")
    words = [str(part) for part in parts] if isinstance(parts, list) else []
    files = [PurePath(word).name for word in words if word.endswith(".py")]
    return plain(files[0] if files else " ".join(words)) or "training run"
