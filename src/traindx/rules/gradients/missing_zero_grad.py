"""G006: gradients pile up from step to step."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.rules.rule import rule
from traindx.run import Run, Series

MIN_STEPS = 4
"""Measured steps that it takes to speak of a share."""


@rule(
    "G006",
    severity=Severity.ERROR,
    reads=("grad.uncleared",),
    remedies=("zero-grad",),
    lasting=True,
)
def missing_zero_grad(run: Run, *, fraction: float = 0.5, window: float = 8) -> Iterator[Evidence]:
    """Gradients are not cleared between steps, so a step applies a sum of those before, too.

    ## Why it matters
    `backward` adds to `.grad`. Without `zero_grad` between steps the optimizer follows the sum of
    every batch's gradient since the last clearing, taken at weights long gone: steps grow, point
    the wrong way, and the loss diverges or swings.

    ## How it is measured
    Exactly, at each measured step: it counts if its first backward pass added onto the very
    gradient tensors that the step before had used, with nothing done to them in between. Of an
    optimizer's last `window` measured steps (of at least 4) a share of at least `fraction` must
    be such. Measured steps fall at irregular places, so that clearing once an epoch, or at every
    fourth step, is met as well.

    ## How to fix
    Call `optimizer.zero_grad()` once a step, before `loss.backward()`. With gradient accumulation
    call it once per `optimizer.step()`, not once per micro-batch.

    ## False alarms
    Gradient accumulation is told apart: only the first backward pass after a step counts, and
    it finds cleared gradients there. Clearing by `p.grad = None`, by `p.grad.zero_()` or through
    the model is seen as well, and so is `p.grad.data.zero_()`, since a few entries are compared.
    One odd step is no share.

    ## References
    PyTorch documentation, `torch.optim.Optimizer.zero_grad` and "Zeroing out gradients". Jiang et
    al. (OSDI 2025), on silent errors of this kind.
    """
    for series in run.series("grad.uncleared"):
        recent = series.tail(int(window))
        share = sum(flag >= 0.5 for flag in recent) / len(recent)
        if len(recent) >= MIN_STEPS and share >= fraction:
            yield _evidence(series, share, len(recent), fraction)


def _evidence(series: Series, share: float, steps: int, fraction: float) -> Evidence:
    name = series.site.fqn or series.site.model or say("the optimizer")
    return Evidence(
        site=series.site,
        step=series.step,
        message=say(
            "in {share:.0%} of the last {steps} measured steps of {name} the gradient was added "
            "onto that of the step before (threshold {threshold:.0%})",
            share=share,
            steps=steps,
            name=name,
            threshold=fraction,
        ),
        numbers={"fraction": share, "measured_steps": steps},
        cause=say("Nothing clears the gradients between two steps, or not between all of them."),
        fix=say("Call `optimizer.zero_grad()` before `loss.backward()`, once per step."),
        excluded=(say("gradient accumulation"), say("one odd step")),
        series=("grad.uncleared", "loss"),
    )
