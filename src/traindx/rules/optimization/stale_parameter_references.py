"""O003: the optimizer holds tensors that the model no longer uses."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.facts import OptimizerFacts
from traindx.findings import Evidence, Severity
from traindx.messages import Message, counted, in_turn, listed, say
from traindx.records import Site
from traindx.rules.rule import rule
from traindx.run import Run


def no_optimizer(run: Run) -> str:
    """Why the rule does not apply: nothing is known of an optimizer."""
    return "" if run.optimizers else say("no optimizer was seen")


@rule(
    "O003",
    severity=Severity.ERROR,
    reads=(),
    hits=2,
    applies=no_optimizer,
    remedies=("rebuild-optimizer",),
    lasting=True,
)
def stale_parameter_references(run: Run) -> Iterator[Evidence]:
    """The optimizer updates tensors that no model uses, while the model's own are held by none.

    ## Why it matters
    An optimizer keeps the parameter objects it was given. If the model is rebuilt, a layer is
    replaced, or a transformation puts new parameters in the place of the old ones, the optimizer
    goes on stepping the old ones. Backward fills the gradients of the new ones and nothing ever
    applies them: the loss stays where it is and no error is raised.

    ## How it is measured
    Exactly, by identity. The optimizer holds tensors that belong to no living module and never
    got a gradient, or none for 40 steps, and at the same time parameters of a model got a gradient
    although no optimizer holds them. Both must hold at two measured steps. Where a stale tensor has
    the shape of a parameter that is not held, the message names the parameter.

    ## How to fix
    Build the optimizer after the model is complete: after layers are replaced, after a conversion
    that makes new parameters, after wrapping. Or give it the new parameters with
    `optimizer.add_param_group({"params": model.parameters()})`.

    ## False alarms
    Parameters that no optimizer holds are no finding by themselves: a backbone may be left
    untrained on purpose, frozen or not. Nor are tensors outside any module, as long as they get
    gradients (the image of a style transfer, a learned temperature).

    ## References
    PyTorch documentation, `torch.optim`, "Constructing it". Jiang et al., "Training with
    confidence: catching silent errors in deep learning training with automated proactive checks"
    (OSDI 2025), on optimizers that update stale parameters.
    """
    for optimizer in run.optimizers.values():
        if optimizer.stale and optimizer.unheld:
            yield _evidence(run, optimizer)


def _evidence(run: Run, optimizer: OptimizerFacts) -> Evidence:
    stale, unheld = len(optimizer.stale), len(optimizer.unheld)
    model, _, fqn = optimizer.unheld[0].partition("/")
    pairs = _pairs(run, optimizer)
    seen = say(
        "{optimizer} holds {stale} that belong to no model and get no gradient, while no "
        "optimizer holds {unheld} of {model} that got one",
        optimizer=optimizer.name,
        stale=_tensors(stale),
        unheld=_tensors(unheld),
        model=model,
    )
    matching = say("shapes match for {params}", params=_listed(pairs))
    return Evidence(
        site=Site(model, fqn),
        step=run.step,
        message=in_turn((seen, matching)) if pairs else seen,
        numbers={"stale": stale, "unheld": unheld, "matching": len(pairs)},
        cause=say(
            "{optimizer} was built before these parameters of {model} were made.",
            optimizer=optimizer.name,
            model=model,
        ),
        fix=say(
            "Build {kind} after the model is complete: "
            "`optimizer = {kind}({model}.parameters(), …)`.",
            kind=optimizer.kind,
            model=model,
        ),
        excluded=(
            say("a backbone left untrained on purpose"),
            say("tensors outside any module"),
        ),
    )


def _pairs(run: Run, optimizer: OptimizerFacts) -> list[str]:
    """The parameters not held whose shape a stale tensor has, each stale tensor used once."""
    shapes = {
        f"{model.name}/{param.fqn}": param.shape
        for model in run.models.values()
        for param in model.params
    }
    free = list(optimizer.stale)
    pairs: list[str] = []
    for name in optimizer.unheld:
        if (shape := shapes.get(name)) in free:
            free.remove(shape)
            pairs.append(name.partition("/")[2])
    return pairs


def _listed(names: list[str]) -> Message:
    shown = listed(f"`{name}`" for name in names[:4])
    rest = len(names) - 4
    return say("{names} and {rest} more", names=shown, rest=rest) if rest > 0 else shown


def _tensors(count: int) -> Message:
    return counted(count, "{n} tensor", "{n} tensors")
