"""E002: a model trains in eval mode, so that dropout or spectral normalization do nothing."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from traindx.facts import ModelFacts
from traindx.findings import Evidence, Severity, first_layers
from traindx.messages import say
from traindx.records import Site
from traindx.rules.normalization.running import running_norms
from traindx.rules.rule import rule
from traindx.run import Run, Series

_WINDOW = 20
"""Measured steps that show whether a model is in both modes by turns."""


@rule(
    "E002",
    severity=Severity.WARNING,
    reads=("mode.training",),
    explained_by=("N004",),
    lasting=True,
)
def eval_mode_in_train(run: Run, *, steps: float = 20, share: float = 0.34) -> Iterator[Evidence]:
    """A model trains in eval mode, in which its dropout or spectral normalization does nothing.

    ## Why it matters
    In eval mode dropout passes everything, so that a network that was to be regularized is not.
    Spectral normalization stops its power iteration: it goes on dividing by the norm along the
    vectors it had, while the weights turn away from them and grow without bound.

    ## How it is measured
    On the model's `training` flag in its training forward passes, over at least `steps` steps up to
    the last measured one. It must be off though it was on before, in a model with dropout; or off
    at all, in a model with spectral normalization. Or, in a model with dropout that began in train
    mode, it must be off at `share` of the last 20 measured steps or more, as after a preview within
    each epoch. Models whose BatchNorm layers keep running statistics are left to N004.

    ## How to fix
    Call `model.train()` after each evaluation, or at the start of each epoch. For a critic that is
    to give the same scores twice, keep train mode, in which spectral normalization is exact.

    ## False alarms
    Finetuning with dropout switched off from the start is a known recipe and not reported; to
    switch it off late in a training on purpose is. Dropout of probability 0 does not count.

    ## References
    Srivastava et al., "Dropout" (2014). Miyato et al., "Spectral normalization for generative
    adversarial networks" (ICLR 2018), section 2.1. PyTorch documentation, `torch.nn.Module.train`.
    """
    for model in run.models.values():
        if running_norms(model):
            continue
        flags = run.at("mode.training", Site(model.name))
        if flags is None:
            continue
        if (part := _often_off(flags, steps, share)) and (dropouts := _dropouts(model)):
            yield _by_turns(model, dropouts, flags.step, part, share)
            continue
        if flags.last:
            continue
        since = flags.step - flags.unchanged_since
        switched = flags.unchanged_since > flags.first_step
        spectral, dropouts = _spectral(model), _dropouts(model)
        idle = spectral or (dropouts if switched else [])
        if idle and since >= steps:
            yield _evidence(model, idle, bool(spectral), flags.step, since, switched, steps)


def _often_off(flags: Series, steps: float, share: float) -> float:
    """The share of recent steps in eval mode of a model that is in both by turns, if it is so."""
    recent = flags.tail(_WINDOW)
    off = recent.count(0.0) / len(recent)
    by_turns = flags.first == 1 and 1.0 in recent and flags.step - flags.first_step >= steps
    # A single switch is told of as such, once it has lasted.
    switches = sum(one != other for one, other in pairwise(recent))
    return off if by_turns and switches > 1 and off >= share else 0.0


def _dropouts(model: ModelFacts) -> list[str]:
    return [m.fqn for m in model.modules if "Dropout" in m.kind and _above_zero(m.options.get("p"))]


def _above_zero(p: object) -> bool:
    return isinstance(p, int | float) and p > 0


def _spectral(model: ModelFacts) -> list[str]:
    """Layers whose weight is divided by its spectral norm."""
    found = (m.fqn for m in model.modules if m.kind == "_SpectralNorm")
    return [fqn.partition(".parametrizations")[0] for fqn in found]


def _evidence(
    model: ModelFacts,
    idle: list[str],
    spectral: bool,
    step: int,
    since: int,
    switched: bool,
    threshold: float,
) -> Evidence:
    what = (
        say("{count} layers with spectral normalization", count=len(idle))
        if spectral
        else say("{count} dropout layers", count=len(idle))
    )
    return Evidence(
        site=Site(model.name),
        step=step,
        message=say(
            "{model} has trained in eval mode for {since} steps (threshold {threshold:g}), in "
            "which its {what} did nothing",
            model=model.name,
            since=since,
            threshold=threshold,
            what=what,
        ),
        numbers={"steps": since, "layers": len(idle)},
        cause=(
            say(
                "An evaluation switched {model} to eval mode and nothing switched it back.",
                model=model.name,
            )
            if switched
            else say("{model} was in eval mode when its training began.", model=model.name)
        ),
        fix=say(
            "Call `{model}.train()` after each evaluation, at the start of the epoch.",
            model=model.name,
        ),
        excluded=(say("dropout switched off from the start"),),
        series=("mode.training",),
        layers=first_layers(idle),
    )


def _by_turns(
    model: ModelFacts, idle: list[str], step: int, part: float, threshold: float
) -> Evidence:
    return Evidence(
        site=Site(model.name),
        step=step,
        message=say(
            "{model} trained in eval mode in {part:.0%} of the last measured steps (threshold "
            "{threshold:.0%}), in which its {what} did nothing, and in train mode in the others",
            model=model.name,
            part=part,
            threshold=threshold,
            what=say("{count} dropout layers", count=len(idle)),
        ),
        numbers={"share": part, "layers": len(idle)},
        cause=say(
            "An evaluation within the epoch switched {model} to eval mode, and train mode came "
            "back with the next epoch.",
            model=model.name,
        ),
        fix=say("Call `{model}.train()` right after each evaluation.", model=model.name),
        excluded=(say("dropout switched off from the start"),),
        series=("mode.training",),
        layers=first_layers(idle),
    )
