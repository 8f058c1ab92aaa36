"""N016: BatchNorm of a frozen backbone goes on averaging the new data."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.facts import ModelFacts, ModuleFacts
from traindx.findings import Evidence, Severity, first_layers
from traindx.messages import say
from traindx.records import Site
from traindx.rules.normalization.running import no_running_norm, running_norms
from traindx.rules.order import network_order, of_facts
from traindx.rules.rule import rule
from traindx.run import Run


@rule(
    "N016",
    severity=Severity.WARNING,
    reads=("norm.updates",),
    applies=no_running_norm,
    lasting=True,
)
def frozen_but_updating(run: Run, *, steps: float = 20) -> Iterator[Evidence]:
    """A backbone is frozen, but its BatchNorm normalizes by and averages the new batches.

    ## Why it matters
    `requires_grad = False` freezes weights. BatchNorm in train mode still normalizes each batch by
    itself, so that frozen features depend on the other samples of the batch, and it overwrites the
    statistics that the weights were trained with by those of new, often small and unlike batches.
    The pretrained network is changed, and worse, though nothing of it was to be trained.

    ## How it is measured
    On layers whose own weights require no gradient, nor does any parameter of a layer called before
    them: they must have been in train mode and have updated their running statistics for `steps`
    steps. One finding per model, at its first such layer.

    ## How to fix
    Put the frozen part in eval mode, after each `model.train()`: `model.backbone.eval()`.

    ## False alarms
    Adapting the statistics of a frozen network to a new domain is a method of its own (AdaBN);
    ignore the rule there. Frozen layers behind trained ones see changing inputs, and are not
    reported.

    ## References
    Li et al., "Revisiting batch normalization for practical domain adaptation" (2017), on
    statistics as what carries the domain. PyTorch documentation, `torch.nn.Module.requires_grad_`
    and `train`.
    """
    for model in run.models.values():
        running = [
            norm for norm in _frozen_prefix(model) if _updating_since(run, model, norm) >= steps
        ]
        if running:
            first = running[0]
            since = _updating_since(run, model, first)
            yield Evidence(
                site=Site(model.name, first.fqn),
                step=run.step,
                message=say(
                    "{count} normalization layers of the frozen part of {model} have normalized by "
                    "the batch and updated their statistics for {since} steps (threshold "
                    "{threshold:g}), first `{first}`",
                    count=len(running),
                    model=model.name,
                    since=since,
                    threshold=steps,
                    first=first.fqn,
                ),
                numbers={"steps": since, "layers": len(running)},
                cause=say("Weights are frozen by requires_grad, statistics by eval mode alone."),
                fix=say(
                    """\
{model}.train()
for m in {model}.modules():
    if hasattr(m, "running_mean") and not any(p.requires_grad for p in m.parameters()):
        m.eval()""",
                    model=model.name,
                ),
                excluded=(say("frozen layers behind trained ones"),),
                series=("norm.training", "norm.updates"),
                layers=first_layers(norm.fqn for norm in running),
            )


@of_facts
def _frozen_prefix(model: ModelFacts) -> list[ModuleFacts]:
    """The normalizations with frozen weights of their own, and only frozen layers before them."""
    place = network_order(model)
    trained = [place.get(param.module, 0) for param in model.params if param.trainable]
    frozen = {param.module for param in model.params if not param.trainable}
    until = min(trained, default=0)
    return [n for n in running_norms(model) if n.fqn in frozen and place[n.fqn] < until]


def _updating_since(run: Run, model: ModelFacts, norm: ModuleFacts) -> int:
    """Steps for which a layer has been in train mode, if it updates its statistics at present."""
    site = Site(model.name, norm.fqn)
    flags, updates = run.at("norm.training", site), run.at("norm.updates", site)
    if flags is None or updates is None or not flags.last or updates.last < 1:
        return -1
    return flags.step - flags.unchanged_since
