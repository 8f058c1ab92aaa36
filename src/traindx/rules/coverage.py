"""Why a rule could say nothing of a run, so that silence is never taken for health."""

from __future__ import annotations

from traindx.messages import Message, listed, say
from traindx.quantities import QUANTITIES
from traindx.records import EventKind
from traindx.rules.probed import why_not
from traindx.rules.rule import Rule
from traindx.run import Run

_FED_BY: dict[str, Message] = {
    "probe": say("needs preflight"),
    "fork": say("needs a trial"),
    "ranks": say("needs several ranks"),
}


def hindrance(rule: Rule, run: Run) -> str:
    """The reason why `rule` says nothing of `run`; empty if it can be judged."""
    if run.is_preflight and rule.source == "passive" and not has_any(rule, run):
        return say("needs training steps")
    return rule.applies(run) or _unmeasured(rule, run)


def has_any(rule: Rule, run: Run) -> bool:
    """Whether any of what it reads was measured, if it reads anything that is."""
    return not rule.reads or any(run.additions(quantity) for quantity in rule.reads)


def _unmeasured(rule: Rule, run: Run) -> str:
    if has_any(rule, run):
        return ""
    if rule.source in _FED_BY:
        return why_not(run, rule.reads) or _FED_BY[rule.source]
    if not run.measured_steps:
        return say("no training step was measured")
    return _skipped(rule, run) or say("{quantities} not measured", quantities=listed(rule.reads))


def _skipped(rule: Rule, run: Run) -> str:
    """Why capture left out a point that the rule reads, in its own words."""
    points = {str(QUANTITIES[quantity].point) for quantity in rule.reads}
    for event in run.events(EventKind.SKIPPED):
        if event.detail.get("point") in points:
            return say(
                "{point} not measured: {reason}",
                point=event.detail["point"],
                reason=Message(str(event.detail.get("reason"))),
            )
    return ""
