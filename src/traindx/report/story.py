"""What a report tells, in the order and the words that every form for people shares."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from traindx.findings import Finding, Severity, Verdict
from traindx.looks import looked
from traindx.messages import Message, counted, listed, say
from traindx.records import RUN, EventKind, Site
from traindx.report.layers import where
from traindx.report.untrusted import plain
from traindx.run import Run


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


def headline(run: Run) -> Message:
    """The verdict in words, and of how many steps."""
    verdict, extent = verdict_words(run), extent_words(run)
    if run.is_preflight:
        return say("{verdict}, by {extent}", verdict=verdict, extent=extent)
    return say("{verdict} in {extent}", verdict=verdict, extent=extent) if extent else verdict


def verdict_words(run: Run) -> Message:
    """The verdict in words."""
    if run.steps == 0 and not run.is_preflight:
        return say("nothing to judge: no training step was recorded")
    if run.verdict is None:
        return say("not judged: no rule has looked at the run")
    return _found(run.verdict) or _nothing_found(run.verdict)


def level(run: Run) -> str:
    """How bad it is: a severity, `clear`, or `unknown` where nothing could be judged."""
    verdict = judged(run)
    worst = verdict.worst()
    looked_at = verdict.evaluated and (run.steps or run.is_preflight)
    return worst.value if worst else "clear" if looked_at else "unknown"


def _found(verdict: Verdict) -> Message:
    """The roots by severity, and how many findings they explain; empty if there is none."""
    found = roots(verdict)
    counts = Counter(root.finding.severity for root in found)
    words = listed(_of_severity(s, counts[s]) for s in Severity if counts[s])
    explained = sum(len(root.symptoms) for root in found)
    if not explained:
        return words
    more = counted(explained, "{n} more finding", "{n} more findings")
    return say("{findings}, explaining {more}", findings=words, more=more)


def _of_severity(severity: Severity, number: int) -> Message:
    match severity:
        case Severity.ERROR:
            return counted(number, "{n} error", "{n} errors")
        case Severity.WARNING:
            return counted(number, "{n} warning", "{n} warnings")
        case Severity.INFO:
            return say("{n} info", n=number)


def severity_word(severity: Severity) -> Message:
    """The severity of one finding."""
    match severity:
        case Severity.ERROR:
            return say("error")
        case Severity.WARNING:
            return say("warning")
        case Severity.INFO:
            return say("info")


def extent_words(run: Run) -> Message:
    """How many steps the verdict is of, or how many probes; empty if there were none."""
    if run.is_preflight:
        num = sum(not probe.reason for probe in looked(run))
        return counted(num, "{n} probe before training", "{n} probes before training")
    if not run.steps:
        return Message("")
    steps = counted(run.steps, "{n} step", "{n} steps")
    return say("{steps} ({measured} measured)", steps=steps, measured=run.measured_steps)


def _nothing_found(verdict: Verdict) -> Message:
    evaluated = len(verdict.evaluated)
    known = evaluated + len(verdict.not_evaluated)
    if not evaluated:
        return say("not judged: none of {known} rules could be evaluated", known=known)
    rules = counted(known, "{n} rule", "{n} rules")
    return say("nothing found by {evaluated} of {rules}", evaluated=evaluated, rules=rules)


def number(value: float) -> str:
    """A number to four significant digits."""
    if math.isnan(value) or math.isinf(value):
        return {math.inf: say("infinite"), -math.inf: say("-infinite")}.get(value, "NaN")
    return str(int(value)) if value == int(value) and abs(value) < 1e6 else f"{value:.4g}"


def measures(finding: Finding) -> list[Message]:
    """Each number with its threshold, then the thresholds that have no number of their name."""
    numbers, thresholds = finding.evidence.numbers, finding.thresholds
    own = [_measure(name, value, thresholds.get(name)) for name, value in numbers.items()]
    rest = [
        say("threshold {name} {value}", name=plain(name), value=number(value))
        for name, value in thresholds.items()
        if name not in numbers
    ]
    return own + rest


def _measure(name: str, value: float, threshold: float | None) -> Message:
    name, shown = plain(name), number(value)
    if threshold is None:
        return say("{name} {value}", name=name, value=shown)
    limit = number(threshold)
    return say("{name} {value} (threshold {limit})", name=name, value=shown, limit=limit)


def at_step(step: int) -> Message:
    """A step in words."""
    return say("step {step}", step=step) if step >= 0 else say("before training")


def seen(finding: Finding) -> Message:
    """At which steps the rule hit."""
    first, last = finding.first_step, finding.last_step
    if first == last:
        return at_step(first)
    steps = counted(finding.count, "{n} measured step", "{n} measured steps")
    return say("steps {first} to {last}, in {steps}", first=first, last=last, steps=steps)


def contexts(run: Run) -> list[Message]:
    """The circumstances under which the run was judged, each with its reason."""
    return [
        _at_place(plain(context.name), run, context.site, plain(context.reason))
        for context in judged(run).contexts
    ]


def silenced(run: Run) -> list[Message]:
    """What would be a finding but for a context or the user's word, with the reason."""
    return [
        _at_place(plain(entry.code), run, entry.site, plain(entry.reason))
        for entry in judged(run).silenced
    ]


def _at_place(what: str, run: Run, site: Site, reason: str) -> Message:
    reason = _message(reason)
    if site == RUN:
        return say("{what}: {reason}", what=what, reason=reason)
    return say("{what} at {where}: {reason}", what=what, where=where(run, site), reason=reason)


def _message(text: str) -> Message:
    """It as a message, which a text that was stored may be."""
    return text if isinstance(text, Message) else Message(text)


def brief(run: Run, finding: Finding) -> Message:
    """A finding in one line."""
    message = plain(finding.evidence.message)
    return _at_place(plain(f"{finding.code} {finding.name}"), run, finding.evidence.site, message)


def root_in_brief(run: Run, root: Root) -> Message:
    """A root in one line, with its severity and the number of findings it explains."""
    found = say(
        "{severity} {finding}",
        severity=severity_word(root.finding.severity),
        finding=brief(run, root.finding),
    )
    if not root.symptoms:
        return found
    more = counted(len(root.symptoms), "{n} more finding", "{n} more findings")
    return say("{findings}, explaining {more}", findings=found, more=more)


def unevaluated(run: Run) -> list[tuple[Message, Message]]:
    """Each reason for which rules were not evaluated, with their codes."""
    entries = judged(run).not_evaluated
    return _grouped((_message(plain(entry.reason)), entry.code) for entry in entries)


def unmeasured(run: Run) -> list[Message]:
    """What was not measured, one line for each kind of place and reason."""
    skipped = (
        (
            say(
                "{what}: {reason}",
                what=plain(str(event.detail.get("point") or "")) or say("everything"),
                reason=Message(plain(str(event.detail.get("reason", "")))),
            ),
            _at(event.site),
        )
        for event in run.events(EventKind.SKIPPED)
    )
    return [say("{what} ({places})", what=what, places=at) for what, at in _grouped(skipped)]


def _at(site: Site) -> str:
    return " · ".join(part for part in site if part) or say("whole run")


def _grouped(pairs: Iterable[tuple[Message, str]]) -> list[tuple[Message, Message]]:
    groups: dict[Message, dict[str, None]] = {}
    for reason, name in pairs:
        groups.setdefault(reason, {})[plain(name)] = None
    return [(reason, listed_names(list(names))) for reason, names in groups.items()]


def listed_names(names: Sequence[str], most: int = 8) -> Message:
    """Names in a row, those after the first few as a number."""
    shown, rest = listed(names[:most]), len(names) - most
    return say("{names} and {rest} more", names=shown, rest=rest) if rest > 0 else shown


def probes(run: Run) -> list[Message]:
    """The probes that have looked, in a row, with the seconds each took."""
    shown = [
        say("{probe} {seconds:.1f} s", probe=plain(probe.name), seconds=probe.seconds or 0.0)
        for probe in looked(run)
        if not probe.reason
    ]
    return [listed(shown)] if shown else []


def unprobed(run: Run) -> list[Message]:
    """The probes that have not looked, each with the reason, and those that left a trace."""
    found = [
        say("{what}: {reason}", what=names, reason=reason)
        for reason, names in _grouped(
            (Message(plain(probe.reason)), probe.name) for probe in looked(run) if probe.reason
        )
    ]
    return found + [
        say(
            "{probe} left a trace, which later probes may have seen: {what}",
            probe=plain(probe.name),
            what=plain(probe.trace),
        )
        for probe in looked(run)
        if probe.trace
    ]


def notes(run: Run) -> list[Message]:
    """What a reader must know: how the run ended, and the notes written while it ran."""
    texts = (str(event.detail.get("text", "")) for event in run.events(EventKind.NOTE))
    return list(dict.fromkeys([*_ending(run), *map(Message, map(plain, texts))]))


def _ending(run: Run) -> Iterator[Message]:
    if not run.ended:
        yield say(
            "The recording has no end: the run goes on or was killed; judged as far as written."
        )
    code = run.header.get("exit_code")
    if isinstance(code, int) and code:
        yield say("The script ended with exit code {code}.", code=code)


def cost(run: Run) -> Message:
    """What measuring, saving and judging cost; empty if none of it is known."""
    if run.is_preflight:
        return _cost_of_probes(run)
    parts = list(_costs(run))
    if not parts:
        return Message("")
    costs = parts[0] if len(parts) == 1 else say("{one}, {other}", one=parts[0], other=parts[1])
    told = _with_listening(run, costs)
    if "budget_since" in run.header or run.header.get("every") is not None:
        return told
    return say("{cost} (the budget was not in force yet)", cost=told)


def _cost_of_probes(run: Run) -> Message:
    seconds, estimate, least, most = (
        _header_number(run, name) for name in ("seconds", "estimate", "least", "most")
    )
    if seconds is None or estimate is None:
        return Message("")
    if least is None or most is None:  # of an older run file
        return say(
            "probing took {seconds:.1f} s (estimate {estimate:.1f} s)",
            seconds=seconds,
            estimate=estimate,
        )
    return say(
        "probing took {seconds:.1f} s (estimate {estimate:.1f} s, {least:.1f} to {most:.1f} s)",
        seconds=seconds,
        estimate=estimate,
        least=least,
        most=most,
    )


def _with_listening(run: Run, cost: Message) -> Message:
    own = _header_number(run, "listening_fraction")
    if own is None:
        return say("{costs}; listening at every step not included", costs=cost)
    cost = say(
        "{costs}; listening at the other steps about {percent:.1f} %", costs=cost, percent=100 * own
    )
    if own > (_header_number(run, "budget") or 1):
        cost = say("{costs}, which alone is more than the budget", costs=cost)
    return cost


def _costs(run: Run) -> Iterator[Message]:
    measuring, sinks = _header_number(run, "overhead_fraction"), _header_number(run, "sink_seconds")
    seconds = _header_number(run, "seconds")
    if measuring is not None:
        yield say("measuring cost {percent:.1f} % of the training time", percent=100 * measuring)
    if sinks is not None and seconds:
        yield say(
            "saving and judging took {percent:.1f} % of the whole time",
            percent=100 * sinks / seconds,
        )


def _header_number(run: Run, name: str) -> float | None:
    value = run.header.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e308 else None  # a damaged header may hold any number


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
    return plain(files[0] if files else " ".join(words)) or say("training run")
