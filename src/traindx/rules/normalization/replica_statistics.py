"""N014: replicas share their weights and not their running statistics."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.records import Event, EventKind, Site
from traindx.rules.rule import rule
from traindx.run import Run


def _replicas(run: Run) -> list[Event]:
    """The last comparison of each replica whose parameters are all equal to the model's."""
    latest = {event.site: event for event in run.events(EventKind.COPY)}
    return [
        event
        for event in latest.values()
        if event.detail.get("replica")
        and event.detail.get("equal") == event.detail.get("parameters")
    ]


def _no_replica(run: Run) -> str:
    return "" if _replicas(run) else say("no replica of a model that is evaluated was trained")


@rule("N014", severity=Severity.WARNING, reads=("loss",), applies=_no_replica)
def replica_statistics(run: Run, *, gap: float = 0.5, error_gap: float = 1.0) -> Iterator[Evidence]:
    """Replicas share their weights but not their running statistics, and one is evaluated.

    ## Why it matters
    In data-parallel training each replica normalizes its own part of a batch and averages its own
    statistics. Gradients are shared, statistics are not, unless somebody sees to it. What is saved
    and evaluated is one of the replicas, with the statistics of its own shard, which need not be
    those of the data.

    ## How it is measured
    Where a trained model is called in eval mode without gradient, it is compared with every other
    model of the process that was called with gradients and has parameters of the same names and
    shapes, if all of them are equal: on a sample of each. Their running statistics must lie more
    than `gap` standard deviations apart (RMS over channels, the worst layer); over `error_gap` it
    is an error.

    ## How to fix
    Average the statistics of all replicas before evaluating, use SyncBatchNorm, or deal the data
    out so that every shard is like the whole.

    ## False alarms
    Models that were copied and trained apart have other weights soon and are no replicas. Shards
    of the same data have statistics as near as chance allows. Replicas in other processes are not
    seen.

    ## References
    PyTorch documentation, `torch.nn.parallel.DistributedDataParallel`, on `broadcast_buffers`, and
    `torch.nn.SyncBatchNorm`. Ioffe & Szegedy, "Batch Normalization" (ICML 2015).
    """
    for event in _replicas(run):
        model, found = str(event.detail.get("of", "")), event.detail.get("gap")
        if model in run.models and isinstance(found, int | float) and found > gap:
            grave = found > error_gap
            yield Evidence(
                site=Site(model),
                step=min(run.step, event.step),
                message=say(
                    "{model} and {replica} have the same weights, but running statistics that lie "
                    "{gap:.2f} standard deviations apart at `{norm}` (threshold {threshold:g})",
                    model=model,
                    replica=event.site.model,
                    gap=found,
                    norm=str(event.detail.get("norm", "")),
                    threshold=error_gap if grave else gap,
                ),
                numbers={"gap": found},
                cause=say("Each replica averages its own shard, and the shards are unlike."),
                fix=say(
                    "Average the buffers of all replicas into {model} before it is evaluated.",
                    model=model,
                ),
                severity=Severity.ERROR if grave else Severity.WARNING,
            )
