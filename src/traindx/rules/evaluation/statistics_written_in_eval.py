"""E010: running statistics are written by evaluation passes in eval mode."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity, first_layers
from traindx.messages import say
from traindx.records import Site
from traindx.rules.evaluation.passes import no_evaluation, passes_of
from traindx.rules.probed import STEP, observations
from traindx.rules.rule import rule
from traindx.run import Run


def _no_pass(run: Run) -> str:
    return "" if run.series("probe.batch_mixing") else no_evaluation(run)


@rule(
    "E010",
    severity=Severity.ERROR,
    reads=("mode.training", "probe.batch_mixing"),
    applies=_no_pass,
    lasting=True,
)
def statistics_written_in_eval(run: Run) -> Iterator[Evidence]:
    """In eval mode a layer still writes its running statistics, and normalizes by the batch.

    ## Why it matters
    A normalization of one's own that calls `F.batch_norm(..., training=True)` does not follow the
    mode of its model. In evaluation a sample's result then depends on the other samples of its
    batch, and the statistics that are saved are mixed with those of the data evaluated.

    ## How it is measured
    Exactly: the version of every buffer whose name begins with `running_` or `moving_` is compared
    before and after each forward pass without gradient of a model in eval mode, none of whose
    BatchNorm modules is in train mode. By preflight, too, of a module in which a sample's result
    begins to depend on the others of its batch (`batch-mixing`).

    ## How to fix
    Pass the module's own flag: `F.batch_norm(x, mean, var, weight, bias, training=self.training)`.

    ## False alarms
    Layers that adapt their statistics to the data evaluated on purpose (test-time adaptation).

    ## References
    PyTorch documentation, `torch.nn.functional.batch_norm`. Ioffe & Szegedy, "Batch Normalization"
    (ICML 2015), section 3.1, on inference.
    """
    for name in run.models:
        bad = [
            it for it in passes_of(run, name) if it.written and not (it.training or it.batch_norms)
        ]
        if bad:
            yield _evidence(Site(name), min(run.step, bad[-1].step), bad[-1].written)
    for seen in observations(run, "batch-composition"):
        if seen.text("mode") == "evaluation" and (written := seen.names("written")):
            yield _evidence(Site(seen.site.model), STEP, tuple(written))


def _evidence(model: Site, step: int, written: tuple[str, ...]) -> Evidence:
    layers = [buffer.rpartition(".")[0] for buffer in written]
    return Evidence(
        site=Site(model.model, layers[0]),
        step=step,
        message=say(
            "{count} running statistics of {model} were written in forward passes in eval mode, "
            "first `{first}`",
            count=len(written),
            model=model,
            first=written[0],
        ),
        numbers={"buffers": len(written)},
        cause=say("A layer normalizes by the batch whatever its mode."),
        fix=say(
            "F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, "
            "training=self.training)"
        ),
        excluded=(say("modules left in train mode"),),
        layers=first_layers(layers),
    )
