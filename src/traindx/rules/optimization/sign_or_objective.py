"""O012: what should become smaller is made larger, or the other way round."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from statistics import fmean

from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.records import Site
from traindx.rules.contexts import contexts_of
from traindx.rules.optimization.runaway import fall_of
from traindx.rules.rule import rule
from traindx.run import Run, Series

_ENDS = 10
"""Losses at the start and at the end that are compared."""
_LOOKS = 2
"""Steps in which the loss is looked at."""
_PAIRS = ("BinaryCrossEntropy", "MseLoss")
"""Losses of a judge that are small for one target only."""


@rule(
    "O012",
    severity=Severity.ERROR,
    reads=("loss",),
    silent_in=("rl", "warmup"),
    explained_by=("L003", "L014"),
    lasting=True,
)
def sign_or_objective(
    run: Run,
    *,
    times: float = 5.0,
    maximized: float = 2.0,
    rewarded: float = 0.9,
    both: float = 0.2,
    least: float = 40,
) -> Iterator[Evidence]:
    """The training makes large what should be small: a sign is lost, or an objective is turned.

    ## Why it matters
    An optimizer minimizes what it is given, whatever it is. A term with the wrong sign is followed
    to minus infinity, a policy whose reward has lost its minus learns to lose, and a generator that
    is given the judge's own labels helps it to win. The number that is printed goes down all the
    while.

    ## How it is measured
    Four ways in which it can be told, each from at least `least` losses but the third.
    1. A loss without a floor: the mean of the last ten is below minus `times` the size of the first
    ten, in the second half of the steps it has fallen two and a half times as far as in the first,
    and in the last quarter farther than in the one before. What has a floor is slower the nearer
    it comes. Silent of two models that play against each other.
    2. A loss that is maximized: by the autograd graph, all loss functions of torch's in it (such as
    cross-entropy) stand there with a negative factor, and its mean is now less than minus
    `maximized` times the size of its first; or the optimizer has `maximize=True`, their factor is
    positive, and it has risen as much.
    3. A reward that is punished: the loss contains the log-likelihood of what was drawn times a
    factor, and in both of the first two steps the correlation of that factor with a variable of the
    script that is called reward, return or advantage is above `rewarded`. It should be negative,
    since the loss is minimized.
    4. A generator that helps: one loss trains a judge alone, another one a second model through it,
    and compares the judge's output with one constant. Both have come down to `both` of their first
    values, which rivals cannot.

    ## How to fix
    Find the sign: a divergence or a distance is added, an expected reward is subtracted, a
    generator's loss takes the label that the judge has for real data.

    ## False alarms
    A negative log-density may fall below zero, and does so ever more slowly; one that falls ever
    faster has collapsed onto points. The loss of an actor is minus a value that grows as it learns:
    it reaches the actor through a critic, which is a game of two models. A reward that is a cost
    has another name. Training that is meant to unlearn maximizes its loss: declare the context `rl`
    or ignore the rule.

    ## References
    Kingma & Welling, "Auto-encoding variational Bayes" (2014), equation 10. Williams, "Simple
    statistical gradient-following algorithms" (1992). Goodfellow et al., "Generative adversarial
    nets" (2014), section 3. Nikanjam et al., "Faults in deep reinforcement learning programs"
    (2021).
    """
    for series in run.series("loss"):
        if len(series) < least:
            continue
        hit = _turned(run, series, maximized) or _without_floor(run, series, times)
        if hit is not None:
            yield hit
    yield from _punished(run, rewarded)
    if len(run.models) > 1 and contexts_of(run, "gan"):
        yield from _helping(run, both, least)


def _ends(series: Series) -> tuple[float, float, float]:
    """Mean of the first losses, mean of their sizes, and mean of the last losses."""
    first = series.head(_ENDS)
    return fmean(first), fmean(map(abs, first)), fmean(series.tail(_ENDS))


def _place(series: Series) -> Site:
    return Site(series.site.models[0])


def _without_floor(run: Run, series: Series, times: float) -> Evidence | None:
    if times >= 0 and fmean(series.tail(_ENDS)) >= 0:  # as of most losses
        return None
    _, size, last = _ends(series)
    if not (size > 0 and last < -times * size):
        return None
    fall = fall_of(series)
    if fall is None or not fall.is_ever_faster or contexts_of(run, "gan"):
        return None
    return Evidence(
        site=_place(series),
        step=series.step,
        message=say(
            "the loss has fallen from {first:.3g} to {last:.3g} and falls ever faster: by "
            "{early:.3g} in the first half of {steps} steps and by {late:.3g} in the second",
            first=series.first,
            last=last,
            early=fall.first_half,
            late=fall.second_half,
            steps=series.step - series.first_step + 1,
        ),
        numbers={"first": series.first, "last": last, "times": -last / size},
        cause=say("The loss has a term without a lower bound: its sign is wrong."),
        fix=say("Add what should become small and subtract what should become large."),
        excluded=(
            say("a log-density that nears its bound"),
            say("two models that play against each other"),
        ),
        series=("loss",),
    )


def _turned(run: Run, series: Series, maximized: float) -> Evidence | None:
    """A known loss that is maximized, by its factor or by the optimizer."""
    factor = run.at("loss.factor", Site(series.site.model))
    if factor is None:
        return None
    first, size, last = _ends(series)
    if not size > 0:
        return None
    negative = factor.last < 0 and first < 0 and last < -maximized * size
    rising = factor.last > 0 and last > maximized * size and _maximizes(run, series)
    if not (negative or rising):
        return None
    return Evidence(
        site=_place(series),
        step=series.step,
        message=say(
            "a loss function that should be minimized stands in the loss with factor "
            "{factor:.3g} and is maximized: the loss went from {first:.3g} to {last:.3g}",
            factor=factor.last,
            first=series.first,
            last=last,
        ),
        numbers={"factor": factor.last, "first": series.first, "last": last},
        cause=say("The loss is negated, or the optimizer has `maximize=True`."),
        fix=say("loss = criterion(output, target)  # without a minus, and without maximize=True"),
        excluded=(say("another loss in the sum that is minimized"),),
        series=("loss",),
    )


def _maximizes(run: Run, series: Series) -> bool:
    """Whether each optimizer of the models that a loss reaches is told to maximize."""
    names = {
        name
        for model in series.site.models
        if model in run.models
        for param in run.models[model].params
        for name in param.optimizers
    }
    groups = [g for name in names & run.optimizers.keys() for g in run.optimizers[name].groups]
    return bool(groups) and all(group.get("maximize") is True for group in groups)


def _punished(run: Run, threshold: float) -> Iterator[Evidence]:
    """Of each loss the variable that goes best with it, unless another one goes the other way."""
    found: dict[str, list[tuple[float, Series]]] = {}
    for series in run.series("loss.rewarded"):
        if len(series) >= _LOOKS:
            least = min(series.values.tolist(), key=abs)
            found.setdefault(series.site.model, []).append((least, series))
    for seen in found.values():
        correlation, series = max(seen, key=lambda one: one[0])
        as_it_should = any(other <= -threshold for other, _ in seen)
        if correlation >= threshold and not as_it_should:
            yield _of_reward(series, correlation, threshold)


def _of_reward(series: Series, correlation: float, threshold: float) -> Evidence:
    return Evidence(
        site=_place(series),
        step=series.step,
        message=say(
            "the loss makes what is drawn less likely the greater `{variable}` is: its factor "
            "before the log-likelihood has a correlation of {correlation:.2f} with it (threshold "
            "{threshold:g}; it should be negative)",
            variable=series.site.fqn,
            correlation=correlation,
            threshold=threshold,
        ),
        numbers={"correlation": correlation},
        cause=say("The minus of the policy gradient is missing: an optimizer minimizes."),
        fix=say("loss = -({variable} * log_prob).mean()", variable=series.site.fqn),
        excluded=(say("a factor that is the negative of the reward"),),
        series=("loss",),
    )


def _helping(run: Run, both: float, least: float) -> Iterator[Evidence]:
    """A model that is trained through a judge, towards what the judge wants."""
    losses = {tuple(sorted(s.site.models)): s for s in run.series("loss") if len(s) >= least}
    facts = {tuple(sorted(f.models.split("+"))): f for f in run.losses.values()}
    for judge, judged in permutations(run.models, 2):
        pair = tuple(sorted((judge, judged)))
        own, through, fact = losses.get((judge,)), losses.get(pair), facts.get(pair)
        if own is None or through is None or fact is None or fact.target is None:
            continue
        constant = fact.target.min == fact.target.max and fact.loss.startswith(_PAIRS)
        parts = [last / first for first, _, last in map(_ends, (own, through)) if first > 0]
        if constant and len(parts) == 2 and min(parts) >= 0 and max(parts) < both:
            yield Evidence(
                site=Site(judged),
                step=through.step,
                message=say(
                    "the loss of `{judge}` has come down to {own:.1%} of its first value and that "
                    "of `{judged}`, which `{judge}` judges by the label {label:g}, to "
                    "{through:.1%} (threshold {threshold:.0%}): they do not play against each "
                    "other",
                    judge=judge,
                    judged=judged,
                    own=parts[0],
                    through=parts[1],
                    label=fact.target.min,
                    threshold=both,
                ),
                numbers={"judge": parts[0], "judged": parts[1], "label": fact.target.min},
                cause=say("The generator is given the label that the judge has for its pictures."),
                fix=say("loss = criterion(judge(generator(noise)), real_label)"),
                excluded=(say("rivals, of which one loses as the other wins"),),
                series=("loss",),
            )
