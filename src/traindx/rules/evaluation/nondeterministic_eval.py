"""E004: in evaluation, the model makes different outputs of the same batch."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import Message, say
from traindx.rules.probed import STEP, Observation, observations
from traindx.rules.rule import rule
from traindx.run import Run


@rule(
    "E004",
    severity=Severity.WARNING,
    reads=("probe.eval_change",),
    source="probe",
    explained_by=("E001", "E003"),
)
def nondeterministic_eval(run: Run) -> Iterator[Evidence]:
    """In evaluation, the model makes different outputs of the same batch.

    ## Why it matters
    A score that changes when nothing was changed cannot choose between two checkpoints, and a
    deployed model that drops units at random is worse than the one that was trained. The usual
    cause is `F.dropout(x, p)`, which drops in evaluation, too, unless it is told
    `training=self.training`; or a module in a plain list, which `model.eval()` does not reach.

    ## How it is measured
    By preflight, in evaluation, on one batch: two passes with different random numbers from the
    same state must agree within rounding (1e-4 of the output's RMS in float32, 16 units in the
    last place of shorter types). If they do, so must two passes one after another with the same
    random numbers, which shows what a pass leaves behind. The place is the first module, from the
    inside, that was given the same and made another output. A dropout that drops is a warning;
    whatever else is random, and state that is carried on, is told as information.

    ## How to fix
    `F.dropout(x, p, training=self.training)`, or a `nn.Dropout` that is an attribute of its module
    (in a `nn.ModuleList` if there are several). Of attention,
    `dropout_p=self.p if self.training else 0.0`.

    ## False alarms
    Monte-Carlo dropout drops in evaluation on purpose: ignore the rule there. A variational
    autoencoder, a diffusion model or a policy may draw in evaluation as it should; a model that
    keeps a hidden state from batch to batch differs from call to call. That is why these are
    information only.

    ## References
    PyTorch documentation, `torch.nn.functional.dropout` (`training` is True by default) and
    `torch.nn.Module.eval`. Gal & Ghahramani, "Dropout as a Bayesian approximation" (ICML 2016).
    """
    for seen in observations(run, "evaluation-repeats"):
        why = seen.text("why")
        if why == "dropout":
            yield _dropout(seen)
        else:
            yield _other(seen, why)


def _dropout(seen: Observation) -> Evidence:
    return Evidence(
        site=seen.site,
        step=STEP,
        message=say(
            "in evaluation the output moves by {change:.2g} of its RMS from call to call, and "
            "dropout is at work; it begins in `{place}` ({kind})",
            change=seen.number("change"),
            place=_place(seen),
            kind=seen.text("kind"),
        ),
        numbers=_numbers(seen),
        cause=say("It is not told of evaluation, or `model.eval()` does not reach it."),
        fix=say(
            "F.dropout(x, p, training=self.training)  # or nn.Dropout(p) as an attribute, several "
            "of them in a nn.ModuleList"
        ),
        excluded=(say("what a call leaves behind"),),
    )


def _other(seen: Observation, why: str) -> Evidence:
    causes: dict[str, Message] = {
        "random": say("The model draws random numbers in evaluation."),
        "state": say("A call leaves something behind that the next one uses."),
        "unseeded": say(
            "It draws from a generator of its own, or uses kernels that are not deterministic."
        ),
    }
    return Evidence(
        site=seen.site,
        step=STEP,
        message=say(
            "in evaluation the output moves by {change:.2g} of its RMS from call to call; it "
            "begins in `{place}` ({kind})",
            change=seen.number("change"),
            place=_place(seen),
            kind=seen.text("kind"),
        ),
        numbers=_numbers(seen),
        cause=causes.get(why, Message("")),
        fix=say("If that is not meant: do it under `if self.training:` only."),
        severity=Severity.INFO,
    )


def _place(seen: Observation) -> str:
    return seen.site.fqn or seen.site.model


def _numbers(seen: Observation) -> dict[str, float]:
    return {"change": seen.number("change"), "tolerance": seen.number("tolerance")}
