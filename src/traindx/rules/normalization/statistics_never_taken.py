"""N022: a trained model is evaluated with running statistics that no batch has touched."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.facts import ModelFacts
from traindx.findings import Evidence, Severity, first_layers
from traindx.messages import say
from traindx.records import Site
from traindx.rules.evaluation.passes import no_evaluation, passes_of
from traindx.rules.order import of_facts
from traindx.rules.rule import rule
from traindx.run import Run


@rule(
    "N022",
    severity=Severity.ERROR,
    reads=("mode.training",),
    applies=no_evaluation,
    explained_by=("N004",),
    lasting=True,
)
def statistics_never_taken(run: Run) -> Iterator[Evidence]:
    """A trained model is evaluated with running statistics that no batch has ever touched.

    ## Why it matters
    Running statistics begin as mean 0 and variance 1. If they are that still, a normalization does
    nothing in eval mode but multiply and add. Where training normalized by the batch, the layers
    behind see other numbers in evaluation; where it used the same untouched statistics, nothing has
    been normalized at all.

    ## How it is measured
    Exactly: before a forward pass without gradient of the model in eval mode, a module's
    buffers `running_mean` and `running_var` (or `moving_mean` and `moving_var`) are all 0 and all
    1, which no batch leaves behind. It counts in a model that was trained, of layers that were
    called in training and of whose parameters some are trained; the last evaluation decides. One
    finding per model, at its first such layer.

    ## How to fix
    `F.batch_norm` needs `training=self.training`: without it, it takes the statistics it is given
    and writes none. `track_running_stats` belongs into the constructor; set to `False` afterwards
    it stops the updates and keeps the untouched statistics in use. After `reset_running_stats()`
    the passes that estimate them anew must be made in train mode.

    ## False alarms
    Layers kept in eval mode on purpose with an identity for statistics. Not seen: buffers on a
    device, which would have to be waited for, and statistics of other names.

    ## References
    Ioffe & Szegedy, "Batch Normalization" (ICML 2015), section 3.1. PyTorch documentation,
    `torch.nn.functional.batch_norm` and `torch.nn.BatchNorm1d`, on `track_running_stats`.
    """
    for model in run.models.values():
        passes = [it for it in passes_of(run, model.name) if not it.training]
        if not passes or not passes[-1].initial or run.loss_of(model.name) is None:
            continue
        last = passes[-1]
        untouched = [fqn for fqn in _trained(model) if fqn in last.initial]
        if untouched:
            yield Evidence(
                site=Site(model.name, untouched[0]),
                step=min(run.step, last.step),
                message=say(
                    "in eval mode {count} trained layers of {model} used the running statistics "
                    "they began with, 0 and 1, first `{first}`",
                    count=len(untouched),
                    model=model.name,
                    first=untouched[0],
                ),
                numbers={"layers": len(untouched)},
                cause=say("No batch has updated them, or none since they were reset."),
                fix=say(
                    """\
y = F.batch_norm(x, mean, var, weight, bias, training=self.training)
# and {model}.train() wherever statistics are to be estimated""",
                    model=model.name,
                ),
                excluded=(say("an evaluation before training"), say("frozen layers")),
                layers=first_layers(untouched),
            )


@of_facts
def _trained(model: ModelFacts) -> list[str]:
    """The modules that were called, and have no parameters or some that are trained."""
    free = {param.module for param in model.params if param.trainable}
    held = {param.module for param in model.params}
    return [
        module.fqn
        for module in model.in_network_order()
        if module.order is not None and (module.fqn in free or module.fqn not in held)
    ]
