"""N013: what residual blocks add makes the stream grow from block to block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from traindx.facts import ModelFacts, ModuleFacts
from traindx.findings import Evidence, Severity, first_layers
from traindx.ledger import NEVER
from traindx.messages import say
from traindx.records import Site
from traindx.rules.order import of_facts
from traindx.rules.rule import rule
from traindx.run import Run


@rule("N013", severity=Severity.WARNING, reads=("output.rms",), explained_by=(), lasting=True)
def stream_growth(
    run: Run, *, growth: float = 30.0, error_growth: float = 1000.0, blocks: float = 5
) -> Iterator[Evidence]:
    """The signal grows from block to block, since nothing normalizes what the blocks add.

    ## Why it matters
    A residual branch of the size of its input doubles the variance of the stream. With a
    normalization in the branch what is added stays the same, and the stream grows like the root of
    the depth; without one it grows exponentially. The last layers then see huge numbers, the loss
    starts far too high, and the gradients explode on their way back.

    ## How it is measured
    On at least `blocks` modules in a row of one class, each made of modules itself, whose outputs
    grow in RMS from each to the next. The last must be more than `growth` times as large as the
    first at the first measured step; over `error_growth` it is an error. Reported at the module
    that holds them, and no longer than the last measured growth is as large.

    ## How to fix
    Normalize the input of each branch and the end of the stream, or start each branch at zero:
    `nn.init.zeros_(block.down.weight)`.

    ## False alarms
    Normalized blocks grow by less than the root of their number. Blocks that change the number of
    features, such as the stages of a convolutional network, may differ in size for other reasons;
    but not thirtyfold.

    ## References
    Zhang, Dauphin & Ma, "Fixup initialization" (ICLR 2019), section 2. Xiong et al., "On layer
    normalization in the transformer architecture" (2020). De & Smith, "Batch normalization biases
    residual blocks towards the identity function" (2020).
    """
    for model in run.models.values():
        for parent, row in _rows(model).items():
            newest = run.newest("output.rms", _sites(model)[parent])
            known = (newest.steps != NEVER).all()
            if known and not _grown(newest.values.tolist()) > growth:  # as nearly all
                continue
            sizes = [(m.fqn, run.at("output.rms", Site(model.name, m.fqn))) for m in row]
            series = [(fqn, size) for fqn, size in sizes if size is not None]
            if len(series) < blocks:
                continue
            first, last = [s.first for _, s in series], [s.last for _, s in series]
            at_first, now = _grown(first), _grown(last)
            if at_first > growth and now > growth:
                severity = Severity.ERROR if at_first > error_growth else Severity.WARNING
                yield Evidence(
                    site=Site(model.name, parent),
                    step=series[0][1].step,
                    message=say(
                        "the signal grows {times:.3g}-fold from `{first}` to `{last}` at the first "
                        "step (threshold {threshold:g}), over {count} blocks",
                        times=at_first,
                        first=series[0][0],
                        last=series[-1][0],
                        threshold=error_growth if severity is Severity.ERROR else growth,
                        count=len(series),
                    ),
                    numbers={"growth": at_first, "blocks": len(series), "now": now},
                    cause=say("Nothing normalizes what each block adds."),
                    fix=say("x = x + branch(nn.LayerNorm(dim)(x))  # in every block"),
                    severity=severity,
                    layers=first_layers(fqn for fqn, _ in series),
                    profiles=("output.rms",),
                )


def _grown(sizes: Sequence[float]) -> float:
    """The last over the first, of sizes that grow all the way; else 1."""
    grows = all(0 < one <= other for one, other in pairwise(sizes))
    return sizes[-1] / sizes[0] if grows else 1.0


@of_facts
def _sites(model: ModelFacts) -> dict[str, tuple[Site, ...]]:
    return {
        parent: tuple(Site(model.name, module.fqn) for module in row)
        for parent, row in _rows(model).items()
    }


@of_facts
def _rows(model: ModelFacts) -> dict[str, list[ModuleFacts]]:
    """By the module that holds them: its children, if all are blocks of one class."""
    holders = {module.fqn.rpartition(".")[0] for module in model.modules if module.fqn}
    rows: dict[str, list[ModuleFacts]] = {}
    for module in model.in_network_order():
        if module.fqn:
            rows.setdefault(module.fqn.rpartition(".")[0], []).append(module)
    return {
        parent: row
        for parent, row in rows.items()
        if len({m.kind for m in row}) == 1 and all(m.fqn in holders for m in row)
    }
