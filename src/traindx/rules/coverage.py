"""Why a rule could say nothing of a run, so that silence is never taken for health."""

from __future__ import annotations

from traindx.quantities import QUANTITIES
from traindx.records import EventKind
from traindx.rules.rule import Rule
from traindx.run import Run

_FED_BY = {"probe": "needs preflight", "fork": "needs a trial", "ranks": "needs several ranks"}


def hindrance(rule: Rule, run: Run) -> str:
    """The reason why `rule` says nothing of `run`; empty if it can be judged."""
    return rule.applies(run) or _unmeasured(rule, run)


def _unmeasured(rule: Rule, run: Run) -> str:
    if not rule.reads or any(run.series(quantity) for quantity in rule.reads):
        return ""
    if rule.source in _FED_BY:
        return _FED_BY[rule.source]
    if not run.measured_steps:
        return "no training step was measured"
    return _skipped(rule, run) or f"{' and '.join(rule.reads)} not measured"


def _skipped(rule: Rule, run: Run) -> str:
    """Why capture left out a point that the rule reads, in its own words."""
    points = {str(QUANTITIES[quantity].point) for quantity in rule.reads}
    for event in run.events(EventKind.SKIPPED):
        if event.detail.get("point") in points:
            return f"{event.detail['point']} not measured: {event.detail.get('reason')}"
    return ""
