"""L012: the other terms of the loss keep one of them from being learned."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.rules.probed import STEP, Observation, observations
from traindx.rules.rule import rule
from traindx.run import Run


@rule("L012", severity=Severity.WARNING, reads=("probe.term_left",), source="probe")
def loss_component_dominates(
    run: Run, *, left: float = 0.9, alone: float = 0.5
) -> Iterator[Evidence]:
    """One term of the loss is drowned by the others: alone it is learned, with them it is not.

    ## Why it matters
    Only the sum of a loss is trained. Where one term is a sum over dimensions and another a mean
    over pixels, or one target is in thousands and another between 0 and 1, the sum falls, and what
    the smaller term asks for is never learned: a variational autoencoder whose divergence outweighs
    its pictures returns the mean picture for all of them.

    ## How it is measured
    By preflight, by a trial: a copy of the model is trained for up to 200 steps of Adam on a few
    samples of the batch, at two rates, with new random numbers at every step. The best mean of a
    term over ten steps, over its least possible value, is measured beside that of the best answer
    that does not look at the input. If more than the part `left` remains after training on the
    whole loss, and less than `alone` after training on that term only, the others keep it from
    being learned. Judged are terms that are a cross-entropy or a distance of torch's.

    ## How to fix
    Weigh the terms so that each matters: reduce all in the same way (sums over a sample, means over
    the batch), standardize targets, multiply the greater term by less. For a variational
    autoencoder `F.mse_loss(made, x, reduction="sum") / len(x)` beside a divergence that is summed
    over the latent axes.

    ## False alarms
    Terms that compare one prediction with several targets (mixed samples) contradict on purpose,
    and are not judged; nor is a sum whose other terms may fall without end, as a policy's. A term
    that is meant to be lost at the beginning, by a weight that changes during training, is
    reported.

    ## References
    Kingma & Welling, "Auto-encoding variational Bayes" (2014), appendix B, for both terms as sums.
    Bowman et al., "Generating sentences from a continuous space" (2016), section 3, on a divergence
    that wins. Kendall et al., "Multi-task learning using uncertainty" (2018), section 3.
    """
    for seen in observations(run, "loss-terms"):
        together, by_itself = (
            run.at(f"probe.term_{name}", seen.site) for name in ("left", "alone")
        )
        if together is None or by_itself is None:
            continue
        if together.last > left and by_itself.last < alone:
            yield _evidence(seen, together.last, by_itself.last)


def _evidence(seen: Observation, together: float, by_itself: float) -> Evidence:
    return Evidence(
        site=seen.site,
        step=STEP,
        message=say(
            "term {term:.0f} of {terms:.0f} in the loss of {model} (`{function}`, weight "
            "{weight:.3g}) stays at {together:.2f} of what a guess gets when a copy is trained on "
            "the whole loss, and comes to {alone:.2f} when it is trained on that term alone; of "
            "the first gradients it makes {share:.1%}",
            term=seen.number("term"),
            terms=seen.number("terms"),
            model=seen.site.model,
            function=seen.text("function"),
            weight=seen.number("weight"),
            together=together,
            alone=by_itself,
            share=seen.number("share"),
        ),
        numbers={"left": together, "alone": by_itself, "share": seen.number("share")},
        cause=say("The other terms of the loss outweigh it."),
        fix=say(
            "loss = {function} + 0.01 * others  # or reduce all terms alike: sums over a sample, "
            "means over the batch",
            function=seen.text("function"),
        ),
        excluded=(
            say("a term that cannot be learned"),
            say("targets that contradict each other"),
            say("terms that fall without end"),
        ),
    )
