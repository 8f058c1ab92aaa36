"""eps against the variances it is added to."""

from collections.abc import Iterator

import numpy as np

from traindx.findings import Severity
from traindx.messages import say
from traindx.norm.audit.check import Hit, check
from traindx.norm.audit.facts import VANISHED, Subject

_USUAL_EPS = 1e-5


@check("eps-dominates", Severity.INFO)
def eps_dominates(subject: Subject, *, fraction: float = 0.1) -> Iterator[Hit]:
    """Many channels vary less than eps: they are divided by sqrt(eps) instead.

    Their output is smaller than 1 in standard deviation, and a port with another eps (Keras has
    1e-3, torch 1e-5) changes it by far. A checkpoint holds no eps: torch's 1e-5 is taken.
    """
    for layer in subject.layers:
        if layer.statistics is None or not np.all(layer.statistics.var >= 0):
            continue
        eps = (layer.settings.eps or 0.0) if layer.settings else _USUAL_EPS
        var = layer.statistics.var
        small = (var < eps) & (var > VANISHED)
        if np.mean(small) >= fraction:
            out = float(np.sqrt(np.median(var[small]) / (np.median(var[small]) + eps)))
            yield Hit(
                layer.fqn,
                say(
                    "{small} of {channels} running variances are under eps {eps:g}: their output "
                    "has a standard deviation of {out:.2g} instead of 1",
                    small=int(np.sum(small)),
                    channels=var.size,
                    eps=eps,
                    out=out,
                ),
                say("Scale the input up, or lower eps; keep eps when porting."),
                {"fraction": float(np.mean(small)), "output_std": out},
            )
