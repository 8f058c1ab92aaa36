"""N018: a regression's prediction is the output of a normalization."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.facts import LossFacts
from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.records import Site
from traindx.rules.normalization.scale import has_weight, normalizations
from traindx.rules.rule import rule
from traindx.run import Run

_REGRESSIONS = ("MseLoss", "SmoothL1Loss", "HuberLoss")
_NORMS = ("NativeBatchNorm", "CudnnBatchNorm", "NativeLayerNorm", "NativeGroupNorm")


@rule("N018", severity=Severity.WARNING, reads=("loss",), silent_in=("contrastive", "gan"))
def norm_on_output(run: Run) -> Iterator[Evidence]:
    """What a regression predicts is the output of a normalization.

    ## Why it matters
    A normalization makes its output one of mean 0 and deviation 1, over the batch or over the
    outputs of a sample. How large the target is on the whole cannot be said any more, unless by the
    layer's own weight and bias, which are the same for all samples. LayerNorm ties the outputs of a
    sample to each other; BatchNorm makes a prediction depend on the rest of the batch.

    ## How it is measured
    In the autograd graph: the prediction that mean squared error, Huber or smooth L1 loss compares
    with its target must be the very result of BatchNorm, LayerNorm or GroupNorm. Without weight and
    bias it is an error.

    ## How to fix
    Leave the last normalization out, and standardize the targets of training instead.

    ## False alarms
    Losses between two normalized representations, as in self-supervised learning: declare the
    context `contrastive`.

    ## References
    Ioffe & Szegedy, "Batch Normalization" (ICML 2015), section 3.2, which puts it before the
    nonlinearity of hidden layers.
    """
    for loss in run.losses.values():
        if loss.prediction is None or not loss.loss.startswith(_REGRESSIONS):
            continue
        if not loss.prediction.operation.startswith(_NORMS):
            continue
        found = _last_norm(run, loss)
        if found is not None:
            site, kind, free = found
            yield Evidence(
                site=site,
                step=run.step,
                message=say(
                    "the prediction that the loss compares with its target is the output of "
                    "`{layer}` ({kind})",
                    layer=site.fqn,
                    kind=kind,
                ),
                numbers={"has_weight": float(free)},
                cause=(
                    say("Weight and bias of the layer alone say how large a prediction is.")
                    if free
                    else say("Without weight and bias no prediction can be of the target's size.")
                ),
                fix=say("Leave out `{layer}`; standardize the targets instead.", layer=site.fqn),
                severity=Severity.WARNING if free else Severity.ERROR,
            )


def _last_norm(run: Run, loss: LossFacts) -> tuple[Site, str, bool] | None:
    """The last normalization that a loss's models call, its class, and whether it has a weight."""
    for name in reversed(loss.models.split("+")):
        model = run.models.get(name)
        called = [norm for norm in normalizations(model) if norm.order is not None] if model else []
        if model is not None and called:
            last = called[-1]
            return Site(name, last.fqn), last.kind, has_weight(model, last)
    return None
