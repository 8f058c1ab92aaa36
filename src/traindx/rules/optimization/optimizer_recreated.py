"""O015: an optimizer that is made anew again and again."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.records import Site
from traindx.rules.rule import rule
from traindx.run import Run, Series


@rule("O015", severity=Severity.WARNING, reads=("optimizer.replaced",), lasting=True)
def optimizer_recreated(run: Run, *, times: float = 10) -> Iterator[Evidence]:
    """An optimizer is made anew within training, again and again, and forgets what it has averaged.

    ## Why it matters
    Momentum and Adam's moments are averages over past steps. A new optimizer begins without them:
    made anew at each step, SGD with momentum is SGD without, and Adam divides each gradient by its
    own size, so that every entry moves by the learning rate, whatever the gradient says. A
    scheduler that holds the old optimizer sets the rate of one that steps no more.

    ## How it is measured
    Exactly, by identity: optimizers of one kind that were made for the very same parameters of the
    same living module, one after the other. It counts if at least `times` of them were replaced
    that had been there for a step, and on average earlier than after 1/(1 - m) steps, the time over
    which momentum (or the shortest average) m remembers. The finding stands at the part of the
    model that has these parameters.

    ## How to fix
    Make the optimizer once, before the loop. To change its learning rate, set
    `group["lr"]` or use a scheduler.

    ## False alarms
    Plain SGD keeps nothing and loses nothing. A restart, phases in which layers are unfrozen one by
    one, and an optimizer for each of several folds or tasks, whose models are others, are no line
    of one; nor is one made anew for each epoch of more steps than it remembers. Copies of a model,
    as in meta-learning, have parameters of their own. Where `times` of them began with weights that
    had been loaded, as for each client of a federated training, the averages were of other weights.

    ## References
    Kingma and Ba, "Adam" (2015), section 3, on the averages and their bias at the start. PyTorch
    documentation, `torch.optim`, "Constructing it".
    """
    if len(run.series("optimizer.forgotten")) >= times:
        return
    for series in run.series("optimizer.replaced"):
        life = run.at("optimizer.life", series.site)
        memory = run.at("optimizer.memory", series.site)
        if life and memory and series.last >= times and life.last < memory.last:
            yield _evidence(series, _kind(run, series.site), life.last, memory.last)


def _kind(run: Run, place: Site) -> str:
    """The class of the optimizers of a part of a model, as far as it is known."""
    model = run.models.get(place.model)
    inside = f"{place.fqn}." if place.fqn else ""
    names = (
        name
        for param in (model.params if model else ())
        if param.fqn.startswith(inside)
        for name in param.optimizers[::-1]
    )
    return next((run.optimizers[n].kind for n in names if n in run.optimizers), "Optimizer")


def _evidence(series: Series, kind: str, life: float, memory: float) -> Evidence:
    return Evidence(
        site=series.site,
        step=series.step,
        message=say(
            "{kind} was made anew for the same parameters {count:.0f} times, after {life:.1f} "
            "steps on average, though it averages over {memory:.0f}",
            kind=kind,
            count=series.last,
            life=life,
            memory=memory,
        ),
        numbers={"replaced": series.last, "life": life, "memory": memory},
        cause=say("{kind} is made inside the training loop.", kind=kind),
        fix=say("Move `optimizer = {kind}(…)` out of the loop.", kind=kind),
        excluded=(
            say("an optimizer without state"),
            say("other parameters, as of another fold or task"),
        ),
        series=("optimizer.replaced", "optimizer.life"),
    )
