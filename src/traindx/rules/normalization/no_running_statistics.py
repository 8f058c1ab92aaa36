"""N020: BatchNorm without running statistics is used in evaluation, and normalizes by the batch."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity, first_layers
from traindx.messages import say
from traindx.records import Site
from traindx.rules.evaluation.passes import no_evaluation, passes_of
from traindx.rules.rule import rule
from traindx.run import Run


@rule("N020", severity=Severity.WARNING, reads=("mode.training",), applies=no_evaluation)
def no_running_statistics(run: Run) -> Iterator[Evidence]:
    """BatchNorm keeps no running statistics, so that evaluation normalizes by the batch, too.

    ## Why it matters
    With `track_running_stats=False` there is nothing for eval mode to use: what the model makes of
    a sample depends on the others in its batch, on their number and on their order. A batch of one
    fails or gives nothing, one of a single class gives something else than a mixed one.

    ## How it is measured
    From the settings of BatchNorm layers, in a model that was called in eval mode without gradient
    after its training began. One finding per model, at its first such layer.

    ## How to fix
    Leave `track_running_stats` on, or use a normalization that looks at one sample at a time:
    GroupNorm, LayerNorm, InstanceNorm.

    ## False alarms
    Evaluation in large and well mixed batches, as in some methods of meta-learning, is meant to
    work by the batch; ignore the rule there.

    ## References
    PyTorch documentation, `torch.nn.BatchNorm1d`, on `track_running_stats`. Bronskill et al.,
    "TaskNorm" (ICML 2020), on statistics of the batch in evaluation.
    """
    for model in run.models.values():
        evaluated = [it for it in passes_of(run, model.name) if not it.training]
        bare = [
            module.fqn
            for module in model.in_network_order()
            if module.kind.startswith("BatchNorm")
            and module.options.get("track_running_stats") is False
            and module.order is not None
        ]
        if evaluated and bare:
            yield Evidence(
                site=Site(model.name, bare[0]),
                step=min(run.step, evaluated[-1].step),
                message=say(
                    "{count} BatchNorm layers of {model} keep no running statistics, and in "
                    "{forwards:.0f} forward passes in eval mode normalized by the batch",
                    count=len(bare),
                    model=model.name,
                    forwards=sum(it.forwards for it in evaluated),
                ),
                numbers={"layers": len(bare)},
                cause=say("`track_running_stats=False` leaves eval mode nothing to use."),
                fix=say("nn.BatchNorm1d(features)  # track_running_stats is True by default"),
                layers=first_layers(bare),
            )
