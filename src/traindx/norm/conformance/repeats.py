"""Whether a layer answers the same question the same, and leaves its input alone."""

from __future__ import annotations

import numpy as np

from traindx.findings import Severity
from traindx.messages import say
from traindx.norm.conformance import cases
from traindx.norm.conformance.naming import Difference
from traindx.norm.conformance.study import Study, Verdict


def study_repeats(study: Study) -> None:
    """Ask one question twice; what answers as it likes is asked no further."""
    windowed = study.spec.window is not None
    _, call, *_ = (cases.squares if windowed else cases.spread)(study.kind, study.layer)
    first, second = study.ask("defaults", call), study.ask("defaults", call)
    if first is None or second is None or not first.given or not second.given:
        return
    if first.overwrote:
        words = say("writes into its input")
        difference = Difference("overwrites-input", words)
        study.find("default", difference, Severity.WARNING, Verdict.SEMANTIC, call)
    if not np.array_equal(first.y, second.y, equal_nan=True):
        words = say("answers the same question otherwise the second time")
        difference = Difference("not-repeatable", words)
        study.find("default", difference, Severity.ERROR, Verdict.SEMANTIC, call)
        study.count(Verdict.SEMANTIC)
        study.unexplained = True
