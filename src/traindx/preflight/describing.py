"""A case described without torch: the model, its optimizer, and what goes into its loss."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

from torch import nn

from traindx.capture.describe import describe
from traindx.capture.graph import Graph
from traindx.capture.models import TrackedModel
from traindx.capture.nodes import identity
from traindx.capture.optimizers import TrackedOptimizer
from traindx.facts import Facts, LossFacts, TensorFacts
from traindx.preflight.case import Case
from traindx.preflight.structures import named_tensors
from traindx.records import Item


def described(case: Case) -> list[Facts]:
    """What is known of a case after one forward pass, which the caller isolates."""
    model = TrackedModel(case.model, case.name)
    facts: list[Facts] = []
    tracked = None if case.optimizer is None else TrackedOptimizer(
        case.optimizer, type(case.optimizer).__name__
    )  # fmt: skip
    with _Listening(model, case.model):
        output = case.output()
    if case.loss_found is not None:
        facts += _losses(case, model, output)
    held = {id(param): (tracked.name,) for param in tracked.params()} if tracked else {}
    if tracked is not None:
        facts.insert(0, tracked.facts([], []))
    return [describe(model, held), *facts]


def _losses(case: Case, model: TrackedModel, output: Any) -> Iterator[Facts]:
    """What goes into the loss; what lies on the ways to the parameters is noted on the way."""
    loss = case.loss_of(output)
    if loss.grad_fn is None:
        return
    graph = Graph(loss)
    ways = graph.ways()
    paths = ways.facts([float(norm) for norm in ways.norms])
    own = {fqn: id(param) for fqn, param in model.parameters() if id(param) in paths}
    model.paths.update({fqn: paths[leaf] for fqn, leaf in own.items()})
    outputs = [t for _, t in named_tensors(output)]
    known = {key[1]: t.detach() for t in outputs if (key := identity(t)) is not None}
    compared = graph.comparison(known)
    if compared is None:
        yield LossFacts(case.name, graph.operation, "", None, None)
        return
    found: list[Facts] = []

    def note(prediction: TensorFacts | None, target: TensorFacts | None) -> list[Item]:
        found.append(LossFacts(case.name, graph.operation, compared.loss, prediction, target))
        return []

    unread = compared.unread(note)
    unread.items([float(value) for value in unread.values], [])
    yield from found


class _Listening:
    """Notes the order of the calls of a model's modules."""

    def __init__(self, tracked: TrackedModel, model: nn.Module) -> None:
        self._tracked = tracked
        self._model = model
        self._handles: list[Any] = []

    def __enter__(self) -> None:
        named: Iterable[tuple[str, Any]] = cast(Any, self._model).named_modules()
        for fqn, module in named:
            self._handles.append(module.register_forward_hook(self._hook(fqn)))

    def _hook(self, fqn: str) -> Any:
        def called(_module: object, _args: object, _output: object) -> None:
            self._tracked.note_call(fqn)

        return called

    def __exit__(self, *_error: object) -> None:
        for handle in self._handles:
            handle.remove()
