"""N004: normalization layers train in a mode, or with a momentum, that cannot be meant."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from traindx.facts import ModelFacts, ModuleFacts
from traindx.findings import Evidence, Severity, first_layers
from traindx.messages import Message, say
from traindx.records import Site
from traindx.rules.normalization.running import no_running_norm, running_norms, running_sites
from traindx.rules.order import of_facts
from traindx.rules.rule import rule
from traindx.run import Run, Series


@dataclass(frozen=True, slots=True)
class _Layer:
    """One normalization layer as last measured in training.

    Attributes:
        flags: Its `training` flag over the steps.
        steps: Steps for which the flag has been what it is.
    """

    run: Run
    model: ModelFacts
    norm: ModuleFacts
    flags: Series
    steps: int

    @property
    def site(self) -> Site:
        return self.flags.site

    def last(self, quantity: str) -> float | None:
        series = self.run.at(quantity, self.site)
        return series.last if series else None


@dataclass(frozen=True, slots=True)
class _Case:
    """One way in which the mode can be wrong, and what is said of it."""

    holds: Callable[[_Layer], bool]
    tell: Callable[[_Seen], _Told]


@dataclass(frozen=True, slots=True)
class _Seen:
    """The layers of a model in which a case holds: how many of how many, and for how long."""

    model: str
    affected: int
    layers: int
    steps: int
    threshold: float

    @property
    def subject(self) -> Message:
        return say(
            "{affected} of {layers} normalization layers of {model}",
            affected=self.affected,
            layers=self.layers,
            model=self.model,
        )


@dataclass(frozen=True, slots=True)
class _Told:
    """A case in words."""

    message: Message
    cause: Message
    fix: Message


def _left_in_eval(layer: _Layer) -> bool:
    """The whole model left train mode; a freeze of the normalizations alone leaves it on."""
    mode = layer.run.at("mode.training", Site(layer.model.name))
    was_training = layer.flags.unchanged_since > layer.flags.first_step
    switched = layer.flags.last == 0 and was_training and (mode is None or mode.last == 0)
    return switched and not _is_frozen(layer)


def _never_estimated(layer: _Layer) -> bool:
    # Old checkpoints bring statistics without their counter: those have lost the initial ones.
    initial = layer.last("norm.tracked") == 0 and layer.last("norm.initial_weight") == 1
    return layer.flags.last == 0 and initial and not _is_frozen(layer)


def _never_moves(layer: _Layer) -> bool:
    change = layer.last("norm.running_change")
    return (
        layer.flags.last == 1
        and layer.norm.options.get("momentum") == 0
        and (layer.last("norm.updates") or 0) >= 1
        # With no weight on the batch its standard deviation, and so the ratio, may be unknown.
        and change is not None
        and (change == 0 or math.isnan(change))
    )


def _is_frozen(layer: _Layer) -> bool:
    own = [param for param in layer.model.params if param.module == layer.norm.fqn]
    return bool(own) and not any(param.trainable for param in own)


def _tell_left_in_eval(seen: _Seen) -> _Told:
    return _Told(
        say(
            "{layers} have trained in eval mode for {steps} steps (threshold {threshold:g}) after "
            "training in train mode before",
            layers=seen.subject,
            steps=seen.steps,
            threshold=seen.threshold,
        ),
        say(
            "An evaluation switched {model} to eval mode and nothing switched it back.",
            model=seen.model,
        ),
        say(
            "Call `{model}.train()` after each evaluation, at the start of the epoch.",
            model=seen.model,
        ),
    )


def _tell_never_estimated(seen: _Seen) -> _Told:
    return _Told(
        say(
            "{layers} have trained in eval mode for {steps} steps (threshold {threshold:g}) with "
            "running statistics that no batch has ever updated",
            layers=seen.subject,
            steps=seen.steps,
            threshold=seen.threshold,
        ),
        say(
            "{model} was put in eval mode before training, so nothing is normalized by its data.",
            model=seen.model,
        ),
        say("Call `{model}.train()` before training.", model=seen.model),
    )


def _tell_never_moves(seen: _Seen) -> _Told:
    return _Told(
        say(
            "{layers} have updated their running statistics for {steps} steps (threshold "
            "{threshold:g}) without any change",
            layers=seen.subject,
            steps=seen.steps,
            threshold=seen.threshold,
        ),
        say(
            "`momentum=0` gives new batches no weight: in PyTorch it is the weight of the new "
            "value."
        ),
        say("Use `momentum=0.1`, which in other frameworks is called 0.9."),
    )


_CASES = (
    _Case(_left_in_eval, _tell_left_in_eval),
    _Case(_never_estimated, _tell_never_estimated),
    _Case(_never_moves, _tell_never_moves),
)


@rule(
    "N004",
    severity=Severity.ERROR,
    reads=("norm.training",),
    applies=no_running_norm,
    silent_in=("frozen-bn",),
    remedies=("train-mode",),
    lasting=True,
)
def bn_mode_mismatch(run: Run, *, steps: float = 20) -> Iterator[Evidence]:
    """Normalization layers train in a mode that cannot be meant.

    ## Why it matters
    A layer in eval mode normalizes by its running statistics and stops updating them. The network
    then trains against statistics that no longer follow its activations, or that never were its
    own, and loses what the normalization was put in for. The training loop looks the same.

    ## How it is measured
    On the `training` flags in the training forward passes, over at least `steps` steps up to the
    last measured one. Any of: the model and its layers train in eval mode although they began in
    train mode; the layers have been in eval mode from the start although their statistics are still
    the initial ones, which no batch ever updated; the layers are in train mode and update their
    statistics, but with `momentum=0`, so that they never change. One finding per model, at its
    first such layer.

    ## How to fix
    Call `model.train()` before training and again after each evaluation. `momentum` is the weight
    of the new value in PyTorch: 0.1 there is 0.9 in Keras, Flax and ONNX.

    ## False alarms
    Pretrained layers kept in eval mode from the start are deliberate and have updates behind them.
    Layers frozen later on purpose leave the model itself in train mode. Layers whose own weights
    are all frozen belong to a frozen backbone. Statistics from a file that does not count updates
    are known by their values. Finetuning a whole model in eval mode after training it in train mode
    is a known recipe, and is reported unless the context `frozen-bn` is declared.

    ## References
    Ioffe & Szegedy, "Batch Normalization" (ICML 2015), section 3.1. PyTorch documentation,
    `torch.nn.Module.train` and `torch.nn.BatchNorm2d`, on `momentum`.
    """
    for model in run.models.values():
        if not _any_suspect(run, model):
            continue
        layers = list(_layers(run, model))
        long_enough = [layer for layer in layers if layer.steps >= steps]
        for case in _CASES:
            affected = [layer for layer in long_enough if case.holds(layer)]
            if affected:
                yield _evidence(model, case, affected, len(layers), steps)


def _any_suspect(run: Run, model: ModelFacts) -> bool:
    """Whether a layer trains in eval mode, or with a momentum of 0: of most models none does."""
    flags = run.newest("norm.training", running_sites(model)).values
    return _any_still(model) or bool((flags == 0).any())


@of_facts
def _any_still(model: ModelFacts) -> bool:
    return any(norm.options.get("momentum") == 0 for norm in running_norms(model))


def _layers(run: Run, model: ModelFacts) -> Iterator[_Layer]:
    for norm in running_norms(model):
        flags = run.at("norm.training", Site(model.name, norm.fqn))
        if flags is not None:
            yield _Layer(run, model, norm, flags, flags.step - flags.unchanged_since)


def _evidence(
    model: ModelFacts, case: _Case, affected: list[_Layer], layers: int, threshold: float
) -> Evidence:
    first = affected[0]
    told = case.tell(_Seen(model.name, len(affected), layers, first.steps, threshold))
    return Evidence(
        site=first.site,
        step=first.flags.step,
        message=told.message,
        numbers={"steps": first.steps, "layers": len(affected)},
        cause=told.cause,
        fix=told.fix,
        excluded=(
            say("pretrained layers kept in eval mode"),
            say("layers frozen on purpose"),
        ),
        series=("norm.training", "mode.training"),
        layers=first_layers(layer.norm.fqn for layer in affected),
    )
