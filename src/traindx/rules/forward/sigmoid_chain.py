"""F005: a chain of sigmoids bounds the gradient to nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator

from traindx.facts import ModelFacts, PathFacts
from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.records import Point, Site
from traindx.rules.gradients.depth import DepthProfile, no_depth, vanishing
from traindx.rules.order import of_facts
from traindx.rules.rule import rule
from traindx.run import Run


def no_path_known(run: Run) -> str:
    """Why the rule does not apply: depth cannot be judged, or no backward path was walked."""
    walked = any(_is_walked(model) for model in run.models.values())
    return no_depth(run, "" if walked else say("the backward graph was not walked"))


@of_facts
def _is_walked(model: ModelFacts) -> bool:
    return any(param.path is not None for param in model.params)


@rule(
    "F005",
    severity=Severity.ERROR,
    reads=("grad.rms",),
    hits=3,
    applies=no_path_known,
    remedies=("use-relu-he",),
)
def sigmoid_chain(
    run: Run, *, sigmoids: float = 4, log10_bound: float = -3.0
) -> Iterator[Evidence]:
    """Every way from the loss back to a layer passes a chain of sigmoids, which stops the gradient.

    ## Why it matters
    The derivative of the sigmoid is at most 1/4. A chain of L of them lets through at most 0.25^L
    of the gradient, times the spectral norms of the weights between: 9.1e-13 for 20 sigmoids and
    unit norms. No learning rate and no patience repairs that; the layers behind the chain keep
    their random start.

    ## How it is measured
    By a proof and a measurement together. The proof: every path in the autograd graph from the
    loss to the layer's weight passes at least `sigmoids` sigmoids, and the gradient that arrives
    there is at most 10^`log10_bound` of the loss's: 0.25 per sigmoid times the spectral norm of
    each weight matrix on a path, summed over all paths, since the gradients of a fan-out add up.
    The measurement: gradients vanish along the depth as in G001, now, at three measured steps in
    a row. The two are not compared: a weight's own gradient also grows with the layer's input.

    ## How to fix
    Use ReLU or GELU between the layers and initialize for it
    (`nn.init.kaiming_normal_(weight, nonlinearity="relu")`); keep a sigmoid for gates and for a
    probability at the output. Skip connections or a normalization before each sigmoid help, too.

    ## False alarms
    Counting modules would blame gates of an LSTM, attention gates and a single output sigmoid; a
    path goes around them (a skip connection, the cell state). A chain whose weights are large
    enough, or a net that has learned all the same, is not reported. An operation without a known
    bound on any path (a normalization, dropout's product, a division, a sigmoid written by hand, a
    squared loss) leaves this rule silent and G001 to tell.

    ## References
    Hochreiter (1991). Glorot & Bengio (AISTATS 2010), section 3. He et al., "Delving deep into
    rectifiers" (ICCV 2015). CS231n, "Neural Networks Part 1", on why not to use the sigmoid.
    """
    for model in run.models.values():
        if _most_sigmoids(model) < sigmoids:  # as of nearly all
            continue
        chained = {
            param.fqn: param.path
            for param in model.params
            if param.path and param.path.sigmoids >= sigmoids and _bound(param.path) < log10_bound
        }
        # The proof is in the facts and free; the measurement is not.
        for profile in vanishing(run, model) if chained else ():
            if path := chained.get(profile.params[0].fqn):
                yield _evidence(profile, path, log10_bound)


@of_facts
def _most_sigmoids(model: ModelFacts) -> int:
    """How many sigmoids every way back to some parameter passes, of that with the most."""
    return max((param.path.sigmoids for param in model.params if param.path), default=0)


def _bound(path: PathFacts) -> float:
    """Log10 of the bound on the gradient; infinite where there is none (a normalization)."""
    return math.inf if path.log10_bound is None else path.log10_bound


def _evidence(profile: DepthProfile, path: PathFacts, log10_bound: float) -> Evidence:
    first = profile.params[0]
    bound = _bound(path)
    return Evidence(
        site=Site(profile.model, first.module),
        step=profile.step,
        message=say(
            "every way from the loss back to `{param}` passes {sigmoids} sigmoids or more, and at "
            "most 10^{bound:.1f} of the loss's gradient arrives there (0.25 per sigmoid times the "
            "spectral norms; threshold 10^{threshold:g}); measured, the gradient RMS is "
            "{first:.2g} at this weight and {last:.2g} at the last layer's",
            param=first.fqn,
            sigmoids=path.sigmoids,
            bound=bound,
            threshold=log10_bound,
            first=profile.rms[0],
            last=profile.rms[-1],
        ),
        numbers={
            "sigmoids": path.sigmoids,
            "log10_bound": bound,
            "ratio": profile.ratio,
            "slope": profile.slope,
        },
        point=Point.GRAD,
        cause=say("The derivative of a sigmoid is at most 1/4, and they multiply."),
        fix=say(
            "Replace the sigmoids between layers by `nn.ReLU()` and initialize the weights with "
            "`nn.init.kaiming_normal_(weight, nonlinearity='relu')`."
        ),
        excluded=(
            say("gates off the main path"),
            say("a single output sigmoid"),
            say("a skip connection"),
        ),
        series=("grad.rms", "loss"),
        layers=profile.modules,
        profiles=("grad.rms",),
    )
