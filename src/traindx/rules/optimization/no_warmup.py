"""Blocks that normalize after their sum, and an adaptive optimizer at its full rate from step 0."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean, median

from traindx.facts import ModelFacts, ModuleFacts, OptimizerFacts
from traindx.findings import Evidence, first_layers
from traindx.messages import say
from traindx.records import Site
from traindx.rules.order import of_facts
from traindx.run import Run

_KINDS = ("Adam", "AdamW", "NAdam", "Adamax", "Lamb")
"""Optimizers whose first steps are of the size of the learning rate, whatever the gradient."""
_BLOCKS = 4
"""Blocks one after another from which on it matters."""
_EARLY = 10
_MOVED = 0.01
"""Median update of a block's weights at the first step, over their size, that is a full rate."""
_RISE = 1.05
"""A rate that exceeds its first value by more has been warmed up."""


def no_warmup(run: Run, *, steps: float, stuck: float) -> Iterator[Evidence]:
    """One for each optimizer that trains such blocks and gets nowhere.

    Args:
        run: The run.
        steps: Steps after which the loss should have fallen.
        stuck: Share of the loss of the steps from 10 to 20 that is no fall.
    """
    for model in run.models.values():
        blocks = _normalized_last(model)
        left = _left(run, model.name) if len(blocks) >= _BLOCKS else 0.0
        if left < stuck:
            continue
        for optimizer in run.optimizers.values():
            moved = _first_update(run, model, blocks, optimizer)
            rate = run.at("lr", Site("", optimizer.name))
            if optimizer.kind not in _KINDS or rate is None or moved is None or moved < _MOVED:
                continue
            long = rate.step - rate.first_step >= steps
            if long and float(rate.values.max()) <= _RISE * rate.first:
                yield _evidence(blocks, optimizer, moved, left, rate.step)


@of_facts
def _normalized_last(model: ModelFacts) -> tuple[str, ...]:
    """Its blocks with attention, of one class, that call a normalization last and not first."""
    children: dict[str, list[ModuleFacts]] = {}
    for module in model.in_network_order():
        if module.fqn and module.order is not None and "Dropout" not in module.kind:
            children.setdefault(module.fqn.rpartition(".")[0], []).append(module)
    kinds = {module.fqn: module.kind for module in model.modules}
    found = [
        (kinds.get(fqn, ""), fqn)
        for fqn, parts in children.items()
        if fqn
        and any("attention" in part.kind.lower() or "attn" in part.fqn for part in parts)
        and "Norm" in parts[-1].kind
        and "Norm" not in parts[0].kind
    ]
    return tuple(fqn for kind, fqn in found if kind == found[0][0])


def _left(run: Run, model: str) -> float:
    """The mean of the last losses over that of the steps from 10 to 20; 0 if there are too few.

    In the first ten the outputs come to a size that suits the loss, which is no progress.
    """
    losses = run.loss_of(model)
    if losses is None or len(losses) < 4 * _EARLY:
        return 0.0
    early = fmean(losses.values[_EARLY : 2 * _EARLY].tolist())
    return fmean(losses.tail(_EARLY)) / early if early > 0 else 0.0


def _first_update(
    run: Run, model: ModelFacts, blocks: tuple[str, ...], optimizer: OptimizerFacts
) -> float | None:
    """The median update, at the first measured step, of the weights of blocks it holds."""
    inside = tuple(f"{block}." for block in blocks)
    ratios = [
        run.at("update.ratio", Site(model.name, param.fqn))
        for param in model.params
        if len(param.shape) > 1 and optimizer.name in param.optimizers
        if param.fqn.startswith(inside)
    ]
    first = [series.first for series in ratios if series is not None and series.first_step <= 0]
    return median(first) if first else None


def _evidence(
    blocks: tuple[str, ...], optimizer: OptimizerFacts, moved: float, left: float, step: int
) -> Evidence:
    return Evidence(
        site=Site("", optimizer.name),
        step=step,
        message=say(
            "{optimizer} begins at its full learning rate and moves the weights of {blocks} blocks "
            "that normalize after their sum by {moved:.1%} in the first step; after {step} steps "
            "the loss is still at {left:.0%} of what it was after 10",
            optimizer=optimizer.name,
            blocks=len(blocks),
            moved=moved,
            step=step,
            left=left,
        ),
        numbers={"blocks": len(blocks), "first_update": moved, "loss_fraction": left},
        cause=say(
            "Near the output such blocks have large gradients at first, and Adam's first steps do "
            "not depend on their size: it needs a warmup."
        ),
        fix=say("LambdaLR(optimizer, lambda step: min(1, (step + 1) / 500))  # or norm_first=True"),
        excluded=(
            say("a learning rate that rises"),
            say("blocks that normalize first"),
            say("a low learning rate"),
        ),
        layers=first_layers(blocks),
        series=("lr", "loss"),
    )
