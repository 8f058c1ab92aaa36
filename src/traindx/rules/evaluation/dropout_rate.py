"""E008: a dropout layer drops nearly everything."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.facts import ModelFacts, ModuleFacts
from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.records import Site
from traindx.rules.order import of_facts
from traindx.rules.rule import rule
from traindx.run import Run


@rule("E008", severity=Severity.WARNING, reads=("mode.training",), lasting=True)
def dropout_rate(run: Run, *, p: float = 0.75) -> Iterator[Evidence]:
    """A dropout layer drops nearly everything.

    ## Why it matters
    `p` is the probability of dropping. Elsewhere, as in TensorFlow 1 and in the paper, it is that
    of keeping: 0.9, taken over from there, leaves a tenth of the units and multiplies them by ten.
    What the layers behind it see is mostly noise, and training is slow and ends badly.

    ## How it is measured
    From the setting of dropout modules that are called in training: `p` over the threshold of the
    same name.

    ## How to fix
    Use 1 - p if the number was a probability of keeping; values of 0.1 to 0.5 are usual.

    ## False alarms
    Dropout of 0.8 on few and noisy features is used now and then; raise the threshold then.
    Dropout that is a function is not seen.

    ## References
    Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting" (2014),
    section 7.3, on the effect of the rate. PyTorch documentation, `torch.nn.Dropout`.
    """
    for model in run.models.values():
        dropping = _dropping(model)
        flags = run.at("mode.training", Site(model.name)) if dropping else None
        if flags is None or not flags.last:
            continue
        for module in dropping:
            rate = module.options.get("p")
            if isinstance(rate, int | float) and p < rate <= 1:
                yield Evidence(
                    site=Site(model.name, module.fqn),
                    step=flags.step,
                    message=say(
                        "`{layer}` drops each value with probability {rate:g} (threshold "
                        "{threshold:g}) and multiplies what is left by {factor:.3g}",
                        layer=module.fqn,
                        rate=rate,
                        threshold=p,
                        factor=1 / (1 - rate) if rate < 1 else 0.0,
                    ),
                    numbers={"p": rate},
                    cause=say("`p` is the probability of dropping, not of keeping."),
                    fix=say("nn.Dropout({keep:.3g})  # drops {keep:.0%}", keep=1 - rate),
                )


@of_facts
def _dropping(model: ModelFacts) -> list[ModuleFacts]:
    """The dropout layers that were called."""
    return [m for m in model.modules if "Dropout" in m.kind and m.order is not None]
