"""The power iteration's vectors of spectral normalization."""

from collections.abc import Iterator

import numpy as np

from traindx.findings import Severity
from traindx.messages import Message, say
from traindx.norm.audit.check import Hit, check
from traindx.norm.audit.facts import Spectral, Subject


@check("averaged-spectral-vectors", Severity.WARNING)
def averaged_spectral_vectors(subject: Subject, *, short: float = 0.999) -> Iterator[Hit]:
    """The vectors of spectral normalization have not length 1.

    An exponential moving average of a model averages them, too: shorter vectors estimate a smaller
    singular value, and every such layer makes the signal that much larger.
    """
    for layer in subject.layers:
        spectral = layer.spectral
        if spectral is None or not _is_finite(spectral) or not spectral.sigma:
            continue
        if spectral.length < short or spectral.length > 1 / short:
            yield Hit(
                layer.fqn,
                _lengths(spectral),
                say("Leave u and v out of the average: copy them from the trained model."),
                {"length": spectral.length, "times": spectral.times},
            )


@check("spectral-not-converged", Severity.INFO)
def spectral_not_converged(subject: Subject, *, off: float = 0.1) -> Iterator[Hit]:
    """The power iteration is not at the greatest singular value: the weight is too large.

    One iteration a step follows slowly moving weights only. New layers start with 15.
    """
    for layer in subject.layers:
        spectral = layer.spectral
        if spectral is None or not _is_finite(spectral) or not spectral.sigma:
            continue
        # The vectors' length is the other check's; what is left here is their direction.
        lengths = spectral.u * (1.0 if spectral.v is None else spectral.v)
        times = abs(lengths * spectral.times) if lengths else float("inf")
        if not abs(times - 1) <= off:
            yield Hit(
                layer.fqn,
                say(
                    "its power iteration has not come to the greatest singular value: the weight "
                    "is {times:.3g} times what it should be",
                    times=times,
                ),
                say(
                    "In training mode call the model some times without a gradient, or use "
                    "`n_power_iterations=3`."
                ),
                {"times": times},
            )


@check("non-finite-spectral", Severity.ERROR)
def non_finite_spectral(subject: Subject) -> Iterator[Hit]:
    """The weight of spectral normalization, or its vectors, hold NaN or infinity."""
    for layer in subject.layers:
        if layer.spectral is not None and not _is_finite(layer.spectral):
            yield Hit(
                layer.fqn,
                say("its weight or its vectors are not finite"),
                say("Load an earlier checkpoint, and find the step that was not finite."),
            )


def _is_finite(spectral: Spectral) -> bool:
    lengths = (spectral.u, 0.0 if spectral.v is None else spectral.v)
    return bool(np.isfinite([*lengths, spectral.estimate, spectral.sigma]).all())


def _lengths(spectral: Spectral) -> Message:
    return say(
        "its vectors have length {length:.4g} instead of 1, so its weight is {times:.3g} times "
        "what it should be",
        length=spectral.length,
        times=spectral.times,
    )
