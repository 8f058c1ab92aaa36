"""E014: a checkpoint is loaded, and none of it, or not what was meant, reaches the model."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import Message, listed, say
from traindx.records import Event, EventKind, Site
from traindx.rules.rule import rule
from traindx.run import Run, Series


def _no_load(run: Run) -> str:
    return "" if loads_of(run) else say("nothing was loaded into a model")


def loads_of(run: Run) -> list[Event]:
    """Of each module what was loaded at one time, the last: of several loads that which gave most.

    None of a module that was given nothing, if one around it or inside it was given something.
    """
    best: dict[Site, Event] = {}
    for event in run.events(EventKind.LOADED):
        before = best.get(event.site)
        if before is None or not _together(before, event) or _used(event) > _used(before):
            best[event.site] = event
    return [
        it for it in best.values() if _used(it) or not any(_fills(o, it) for o in best.values())
    ]


def _together(one: Event, other: Event) -> bool:
    """Whether both were loaded between the same two training steps."""
    return one.detail.get("at") == other.detail.get("at")


def _fills(other: Event, event: Event) -> bool:
    """Whether another load at that time gave something to the same part of a model."""
    inner, outer = sorted((event.site.fqn, other.site.fqn), key=len, reverse=True)
    nested = not outer or inner == outer or inner.startswith(f"{outer}.")
    same_model = other.site.model == event.site.model
    return same_model and nested and _together(other, event) and bool(_used(other))


def _used(event: Event) -> float:
    return number(event, "used")


def number(event: Event, name: str) -> float:
    """A number of an event's detail, 0 if it has none of this name."""
    value = event.detail.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


@rule("E014", severity=Severity.ERROR, reads=("loss",), applies=_no_load, lasting=True)
def weights_not_loaded(run: Run, *, share: float = 0.5) -> Iterator[Evidence]:
    """A checkpoint is loaded into a model, and most or all of it is passed over.

    ## Why it matters
    `load_state_dict(state, strict=False)` takes what fits by name and passes over the rest without
    a word. A checkpoint of a parallel or a compiled model has names that begin with `module.` or
    `_orig_mod.`, of which none fits: what is called a pretrained model then begins from random
    weights. It trains, worse and slower than it should, and nothing says why.

    ## How it is measured
    Exactly, from the names and shapes at each call of `load_state_dict`. It is an error if of all
    that was given nothing was used, or if at least as many parameters and buffers are lacking as
    were loaded that the checkpoint does have, in the same shapes, behind another prefix. It is
    information if less than a share `share` of what was given was used and less than that share of
    the model's parameters was loaded, without such a prefix. It is a warning if all that is loaded
    before training is the model's own tensors, as they are left when a filter lets nothing of a
    checkpoint through. It is a warning, besides, if more than a share `share` of the weights of two
    axes or more that were loaded have changed by over half of their size when the module is first
    called, though no step was taken. Of several loads into one module between two training steps
    the one that gave most counts, and the last of these times.

    ## How to fix
    Rename before loading, and load with `strict=True`; print what `load_state_dict` returns where
    something has to be passed over.

    ## False alarms
    Of an error none is known: nobody loads what he knows to be of no use. A part of a large
    checkpoint that is loaded into a part of a large model on purpose is no more than information.

    ## References
    PyTorch documentation, `torch.nn.Module.load_state_dict`, on `strict`, and the tutorial on
    `DistributedDataParallel`, on checkpoints.
    """
    for event in loads_of(run):
        used, given = number(event, "used"), number(event, "given")
        loaded, total = number(event, "loaded"), number(event, "parameters")
        fits = number(event, "fits")
        if not used or (fits and fits >= used):
            yield _unused(run, event)
        elif used < share * given and loaded < share * total:
            yield _in_part(run, event, share)
        elif is_own(event) and not trained_before(run, event):
            yield _own(run, event)
    for series in run.series("load.overwritten"):
        if series.last > share:
            yield _overwritten(series)


def _unused(run: Run, event: Event) -> Evidence:
    given, used, total = (number(event, name) for name in ("given", "used", "parameters"))
    where = _where(event)
    message = (
        say(
            "what was loaded into {place} is empty: its {total:.0f} parameters are as they were",
            place=where,
            total=total,
        )
        if not given
        else say(
            "of {given:.0f} tensors loaded into {place}, {used:.0f} were used: the checkpoint has "
            "{theirs}, the model {own}",
            given=given,
            place=where,
            used=used,
            theirs=listed(_names(event, "unexpected")),
            own=listed(_names(event, "missing")),
        )
    )
    return _evidence(run, event, message, _cause(event), _fix(event), Severity.ERROR)


def is_own(event: Event) -> bool:
    """Whether every tensor loaded was the module's own."""
    return number(event, "same") == number(event, "given") == number(event, "used") > 0


def trained_before(run: Run, event: Event) -> bool:
    """Whether the model had been trained when something was loaded into it."""
    loss = run.loss_of(event.site.model)
    return loss is not None and loss.first_step < number(event, "at")


def _own(run: Run, event: Event) -> Evidence:
    given = number(event, "given")
    message = say(
        "all {given:.0f} tensors loaded into {place} are its own, so that nothing has changed",
        given=given,
        place=_where(event),
    )
    cause = say(
        "`state_dict()` returns the living tensors. What was to replace some of them was not there."
    )
    return _evidence(run, event, message, cause, _fix(event), Severity.WARNING)


def _overwritten(series: Series) -> Evidence:
    model, fqn = series.site
    return Evidence(
        site=series.site,
        step=series.step,
        message=say(
            "{part:.0%} of the weights that were loaded into {place} were others when it was first "
            "called, before any step",
            part=series.last,
            place=f"{model}.{fqn}" if fqn else model,
        ),
        numbers={"overwritten": series.last},
        cause=say("They were initialized after loading."),
        fix=say("model.apply(initialize); model.load_state_dict(state)  # in this order"),
        excluded=(say("a later load into the same module"), say("small changes, as by rounding")),
        severity=Severity.WARNING,
    )


def _in_part(run: Run, event: Event, share: float) -> Evidence:
    given, used = number(event, "given"), number(event, "used")
    loaded, total = number(event, "loaded"), number(event, "parameters")
    message = say(
        "of {given:.0f} tensors loaded into {place}, {used:.0f} were used, and of its {total:.0f} "
        "parameters {loaded:.0f} were loaded (both under {share:.0%})",
        given=given,
        place=_where(event),
        used=used,
        total=total,
        loaded=loaded,
        share=share,
    )
    cause = say("The checkpoint is of another model, or its names are.")
    return _evidence(run, event, message, cause, _fix(event), Severity.INFO)


def _cause(event: Event) -> Message:
    rename, fits = str(event.detail.get("rename", "")), number(event, "fits")
    if not (rename and fits):
        return say("No name in it is a name of the model's, and `strict=False` passes over that.")
    name = rename[1:]
    if rename.startswith("+"):
        return say(
            "Its names lack the `{prefix}` that the model's begin with; with it {fits:.0f} more "
            "fit.",
            prefix=name,
            fits=fits,
        )
    if name.endswith("."):
        return say(
            "Its names begin with `{prefix}`; without it {fits:.0f} more fit.",
            prefix=name,
            fits=fits,
        )
    return say(
        "Its names differ by `{name}`; but for that {fits:.0f} more fit.", name=name, fits=fits
    )


def _fix(event: Event) -> Message:
    rename = str(event.detail.get("rename", ""))
    name, model = rename[1:], _variable(event)
    if rename.startswith("+"):
        return say(
            "{model}.load_state_dict({{'{prefix}' + name: value for name, value in "
            "state.items()}})",
            model=model,
            prefix=name,
        )
    if name.endswith("."):
        return say(
            "{model}.load_state_dict({{name.removeprefix('{prefix}'): value for name, value in "
            "state.items()}})",
            model=model,
            prefix=name,
        )
    return say(
        "print({model}.load_state_dict(state, strict=False))  # what is missing, and what is "
        "passed over",
        model=model,
    )


def _evidence(
    run: Run, event: Event, message: Message, cause: Message, fix: Message, severity: Severity
) -> Evidence:
    names = ("given", "used", "parameters", "loaded", "fits")
    return Evidence(
        site=event.site if event.site.model in run.models else Site("", event.site.model),
        step=min(run.step, event.step),
        message=message,
        numbers={name: number(event, name) for name in names},
        cause=cause,
        fix=fix,
        excluded=(say("a later load into the same module"),),
        severity=severity,
    )


def _where(event: Event) -> str:
    model, fqn = event.site
    return f"{model}.{fqn}" if fqn else model


def _variable(event: Event) -> str:
    """What the module may be called in code."""
    where = _where(event)
    return where if all(part.isidentifier() for part in where.split(".")) else "model"


def _names(event: Event, name: str) -> list[str]:
    value = event.detail.get(name)
    return [f"`{each}`" for each in value] if isinstance(value, list) else []
