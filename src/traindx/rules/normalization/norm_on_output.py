"""N018: what is predicted is the output of a normalization."""

from __future__ import annotations

import math
from collections.abc import Iterator

from traindx.facts import LossFacts, TensorFacts
from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.records import Site
from traindx.rules.normalization.scale import has_weight, normalizations
from traindx.rules.rule import rule
from traindx.run import Run

_REGRESSIONS = ("MseLoss", "SmoothL1Loss", "HuberLoss")
_CLASSIFICATIONS = ("NllLoss",)
_NORMS = ("NativeBatchNorm", "CudnnBatchNorm", "NativeLayerNorm", "NativeGroupNorm")


@rule(
    "N018",
    severity=Severity.WARNING,
    reads=("loss",),
    silent_in=("contrastive", "gan"),
    lasting=True,
)
def norm_on_output(run: Run, *, floor: float = 0.1) -> Iterator[Evidence]:
    """What is predicted is the output of a normalization.

    ## Why it matters
    A normalization makes its output one of mean 0 and deviation 1, over the batch or over the
    outputs of a sample. How large the target is on the whole cannot be said any more, unless by the
    layer's own weight and bias, which are the same for all samples. LayerNorm ties the outputs of a
    sample to each other; BatchNorm makes a prediction depend on the rest of the batch.

    Scores of C classes that a LayerNorm without weight has made of unit size cannot be sure of
    anything: none is more than sqrt(C - 1), with the others at -1/sqrt(C - 1), which for 10 classes
    leaves a cross-entropy of at least 0.28.

    ## How it is measured
    In the autograd graph: the prediction that mean squared error, Huber or smooth L1 loss compares
    with its target must be the very result of BatchNorm, LayerNorm or GroupNorm. Without weight and
    bias it is an error. Of cross-entropy the scores must be the result of a LayerNorm without
    weight, and the least loss that they allow more than `floor`: it is with up to 30 classes.

    ## How to fix
    Leave the last normalization out, and standardize the targets of training instead. Scores that
    are normalized on purpose need a factor, learned or fixed, as cosine classifiers have.

    ## False alarms
    Losses between two normalized representations, as in self-supervised learning: declare the
    context `contrastive`.

    ## References
    Ioffe & Szegedy, "Batch Normalization" (ICML 2015), section 3.2, which puts it before the
    nonlinearity of hidden layers.
    """
    for loss in run.losses.values():
        if loss.prediction is None or not loss.prediction.operation.startswith(_NORMS):
            continue
        last = _last_norm(run, loss)
        if last is not None and loss.loss.startswith(_REGRESSIONS):
            yield _of_a_regression(*last, run.step)
        elif last is not None and loss.loss.startswith(_CLASSIFICATIONS):
            site, kind, free = last
            least = _least(loss.prediction)
            if not free and least > floor:
                yield _of_scores(site, kind, least, run.step)


def _least(scores: TensorFacts) -> float:
    """The least cross-entropy that a LayerNorm over C classes allows, whose squares sum to C.

    One score is sqrt(C - 1) then, and the others are -1/sqrt(C - 1); 0 for other normalizations.
    """
    classes = scores.shape[-1] if len(scores.shape) == 2 else 0
    if classes < 2 or not scores.operation.startswith("NativeLayerNorm"):
        return 0.0
    most = math.sqrt(classes - 1)
    return math.log1p((classes - 1) * math.exp(-most - 1 / most))


def _of_a_regression(site: Site, kind: str, free: bool, step: int) -> Evidence:
    return Evidence(
        site=site,
        step=step,
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


def _of_scores(site: Site, kind: str, least: float, step: int) -> Evidence:
    return Evidence(
        site=site,
        step=step,
        message=say(
            "the scores that cross-entropy is given are the output of `{layer}` ({kind}), which "
            "has no weight: the loss cannot fall below {least:.3f}",
            layer=site.fqn,
            kind=kind,
            least=least,
        ),
        numbers={"has_weight": 0.0, "least": least},
        cause=say("Scores of unit size cannot be sure of a class."),
        fix=say("Leave out `{layer}`, or multiply its output by a factor.", layer=site.fqn),
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
