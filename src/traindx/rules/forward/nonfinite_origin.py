"""F006: a number that is not finite is born, and where."""

from __future__ import annotations

import math
from collections.abc import Iterator

from traindx.facts import Json
from traindx.findings import Evidence, Severity
from traindx.messages import Message, say
from traindx.records import Event, Site
from traindx.rules.forward.nonfinite import Place, Trouble, place_of, troubles
from traindx.rules.forward.nonfinite_remedies import cause_of, fix_of
from traindx.rules.rule import rule
from traindx.run import Run


@rule(
    "F006",
    severity=Severity.ERROR,
    reads=("loss",),
    explained_by=(
        "G002",
        "G006",
        "L003",
        "L011",
        "L014",
        "N004",
        "N013",
        "N017",
        "O001",
        "O012",
        "P008",
    ),
)
def nonfinite_origin(run: Run) -> Iterator[Evidence]:
    """The loss, a gradient or a parameter is NaN or infinite; the origin is named if it is known.

    ## Why it matters
    One NaN spreads through the next forward to every output, through the next backward to every
    gradient, and with one update to every parameter. From then on nothing is learned, and the layer
    that first shows it is seldom the one where it was born.

    ## How it is measured
    The loss is known at every step; gradients and a sample of each parameter at measured ones. The
    finding stands at the first step with anything that is not finite. Its origin is named in two
    cases only. With `--trap-nan` (`trap_nan=True` of `traindx.watch`) that very batch is replayed
    before the optimizer steps, and the first operation that makes what is not finite out of finite
    numbers is found, with its module, the range of what went in and the first bad index. Without
    it, only if that step and the one before were measured: then the layer is the first one in the
    order of calls whose output is not finite. Where a layer's input is not known for sure, the
    module around it is named. Otherwise the finding says since when, and no more. If the loss and
    the parameters are finite again afterwards, it is a warning.

    ## How to fix
    Guard the operation that is named: `clamp_min` before a logarithm or a division, a small
    constant inside a square root, `log_softmax` or a loss on logits in place of logarithms of
    probabilities, at least one unmasked position for each row of a softmax. Clean the data if the
    batch holds NaN. If an update broke a parameter, lower the learning rate or clip the gradient.

    ## False alarms
    Gradients that a GradScaler skips are no fault. Neither is minus infinity in outputs, as masks
    of attention have it, while the loss is finite. A loss that the script checks and leaves out
    before `backward` is never seen.

    ## References
    Goldberg, "What every computer scientist should know about floating-point arithmetic" (1991).
    PyTorch documentation, "Automatic mixed precision" and `torch.autograd.detect_anomaly`.
    """
    for trouble in troubles(run):
        yield _evidence(run, trouble)


def _evidence(run: Run, trouble: Trouble) -> Evidence:
    origin = trouble.origin
    if origin is not None and origin.step == trouble.step:
        return _unknown(run, trouble) if "reason" in origin.detail else _replayed(trouble, origin)
    place = place_of(run, trouble)
    return _unknown(run, trouble) if place is None else _measured(trouble, place)


def _finding(
    trouble: Trouble,
    site: Site,
    message: str,
    *,
    cause: str,
    fix: str,
    numbers: dict[str, float],
    excluded: tuple[str, ...] = (),
) -> Evidence:
    return Evidence(
        site=site,
        step=trouble.step,
        message=message,
        numbers=numbers,
        cause=cause,
        fix=fix,
        excluded=(say("a step that a GradScaler skipped"), *excluded),
        series=("loss", "grad.nonfinite", "output.nonfinite"),
        severity=Severity.WARNING if trouble.recovered else None,
    )


# -- as a replay has shown it ----------------------------------------------------------------------


def _replayed(trouble: Trouble, origin: Event) -> Evidence:
    detail = origin.detail
    operation = str(detail.get("operation"))
    phase = str(detail.get("phase"))
    low, high = _number(detail.get("input_min")), _number(detail.get("input_max"))
    ranged = {} if math.isnan(low) else {"input_min": low, "input_max": high}
    return _finding(
        trouble,
        origin.site,
        _replayed_words(trouble, origin, operation, phase),
        cause=cause_of(phase, operation),
        fix=fix_of(phase, operation),
        numbers={**ranged, "nonfinite": _number(detail.get("count"))},
        excluded=(say("masks of minus infinity"), say("what came after it in the same batch")),
    )


def _replayed_words(trouble: Trouble, origin: Event, operation: str, phase: str) -> Message:
    detail = origin.detail
    step, index = trouble.step, _index(detail.get("index"))
    place = origin.site.fqn or origin.site.model
    match phase:
        case "input":
            return say(
                "the batch of step {step} holds {count:g} values that are not finite, the first at "
                "index {index}",
                step=step,
                count=_number(detail.get("count")),
                index=index,
            )
        case "parameter":
            return say(
                "`{operation}` of `{place}` was not finite before the forward of step {step}, "
                "though every gradient before it was: the update made it so",
                operation=operation,
                place=place,
                step=step,
            )
        case "loss":
            return say(
                "at step {step} every output is finite, and `{operation}` in the loss function is "
                "not{given}",
                step=step,
                operation=operation,
                given=_given(detail),
            )
        case "backward":
            where = (
                say("the loss function") if detail.get("in_loss") else say("`{name}`", name=place)
            )
            return say(
                "at step {step} the loss is finite, and the gradient of `{operation}` in {where} "
                "is the first that is not, at index {found}",
                step=step,
                operation=operation,
                where=where,
                found=_given(detail, index),
            )
        case _:
            return say(
                "at step {step} `{operation}` in `{place}` makes the first value that is not "
                "finite, at index {found}",
                step=step,
                operation=operation,
                place=place,
                found=_given(detail, index),
            )


def _given(detail: dict[str, Json], before: str = "") -> Message:
    """The range of what went into the operation, each tensor's on its own, after these words."""
    ranges = detail.get("inputs")
    pairs = [pair for pair in ranges if isinstance(pair, list)] if isinstance(ranges, list) else []
    spans = [(_number(pair[0]), _number(pair[1])) for pair in pairs[:2] if len(pair) == 2]
    if not spans:
        return say("{text}", text=before)
    low, high = spans[0]
    if len(spans) == 1:
        return say(
            "{before}, from values between {low:.3g} and {high:.3g}",
            before=before,
            low=low,
            high=high,
        )
    return say(
        "{before}, from values between {low:.3g} and {high:.3g} and others between {least:.3g} "
        "and {most:.3g}",
        before=before,
        low=low,
        high=high,
        least=spans[1][0],
        most=spans[1][1],
    )


def _index(value: Json) -> str:
    numbers = [int(i) for i in value if isinstance(i, int)] if isinstance(value, list) else []
    return "[" + ", ".join(map(str, numbers)) + "]"


def _number(value: Json) -> float:
    try:
        return float(value) if isinstance(value, int | float | str) else math.nan
    except ValueError:
        return math.nan


# -- as measured steps show it ---------------------------------------------------------------------


def _measured(trouble: Trouble, place: Place) -> Evidence:
    phase = {"input": "input", "loss": "loss"}.get(place.kind, "")
    return _finding(
        trouble,
        place.site,
        _measured_words(trouble, place),
        cause=cause_of(phase, ""),
        fix=fix_of(phase, "") if phase == "input" else _trap_fix(),
        numbers={"nonfinite": float(place.count)} if place.count else {},
        excluded=(
            say("everything measured before it: it is finite"),
            say("an earlier step: every loss before it is finite"),
        ),
    )


def _measured_words(trouble: Trouble, place: Place) -> Message:
    step, name = trouble.step, place.site.fqn or place.site.model
    match place.kind:
        case "input":
            return say(
                "the batch of step {step} holds {count:g} values that are not finite",
                step=step,
                count=place.count,
            )
        case "module":
            return say(
                "at step {step} the output of `{name}` is the first that is not finite ({count:g} "
                "values), and what it was given is finite",
                step=step,
                name=name,
                count=place.count,
            )
        case "between":
            return say(
                "at step {step} the first output that is not finite is that of `{before}` "
                "({count:g} values): it was born in `{before}` or in what `{name}` does ahead of "
                "it{after}",
                step=step,
                before=place.before,
                count=place.count,
                name=name,
                after=_after(place.after),
            )
        case "loss":
            return say(
                "at step {step} every measured output of `{name}` is finite, and the loss is "
                "{value}: it was born in the loss function",
                step=step,
                name=name,
                value=_value(trouble),
            )
        case "loss-backward":
            return say(
                "at step {step} the loss is finite, and its gradient with respect to the output of "
                "`{before}` is not: it was born in the backward of the loss function",
                step=step,
                before=place.before or name,
            )
        case "grad":
            return say(
                "at step {step} the gradient of `{before}` is not finite ({count:g} values), "
                "though the one that arrives at the output of `{name}` is",
                step=step,
                before=place.before,
                count=place.count,
                name=name,
            )
        case _:
            return say(
                "at step {step} the gradient is finite at the output of `{after}` and not at that "
                "of `{before}`: it was born in the backward between the two",
                step=step,
                after=place.after,
                before=place.before,
            )


def _after(name: str) -> Message:
    return say(", after `{after}`", after=name) if name else Message("")


def _value(trouble: Trouble) -> str | Message:
    value = trouble.losses.at(trouble.step)
    return "NaN" if value is None or math.isnan(value) else say("infinite")


# -- as nothing shows it ---------------------------------------------------------------------------


def _unknown(run: Run, trouble: Trouble) -> Evidence:
    origin = trouble.origin
    if origin is not None:
        reason = str(origin.detail.get("reason") or "")
        cause = (
            say("The replay of the batch did not show it: {reason}.", reason=Message(reason))
            if reason
            else say("A replay was made of step {step}, which was later.", step=origin.step)
        )
        fix: str = fix_of("", "")
    else:
        cause = say(
            "Where it was born is not known: too little of that step, or of the one before it, was "
            "measured."
        )
        fix = _trap_fix()
    return _finding(
        trouble,
        trouble.site,
        _since(trouble),
        cause=cause,
        fix=fix,
        numbers={"first_step": float(trouble.step)},
    )


def _since(trouble: Trouble) -> Message:
    match trouble.what:
        case "loss" if trouble.recovered:
            return say(
                "the loss is {value} at step {step}, and finite again later",
                value=_value(trouble),
                step=trouble.step,
            )
        case "loss":
            return say(
                "the loss is {value} from step {step} on", value=_value(trouble), step=trouble.step
            )
        case "parameter":
            return say("a parameter is already not finite at step {step}", step=trouble.step)
        case _:
            return say("a gradient is not finite at step {step}", step=trouble.step)


def _trap_fix() -> Message:
    return say(
        "# replays the first batch that is not finite and names the operation\n"
        "traindx run --trap-nan SCRIPT  # in a notebook: traindx.watch(model, trap_nan=True)"
    )
