"""E001: a model is evaluated while it, or a part of it, acts as in training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from traindx.findings import Evidence, Severity
from traindx.messages import Message, say
from traindx.records import Site
from traindx.rules.evaluation.passes import Passes, no_evaluation, passes_of
from traindx.rules.rule import rule
from traindx.run import Run

_SURE = 10
"""Steps after a pass that show whether every step has one."""


@rule(
    "E001",
    severity=Severity.ERROR,
    reads=("mode.training",),
    applies=no_evaluation,
    silent_in=("gan", "rl", "contrastive"),
    lasting=True,
)
def train_mode_in_eval(run: Run, *, share: float = 0.34, after: float = 10) -> Iterator[Evidence]:
    """A model is evaluated without gradient while dropout or BatchNorm act as in training.

    ## Why it matters
    `torch.no_grad()` switches gradients off and nothing else. Dropout goes on dropping, so that the
    numbers of an evaluation are those of a damaged network, and other ones each time. BatchNorm
    normalizes by the batch that it is given, whatever its size and order, and averages the
    validation data into its running statistics.

    ## How it is measured
    At every forward pass without gradient the mode of each dropout and each BatchNorm with running
    statistics is noted. Reported is a model of which every such pass since its training began had
    some of them in train mode, if they came before at most `share` of the steps since the first of
    them (a validation, not a part of the training); and a model whose own training ended `after`
    steps ago or more, and which since then has been called in train mode only: a teacher, or a
    feature extractor. As a warning is reported a model of which each evaluation, two at least,
    consists of one pass in eval mode and of others after it, the last one too, as in training.

    ## How to fix
    Call `model.eval()` before the evaluation and `model.train()` after it, on the whole model.

    ## False alarms
    A pass that estimates running statistics in train mode is followed by one in eval mode, and one
    such pass is enough to keep silent. Dropout that was switched on by itself in a model in eval
    mode is taken for Monte-Carlo dropout, and such passes are left out. Generators, policies and
    contrastive training call models in train mode without gradient as a matter of course. Not
    seen: evaluations with gradients enabled in train mode, and dropout that is a function (E003).

    ## References
    PyTorch documentation, "Autograd mechanics", on evaluation mode. Srivastava et al., "Dropout"
    (2014). Ioffe & Szegedy, "Batch Normalization" (ICML 2015), section 3.1.
    """
    for name in run.models:
        passes = [it for it in passes_of(run, name) if not it.samples_dropout]
        ended = _training_ended(run, name, after)
        if ended is not None:
            late = [it for it in passes if it.step > ended + 1]
            if late and all(it.as_in_training for it in late):
                yield _evidence(name, late, run.step, _of_a_teacher(name, run.step - ended))
        elif passes and all(it.as_in_training for it in passes) and _are_rare(run, passes, share):
            yield _evidence(name, passes, run.step, _of_an_evaluation(name))
        elif late := _after_the_first_batch(passes):
            yield _switched(name, late, run.step)


def _after_the_first_batch(passes: Sequence[Passes]) -> list[Passes]:
    """The passes as in training of evaluations that had left eval mode after one pass.

    Only if there were two evaluations or more, and all of them were such.
    """
    late: list[Passes] = []
    for _, group in groupby(passes, key=attrgetter("step")):
        first, *others = group
        began_right = first.forwards == 1 and not first.training and not first.as_in_training
        if not (began_right and len(others) == 1 and others[0].as_in_training and others[0].last):
            return []
        late += others
    return late if len(late) > 1 else []


def _are_rare(run: Run, passes: Sequence[Passes], share: float) -> bool:
    """Whether they came before few of the steps since the first of them: a validation."""
    since = run.step - passes[0].step + 1
    steps = len({it.step for it in passes})
    return (since >= _SURE or run.ended) and steps <= max(1, share * since)


def _training_ended(run: Run, model: str, after: float) -> int | None:
    """The last step at which a loss reached the model, if that was long ago."""
    loss = run.loss_of(model)
    ended = max((s.step for s in run.series("loss") if model in s.site.models), default=0)
    return ended if loss is not None and run.step - ended >= after else None


def _of_an_evaluation(model: str) -> Message:
    return say("Nothing puts {model} as a whole in eval mode before it is evaluated.", model=model)


def _of_a_teacher(model: str, steps: int) -> Message:
    return say(
        "The training of {model} ended {steps} steps before, and it was left in train mode.",
        model=model,
        steps=steps,
    )


def _evidence(model: str, passes: Sequence[Passes], step: int, cause: Message) -> Evidence:
    last = passes[-1]
    forwards = sum(it.forwards for it in passes)
    return Evidence(
        site=Site(model),
        step=min(step, last.step),
        message=say(
            "in {forwards:.0f} forward passes without gradient, all that there were, {dropping} "
            "dropout and {norms} BatchNorm layers of {model} acted as in training, first `{first}`",
            forwards=forwards,
            dropping=last.dropping,
            norms=last.batch_norms,
            model=model,
            first=last.first,
        ),
        numbers={
            "forwards": forwards,
            "dropping": last.dropping,
            "batch_norms": last.batch_norms,
        },
        cause=cause,
        fix=say(
            """\
{model}.eval()
with torch.no_grad():
    ...  # the evaluation
{model}.train()""",
            model=model,
        ),
        excluded=(
            say("a pass that estimates statistics, followed by one in eval mode"),
            say("passes that are a part of every training step"),
        ),
    )


def _switched(model: str, passes: Sequence[Passes], step: int) -> Evidence:
    last, forwards = passes[-1], sum(it.forwards for it in passes)
    return Evidence(
        site=Site(model),
        step=min(step, last.step),
        message=say(
            "in each of {evaluations} evaluations {model} was in eval mode for one forward pass, "
            "and for the others, {forwards:.0f} together, {dropping} dropout and {norms} BatchNorm "
            "layers acted as in training, first `{first}`",
            evaluations=len(passes),
            model=model,
            forwards=forwards,
            dropping=last.dropping,
            norms=last.batch_norms,
            first=last.first,
        ),
        numbers={
            "forwards": forwards,
            "dropping": last.dropping,
            "batch_norms": last.batch_norms,
        },
        cause=say("`{model}.train()` stands within the loop of the evaluation.", model=model),
        fix=say("Call `{model}.train()` after the loop, not in it.", model=model),
        excluded=(say("a pass that estimates statistics, followed by one in eval mode"),),
        severity=Severity.WARNING,
    )
