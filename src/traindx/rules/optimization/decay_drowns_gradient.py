"""O016: weight decay that is stronger than what the loss says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from traindx.facts import ModelFacts, OptimizerFacts
from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.records import Site
from traindx.rules.rule import rule
from traindx.run import Run

FIRST = 5
"""Measured steps that show what the decay is against."""
_DECOUPLED = ("AdamW", "Lion", "Muon", "SGDW")
"""Beginnings of the names of optimizers whose decay is not added to the gradient."""


@dataclass(frozen=True, slots=True)
class _Pull:
    """Decay against gradient.

    Attributes:
        weights: Weights looked at.
        decay: The least weight decay of the groups that have one.
        pull: Median over the weights of decay times weight over gradient, in the first steps.
        left: Median over the weights of their RMS over the first.
        step: The last measured step.
    """

    weights: int
    decay: float
    pull: float
    left: float
    step: int


@rule("O016", severity=Severity.ERROR, reads=("param.rms",), lasting=True)
def decay_drowns_gradient(
    run: Run, *, pull: float = 5.0, left: float = 0.3, loss: float = 0.8
) -> Iterator[Evidence]:
    """Weight decay pulls harder at the weights than the loss does, and they shrink to nothing.

    ## Why it matters
    SGD and Adam add weight_decay times the weight to its gradient. A decay that suits a learning
    rate of AdamW, or a zero too few, makes that larger than the gradient: each step takes the
    network nearer to zero, whatever the data say, and a network near zero has next to no gradient.

    ## How it is measured
    At the first five measured steps, weight_decay times the RMS of each weight of two dimensions or
    more over the RMS of its gradient, the median of them, and of these over the model at least
    `pull`. And it has had its effect: the median weight has since shrunk to less than `left` of its
    size, while the mean of the last losses is above `loss` of the first.

    ## How to fix
    Take a weight decay of 1e-5 to 1e-3, as is usual for SGD, or AdamW, whose decay is not divided
    by the size of the gradient. The finding proposes a hundredth of what balances the gradient.

    ## False alarms
    Late in training the gradient is small beside any decay: only the first steps count. Fine-tuning
    begins with small gradients, but its weights do not shrink. A network that learns while its
    weights shrink, as normalization allows, has a loss that falls. The decay of AdamW is not judged
    by this rule, nor is a penalty in the loss.

    ## References
    Krogh and Hertz, "A simple weight decay can improve generalization" (1991). Loshchilov and
    Hutter, "Decoupled weight decay regularization" (2019), on decay and gradient in Adam.
    """
    for model in run.models.values():
        for optimizer in run.optimizers.values():
            found = _pull(run, model, optimizer)
            drowns = found and found.pull >= pull and found.left < left
            if found and drowns and run.loss_fraction(model.name) > loss:
                yield _evidence(optimizer, found, pull)


def _pull(run: Run, model: ModelFacts, optimizer: OptimizerFacts) -> _Pull | None:
    if optimizer.kind.startswith(_DECOUPLED):
        return None
    settings = [group for group in optimizer.groups if not group.get("decoupled_weight_decay")]
    decays = [d for g in settings if isinstance(d := g.get("weight_decay"), int | float) and d > 0]
    if not decays:
        return None
    pulls: list[float] = []
    sizes: list[float] = []
    step = 0
    for param in model.params:
        site = Site(model.name, param.fqn)
        weight, grad = run.at("param.rms", site), run.at("grad.rms", site)
        if len(param.shape) < 2 or optimizer.name not in param.optimizers or not (weight and grad):
            continue
        first = [
            min(decays) * size / slope
            for at, size in zip(weight.steps[:FIRST].tolist(), weight.values[:FIRST], strict=True)
            if (slope := grad.at(at)) and slope > 0
        ]
        if len(first) == FIRST and weight.first > 0:
            pulls.append(median(first))
            sizes.append(weight.last / weight.first)
            step = max(step, weight.step)
    if not pulls:
        return None
    return _Pull(len(pulls), min(decays), median(pulls), median(sizes), step)


def _evidence(optimizer: OptimizerFacts, found: _Pull, threshold: float) -> Evidence:
    return Evidence(
        site=Site("", optimizer.name),
        step=found.step,
        message=say(
            "a weight decay of {decay:g} pulls {pull:.3g} times as hard at the median of {weights} "
            "weights as the gradient of the first steps (threshold {threshold:g}); it has shrunk "
            "to {left:.1%} of its size",
            decay=found.decay,
            pull=found.pull,
            weights=found.weights,
            threshold=threshold,
            left=found.left,
        ),
        numbers={"pull": found.pull, "left": found.left, "weight_decay": found.decay},
        cause=say("The weight decay is far too strong for gradients of this size."),
        fix=say(
            "{kind}(…, weight_decay={new:.0e})  # in place of {old:g}",
            kind=optimizer.kind,
            new=found.decay / found.pull / 100,
            old=found.decay,
        ),
        excluded=(
            say("gradients that are small late in training"),
            say("the loss has fallen all the same"),
        ),
        series=("param.rms", "grad.rms", "loss"),
    )
