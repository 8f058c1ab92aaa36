"""The engine: hysteresis, clearing, folding, and equal verdicts however the items come."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rules.recording import Recording, batchnorm_net, chain
from traindx.errors import UsageError
from traindx.facts import PathFacts
from traindx.findings import Evidence, NotEvaluated, Severity, Silenced, Verdict
from traindx.records import EventKind, Site
from traindx.rules.engine import Engine, judge
from traindx.rules.judging import Ignore, Judging
from traindx.rules.rule import Rule, rule
from traindx.run import Run


def alarm(
    code: str = "G900",
    *,
    hits: int = 1,
    severity: Severity = Severity.ERROR,
    explained_by: tuple[str, ...] = (),
    quantity: str = "loss",
) -> Rule:
    """A rule that hits wherever the last value of a quantity is 1."""

    @rule(code, severity=severity, reads=(quantity,), hits=hits, explained_by=explained_by)
    def loud(run: Run, *, level: float = 1.0) -> Iterator[Evidence]:
        """It is loud."""
        for series in run.series(quantity):
            if series.last == level:
                yield Evidence(series.site, series.step, f"{series.last}", {"value": series.last})

    return loud


def values(*levels: float, fqn: str = "0") -> Recording:
    recording = Recording(chain(3))
    for step, level in enumerate(levels):
        recording.scalar(step, "loss", level, fqn)
        recording.measured(step)
    return recording


def verdict_of(recording: Recording, *rules: Rule) -> Verdict:
    return judge(recording.items, rules)


# -- hysteresis ----------------------------------------------------------------------------------


@pytest.mark.parametrize("row", [1, 2, 3])
def test_a_finding_takes_as_many_hits_in_a_row_as_the_rule_asks(row: int):
    enough = verdict_of(values(0, *[1] * row, 0), alarm(hits=row))
    assert len(enough.findings) == 1
    assert verdict_of(values(0, *[1] * (row - 1), 0), alarm(hits=row)).findings == ()


def test_hits_that_are_not_in_a_row_do_not_add_up():
    assert verdict_of(values(1, 1, 0, 1, 1, 0, 1, 1), alarm(hits=3)).findings == ()


def test_a_finding_counts_from_the_first_hit_of_its_row():
    (finding,) = verdict_of(values(1, 0, 0, 1, 1, 1, 1), alarm(hits=3)).findings
    assert (finding.first_step, finding.last_step, finding.count) == (3, 6, 4)


def test_it_takes_as_many_misses_in_a_row_to_clear_as_hits_to_appear():
    (still,) = verdict_of(values(1, 1, 1, 0, 0), alarm(hits=3)).findings
    (cleared,) = verdict_of(values(1, 1, 1, 0, 0, 0), alarm(hits=3)).findings
    assert still.active
    assert not cleared.active
    assert (cleared.last_step, cleared.count) == (2, 3)


def test_misses_that_are_not_in_a_row_do_not_clear():
    (finding,) = verdict_of(values(1, 1, 0, 1, 0, 1, 0), alarm(hits=2)).findings
    assert finding.active


def test_a_cleared_finding_takes_a_full_row_to_come_back():
    (cleared,) = verdict_of(values(1, 1, 0, 0, 1), alarm(hits=2)).findings
    (back,) = verdict_of(values(1, 1, 0, 0, 1, 1), alarm(hits=2)).findings
    assert not cleared.active
    assert back.active
    assert (back.first_step, back.count) == (0, 4)


def test_each_site_has_a_finding_of_its_own():
    recording = values(1, 1)
    recording.items += values(0, 0, fqn="1").items
    recording.items += values(1, 1, fqn="2").items
    assert [f.evidence.site.fqn for f in verdict_of(recording, alarm()).findings] == ["0", "2"]


def test_what_is_no_longer_measured_neither_adds_hits_nor_clears():
    recording = values(1, 1)
    for step in range(2, 9):
        recording.measured(step)
    assert verdict_of(recording, alarm(hits=3)).findings == ()
    (finding,) = verdict_of(recording, alarm(hits=2)).findings
    assert finding.active
    assert finding.count == 2


def test_the_judgement_at_the_end_counts_no_step_twice():
    recording = values(1, 1)
    recording.ended(2)
    assert verdict_of(recording, alarm(hits=3)).findings == ()
    cleared = values(1, 1, 0)
    cleared.ended(3)
    assert verdict_of(cleared, alarm(hits=2)).findings[0].active


def test_what_comes_after_the_last_measured_step_is_judged_at_the_end():
    recording = values(0)
    recording.scalar(1, "loss", 1.0, "0")
    assert len(verdict_of(recording, alarm()).findings) == 1


# -- causes and order ----------------------------------------------------------------------------


def two_alarms(cause: str, symptom: str, severity: Severity = Severity.ERROR) -> Verdict:
    """A cause (quantity lr) and a symptom (quantity loss) at these layers of one model."""
    recording = Recording(chain(5))
    recording.scalar(0, "lr", 1, cause)
    recording.scalar(0, "loss", 1, symptom)
    recording.measured(0)
    rules = (
        alarm("G901", quantity="lr", severity=severity),
        alarm("G900", explained_by=("G901",)),
    )
    return verdict_of(recording, *rules)


@pytest.mark.parametrize(
    ("cause", "symptom", "explained"),
    [
        ("1", "1", True),
        ("1", "3", True),
        ("3", "1", False),
        ("", "1", True),
        ("1.weight", "1", True),
    ],
)
def test_a_finding_explains_those_of_its_own_and_later_layers(
    cause: str, symptom: str, explained: bool
):
    by_code = {finding.code: finding for finding in two_alarms(cause, symptom).findings}
    assert by_code["G900"].caused_by == ((by_code["G901"].id,) if explained else ())
    assert by_code["G901"].caused_by == ()


def test_a_warning_does_not_explain_an_error():
    verdict = two_alarms("1", "1", Severity.WARNING)
    assert all(not finding.caused_by for finding in verdict.findings)


def test_a_finding_of_another_model_explains_nothing():
    recording = Recording(chain(3), replace(chain(3), name="other"))
    recording.scalar(0, "lr", 1, "0")
    recording.scalar(0, "loss", 1, "0", model="other")
    recording.measured(0)
    verdict = verdict_of(recording, alarm("G901", quantity="lr"), alarm(explained_by=("G901",)))
    assert all(not finding.caused_by for finding in verdict.findings)


def test_a_cleared_finding_does_not_explain_an_active_one():
    recording = Recording(chain(3))
    for step, level in enumerate((1, 0)):
        recording.scalar(step, "lr", level, "0")
        recording.scalar(step, "loss", 1, "0")
        recording.measured(step)
    verdict = verdict_of(recording, alarm("G901", quantity="lr"), alarm(explained_by=("G901",)))
    active, cleared = verdict.findings
    assert (active.code, cleared.code) == ("G900", "G901")
    assert active.caused_by == ()


def test_roots_come_first_then_the_severe_then_the_upstream():
    recording = Recording(chain(5))
    for fqn in ("3", "1"):
        recording.scalar(0, "lr", 1, fqn)
    recording.scalar(0, "batch.size", 1, "0")
    recording.scalar(0, "loss", 1, "2")
    recording.measured(0)
    rules = (
        alarm("G900", explained_by=("G901",)),
        alarm("G901", quantity="lr"),
        alarm("G902", quantity="batch.size", severity=Severity.WARNING),
    )
    told = [(f.id, f.code, f.evidence.site.fqn) for f in verdict_of(recording, *rules).findings]
    assert told == [(1, "G901", "1"), (2, "G901", "3"), (3, "G902", "0"), (4, "G900", "2")]


# -- what could not be judged --------------------------------------------------------------------


def reason(recording: Recording, judged: Rule) -> str:
    verdict = verdict_of(recording, judged)
    assert judged.code not in verdict.evaluated
    return verdict.not_evaluated[0].reason


def test_a_rule_that_raises_is_reported_and_disturbs_nobody():
    @rule("G903", severity=Severity.ERROR, reads=())
    def broken(run: Run) -> Iterator[Evidence]:
        """It is broken."""
        yield from ()
        raise ZeroDivisionError("nothing to divide by")

    verdict = verdict_of(values(1, 1), broken, alarm())
    assert verdict.evaluated == ("G900",)
    (failed,) = verdict.not_evaluated
    assert (failed.code, failed.reason) == (
        "G903",
        "the rule failed: ZeroDivisionError: nothing to divide by",
    )
    assert len(verdict.findings) == 1


def test_a_condition_that_raises_is_reported_too():
    def broken(run: Run) -> str:
        raise KeyError("missing")

    assert reason(values(1), replace(alarm(), applies=broken)).startswith("the rule failed: Key")
    assert Engine([replace(alarm(), applies=broken)]).verdict.evaluated == ()


def test_a_rule_whose_quantities_were_not_measured_names_them():
    assert reason(values(1), alarm(quantity="batch.size")) == "batch.size not measured"


def test_a_rule_on_a_point_that_capture_skipped_gives_its_reason():
    recording = values(1)
    recording.event(0, EventKind.SKIPPED, point="output", reason="compiled")
    assert reason(recording, alarm(quantity="output.rms")) == "output not measured: compiled"


def test_a_rule_fed_by_preflight_says_so():
    assert reason(values(1), replace(alarm(quantity="lr"), source="probe")) == "needs preflight"


def test_a_run_without_any_measured_step_says_so():
    assert reason(Recording(chain(3)), alarm()) == "no training step was measured"


def test_a_rule_that_applies_only_later_is_evaluated_from_then_on():
    recording = values(0, 0)
    recording.scalar(2, "lr", 1, "0")
    recording.measured(2)
    verdict = verdict_of(recording, alarm(quantity="lr"))
    assert verdict.evaluated == ("G900",)
    assert len(verdict.findings) == 1


# -- options -------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [0, 1, 3])
def test_a_rule_is_asked_from_the_very_step_on_at_which_what_it_reads_is_measured(first: int):
    recording = values(*[0.0] * first)
    for step in range(first, first + 2):
        recording.scalar(step, "loss", 0.0, "0")
        recording.scalar(step, "lr", 1.0, "0")
        recording.measured(step)
    (finding,) = verdict_of(recording, alarm(quantity="lr")).findings
    assert (finding.first_step, finding.count) == (first, 2)


def test_options_replace_thresholds_and_stand_in_the_finding():
    recording = values(2, 2)
    (finding,) = judge(recording.items, [alarm()], {"G900": {"level": 2.0}}).findings
    assert finding.thresholds == {"level": 2.0}


def test_an_unknown_option_is_an_error_that_names_the_known_ones():
    with pytest.raises(UsageError, match=r"N001 has no option `gab`\. It has `gap`, `error_gap`"):
        Engine(options={"N001": {"gab": 1.0}})


def test_options_of_an_unknown_rule_are_an_error():
    with pytest.raises(UsageError, match="There is no rule `N999`"):
        Engine(options={"N999": {"gap": 1.0}})


# -- what the user asks for ----------------------------------------------------------------------


def test_a_rule_that_is_not_selected_is_listed_as_not_evaluated():
    judging = Judging(select=frozenset({"G901"}))
    verdict = judge(values(1).items, [alarm(), alarm("G901")], judging=judging)
    assert [finding.code for finding in verdict.findings] == ["G901"]
    assert verdict.evaluated == ("G901",)
    assert verdict.not_evaluated == (NotEvaluated("G900", "not selected"),)


def test_options_of_a_rule_that_is_not_selected_are_no_error():
    judging = Judging(select=frozenset({"N001"}), thresholds={"G006": {"window": 4.0}})
    assert Engine(judging=judging).verdict.findings == ()


def test_a_finding_that_is_ignored_at_its_site_is_silenced_there_only():
    recording = values(1)
    recording.items[-1:-1] = values(1, fqn="2").items[1:-1]
    ignore = Ignore(frozenset({"G900"}), "2", "G900@2", "pyproject.toml")
    verdict = judge(recording.items, [alarm()], judging=Judging(ignore=(ignore,)))
    assert [finding.evidence.site.fqn for finding in verdict.findings] == ["0"]
    reason = "ignored by pyproject.toml: G900@2"
    assert verdict.silenced == (Silenced("G900", Site("net", "2"), reason),)
    assert verdict.worst() is Severity.ERROR


def test_a_finding_of_the_baseline_is_silenced_and_does_not_count():
    (finding,) = verdict_of(values(1), alarm()).findings
    judging = Judging(known=frozenset({finding.fingerprint}), baseline="base.json")
    verdict = judge(values(1).items, [alarm()], judging=judging)
    assert verdict.findings == ()
    assert [entry.reason for entry in verdict.silenced] == ["known: in the baseline base.json"]
    assert verdict.worst() is None


def test_what_is_ignored_explains_nothing():
    recording = Recording(chain(3))
    recording.scalar(0, "lr", 1, "0")
    recording.scalar(0, "loss", 1, "0")
    recording.measured(0)
    rules = (alarm("G901", quantity="lr"), alarm(explained_by=("G901",)))
    ignore = Ignore(frozenset({"G901"}), "*", "G901", "--ignore")
    (left,) = judge(recording.items, rules, judging=Judging(ignore=(ignore,))).findings
    assert (left.code, left.caused_by) == ("G900", ())


# -- live and offline ----------------------------------------------------------------------------


def eventful_run() -> Recording:
    """A run with findings of five rules, one of them cleared and two explained."""
    norms = batchnorm_net("bn1", "bn2", momentum=0.01)
    paths = [PathFacts(n, 0, -0.6 * n) for n in range(8, 0, -1)]
    layers = replace(chain(8, paths), name="deep")
    recording = Recording(norms, layers)
    for step in range(60):
        recording.scalar(step, "step.seconds", 0.1, model="")
        if step == 12:
            recording.evaluated(step)
        if step > 10 and step % 4:
            continue
        recording.scalar(step, "loss", 2.3, model="deep")
        recording.scalar(step, "grad.uncleared", step < 8, "SGD", model="")
        for i in range(8):
            recording.grad(step, f"{i}.weight", 10 ** (0.6 * (i - 8)), model="deep")
        for fqn, kept in (("bn1", 0.99), ("bn2", 0.5)):
            recording.scalar(step, "norm.training", 1, fqn)
            recording.scalar(step, "norm.running_gap", 3.0 * 0.99**step, fqn)
            recording.scalar(step, "norm.tracked", step + 1, fqn)
            recording.scalar(step, "norm.initial_weight", kept ** (step + 1), fqn)
        recording.measured(step)
    recording.evaluated(60)
    recording.ended(60)
    return recording


EVENTFUL = eventful_run().items


def test_the_eventful_run_has_something_of_everything():
    findings = judge(EVENTFUL).findings
    assert {f.code for f in findings} == {"F005", "G001", "G006", "N001", "N002"}
    assert [f.code for f in findings if f.caused_by] == ["N001", "G001"]
    assert [f.code for f in findings if not f.active] == ["G006"]


def in_chunks(sizes: Callable[[], int]) -> Verdict:
    engine, rest = Engine(), list(EVENTFUL)
    while rest:
        size = sizes()
        engine.write(rest[:size])
        del rest[:size]
    engine.close()
    return engine.verdict


def test_a_run_fed_item_by_item_has_the_verdict_of_one_fed_at_once():
    assert in_chunks(lambda: 1) == judge(EVENTFUL)


@given(st.data())
def test_a_run_fed_in_any_chunks_has_the_verdict_of_one_fed_at_once(data: st.DataObject):
    sizes = st.integers(1, 400)
    assert in_chunks(lambda: data.draw(sizes)) == judge(EVENTFUL)


def test_looking_at_the_verdict_on_the_way_does_not_change_it():
    engine = Engine()
    for item in EVENTFUL:
        engine.write([item])
        assert isinstance(engine.verdict, Verdict)
    engine.close()
    assert engine.verdict == judge(EVENTFUL)


def test_the_engine_fills_the_run_it_is_given_and_leaves_its_verdict_there():
    run = Run()
    engine = Engine(run=run)
    engine.write(EVENTFUL)
    assert run.at("norm.tracked", Site("net", "bn1"))
    assert run.verdict is None
    engine.close()
    assert run.verdict == judge(EVENTFUL)
