"""G005: autograd's gradient is not the derivative of the loss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx.findings import Evidence, Severity, first_layers
from traindx.messages import Message, listed, say
from traindx.rules.probed import STEP, Observation, observation
from traindx.rules.rule import rule
from traindx.run import Run, Series

_SHOWN = 4
"""Parameters that a message names."""


@rule(
    "G005",
    severity=Severity.ERROR,
    reads=("probe.gradient_error",),
    source="probe",
    explained_by=("L003", "S012"),
)
def wrong_gradient(run: Run, *, wrong: float = 1e-3, doubtful: float = 1e-4) -> Iterator[Evidence]:
    """The gradient that autograd computes is not the derivative of the loss.

    ## Why it matters
    Training follows the gradient. One that is wrong by a few percent, from a backward pass written
    by hand, a `.detach()` or a conversion to NumPy on the way, trains to something else than the
    loss asks for, slower or not at all, and nothing is raised.

    ## How it is measured
    By preflight, on a copy of the model in float64, on 3 samples, after 3 small steps and a little
    noise, with the same random numbers each time: the derivative along random directions, of all
    parameters at once and of each by itself, by autograd and by centred differences with a step of
    1e-5. The relative error is |a - n| / max(|a|, |n|); where it is not small, steps of 1e-6 and
    1e-7 are tried, so that a kink (a ReLU that switches in between) drops out, and nothing is said
    where the differences do not settle. From `doubtful` on it is a warning, from `wrong` on an
    error. Derivatives too small for float64 are not compared.

    ## How to fix
    Correct the backward of the function that is named, and test it by itself:
    `torch.autograd.gradcheck(Function.apply, inputs)` with inputs in float64.

    ## False alarms
    Straight-through estimators, stopped gradients (`.detach()` in a model: teachers, quantizers,
    target networks) and reversed gradients are meant to be no derivative. Where such a function is
    seen in the way of the gradient, the finding is for information only.

    ## References
    CS231n notes, "Neural Networks Part 3: Learning and Evaluation", "Gradient checks".
    """
    for whole in run.series("probe.gradient_error"):
        own = run.series("probe.parameter_gradient_error", model=whole.site.model)
        bad = sorted((s for s in own if s.last > doubtful), key=lambda s: -s.last)
        error = max(whole.last, bad[0].last if bad else 0.0)
        seen = observation(run, "gradient-check", whole.site)
        if error > doubtful and seen is not None:
            yield _evidence(whole, bad, error, seen, wrong)


def _evidence(
    whole: Series, bad: Sequence[Series], error: float, seen: Observation, wrong: float
) -> Evidence:
    cuts, functions = _names(seen, "cuts"), _names(seen, "functions")
    severity = Severity.ERROR if error > wrong else Severity.WARNING
    return Evidence(
        site=bad[0].site if bad else whole.site,
        step=STEP,
        message=_message(whole, bad, error),
        numbers={
            "error": error,
            "parameters": len(bad),
            "kinks": seen.number("kinks"),
        },
        cause=_cause(cuts, functions),
        fix=say(
            "x = x.double().requires_grad_()\n"
            "torch.autograd.gradcheck(function, (x,))  # of each function with its own backward"
        ),
        excluded=(say("kinks"), say("random numbers of the model"), say("rounding")),
        severity=Severity.INFO if cuts else severity,
        layers=first_layers(s.site.fqn.rpartition(".")[0] for s in bad),
    )


def _message(whole: Series, bad: Sequence[Series], error: float) -> Message:
    if not bad:
        return say(
            "the gradient of {model} as a whole is off by {percent:.3g} % against differences in "
            "float64",
            model=whole.site.model,
            percent=100 * error,
        )
    names = listed(f"`{series.site.fqn}`" for series in bad[:_SHOWN])
    rest = len(bad) - _SHOWN
    return say(
        "the gradient of {names} is off by up to {percent:.3g} % against differences in float64",
        names=say("{names} and {rest} more", names=names, rest=rest) if rest > 0 else names,
        percent=100 * error,
    )


def _cause(cuts: list[str], functions: list[str]) -> Message:
    if cuts:
        return say(
            "{names} stands in the way of the gradient, which may be meant.",
            names=listed(f"`{name}`" for name in cuts),
        )
    if functions:
        return say(
            "Backward passes written by hand are in its graph: {names}.",
            names=listed(f"`{name}`" for name in functions),
        )
    return say("Something between these parameters and the loss has a wrong backward.")


def _names(seen: Observation, key: str) -> list[str]:
    names = seen.detail.get(key)
    return [str(name) for name in names] if isinstance(names, list) else []
