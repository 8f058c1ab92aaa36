"""What theory says of each layer of a given network: forward moments, backward factors.

A network is a list of passages in the order of its computation: calls of modules, which were
measured, and the functions between them, which were not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

from traindx.messages import say
from traindx.signal.layers import Given, Junction, Layer, Signal, Step, Summed


@dataclass(frozen=True, slots=True)
class Passage:
    """One call of a module, or a function between two: what went in, what came out, from where.

    Attributes:
        fqn: The module's name; empty of a function.
        kind: The module's class, or the function.
        call: Which of the module's calls it is, from 1.
        layer: What theory takes it for; None where theory has nothing to say.
        reason: Why it has nothing to say; empty if it has.
        given: Moments of the input; None of a function, and if it is not made of real numbers.
        made: Moments of the output; None of a function.
        sources: Indices of the passages whose outputs it takes; none if it takes the network's
            input, or what comes from elsewhere.
        broken: Why the sources are not known; empty if they are, or are the network's input.
        tied: The module that used the same weights before; empty if none did.
        mixes: Whether random weights mix the units, so that none is what it was any more.
        open: Whether its output goes elsewhere, too, than into other passages.
        gradient: Mean square of the gradient at the output; None if none came.
        gradient_in: Mean square of the gradient at the input, through this call only.
    """

    fqn: str
    kind: str
    call: int
    layer: Layer | Junction | Given | None
    reason: str
    given: Signal | None
    made: Signal | None
    sources: tuple[int, ...] = ()
    broken: str = ""
    tied: str = ""
    mixes: bool = False
    open: bool = False
    gradient: float | None = None
    gradient_in: float | None = None

    @property
    def backward(self) -> float | None:
        """What the gradient's mean square was multiplied by on its way through."""
        if self.gradient is None or self.gradient_in is None or not self.gradient:
            return None
        return self.gradient_in / self.gradient


@dataclass(frozen=True, slots=True)
class Expected:
    """What theory says of a passage.

    Attributes:
        local: The output's moments, from the input as measured.
        chained: The output's moments, from the network's input through all layers before.
        backward: What it multiplies the mean square of a gradient by, from the input as measured.
        gradient: Mean square of the gradient at the output, from what is behind; None where that is
            not known, or is the network's end: there it starts from what is measured.
        restarts: Why `chained` starts anew from the input as measured; empty if it does not.
    """

    local: Signal | None = None
    chained: Signal | None = None
    backward: float | None = None
    gradient: float | None = None
    restarts: str = ""


def expected(passages: Sequence[Passage]) -> list[Expected]:
    """What theory says of each of them, in the same order."""
    reached = followed(passages)
    local = [_local(passage, each) for passage, each in zip(passages, reached, strict=True)]
    factors = [step and step.backward for step in local]
    gradients = gradient_squares(passages, factors, measured=True)
    return [
        Expected(
            step and step.output,
            each.chained,
            None if isinstance(each.layer, Junction) else factor,
            gradient,
            each.restarts,
        )
        for step, each, factor, gradient in zip(local, reached, factors, gradients, strict=True)
    ]


def _local(passage: Passage, reached: Reached) -> Step | None:
    """From the input as measured; of a function, from theory's."""
    if passage.given is None or not passage.given.usable or not isinstance(reached.layer, Layer):
        return reached.step
    return reached.layer.step(passage.given)


# -- forward --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reached:
    """How far theory has come at a passage.

    Attributes:
        layer: What it was taken for.
        step: What theory says of it; None if nothing.
        output: Where the next goes on from: theory's output, or the measured one if it has none.
        restarts: Why theory starts from the input as measured, or ends; empty if it does neither.
    """

    layer: Layer | Junction | Given | None = None
    step: Step | None = None
    output: Signal | None = None
    restarts: str = ""

    @property
    def chained(self) -> Signal | None:
        """Theory's output."""
        return self.step and self.step.output


Choose = Callable[[int, Layer, Signal], Layer]
"""The layer to take for the passage of an index, given its input."""


def followed(passages: Sequence[Passage], choose: Choose | None = None) -> list[Reached]:
    """Theory from the network's input to its output."""
    found: list[Reached] = []
    roots = _roots(passages)
    for i, passage in enumerate(passages):
        before = [found[source] for source in passage.sources]
        if isinstance(passage.layer, Given):
            signal = passage.layer.signal
            found.append(Reached(passage.layer, Step(signal, 1.0), signal))
        elif isinstance(passage.layer, Junction):
            apart = _apart([roots[source] for source in passage.sources])
            found.append(_met(passage.layer, before, apart))
        else:
            found.append(_reached(passage, passage.layer, before, i, choose))
    return found


def _met(junction: Junction, before: Sequence[Reached], apart: bool) -> Reached:
    signals = [each.output for each in before if each.output is not None]
    if len(signals) < len(before):
        why = next(each.restarts for each in before if each.output is None)
        return Reached(junction, restarts=why)
    if isinstance(junction, Summed) and not apart:
        return Reached(junction, restarts=say("it adds signals that may depend on each other"))
    output = junction.of(signals)
    return Reached(junction, Step(output, 1.0), output)


def _reached(
    passage: Passage,
    layer: Layer | None,
    before: Sequence[Reached],
    index: int,
    choose: Choose | None,
) -> Reached:
    arriving, restarts = passage.given, passage.broken
    for origin in before:
        arriving = passage.given if origin.output is None else origin.output
        restarts = origin.restarts if origin.output is None else ""
    if arriving is not None and not arriving.usable:
        return Reached(layer, None, passage.made, say("its input is not finite"))
    if layer is None or arriving is None:
        return Reached(layer, None, passage.made, restarts)
    chosen = layer if choose is None else choose(index, layer, arriving)
    step = chosen.step(arriving)
    return Reached(chosen, step, step.output, restarts)


_INPUT, _UNKNOWN = -1, -2


def _roots(passages: Sequence[Passage]) -> list[frozenset[int]]:
    """Where each output's randomness from unit to unit comes from."""
    found: list[frozenset[int]] = []
    for i, passage in enumerate(passages):
        if passage.mixes:
            found.append(frozenset([i]))
        elif passage.sources:
            found.append(frozenset[int]().union(*(found[source] for source in passage.sources)))
        else:
            found.append(frozenset([_UNKNOWN if passage.broken else _INPUT]))
    return found


def _apart(roots: Sequence[frozenset[int]]) -> bool:
    """Whether no two have a root in common."""
    return not any(a & b or _UNKNOWN in a or _UNKNOWN in b for a, b in combinations(roots, 2))


# -- backward -------------------------------------------------------------------------------------


def gradient_squares(
    passages: Sequence[Passage], factors: Sequence[float | None], *, measured: bool
) -> list[float | None]:
    """Mean squares of the gradients at the outputs, by those behind; None where not known.

    What comes back by several ways adds up: random weights make the ways independent. It starts
    from what is measured at the network's end.

    Args:
        passages: In order.
        factors: What each multiplies a gradient's mean square by; None if not known.
        measured: Whether it starts anew from what is measured wherever not all ways are known.
    """
    known: list[float | None] = [None] * len(passages)
    arrived: list[list[float | None]] = [[] for _ in passages]
    for i in reversed(range(len(passages))):
        passage, parts = passages[i], [part for part in arrived[i] if part is not None]
        if parts and len(parts) == len(arrived[i]) and not passage.open:
            known[i] = sum(parts)
        behind = known[i]
        if behind is None and (measured or not arrived[i]):
            behind = passage.gradient
        for place, source in enumerate(passage.sources):
            arrived[source].append(_sent(passage, place, behind, factors[i], measured))
    return known


def _sent(
    passage: Passage, place: int, gradient: float | None, factor: float | None, measured: bool
) -> float | None:
    """What a passage sends back to one of its sources."""
    if isinstance(passage.layer, Junction):
        return None if gradient is None else gradient * passage.layer.backward(place)
    if gradient is None or factor is None:
        return passage.gradient_in if measured else None
    return gradient * factor
