"""G011: of the backward passes before a step all but the last are for nothing."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.records import RUN
from traindx.rules.rule import rule
from traindx.run import Run, Series


@rule("G011", severity=Severity.WARNING, reads=("grad.discarded",), hits=3)
def discarded_gradient(run: Run, *, passes: float = 2) -> Iterator[Evidence]:
    """Gradients of several batches are computed for each step, and all but the last are cleared.

    ## Why it matters
    With `zero_grad()` in the loop over batches and `step()` outside of it, or at every fourth batch
    only, each clearing throws away what the batch before has given. The step follows the last
    batch alone: most of the computation is for nothing, and where gradients were to be
    accumulated, each is divided by the number of batches on top.

    ## How it is measured
    Exactly, at three measured steps in a row: before the step at least `passes` backward passes
    have reached the optimizer's parameters, and their gradients were gone (None) when the next pass
    began; all but the last are lost. The gradients that are stepped on are those that the last pass
    has left. There is one optimizer, and no input of a model requires a gradient.

    ## How to fix
    `zero_grad()` right after `step()`, where that stands. To step at every batch, indent it.

    ## False alarms
    Gradients that are gathered elsewhere and put back (per sample, per task) are others than the
    last pass has left. A pass for the sake of an input, as in adversarial training, is told by the
    input, and a pair of passes (sharpness-aware minimization) is no more than one lost pass. The
    gradients of one network of several that are cleared before its turn are left out. Gradients
    that are set to zero and not to None look clipped, and are not seen; nor is it seen where the
    last gradients are clipped.

    ## References
    PyTorch documentation, `torch.optim.Optimizer.zero_grad`, on None, and "Automatic mixed
    precision examples", on gradient accumulation.
    """
    optimizers = {series.site.fqn for series in run.series("lr")}
    if len(optimizers) > 1 or run.series("input.differentiated"):
        return
    for series in run.series("grad.discarded"):
        backwards = run.at("backwards", RUN)
        if backwards is None or backwards.step != series.step:
            continue
        if series.last >= passes and series.last == backwards.last - 1:
            yield _evidence(series, backwards.last)


def _evidence(series: Series, passes: float) -> Evidence:
    return Evidence(
        site=series.site,
        step=series.step,
        message=say(
            "of {passes:.0f} backward passes before a step of {optimizer} the gradients of "
            "{lost:.0f} were cleared before it",
            passes=passes,
            optimizer=series.site.fqn,
            lost=series.last,
        ),
        numbers={"passes": passes, "lost": series.last},
        cause=say("`zero_grad()` is called at each batch, and `step()` is not."),
        fix=say("optimizer.step(); optimizer.zero_grad()  # both after the last batch, or each"),
        excluded=(say("gradients that are gathered elsewhere"), say("passes for an input's sake")),
        series=("backwards", "loss"),
    )
