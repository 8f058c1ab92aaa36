"""Probe: whether a model in evaluation makes the same of the same batch, call for call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from torch import Tensor
from torch.overrides import TorchFunctionMode

from traindx.messages import say
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


class _Dropouts(TorchFunctionMode):
    """Notes which functions drop something though the model is in evaluation."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call the function, and note it."""
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name == "scaled_dot_product_attention":
            dropped = kwargs.get("dropout_p", args[4] if len(args) > 4 else 0.0)
            self.names.update([name] if dropped else [])
        elif name in (*DROPOUTS, "native_dropout") and _drops(args, kwargs):
            self.names.add(name.rstrip("_"))
        return func(*args, **kwargs)


def _drops(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether a dropout function is told to drop: `(input, p, training)`."""
    p = kwargs.get("p", args[1] if len(args) > 1 else 0.5)
    training = kwargs.get("training", kwargs.get("train", args[2] if len(args) > 2 else True))
    given = kwargs.get("input", args[0] if args else None)
    return bool(p) and bool(training) and isinstance(given, Tensor)
