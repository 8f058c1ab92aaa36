"""E006: what is evaluated in place of the trained model is not it: parts were lost on the way."""

from __future__ import annotations

import math
from collections.abc import Iterator

from traindx.facts import Json
from traindx.findings import Evidence, Severity
from traindx.messages import Message, in_turn, listed, say
from traindx.records import Event, EventKind, Site
from traindx.rules.evaluation.passes import is_mistaken
from traindx.rules.evaluation.weights_not_loaded import is_own, loads_of, number, trained_before
from traindx.rules.rule import rule
from traindx.run import Run


def _no_copy(run: Run) -> str:
    seen = _copies(run) or run.events(EventKind.LOADED)
    return "" if seen else say("no copy of a trained model was evaluated")


def _copies(run: Run) -> list[Event]:
    """The last comparison of each copy; a replica that is trained itself is N014's to judge."""
    latest = {event.site: event for event in run.events(EventKind.COPY)}
    return [event for event in latest.values() if not event.detail.get("replica")]


@rule("E006", severity=Severity.WARNING, reads=("loss",), applies=_no_copy)
def copy_differs(
    run: Run,
    *,
    gap: float = 0.5,
    error_gap: float = 1.0,
    share: float = 0.5,
    met_gap: float = 0.2,
    unrelated: float = 0.95,
) -> Iterator[Evidence]:
    """A copy that is evaluated in place of the trained model has lost a part of it.

    ## Why it matters
    An average of the weights, a checkpoint that was loaded, a port: what is evaluated and kept is
    often not the model that was trained but another one with its parameters. BatchNorm's running
    statistics are no parameters. A copy made of parameters alone evaluates with statistics of
    another day, or with the initial 0 and 1. And what was left out in loading, by `strict=False` or
    a wrong name, stays as it was initialized.

    ## How it is measured
    A model that is called in eval mode without gradient, is not trained itself, and has parameters
    of the same names and shapes as one that is, is compared with it as it stands then, on a sample
    of each parameter. Reported are running statistics that lie more than `gap` standard deviations
    (RMS over channels, the worst layer) from the trained model's, and more than twice the relative
    distance of the weights, which explains as much; over `error_gap` it is an error. Reported are,
    besides, statistics that are exactly the trained model's in a copy whose weights differ by more
    than `gap` of their size (median over the parameters), modules of one class that are built with
    other numbers in the copy (an `eps`, an offset of the weight), and a copy of which at least a
    share `share` of the trained parameters are exactly equal and others are not. Of each copy its
    last comparison counts.

    Reported is also a copy with other weights, an average, that leaves what its BatchNorm layers
    are given in that evaluation more than `met_gap` from mean 0 and deviation 1 (RMS over channels,
    the worst layer), beyond three times what the number of values lets one expect; only once the
    run has ended, since a running average lags behind at first. And a state that is loaded into a
    trained model and lies in the model's own memory: it was kept by reference, and has changed with
    every step since. And, once the run has ended, a copy that was first called after the last step,
    none of whose weights has anything to do with the trained model's (the median differs by
    `unrelated` of its size or more), while the trained model is not evaluated any more.

    ## How to fix
    Copy `model.buffers()` as well as the parameters, or estimate the statistics of an average with
    `torch.optim.swa_utils.update_bn`. Save and load `model.state_dict()` as a whole, with
    `strict=True`. Keep the best weights by `copy.deepcopy(model.state_dict())`.

    ## False alarms
    A copy in which some weights were pruned or fused on purpose, and one that shares a body and has
    a head of its own, equal the model in part. An average far behind fast weights has far
    statistics, too; so distances of the weights are taken off. An average near the model may take
    its statistics, and is not reported. An average that is evaluated on data of another kind than
    it was trained on meets other statistics whatever it does.

    ## References
    Izmailov et al., "Averaging weights leads to wider optima" (2018), section 3.2, on statistics of
    the average. PyTorch documentation, `torch.optim.swa_utils.update_bn` and
    `torch.nn.Module.load_state_dict`.
    """
    for event in _copies(run):
        model = str(event.detail.get("of", ""))
        if model not in run.models:
            continue
        apart, moved = _number(event, "gap"), _number(event, "distance")
        equal, total = _number(event, "equal"), _number(event, "parameters")
        if apart > max(gap, 2 * moved):
            severity = Severity.ERROR if apart > error_gap else Severity.WARNING
            yield _of_statistics(run, event, model, apart, severity, gap)
        elif settings := _names(event, "settings"):
            yield _of_settings(run, event, model, settings)
        elif moved > gap and not apart and _number(event, "norms"):
            yield _of_an_average(run, event, model, moved, gap)
        elif moved and (met := _met(run, event.site, met_gap)):
            yield _of_what_it_meets(run, met, model, moved, met_gap)
        elif equal < total and equal >= share * total:
            yield _of_parameters(run, event, model, equal, total)
        elif moved >= unrelated and not equal and is_mistaken(run, event.site.model, model):
            yield _of_another(run, event, model, moved, unrelated)
    for event in loads_of(run):
        if event.site.model in run.models and is_own(event) and trained_before(run, event):
            yield _of_itself(run, event)


def _met(run: Run, copy: Site, threshold: float) -> Event | None:
    """What a copy's layers met in its last evaluation, if that is not what they expect.

    Judged at the run's end alone: an average lags behind at first, and catches up.
    """
    if not run.ended:
        return None
    met = next((e for e in reversed(run.events(EventKind.MET)) if e.site == copy), None)
    if met is None:
        return None
    noise = math.sqrt(1.5 / max(_number(met, "values"), 1.0))  # of a mean and of a deviation
    return met if _number(met, "gap") > threshold + 3 * noise else None


def _number(event: Event, name: str) -> float:
    value: Json = event.detail.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def _names(event: Event, name: str) -> list[str]:
    value = event.detail.get(name)
    return [str(each) for each in value] if isinstance(value, list) else []


def _variable(event: Event) -> str:
    """What a copy may be called in code: its own name, unless that is no variable's."""
    name = event.site.model
    return name if name.isidentifier() else "copy"


def _of_statistics(
    run: Run, event: Event, model: str, gap: float, severity: Severity, threshold: float
) -> Evidence:
    counted = _number(event, "counted")
    cause = (
        say("No batch has ever updated the statistics of {copy}.", copy=event.site.model)
        if not counted
        else say("Its parameters were brought up to date, its statistics were not.")
    )
    return _evidence(
        run,
        event,
        model,
        say(
            "{copy} is evaluated with the parameters of {model}, but its running statistics lie "
            "{gap:.2f} standard deviations from those of {model} (threshold {threshold:g}), first "
            "at `{norm}`",
            copy=event.site.model,
            model=model,
            gap=gap,
            threshold=threshold,
            norm=str(event.detail.get("norm", "")),
        ),
        {"gap": gap, "distance": _number(event, "distance"), "counted": counted},
        cause,
        say(
            """\
with torch.no_grad():
    for mine, trained in zip({copy}.buffers(), {model}.buffers()):
        mine.copy_(trained)
# Of an average of far weights: torch.optim.swa_utils.update_bn(train_loader, {copy})""",
            copy=_variable(event),
            model=model,
        ),
        severity,
    )


def _of_settings(run: Run, event: Event, model: str, settings: list[str]) -> Evidence:
    return _evidence(
        run,
        event,
        model,
        say(
            "modules of {copy}, which is evaluated with the parameters of {model}, are built with "
            "other numbers than those of {model}: {settings}",
            copy=event.site.model,
            model=model,
            settings=in_turn(settings),
        ),
        {"settings": len(settings)},
        say("Equal parameters in other arithmetic are another model."),
        say("Build {copy} with the settings of {model}.", copy=_variable(event), model=model),
        Severity.WARNING,
    )


def _of_an_average(run: Run, event: Event, model: str, moved: float, threshold: float) -> Evidence:
    return _evidence(
        run,
        event,
        model,
        say(
            "the weights of {copy}, which is evaluated, differ from those of {model} by "
            "{moved:.2g} of their size in the median (threshold {threshold:g}), and its running "
            "statistics are exactly those of {model}",
            copy=event.site.model,
            model=model,
            moved=moved,
            threshold=threshold,
        ),
        {"distance": moved},
        say("Statistics of other weights are not those of an average."),
        say(
            "torch.optim.swa_utils.update_bn(train_loader, {copy})",
            copy=_variable(event),
        ),
        Severity.WARNING,
    )


def _of_what_it_meets(
    run: Run, event: Event, model: str, moved: float, threshold: float
) -> Evidence:
    gap = _number(event, "gap")
    return _evidence(
        run,
        event,
        model,
        say(
            "{copy}, whose weights differ from those of {model}, is evaluated with running "
            "statistics that leave what its layers are given {gap:.2f} standard deviations from "
            "normal (threshold {threshold:g}), first at `{norm}`",
            copy=event.site.model,
            model=model,
            gap=gap,
            threshold=threshold,
            norm=str(event.detail.get("norm", "")),
        ),
        {"met": gap, "distance": moved, "values": _number(event, "values")},
        say("Statistics of other weights are not those of an average."),
        say("torch.optim.swa_utils.update_bn(train_loader, {copy})", copy=_variable(event)),
        Severity.WARNING,
    )


def _of_another(run: Run, event: Event, model: str, moved: float, threshold: float) -> Evidence:
    return _evidence(
        run,
        event,
        model,
        say(
            "{copy} is evaluated after training and {model} is not, though no weight of {copy} "
            "was trained: they differ by {moved:.2g} of their size in the median (threshold "
            "{threshold:g})",
            copy=event.site.model,
            model=model,
            moved=moved,
            threshold=threshold,
        ),
        {"distance": moved},
        say("What was trained is another object, and was not loaded into this one."),
        say("{copy}.load_state_dict({model}.state_dict())", copy=_variable(event), model=model),
        Severity.WARNING,
    )


def _of_parameters(run: Run, event: Event, model: str, equal: float, total: float) -> Evidence:
    names = _names(event, "differing")
    return _evidence(
        run,
        event,
        model,
        say(
            "of the {total:.0f} parameters of {model}, {equal:.0f} are exactly equal in {copy}, "
            "which is evaluated, and {others:.0f} are not: {names}",
            total=total,
            model=model,
            equal=equal,
            copy=event.site.model,
            others=total - equal,
            names=listed(names),
        ),
        {"equal": equal, "parameters": total},
        say("A part of the parameters was not taken over, or changed on the way."),
        say(
            "{copy}.load_state_dict({model}.state_dict(), strict=True)",
            copy=_variable(event),
            model=model,
        ),
        Severity.WARNING,
    )


def _of_itself(run: Run, event: Event) -> Evidence:
    model = event.site.model
    return _evidence(
        run,
        event,
        model,
        say(
            "what was loaded into {model} after {step:.0f} steps, {given:.0f} tensors, are its own "
            "of that moment, so that loading has changed nothing",
            model=model,
            step=number(event, "at"),
            given=number(event, "given"),
        ),
        {"given": number(event, "given"), "same": number(event, "same")},
        say("`state_dict()` returns the living tensors, which every later step has changed."),
        say(
            "best = copy.deepcopy({model}.state_dict())",
            model=model if model.isidentifier() else "model",
        ),
        Severity.WARNING,
    )


def _evidence(
    run: Run,
    event: Event,
    model: str,
    message: Message,
    numbers: dict[str, float],
    cause: Message,
    fix: Message,
    severity: Severity,
) -> Evidence:
    return Evidence(
        site=Site(model),
        step=min(run.step, event.step),
        message=message,
        numbers=numbers,
        cause=cause,
        fix=fix,
        excluded=(say("the distance of the weights"),),
        severity=severity,
    )
