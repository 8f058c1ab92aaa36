"""The report on the terminal."""

from __future__ import annotations

import io
import re
from dataclasses import replace

from tests.report.sample import IMG_NAME, healthy_run, sample_run, sample_verdict
from traindx.findings import Context, NotEvaluated, Silenced, Verdict
from traindx.records import Site
from traindx.report import text
from traindx.run import Run

SNAPSHOT = """\
1 error, 1 warning, explaining 1 more finding in 403 steps (60 measured)

error N001 bn-eval-gap
  where     net · bn2 (BatchNorm2d, layer 4 of 6)
  what      With its running statistics the layer would move the batch by 1.93 standard
            deviations; evaluation sees another network than training.
  numbers   gap 1.93 (threshold 0.2); initial_weight 0.818; threshold after 20
  why       momentum 0.0005 leaves the initial running statistics a weight of 0.82 after
            402 updates.
  fix       net.bn2.momentum = 0.1
            # or, once training is over:
            torch.optim.swa_utils.update_bn(loader, net)
  excluded  dropout: none in the model; batch size: 64 samples suffice
  seen      steps 9 to 402, in 51 measured steps
  explains  G001 vanishing-depth at net · conv1.weight (Conv2d, layer 1 of 6): The
            gradient is 3.1e-07 of the last layer's.

warning G011 gradient-spike
  where     critic · [bold]x[/].weight (Linear, layer 1 of 2)
  what      The gradient of [bold]x[/].weight is not finite.
  numbers   norm infinite; times NaN; threshold growth 10
  fix       Clip with `torch.nn.utils.clip_grad_norm_(critic.parameters(), 1.0)`.
  seen      steps 330 to 402, in 10 measured steps

cleared
  - N002 bn-stats-stale at net · <img src=x onerror=alert(1)> (Linear, layer 5 of 6):
    <img src=x onerror=alert(1)> did not update its statistics.

not evaluated
  - F005: the autograd graph was not walked
  - G006: needs two optimizer steps

not measured
  - output: compiled (critic · <b>score</b>)

notes
  - Two optimizers take turns.

run
  - measuring cost 2.1 % of the training time, saving and judging took 0.4 % of the
    whole time; listening at every step not included
  - traindx-runs/train-20260102-030405.traindx"""


def test_the_sample_run_reads_as_it_always_did() -> None:
    assert text.render(sample_run()) == SNAPSHOT


def test_color_changes_nothing_but_the_color() -> None:
    colored = text.render(sample_run(), color=True)
    assert "\x1b[1;31merror" in colored
    bare = re.sub(r"\x1b\[[0-9;]*m", "", colored)
    assert [line.rstrip() for line in bare.split("\n")] == SNAPSHOT.split("\n")


def test_the_environment_does_not_change_the_text(monkeypatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "30")
    assert text.render(sample_run()) == SNAPSHOT


def test_no_line_but_code_and_paths_passes_the_width() -> None:
    lines = text.render(sample_run(), width=60).split("\n")
    long = [line for line in lines if len(line) > 60]
    assert all("torch." in line or ".traindx" in line for line in long)


def test_a_clean_run_says_how_many_rules_looked() -> None:
    verdict = Verdict(evaluated=("N001", "N002"), not_evaluated=(NotEvaluated("G006", "why"),))
    first = text.render(healthy_run(verdict)).split("\n")[0]
    assert first == "nothing found by 2 of 3 rules in 403 steps (60 measured)"


def test_a_run_that_no_rule_could_judge_is_not_called_clean() -> None:
    verdict = Verdict(not_evaluated=(NotEvaluated("G006", "why"), NotEvaluated("N001", "why")))
    first = text.render(healthy_run(verdict)).split("\n")[0]
    assert first == "not judged: none of 2 rules could be evaluated in 403 steps (60 measured)"


def test_a_run_without_a_verdict_is_not_called_clean() -> None:
    run = sample_run()
    run.verdict = None
    first = text.render(run).split("\n")[0]
    assert first == "not judged: no rule has looked at the run in 403 steps (60 measured)"


def test_a_run_without_steps_has_nothing_to_judge() -> None:
    run = Run()
    run.verdict = Verdict(evaluated=("N001",))
    assert text.render(run).startswith("nothing to judge: no training step was recorded")


def test_a_run_without_an_end_says_so() -> None:
    assert "the run goes on or was killed" in text.render(Run())


def test_a_site_that_the_model_no_longer_has_is_still_named() -> None:
    run = sample_run()
    run.models.clear()
    assert "where     net · bn2\n" in text.render(run)
    assert IMG_NAME in text.render(run)


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_color_is_for_terminals_whose_reader_has_not_refused_it() -> None:
    assert text.wants_color(_Terminal(), {})
    assert not text.wants_color(io.StringIO(), {})
    assert not text.wants_color(_Terminal(), {"NO_COLOR": "1"})
    assert not text.wants_color(_Terminal(), {"TERM": "dumb"})


def _several(number: int) -> Verdict:
    one, symptom, *_ = sample_verdict().findings
    roots = tuple(replace(one, id=i, code=f"N10{i}") for i in range(1, number + 1))
    return Verdict(findings=(*roots, replace(symptom, id=9, caused_by=(number,))))


def test_three_roots_are_told_in_full_and_the_others_in_a_line_each() -> None:
    told = text.render(sample_run(_several(5)), width=400)
    assert [code for code in ("N101", "N102", "N103") if f"\nerror {code}" in told] == [
        "N101",
        "N102",
        "N103",
    ]
    assert told.count("  why ") == 3
    rest = told.split("\nand 2 more\n")[1].split("\n\n")[0].split("\n")
    assert rest[0].startswith("  - error N104 bn-eval-gap at net · bn2 (BatchNorm2d, layer 4 of 6)")
    assert rest[1].endswith(", explaining 1 more finding")
    assert len(rest) == 2


def test_three_roots_leave_nothing_over() -> None:
    assert "more\n" not in text.render(sample_run(_several(3)))


def test_contexts_and_what_they_silence_are_told_with_their_reasons() -> None:
    verdict = Verdict(
        evaluated=("N001",),
        silenced=(Silenced("O001", Site("net", "bn2"), "warmup: the rate rose"),),
        contexts=(Context("warmup", "the rate rose"), Context("gan", "declared", Site("critic"))),
    )
    told = text.render(healthy_run(verdict))
    assert (
        "\nsilenced\n  - O001 at net · bn2 (BatchNorm2d, layer 4 of 6): warmup: the rate rose\n"
    ) in told
    assert "\ncontexts\n  - warmup: the rate rose\n  - gan at critic (Critic): declared\n" in told


def test_a_fix_that_is_code_is_not_wrapped_and_a_sentence_is() -> None:
    one = sample_verdict().findings[0]
    code, sentence = "# " + "long " * 30, "Do " + "this " * 30
    for fix, lines in ((code, 1), (sentence, 3)):
        found = replace(one, evidence=replace(one.evidence, fix=fix))
        told = text.render(sample_run(Verdict(findings=(found,))), width=80)
        shown = told.split("  fix ")[1].split("  excluded ")[0].strip().split("\n")
        assert len(shown) == lines


CHINESE = """\
1 個錯誤、1 個警告，連帶解釋另外 1 項診斷（共 403 步，量測了其中 60 步）

錯誤 N001 bn-eval-gap
  位置      net · bn2（BatchNorm2d，6 層中的第 4 層）
"""


def test_the_report_in_chinese_keeps_its_columns() -> None:
    told = text.render(sample_run(), language="zh-Hant")
    assert told.startswith(CHINESE)
    assert "\n  數值      gap 1.93（門檻 0.2）；initial_weight 0.818；門檻 after 20\n" in told
    assert "\n  出現於    第 9 到 402 步之間，共 51 個量測步\n" in told
    assert "\n未評估\n  - F005：" in told
    assert "\x1b" not in told
