"""S015: a list of modules that holds the same one again and again."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.rules.rule import rule
from traindx.run import Run, Series


@rule("S015", severity=Severity.WARNING, reads=("model.repeated",), lasting=True)
def repeated_module(run: Run) -> Iterator[Evidence]:
    """A list of modules holds one and the same module several times, with the same parameters.

    ## Why it matters
    `[Block()] * 6` makes one block and puts it into the list six times. The network looks six
    blocks deep and has the parameters of one: all six apply the same weights, and each step moves
    them by the sum of six gradients.

    ## How it is measured
    Exactly, by identity, at the first four measured steps of a model: of the modules in each
    `nn.ModuleList` and `nn.Sequential` that have a parameter which requires a gradient, none may be
    there twice.

    ## How to fix
    `[Block() for _ in range(6)]`, or `copy.deepcopy` and `reset_parameters()` for each.

    ## False alarms
    Weights that are shared between layers on purpose, as in ALBERT, are usually one module that is
    called in a loop. If yours stand in a list, ignore the rule. An activation that is there several
    times has no parameters and is not looked at.

    ## References
    Python documentation, "Sequence types", on `s * n`, which does not copy. Lan et al., "ALBERT: a
    lite BERT" (2020), section 3.1, on parameters that are shared on purpose.
    """
    for series in run.series("model.repeated"):
        yield _evidence(series)


def _evidence(series: Series) -> Evidence:
    return Evidence(
        site=series.site,
        step=series.step,
        message=say(
            "`{place}` holds the same module {times:.0f} times, so that its parameters exist once",
            place=series.site.fqn or series.site.model,
            times=series.last,
        ),
        numbers={"times": series.last},
        cause=say("A list was multiplied, or one module was put in again and again."),
        fix=say("nn.ModuleList([make() for _ in range({count})])", count=int(series.last)),
        excluded=(say("modules without parameters"),),
    )
