"""The report on the terminal."""

from __future__ import annotations

import io
import re

from tests.report.sample import IMG_NAME, healthy_run, sample_run
from traindx.findings import NotEvaluated, Verdict
from traindx.report import text
from traindx.run import Run

SNAPSHOT = """\
the loss of critic is not finite from step 331 on; 1 error, 1 warning, explaining 1 more
finding in 403 steps (60 measured)

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
  - The loss of critic is NaN from step 331 on: rules that compare gradients cannot
    judge there.
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


def test_a_run_whose_loss_is_not_finite_is_not_called_clean() -> None:
    verdict = Verdict(evaluated=("N001", "N002"), not_evaluated=(NotEvaluated("G006", "why"),))
    first, second, *_ = text.render(sample_run(verdict), color=True).split("\n")
    assert "the loss of critic is not finite from step 331 on; nothing found by 2 of 3" in first
    assert first.startswith("\x1b[1;33m")
    assert "(60 measured)" in second


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
