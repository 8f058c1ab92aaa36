"""O017: Adam with averages in the wrong order, or with an eps that drowns them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from traindx.facts import ModelFacts, OptimizerFacts
from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.records import Site
from traindx.rules.order import of_facts
from traindx.rules.rule import rule
from traindx.run import Run

_KINDS = {"Adam", "AdamW", "NAdam", "RAdam"}
_USUAL = 1e-6
"""Below it, `eps` is what people leave it at: a gradient that small has nothing more to say."""
_MEASURED = 10


@rule(
    "O017",
    severity=Severity.WARNING,
    reads=("grad.rms",),
    explained_by=("G003", "O004"),
    lasting=True,
)
def odd_adam_settings(
    run: Run, *, steps: float = 100, drowned: float = 10.0, loss: float = 0.7
) -> Iterator[Evidence]:
    """Adam's settings undo what it is for: its averages are swapped, or `eps` drowns them.

    ## Why it matters
    Adam divides an average of gradients by the root of an average of their squares, plus `eps`. If
    the first average is longer than the second (`betas=(0.999, 0.9)`), old gradients are divided by
    the size of new ones: the steps are not bounded any more, and point to where the loss once fell.
    If `eps` is far above the gradients, as where a weight decay was written in its place, nothing
    is divided by their size: Adam is gradient descent with the rate lr / eps, usually far too low.

    ## How it is measured
    By the settings of `Adam`, `AdamW`, `NAdam` and `RAdam`. Swapped: the first beta is above the
    root of the second, beyond which Adam's analysis does not hold. Drowned: `eps` is at least 1e-6,
    and after `steps` steps more than `drowned` times the RMS of the gradient of each weight at each
    measured step, while the mean of the last ten losses is above `loss` of the first.

    ## How to fix
    `betas=(0.9, 0.999), eps=1e-8`, which are the defaults; give settings by their names, so that
    none takes another's place.

    ## False alarms
    Equal betas, and a first one of 0, are in order. A large `eps` that was chosen together with a
    larger rate, as for some networks on ImageNet, is not reported where the loss falls.

    ## References
    Kingma and Ba, "Adam" (2015), section 2.1, on steps bounded by the rate where the first beta is
    at most the root of the second, and theorem 4.1. Reddi et al., "On the convergence of Adam and
    beyond" (2018), theorem 4, on the same condition.
    """
    for optimizer in run.optimizers.values():
        if optimizer.kind not in _KINDS:
            continue
        swapped = [betas for group in optimizer.groups if (betas := _swapped(group))]
        if swapped:
            yield _of_betas(run, optimizer, *swapped[0])
        elif (eps := _eps(optimizer)) >= _USUAL and run.step >= steps:
            yield from _of_eps(run, optimizer, eps, drowned, loss)


def _swapped(group: Mapping[str, object]) -> tuple[float, float] | None:
    """The betas of a group, if they are in the wrong order."""
    betas = group.get("betas")
    match betas:
        case [int() | float() as first, int() | float() as second] if first * first > second:
            return float(first), float(second)
        case _:
            return None


def _eps(optimizer: OptimizerFacts) -> float:
    """The least `eps` of the groups; 0 where it is no number."""
    found = [group.get("eps") for group in optimizer.groups]
    return min((float(e) if isinstance(e, int | float) else 0.0 for e in found), default=0.0)


@of_facts
def _sites(model: ModelFacts) -> dict[str, tuple[Site, ...]]:
    """Where the weights are that each optimizer alone holds."""
    held: dict[str, list[Site]] = {}
    for param in model.params:
        if param.trainable and len(param.optimizers) == 1:
            held.setdefault(param.optimizers[0], []).append(Site(model.name, param.fqn))
    return {name: tuple(sites) for name, sites in held.items()}


def _of_eps(
    run: Run, optimizer: OptimizerFacts, eps: float, drowned: float, loss: float
) -> Iterator[Evidence]:
    for model in run.models.values():
        sites = _sites(model).get(optimizer.name, ())
        newest = run.newest("grad.rms", sites)
        if not sites or (newest.values * drowned >= eps).any() or not newest.values.any():
            continue
        series = [found for site in sites if (found := run.at("grad.rms", site)) is not None]
        largest = max(float(each.values.max()) for each in series)
        few = min(each.count for each in series) < _MEASURED
        if few or largest * drowned >= eps or not run.loss_fraction(model.name) > loss:
            continue
        yield Evidence(
            site=Site("", optimizer.name),
            step=run.step,
            message=say(
                "the `eps` of {optimizer} is {eps:.1g}, and no weight of {model} has ever had a "
                "gradient above {largest:.2g} RMS",
                optimizer=optimizer.name,
                eps=eps,
                model=model.name,
                largest=largest,
            ),
            numbers={"eps": eps, "gradient": largest},
            cause=say("It divides by `eps` in place of the gradients' size."),
            fix=say("eps=1e-8"),
            excluded=(say("a loss that falls"),),
            series=("grad.rms", "loss"),
        )


def _of_betas(run: Run, optimizer: OptimizerFacts, first: float, second: float) -> Evidence:
    return Evidence(
        site=Site("", optimizer.name),
        step=run.step,
        message=say(
            "the betas of {optimizer} are {first:g} and {second:g}: gradients of about {long:.0f} "
            "steps are divided by the size of those of the last {short:.0f}",
            optimizer=optimizer.name,
            first=first,
            second=second,
            long=1 / max(1 - first, 1e-9),
            short=1 / max(1 - second, 1e-9),
        ),
        numbers={"beta1": first, "beta2": second},
        cause=say("The betas are in the wrong order."),
        fix=say("betas=({first:g}, {second:g})", first=second, second=first),
        excluded=(say("betas that are equal"),),
        series=("loss",),
    )
