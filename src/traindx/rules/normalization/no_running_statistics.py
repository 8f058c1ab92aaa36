"""N020: BatchNorm without running statistics is used in evaluation, and normalizes by the batch."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.facts import ModelFacts
from traindx.findings import Evidence, Severity, first_layers
from traindx.messages import Message, say
from traindx.records import Site
from traindx.rules.evaluation.passes import no_evaluation, passes_of
from traindx.rules.order import of_facts
from traindx.rules.probed import STEP, Observation, observations
from traindx.rules.rule import rule
from traindx.run import Run

_KINDS = ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm")


def normalizes_by_batch(seen: Observation) -> bool:
    """Whether a probe saw samples mixed in evaluation by torch's BatchNorm, for want of others."""
    return seen.text("mode") == "evaluation" and seen.text("kind") in _KINDS


def _no_pass(run: Run) -> str:
    return "" if run.series("probe.batch_mixing") else no_evaluation(run)


@rule(
    "N020",
    severity=Severity.WARNING,
    reads=("mode.training", "probe.batch_mixing"),
    applies=_no_pass,
    explained_by=("N022",),
    lasting=True,
)
def no_running_statistics(run: Run) -> Iterator[Evidence]:
    """BatchNorm keeps no running statistics, so that evaluation normalizes by the batch, too.

    ## Why it matters
    With `track_running_stats=False` there is nothing for eval mode to use: what the model makes of
    a sample depends on the others in its batch, on their number and on their order. A batch of one
    fails or gives nothing, one of a single class gives something else than a mixed one.

    ## How it is measured
    From the settings of BatchNorm layers, in a model that was called in eval mode without gradient
    after its training began. One finding per model, at its first such layer. By preflight, of the
    BatchNorm in which a sample's result in evaluation begins to depend on the others of its batch:
    one that had statistics of its own would use them (`batch-mixing`).

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
        bare = _bare(model)
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
                cause=_cause(),
                fix=_fix("BatchNorm1d"),
                layers=first_layers(bare),
            )
    for seen in observations(run, "batch-composition"):
        if normalizes_by_batch(seen):
            yield _mixing(seen)


@of_facts
def _bare(model: ModelFacts) -> list[str]:
    """The BatchNorm layers that were called and keep no running statistics."""
    return [
        module.fqn
        for module in model.in_network_order()
        if module.kind.startswith("BatchNorm")
        and module.options.get("track_running_stats") is False
        and module.order is not None
    ]


def _mixing(seen: Observation) -> Evidence:
    return Evidence(
        site=seen.site,
        step=STEP,
        message=say(
            "`{layer}` of {model} keeps no running statistics: in evaluation the output for a "
            "sample moves by {mixing:.2g} of its RMS when only the other samples of the batch are "
            "changed",
            layer=seen.site.fqn,
            model=seen.site.model,
            mixing=seen.number("mixing"),
        ),
        numbers={"mixing": seen.number("mixing")},
        cause=_cause(),
        fix=_fix(seen.text("kind")),
    )


def _cause() -> Message:
    return say("`track_running_stats=False` leaves eval mode nothing to use.")


def _fix(kind: str) -> Message:
    return say("nn.{kind}(features)  # track_running_stats is True by default", kind=kind)
