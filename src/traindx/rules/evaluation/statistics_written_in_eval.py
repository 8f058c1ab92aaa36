"""E010: running statistics are written by evaluation passes in eval mode."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity, first_layers
from traindx.messages import say
from traindx.records import Site
from traindx.rules.evaluation.passes import no_evaluation, passes_of
from traindx.rules.rule import rule
from traindx.run import Run


@rule("E010", severity=Severity.ERROR, reads=("mode.training",), applies=no_evaluation)
def statistics_written_in_eval(run: Run) -> Iterator[Evidence]:
    """In eval mode a layer still writes its running statistics, and normalizes by the batch.

    ## Why it matters
    A normalization of one's own that calls `F.batch_norm(..., training=True)` does not follow the
    mode of its model. In evaluation a sample's result then depends on the other samples of its
    batch, and the statistics that are saved are mixed with those of the data evaluated.

    ## How it is measured
    Exactly: the version of every buffer whose name begins with `running_` or `moving_` is compared
    before and after each forward pass without gradient of a model in eval mode, none of whose
    BatchNorm modules is in train mode.

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
            layers = [buffer.rpartition(".")[0] for buffer in bad[-1].written]
            yield Evidence(
                site=Site(name, layers[0]),
                step=min(run.step, bad[-1].step),
                message=say(
                    "{count} running statistics of {model} were written in forward passes in eval "
                    "mode, first `{first}`",
                    count=len(bad[-1].written),
                    model=name,
                    first=bad[-1].written[0],
                ),
                numbers={"buffers": len(bad[-1].written)},
                cause=say("A layer normalizes by the batch whatever its mode."),
                fix=say(
                    "F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, "
                    "training=self.training)"
                ),
                excluded=(say("modules left in train mode"),),
                layers=first_layers(layers),
            )
