"""G006: gradients pile up from step to step."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.rules.rule import rule
from traindx.run import Run


@rule(
    "G006",
    severity=Severity.ERROR,
    reads=("grad.uncleared",),
    hits=2,
    remedies=("zero-grad",),
)
def missing_zero_grad(run: Run, *, fraction: float = 0.99) -> Iterator[Evidence]:
    """Gradients are never cleared, so each step applies the sum of all gradients so far.

    ## Why it matters
    `backward` adds to `.grad`. Without `zero_grad` between steps the optimizer follows the sum of
    every batch's gradient since the start, taken at weights long gone: steps grow, point the
    wrong way, and the loss diverges or swings.

    ## How it is measured
    Exactly: a step counts if its first backward pass added onto the very gradient tensors that
    the last step had used, with nothing done to them in between. At least `fraction` of the steps
    since the last measured one must be such, at two measured steps in a row.

    ## How to fix
    Call `optimizer.zero_grad()` once a step, before `loss.backward()`. With gradient accumulation
    call it once per `optimizer.step()`, not once per micro-batch.

    ## False alarms
    Gradient accumulation is told apart: only the first backward pass after a step counts, and
    it finds cleared gradients there. Clearing by `p.grad = None`, by `p.grad.zero_()` or through
    the model is seen as well.

    ## References
    PyTorch documentation, `torch.optim.Optimizer.zero_grad` and "Zeroing out gradients". Jiang et
    al. (OSDI 2025), on silent errors of this kind.
    """
    for series in run.series("grad.uncleared"):
        if series.last >= fraction:
            name = series.site.fqn or series.site.model or "the optimizer"
            yield Evidence(
                site=series.site,
                step=series.step,
                message=f"in {series.last:.0%} of the last steps of {name} the gradient was added "
                f"onto the step's before (threshold {fraction:.0%})",
                numbers={"fraction": series.last},
                cause="Nothing clears the gradients between two steps.",
                fix="Call `optimizer.zero_grad()` before `loss.backward()`, once per step.",
                excluded=("gradient accumulation",),
                series=("grad.uncleared", "loss"),
            )
