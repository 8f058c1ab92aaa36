"""G010: gradients are clipped at a moment at which that is of no use, or does harm."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean

from traindx.findings import Evidence, Severity
from traindx.messages import Message, say
from traindx.records import RUN, Site
from traindx.rules.rule import rule
from traindx.run import Run, Series

MIN_STEPS = 4
"""Measured steps with a call that it takes to speak of a share."""


@rule("G010", severity=Severity.ERROR, reads=("clip.late", "clip.scaled"), lasting=True)
def clip_order(run: Run, *, fraction: float = 0.5, window: float = 8) -> Iterator[Evidence]:
    """Gradients are clipped after the step that they were for, or before they are unscaled.

    ## Why it matters
    After `optimizer.step()` the gradients have been applied, and clipping them changes nothing: a
    spike goes into the weights as it is. Under a GradScaler the gradients are multiplied by the
    scale, often 65536, until they are unscaled. Clipped before that, nearly each one exceeds the
    bound, and what is left of it is divided by the scale afterwards: the network hardly moves.

    ## How it is measured
    Exactly, at each call of `torch.nn.utils.clip_grad_norm_` with the Euclidean norm. It is late if
    the step is over, no backward pass has followed, and the gradient is still the tensor that the
    step has used. It is of scaled gradients if a GradScaler that also steps has scaled the loss in
    this step and has unscaled no optimizer since. Of the last `window` measured steps with a call
    (of at least 4) a share of at least `fraction` must be such.

    ## How to fix
    In this order: `backward`, `scaler.unscale_(optimizer)` if there is a scaler, clip, step.

    ## False alarms
    A call with no bound, or one of a million and more, asks for the norm only. Where the bound is
    larger than the root of the scaler's first scale, it is taken to have been multiplied by the
    scale on purpose. Gradients that are unscaled by hand and stepped without the scaler count as
    unscaled. A function that was imported by name before traindx began to watch is not seen.

    ## References
    PyTorch documentation, "Automatic mixed precision examples", on gradient clipping. Pascanu,
    Mikolov and Bengio, "On the difficulty of training recurrent neural networks" (2013).
    """
    late, scaled = run.at("clip.late", RUN), run.at("clip.scaled", RUN)
    for series, cause, fix in (
        (
            late,
            say("`clip_grad_norm_` stands behind `optimizer.step()`."),
            say("Clip between `loss.backward()` and `optimizer.step()`."),
        ),
        (
            scaled,
            say("`scaler.unscale_` is not called before `clip_grad_norm_`."),
            say("scaler.unscale_(optimizer)  # before clip_grad_norm_"),
        ),
    ):
        recent = series.tail(int(window)) if series else ()
        if series and len(recent) >= MIN_STEPS and (share := fmean(recent)) >= fraction:
            yield _evidence(run, series, share, len(recent), fraction, cause, fix)


def _evidence(
    run: Run,
    series: Series,
    share: float,
    steps: int,
    fraction: float,
    cause: Message,
    fix: Message,
) -> Evidence:
    late = series.quantity == "clip.late"
    what = say("after the step") if late else say("while they were multiplied by the loss scale")
    return Evidence(
        site=Site("", next(iter(run.optimizers))) if len(run.optimizers) == 1 else RUN,
        step=series.step,
        message=say(
            "in {share:.0%} of the calls in the last {steps} measured steps gradients were clipped "
            "{what} (threshold {threshold:.0%})",
            share=share,
            steps=steps,
            what=what,
            threshold=fraction,
        ),
        numbers={"fraction": share, "measured_steps": steps},
        cause=cause,
        fix=fix,
        excluded=(
            say("a call that asks for the norm"),
            say("a bound that was multiplied by the scale"),
        ),
        series=(series.quantity,),
    )
