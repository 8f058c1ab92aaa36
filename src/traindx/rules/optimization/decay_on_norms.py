"""O010: strong weight decay is applied to normalization layers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from traindx.findings import Evidence, Severity, first_layers
from traindx.messages import counted, say
from traindx.rules.probed import STEP, Observation, observations
from traindx.rules.rule import rule
from traindx.run import Run


@rule(
    "O010",
    severity=Severity.INFO,
    reads=("probe.decay_half_life",),
    source="probe",
    explained_by=("N011", "O016"),
)
def decay_on_norms(
    run: Run, *, half_life: float = 5000, warning_half_life: float = 500
) -> Iterator[Evidence]:
    """Weight decay quickly pulls the weights of normalization layers to zero.

    ## Why it matters
    Weight decay is meant for the matrices of layers. The weight of a normalization sets the size of
    what it lets through: pulled to zero, it takes the signal with it, and a residual branch or a
    whole layer fades. Biases need no decay either, since they hardly overfit.

    ## How it is measured
    From the optimizer's groups, for SGD and AdamW, in which each step multiplies a weight by 1 - lr
    times weight_decay: decay alone halves it in ln 2/(lr weight_decay) steps. Fewer than
    `half_life` steps for the weight of a normalization are information, fewer than
    `warning_half_life` a warning. The rate is that of the first step, a warmup's least.

    ## How to fix
    Make two groups: `decay = [p for p in model.parameters() if p.dim() > 1]` with the weight decay,
    the rest with `"weight_decay": 0.0`.

    ## False alarms
    The usual settings stay far away: SGD with rate 0.1 and decay 5e-4 halves in 13,900 steps, AdamW
    with 3e-4 and 0.1 in 23,100. A run that is shorter than the half-life does not feel it. Where
    the gradient holds against the decay, the weights settle and do not vanish.

    ## References
    Loshchilov & Hutter, "Decoupled weight decay regularization" (2019). He et al., "Bag of tricks
    for image classification with convolutional neural networks" (2019), section 3.1, on no decay
    of biases and normalization.
    """
    for seen in observations(run, "weight-decay"):
        steps = run.at("probe.decay_half_life", seen.site)
        if steps is not None and seen.number("num_norms") and steps.last < half_life:
            yield _evidence(seen, steps.last, steps.last < warning_half_life)


def _evidence(seen: Observation, steps: float, grave: bool) -> Evidence:
    found = seen.detail.get("norms")
    names = cast("list[str]", found) if isinstance(found, list) else []
    count = int(seen.number("num_norms"))
    return Evidence(
        site=seen.site,
        step=STEP,
        message=say(
            "weight decay halves {params} of normalization layers of {model} every {steps:.0f} "
            "steps, first `{first}`",
            params=counted(count, "{n} parameter", "{n} parameters"),
            model=seen.site.model,
            steps=steps,
            first=names[0] if names else "",
        ),
        numbers={"half_life": steps, "norms": count, "biases": seen.number("biases")},
        cause=say("The group with the weight decay holds all parameters."),
        fix=say(
            'rest = {{"params": [p for p in {model}.parameters() if p.dim() < 2], '
            '"weight_decay": 0.0}}',
            model=seen.site.model,
        ),
        severity=Severity.WARNING if grave else Severity.INFO,
        layers=first_layers(name.rpartition(".")[0] for name in names),
    )
