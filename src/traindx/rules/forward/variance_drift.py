"""F002: before training, signal or gradient vanish or explode along the depth."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

from traindx.findings import Evidence, Severity, first_layers
from traindx.messages import Message, listed, say
from traindx.rules.probed import STEP, Observation, observations
from traindx.rules.rule import rule
from traindx.run import Run
from traindx.signal.chain import sigmoid_chain_bound

_CHAIN = 4
"""Sigmoids from which on there is a word on their chain."""


@rule(
    "F002",
    severity=Severity.WARNING,
    reads=("probe.gradient_fall", "probe.signal_growth"),
    source="probe",
    explained_by=("N010", "N011", "N012", "N013", "S002"),
)
def variance_drift(run: Run, *, decades: float = 3.0, slope: float = 0.15) -> Iterator[Evidence]:
    """Before training, signal or gradient vanish or explode from layer to layer.

    ## Why it matters
    Each layer multiplies the size of the signal, and backward that of the gradient, by a factor
    that follows from the variance of its weights and the activation before it. Ten layers that each
    halve a gradient leave a thousandth of it: the first layers stay as they were drawn. Ten that
    double it make the first step tear them apart. It is known before the first step, and a gain
    mends it.

    ## How it is measured
    By preflight, with one pass forward and one backward from a random direction at the output, over
    layers with weights that are called once, if there are 4 or more. The norm of the gradient at
    the first one's output over that at the last one's, and the RMS of the last hidden one's output
    over the first one's, should lie within 10^-`decades` and 10^`decades`; beyond, it is told if
    the change is also more than `slope` decades a layer. What explodes in a network with
    normalization is passed over: it cannot grow there. The gains come from the exact map of the
    mean square through each activation, from the batch's own inputs (`traindx signal` shows all).

    ## How to fix
    Initialize every layer with the standard deviation gain/sqrt(fan_in) that the finding names.
    Where no gain mends the gradient (a chain of sigmoids), use ReLU or GELU, skip connections or
    normalization.

    ## False alarms
    Pooling over positions spreads a gradient over many elements, which is why norms are compared
    and not RMS. Branches that begin with zeros, weights used several times and the inside of
    recurrent layers do not count. On the programs of `zoo/healthy` and a ResNet, a transformer and
    a VAE the ratios lie within two decades; 20 sigmoid or default ReLU layers lie 6 below.

    ## References
    Glorot & Bengio (AISTATS 2010). He et al., "Delving deep into rectifiers" (ICCV 2015), eq. 7 and
    13. Schoenholz et al., "Deep information propagation" (ICLR 2017).
    """
    for seen in observations(run, "signal-profile"):
        names = _names(seen)
        drift = _drift(seen, len(names), decades, slope)
        if drift is not None:
            yield _evidence(seen, names, drift)


class _Drift(NamedTuple):
    """What is out of bounds: the gradient or the signal, and by which ratio."""

    what: Message
    ratio: float


def _names(seen: Observation) -> list[str]:
    layers = seen.detail.get("layers")
    return [str(name) for name in layers] if isinstance(layers, list) else []


def _drift(seen: Observation, layers: int, decades: float, slope: float) -> _Drift | None:
    normalized = bool(seen.detail.get("normalized"))
    for what, name in ((say("gradient"), "fall"), (say("signal"), "growth")):
        ratio = seen.number(name, math.nan)
        if math.isnan(ratio) or ratio <= 0:
            continue
        moved = math.log10(ratio) if math.isfinite(ratio) else math.inf
        steep = abs(moved) > max(decades, slope * (layers - 1))
        if steep and not (moved > 0 and normalized):
            return _Drift(what, ratio)
    return None


def _evidence(seen: Observation, names: list[str], drift: _Drift) -> Evidence:
    fall, growth = seen.number("fall", math.nan), seen.number("growth", math.nan)
    return Evidence(
        site=seen.site,
        step=STEP,
        message=say(
            "before training the {what} changes by the factor {ratio:.2g} over {layers} layers: "
            "the gradient's norm at `{first}` is {fall:.2g} of that at `{last}`, and the signal's "
            "RMS grows {growth:.2g} times from the first to the last hidden layer",
            what=drift.what,
            ratio=drift.ratio,
            layers=len(names),
            first=names[0],
            last=names[-1],
            fall=fall,
            growth=growth,
        ),
        numbers={"fall": fall, "growth": growth, "layers": len(names), **_bound(seen)},
        cause=_cause(seen),
        fix=_fix(seen),
        excluded=(say("pooling over positions"), say("branches that begin with zeros")),
        layers=first_layers(names),
        profiles=("probe.output_rms", "probe.gradient_rms"),
    )


def _bound(seen: Observation) -> dict[str, float]:
    """What sigmoids alone let through, where there is a chain of them."""
    sigmoids = int(seen.number("sigmoids"))
    return {"bound": float(sigmoid_chain_bound(sigmoids))} if sigmoids >= _CHAIN else {}


def _cause(seen: Observation) -> Message:
    bound = _bound(seen)
    if not bound:
        return say("The gains of the weights do not fit the activations between them.")
    return say(
        "{sigmoids} sigmoids one after another let through at most 0.25^{sigmoids} = {bound:.3g} "
        "of the gradient where the weights between have a spectral norm of 1.",
        sigmoids=int(seen.number("sigmoids")),
        bound=bound["bound"],
    )


def _fix(seen: Observation) -> Message:
    gains = _gains(seen)
    mended = seen.number("mended", math.nan)
    if gains and not 1e-2 < mended < 1e2 and not math.isnan(mended):
        return say(
            "No gain mends it: with the right ones the gradient would still be {mended:.1g} times. "
            "Replace the activations ({activations}) by `nn.ReLU()` with "
            "`nn.init.kaiming_normal_(weight, nonlinearity='relu')`, or add skip connections or "
            "normalization.",
            mended=mended,
            activations=listed(_activations(seen)),
        )
    if not gains:
        return say(
            "nn.init.kaiming_normal_(layer.weight, nonlinearity='relu'); "
            "nn.init.zeros_(layer.bias)  # in every layer before a ReLU"
        )
    return say(
        "std = {gain:.4g} / math.sqrt(layer.weight[0].numel())  # the right gain; now {now:.3g}\n"
        "nn.init.normal_(layer.weight, std=std); nn.init.zeros_(layer.bias)  # in every layer but "
        "the last",
        gain=median(right for _, right in gains),
        now=median(now for now, _ in gains),
    )


def _activations(seen: Observation) -> list[str]:
    names = seen.detail.get("activations")
    return [str(name) for name in names] if isinstance(names, list) else []


def _gains(seen: Observation) -> list[tuple[float, float]]:
    """Gain and right gain of the layers that have both."""
    rows = seen.detail.get("gains")
    return [
        (row[1], row[2])
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, list) and isinstance(row[1], float) and isinstance(row[2], float)
    ]
