"""E003: a model draws random numbers in eval mode, as dropout does that is never switched off."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.records import Site
from traindx.rules.evaluation.passes import no_evaluation, passes_of
from traindx.rules.rule import rule
from traindx.run import Run


@rule(
    "E003",
    severity=Severity.WARNING,
    reads=("mode.training",),
    applies=no_evaluation,
    silent_in=("gan", "rl"),
    lasting=True,
)
def dropout_in_eval(run: Run, *, forwards: float = 2) -> Iterator[Evidence]:
    """A model draws random numbers in eval mode, as dropout does that is never switched off.

    ## Why it matters
    `F.dropout(x, p)` drops in evaluation, too: it does not know of the module's mode unless it is
    told. The evaluation is that of a network with a part of its units missing, another part each
    time, and worse than the same weights deserve.

    ## How it is measured
    Around every forward pass without gradient of a model in eval mode, none of whose dropout or
    BatchNorm modules is in train mode, the states of torch's random generators are compared. All
    these passes since training began must have moved them, `forwards` of them at least.

    ## How to fix
    `F.dropout(x, p, training=self.training)`, or a module `nn.Dropout(p)`, which follows the mode
    of its model by itself.

    ## False alarms
    Models that sample by design, such as variational autoencoders or diffusion models, draw in
    evaluation on purpose: ignore the rule for them. Random numbers of NumPy or of Python's own
    generator are not seen, nor those of a generator that the program has made itself.

    ## References
    PyTorch documentation, `torch.nn.functional.dropout`, on `training`. Srivastava et al.,
    "Dropout" (2014), section 1, on the network at test time.
    """
    for name in run.models:
        evaluations = [it for it in passes_of(run, name) if not it.training]
        clean = [it for it in evaluations if not it.as_in_training]
        total = sum(it.forwards for it in clean)
        if total >= forwards and all(it.drawing == it.forwards for it in clean):
            yield Evidence(
                site=Site(name),
                step=min(run.step, clean[-1].step),
                message=say(
                    "all {total:.0f} forward passes of {model} in eval mode drew random numbers, "
                    "though none of its dropout modules was in train mode (threshold {threshold:g} "
                    "passes)",
                    total=total,
                    model=name,
                    threshold=forwards,
                ),
                numbers={"forwards": total},
                cause=say("Something random in {model} does not follow its mode.", model=name),
                fix=say("F.dropout(x, p, training=self.training)  # or a module nn.Dropout(p)"),
                excluded=(say("modules left in train mode"),),
            )
