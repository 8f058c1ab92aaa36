"""N015: running statistics are kept in half precision, in which small changes are lost."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.facts import ModelFacts, ModuleFacts
from traindx.findings import Evidence, Severity, first_layers
from traindx.messages import say
from traindx.records import Site
from traindx.rules.normalization.running import no_running_norm, running_norms
from traindx.rules.order import of_facts
from traindx.rules.rule import rule
from traindx.run import Run

_EPS = {"bfloat16": 2.0**-7, "float16": 2.0**-10}
"""Distance of 1 from the next number."""


@rule(
    "N015",
    severity=Severity.WARNING,
    reads=("norm.updates",),
    applies=no_running_norm,
    lasting=True,
)
def statistics_in_half(
    run: Run, *, stall: float = 0.1, error_stall: float = 0.3
) -> Iterator[Evidence]:
    """Running statistics are kept in half precision, and stop moving before they are right.

    ## Why it matters
    A running statistic moves by `momentum` times what is missing. In bfloat16, whose numbers lie
    0.4 to 0.8 % apart, a step of less than half of that is rounded away, so that the statistic
    stalls: with a momentum of 0.01 as far as 20 to 40 % from where it should be, and it stays
    there. The loss in training does not show it.

    ## How it is measured
    Exactly, from the type of the buffers and `momentum`: what can be missing for good, as a
    fraction of the value, is a quarter of the type's eps over `momentum` at least. It must exceed
    `stall`, in a layer that updates its statistics; over `error_stall` it is an error.

    ## How to fix
    Keep normalizations in float32: `norm.float()` after the model's `.to(torch.bfloat16)`, or leave
    the model in float32 and use `torch.autocast`.

    ## False alarms
    With the usual momentum of 0.1 the loss is 2 % in bfloat16 and less in float16, which is not
    reported. Statistics near zero lose nothing, since numbers lie dense there.

    ## References
    Micikevicius et al., "Mixed precision training" (ICLR 2018), section 3.1, on updates that are
    rounded away. PyTorch documentation, `torch.amp`, on operations kept in float32.
    """
    for model in run.models.values():
        bad = {
            norm.fqn: lost
            for norm, lost in _stalling(model)
            if lost > stall and _moves(run, model, norm)
        }
        if bad:
            first = next(norm for norm in running_norms(model) if norm.fqn in bad)
            grave = bad[first.fqn] > error_stall
            yield Evidence(
                site=Site(model.name, first.fqn),
                step=run.step,
                message=say(
                    "the running statistics of {count} normalization layers are {dtype} and "
                    "stall {lost:.0%} or more from their goal with momentum={momentum} (threshold "
                    "{threshold:.0%}), first `{first}`",
                    count=len(bad),
                    dtype=str(first.options["running_dtype"]),
                    lost=bad[first.fqn],
                    momentum=first.options.get("momentum"),
                    threshold=error_stall if grave else stall,
                    first=first.fqn,
                ),
                numbers={"stall": bad[first.fqn], "layers": len(bad)},
                cause=say("The whole model was cast, its buffers with it."),
                fix=say(
                    """\
for m in {model}.modules():
    if hasattr(m, "running_mean"):
        m.float()""",
                    model=model.name,
                ),
                severity=Severity.ERROR if grave else Severity.WARNING,
                layers=first_layers(bad),
            )


@of_facts
def _stalling(model: ModelFacts) -> list[tuple[ModuleFacts, float]]:
    """The layers whose statistics stall, and how far from their goal."""
    return [(norm, lost) for norm in running_norms(model) if (lost := _stall(norm)) > 0]


def _stall(norm: ModuleFacts) -> float:
    eps, momentum = _EPS.get(str(norm.options.get("running_dtype"))), norm.options.get("momentum")
    if eps is None or not isinstance(momentum, float) or momentum <= 0:
        return 0.0
    return eps / 4 / momentum


def _moves(run: Run, model: ModelFacts, norm: ModuleFacts) -> bool:
    updates = run.at("norm.updates", Site(model.name, norm.fqn))
    return updates is not None and updates.last >= 1
