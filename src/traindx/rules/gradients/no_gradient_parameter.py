"""G003: parameters that are to be trained never get a gradient."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import groupby

from traindx.facts import ModelFacts, ParamFacts
from traindx.findings import Evidence, Severity, first_layers
from traindx.ledger import NEVER
from traindx.messages import Message, counted, say
from traindx.records import Point, Site
from traindx.rules.order import ancestors, network_order, of_facts
from traindx.rules.rule import rule
from traindx.run import Run, Series


class _Failure(Enum):
    """Why a parameter has no gradient, as far as it can be told."""

    CUT = "cut"
    UNUSED_OUTPUT = "unused output"
    NEVER_CALLED = "never called"
    ZERO = "zero"


@dataclass(frozen=True, slots=True)
class _Subtree:
    """A module all of whose trained parameters are without gradient.

    Attributes:
        fqn: The module's path.
        silent: Those parameters.
        failure: Why.
        place: Where its last parameter stands in the network.
        trained_before: Modules with a gradient that stand before it.
    """

    fqn: str
    silent: tuple[ParamFacts, ...]
    failure: _Failure
    place: int
    trained_before: int


def _cause_and_fix(failure: _Failure, fqn: str) -> tuple[Message, Message]:
    match failure:
        case _Failure.CUT:
            return say(
                "The module runs in the forward pass, but the graph is cut between it and the loss."
            ), say(
                "Look behind `{module}` for `.detach()`, `.data`, `.item()`, `.numpy()`, `argmax` "
                "or `torch.no_grad()`, and take it out.",
                module=fqn,
            )
        case _Failure.UNUSED_OUTPUT:
            return say(
                "The module runs in the forward pass, but nothing after it leads to the loss."
            ), say(
                "Add the output of `{module}` to the loss, or leave its parameters out of the "
                "optimizer.",
                module=fqn,
            )
        case _Failure.NEVER_CALLED:
            return (
                say("The module is never called in the forward pass."),
                say("Call `{module}` in `forward`, or delete it.", module=fqn),
            )
        case _Failure.ZERO:
            return say(
                "Backward reaches the module, but a factor on the way is 0: dead units, a product "
                "with zero, or an underflow of half precision."
            ), say(
                "Check what follows `{module}`: units that are never active, a mask or scale of 0, "
                "float16 without a GradScaler.",
                module=fqn,
            )


@rule(
    "G003",
    severity=Severity.ERROR,
    reads=("grad.absent",),
    explained_by=("F003", "L003", "N011", "N012", "S002", "S012"),
    lasting=True,
)
def no_gradient_parameter(run: Run, *, steps: float = 50) -> Iterator[Evidence]:
    """Parameters that the optimizer is to train have never had a gradient.

    ## Why it matters
    What gets no gradient stays at its random start. The rest of the network trains around it, so
    the loss may fall all the same, only less than it could.

    ## How it is measured
    Exactly: the gradient is None or 0 in every element at every measured step, over at least
    `steps` optimizer steps, for a trainable parameter that an optimizer holds. It is an error if
    the module was called in the forward pass and the graph does not reach it. It is a warning if
    the module was never called, if nothing called after it has a gradient either although what
    comes before has (an output that is not used), or if backward reaches it with exact zeros. One
    finding per module, or one for the largest subtree that is without gradient as a whole; modules
    behind one cut are one finding, at the module nearest to the cut.

    ## How to fix
    If the graph is cut, remove what cuts it: `.detach()`, `.data`, `.item()`, a trip through NumPy,
    `argmax`, or `torch.no_grad()` around a part of the forward pass. If the module is not meant to
    be trained, set `requires_grad_(False)` or leave it out of the optimizer.

    ## False alarms
    Frozen parameters are left out. Embeddings of which a batch touches few rows and adapters that
    are 0 in the first step (LoRA) have a gradient at some measured step. So has a parameter that is
    trained at every k-th step only: for k up to 10 among the first ten steps, which are all
    measured; for a larger k in the long run, since later measured steps fall at irregular places,
    but the finding may stand until then. With `--every N` a k that has a factor in common with N
    may never be met. A bias before a normalization has a tiny one. A bias of exact zeros whose
    weight has a gradient is left out: of a loss of differences, as a siamese network and the critic
    of a Wasserstein GAN have, it is free. A layer whose units are all dead
    from the start has exact zeros: it is a warning that says so, not an error, since no graph is
    cut. An auxiliary head that is called in the middle of the network and not used looks like a
    cut.

    ## References
    PyTorch documentation, "Autograd mechanics", on `requires_grad` and `no_grad`, and
    `find_unused_parameters` of `DistributedDataParallel`. CS231n, "Neural Networks Part 1", on
    dead units.
    """
    for model in run.models.values():
        if not _any_without_gradient(run, model):
            continue
        held = _held(run, model)
        silent = [param for param, series in held if _is_silent(run, series, steps)]
        silent = [param for param in silent if not _is_free(run, model, param, held, silent)]
        if silent:
            yield from _findings(run, model, [param for param, _ in held], silent)


def _any_without_gradient(run: Run, model: ModelFacts) -> bool:
    """Whether the newest gradient of some parameter is missing or 0: of most models none is."""
    newest = run.newest("grad.max", _sites(model))
    return bool(((newest.values == 0) | (newest.steps == NEVER)).any())


@of_facts
def _sites(model: ModelFacts) -> tuple[Site, ...]:
    params = (param for param in model.params if param.trainable and param.optimizers)
    return tuple(Site(model.name, param.fqn) for param in params)


def _held(run: Run, model: ModelFacts) -> list[tuple[ParamFacts, Series]]:
    """The parameters that are to be trained, with the record of their missing gradients."""
    params = (param for param in model.params if param.trainable and param.optimizers)
    absent = ((param, run.at("grad.absent", Site(model.name, param.fqn))) for param in params)
    return [(param, series) for param, series in absent if series is not None]


def _is_silent(run: Run, absent: Series, steps: float) -> bool:
    if absent.step - absent.first_step < steps:
        return False
    measured = run.columns(Point.GRAD, absent.site)
    if measured and measured.last.max != 0:  # as of nearly all: their past need not be looked at
        return False
    highest = run.at("grad.max", absent.site)
    if highest is not None and not (_always_zero(highest) and _lowest_is_zero(run, absent.site)):
        return False
    # A gradient that is there but could not be measured counts as one.
    return (highest.count if highest else 0) + absent.num_nonzero >= absent.count


def _lowest_is_zero(run: Run, site: Site) -> bool:
    lowest = run.at("grad.min", site)
    return lowest is not None and _always_zero(lowest)


def _always_zero(series: Series) -> bool:
    return series.last == 0 and series.unchanged_since == series.first_step


def _is_free(
    run: Run,
    model: ModelFacts,
    param: ParamFacts,
    held: list[tuple[ParamFacts, Series]],
    silent: list[ParamFacts],
) -> bool:
    """Whether it is a bias that the loss cannot see, since it sees differences of outputs only.

    Its gradient is a sum over what its weight multiplies; that the weight has one shows that
    backward brings more than zeros.
    """
    if not param.fqn.rpartition(".")[2].startswith("bias"):
        return False
    if run.at("grad.max", Site(model.name, param.fqn)) is None:  # it is missing, not zero
        return False
    return any(one.module == param.module and one not in silent for one, _ in held)


def _findings(
    run: Run, model: ModelFacts, held: list[ParamFacts], silent: list[ParamFacts]
) -> Iterator[Evidence]:
    subtrees = sorted(_subtrees(run, model, held, silent), key=lambda it: it.place)
    for _, cut in groupby(subtrees, key=_separate):
        together = list(cut)
        yield _evidence(run, model, together)


def _separate(subtree: _Subtree) -> tuple[object, ...]:
    """What tells findings apart: modules in a row behind one cut are one."""
    alone = "" if subtree.failure is _Failure.CUT else subtree.fqn
    return subtree.failure, subtree.trained_before, alone


def _subtrees(
    run: Run, model: ModelFacts, held: list[ParamFacts], silent: list[ParamFacts]
) -> Iterator[_Subtree]:
    place = network_order(model)
    names = {param.fqn for param in silent}
    trained = {param.module for param in held if param.fqn not in names}
    alive = {holder for fqn in trained for holder in ancestors(fqn)}
    roots: dict[str, list[ParamFacts]] = {}
    for param in silent:
        holders = ancestors(param.module)
        root = next((fqn for fqn in holders if fqn not in alive), param.module)
        roots.setdefault(root, []).append(param)
    trained_places = [place.get(fqn, len(place)) for fqn in trained]
    for fqn, params in roots.items():
        places = [place.get(param.module, len(place)) for param in params]
        before = sum(there < min(places) for there in trained_places)
        after = sum(there > max(places) for there in trained_places)
        is_last = before > 0 and after == 0
        failure = _failure(run, model, params, is_last=is_last)
        yield _Subtree(fqn, tuple(params), failure, max(places), before)


def _failure(run: Run, model: ModelFacts, params: list[ParamFacts], *, is_last: bool) -> _Failure:
    owners = {param.module for param in params}
    walked = any(param.path is not None for param in model.params)
    reached = any(run.at("grad.max", Site(model.name, param.fqn)) for param in params)
    if reached and not (walked and all(param.path is None for param in params)):
        return _Failure.ZERO
    if not any(module.calls for module in model.modules if module.fqn in owners):
        return _Failure.NEVER_CALLED
    return _Failure.UNUSED_OUTPUT if is_last else _Failure.CUT


def _evidence(run: Run, model: ModelFacts, together: list[_Subtree]) -> Evidence:
    nearest = together[-1]
    params = [param for subtree in together for param in subtree.silent]
    absent = run.at("grad.absent", Site(model.name, params[0].fqn))
    assert absent is not None
    steps = absent.step - absent.first_step
    fqn = nearest.fqn or model.name
    cause, fix = _cause_and_fix(nearest.failure, fqn)
    return Evidence(
        site=Site(model.name, nearest.fqn),
        step=absent.step,
        message=say(
            "the gradient of {parameters} of {modules} was {missing} at all {measured} measured "
            "steps, over {steps} steps",
            parameters=counted(len(params), "{n} parameter", "{n} parameters"),
            modules=_modules(fqn, len(together) - 1),
            missing=say("exactly 0") if nearest.failure is _Failure.ZERO else say("missing"),
            measured=len(absent),
            steps=steps,
        ),
        numbers={"parameters": len(params), "steps": steps, "measured_steps": len(absent)},
        point=Point.GRAD,
        cause=cause,
        fix=fix,
        excluded=(
            say("frozen parameters"),
            say("sparse gradients"),
            say("zero only in the first step"),
        ),
        series=("grad.absent",),
        severity=Severity.ERROR if nearest.failure is _Failure.CUT else Severity.WARNING,
        layers=first_layers(param.module for param in params),
    )


def _modules(fqn: str, before: int) -> Message:
    if not before:
        return say("`{module}`", module=fqn)
    more = counted(before, "{n} module before it", "{n} modules before it")
    return say("`{module}` and {more}", module=fqn, more=more)
