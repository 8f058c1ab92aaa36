"""L003: the output, the loss and the target do not belong together."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.records import Point, Site
from traindx.rules.loss.pairings import TABLE, Fault, Seen
from traindx.rules.loss.pairings_of_arguments import FIRST, LAST
from traindx.rules.probed import STEP, observations
from traindx.rules.rule import rule
from traindx.run import Run


@rule("L003", severity=Severity.ERROR, reads=("probe.comparisons",), source="probe")
def output_loss_mismatch(run: Run, *, unreachable: float = 0.05) -> Iterator[Evidence]:
    """The activation of the output, the loss and the target do not belong together.

    ## Why it matters
    A loss function expects its output in one form: scores, probabilities or their logarithms; and
    its target likewise. What is given in another form is seldom refused. The loss is then a number
    like any other, training goes on, and the model learns slowly, to a wrong optimum, or nothing:
    an (N, 1) output compared with N targets teaches each sample the mean of all.

    ## How it is measured
    On one batch, before training: shapes, ranges and whole numbers of what each known loss function
    is given, and the last two operations in the autograd graph that change elements before it.
    Errors: each element meets every other because (N, 1) is compared with (N,), also in a
    difference that is written by hand; a sigmoid or softmax before a loss that applies one, or two
    in a row; logarithms expected and none taken; a softmax over an axis that is not the classes'
    or over a single score; a class loss over one class; classes on the last axis where a loss takes
    them on axis 1, and both are as long; numbers for `ctc_loss` that are no logarithms of
    probabilities; targets 0 and 1 for a hinge, which needs signs; targets of a binary loss outside
    of 0 to 1; more than the fraction `unreachable` of the targets outside of what a sigmoid, tanh
    or ReLU at the end can give. Warnings: ReLU or tanh right before a loss of classes. For
    information: a distance to few whole numbers from 0 on, which may be classes. A softmax before
    cross-entropy with class numbers as targets is L002's.

    Of how a loss is called, errors are: the output in the place of the target, of losses that are
    not the same both ways; what an exponential or the like has made, for a Poisson loss that takes
    logarithms, or negative rates for one that does not; a divergence's target that is logarithms
    without `log_target`; several classes in a row that sum to more than 1, for one softmax; symbols
    that are the blank of `ctc_loss`, and texts longer than their frames. Warnings: a loss of
    nothing but cosine similarities to targets that grows with them; a gradient through a target
    that is a number plus a discounted output; label smoothing above a half; weights that grow with
    the frequency of classes, where one is three times as frequent as another; targets of both
    signs that are whole, and 0 at least every second time.

    ## How to fix
    Give each loss what it takes: `cross_entropy` and `binary_cross_entropy_with_logits` raw scores,
    `nll_loss` and `kl_div` logarithms of probabilities, `binary_cross_entropy` probabilities. End a
    regression with a plain linear layer, and compare tensors of one shape: `output.squeeze(1)`.

    ## False alarms
    A sigmoid with arithmetic after it is not seen as such, nor is a soft cap of scores by a scaled
    tanh. All pairs of a batch on purpose (`x[:, None] - x[None]`) have operands of equally many
    axes. A few targets beyond a sigmoid's range are taken for noise. Counts and returns are whole
    numbers too, which is why those are no more than information. Gradients through both sides of
    Bellman's equation are meant by residual algorithms.

    ## References
    PyTorch documentation, `torch.nn.CrossEntropyLoss`, `BCELoss`, `BCEWithLogitsLoss`, `NLLLoss`,
    `KLDivLoss`, on what each expects. Humbatova et al., "Taxonomy of real faults in deep learning
    systems" (ICSE 2020), in which wrong outputs and losses are among the most frequent. Graves et
    al., "Connectionist temporal classification" (ICML 2006). Baird, "Residual algorithms" (ICML
    1995), and Mnih et al., "Human-level control through deep reinforcement learning" (2015), on
    the gradient of targets.
    """
    worst: dict[Site, tuple[Seen, Fault]] = {}
    for observation in observations(run, "output-and-target"):
        seen = Seen(observation, unreachable)
        fault = next((found for judge in (*FIRST, *TABLE, *LAST) if (found := judge(seen))), None)
        known = worst.get(observation.site)
        if fault and (known is None or fault.severity.rank < known[1].severity.rank):
            worst[observation.site] = seen, fault
    for seen, fault in worst.values():
        yield _evidence(seen, fault)


def _evidence(seen: Seen, fault: Fault) -> Evidence:
    site = seen.observation.site
    return Evidence(
        site=site,
        step=STEP,
        message=say(
            "the output, the loss and the target of {model} do not belong together: {what}",
            model=site.model,
            what=fault.what,
        ),
        numbers=_numbers(seen),
        point=Point.OUTPUT,
        cause=fault.cause,
        fix=fault.fix,
        severity=fault.severity,
    )


def _numbers(seen: Seen) -> dict[str, float]:
    names = ("prediction_min", "prediction_max", "target_min", "target_max")
    return {name: seen.number(name) for name in names if name in seen.observation.detail}
