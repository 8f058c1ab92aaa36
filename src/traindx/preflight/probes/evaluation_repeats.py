"""Probe: whether a model in evaluation makes the same of the same batch, call for call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from traindx.messages import say
from traindx.preflight.calls import Call, Calls
from traindx.preflight.case import Case, DoesNotApplyError
from traindx.preflight.comparing import Place, all_of, apart, parting, rounding, run, run_on
from traindx.preflight.expected import DROPOUTS
from traindx.preflight.probe import STEP, observed, probe
from traindx.preflight.structures import named_tensors
from traindx.records import Item, Scalar, Site


@probe(writes=("probe.eval_change",), passes=1.3)
def evaluation_repeats(case: Case) -> Iterator[Item]:
    """Whether the output in evaluation is the same from call to call."""
    case.model.eval()
    first = run(case)
    if not any(t.is_floating_point() for _, t in named_tensors(first)):
        raise DoesNotApplyError(say("the model returns no real numbers"))
    tolerance = rounding(first)
    drawn = apart(first, run(case, seed=1))
    change, why = drawn, "random"
    if drawn > tolerance and apart(first, run(case)) > tolerance:
        why = "unseeded"
    if drawn <= tolerance:
        run_on(case)  # what it leaves behind is there at the next call
        change, why = max(drawn, apart(first, run_on(case))), "state"
    yield Scalar(STEP, "probe.eval_change", change, Site(case.name))
    if change > tolerance:
        yield _observed(case, change, tolerance, why)


def _observed(case: Case, change: float, tolerance: float, why: str) -> Item:
    found = parting(case, case, all_of, tolerance, seed=1) if why == "random" else None
    place = found or Place("", type(case.model).__name__)
    with _Dropouts() as active:
        run(case)
    return observed(
        "evaluation-repeats",
        Site(case.name, place.fqn),
        why="dropout" if why == "random" and active.names else why,
        kind=place.kind,
        change=change,
        tolerance=tolerance,
        functions=[*sorted(active.names)],
    )


class _Dropouts(Calls):
    """Notes which functions drop something though the model is in evaluation."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def answer(self, call: Call) -> Any:
        """Note a dropout, and let it be."""
        if call.name == "scaled_dot_product_attention":
            drops = bool(call.argument("dropout_p", 4))
        else:
            drops = call.name in (*DROPOUTS, "native_dropout") and _drops(call)
        if drops:
            self.names.add(call.name.rstrip("_"))
        return call.run()


def _drops(call: Call) -> bool:
    """Whether a dropout function is told to drop: `(input, p, training)`."""
    training = call.argument("training", 2, call.argument("train", 2, True))
    return (
        bool(call.argument("p", 1, 0.5))
        and bool(training)
        and isinstance(call.argument("input", 0), Tensor)
    )
