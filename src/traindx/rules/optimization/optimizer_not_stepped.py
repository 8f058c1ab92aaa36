"""O014: an optimizer that is made and never takes a step."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.records import RUN
from traindx.rules.rule import rule
from traindx.run import Run, Series


@rule("O014", severity=Severity.ERROR, reads=("optimizer.waiting",), lasting=True)
def optimizer_not_stepped(
    run: Run, *, patience: float = 200, least: float = 20
) -> Iterator[Evidence]:
    """An optimizer is made and never steps, so that what it holds is not trained.

    ## Why it matters
    With one optimizer for the encoder and one for the decoder, or for generator and critic, it
    takes one forgotten `step()` for half of the network to stay as it was initialized. Backward
    computes its gradients as ever, the other half makes the best of it, and the loss falls.

    ## How it is measured
    Exactly, by identity. An optimizer that was made while traindx listened has not completed a
    step, and parameters that it alone holds have gradients of the step. It is a finding after
    `patience` steps of the others since it was made, or at the end of the run after `least` of
    them. The finding stands at the part of the model that has these parameters.

    ## How to fix
    Call its `step()` wherever that of the other one is called, or delete it and give its parameters
    to the other one.

    ## False alarms
    An optimizer whose turn comes in every fifth step waits for no longer than that. One that was
    made ahead for a later phase waits as well, but what it holds gets no gradients until then, or
    is held by an optimizer that steps; if it gets gradients for 200 steps and is left alone, the
    finding is cleared once its turn has come. Optimizers of tensors that no module holds are not
    looked at, nor those that were made before traindx was imported.

    ## References
    PyTorch documentation, `torch.optim`, "Taking an optimization step". Jiang et al., "Training
    with confidence" (OSDI 2025), on parameters that silently are not updated.
    """
    passes = run.at("backwards", RUN)
    for series in run.series("optimizer.waiting"):
        needed = least if run.ended else patience
        if passes and series.step == passes.step and series.last >= needed:
            yield _evidence(series, needed)


def _evidence(series: Series, needed: float) -> Evidence:
    place = series.site.fqn or series.site.model
    return Evidence(
        site=series.site,
        step=series.step,
        message=say(
            "the only optimizer of parameters of `{place}` has not stepped in the {steps:.0f} "
            "steps since it was made, though they have gradients (threshold {threshold:.0f})",
            place=place,
            steps=series.last,
            threshold=needed,
        ),
        numbers={"steps": series.last},
        cause=say("Its `step()` is never called."),
        fix=say("{place}_optimizer.step()", place=place.replace(".", "_")),
        excluded=(
            say("another optimizer holds the parameters"),
            say("an optimizer whose turn comes in every few steps"),
        ),
        series=("optimizer.waiting",),
    )
