"""S002: all units of a layer are alike, and stay alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from traindx.findings import Evidence, Severity, first_layers
from traindx.messages import counted, say
from traindx.rules.probed import STEP, Observation, observations
from traindx.rules.rule import rule
from traindx.run import Run


@rule("S002", severity=Severity.ERROR, reads=("probe.alike_layers",), source="probe")
def init_symmetry(run: Run) -> Iterator[Evidence]:
    """All units of a layer begin alike and are trained alike, so that they are one unit.

    ## Why it matters
    Units with the same weights compute the same, get the same gradient and remain the same. A layer
    that is initialized with a constant is as good as one unit, however wide it is; initialized with
    zeros, a layer that follows another such layer gets no gradient at all.

    ## How it is measured
    Every trainable weight of two or more axes whose units (axis 0) are all the same, with their
    bias, is suspected. Then three steps of gradient descent are taken on the batch, each 5 % of a
    parameter's size. A layer whose units are alike even then, to 1e-5 of the greatest weight, is
    reported; all such layers of a model are one finding, at the first.

    ## How to fix
    Initialize weights at random: `nn.init.kaiming_normal_(weight)` before ReLU,
    `nn.init.xavier_normal_(weight)` else. Only biases may be constant, and the last layer of a
    residual branch may be zero.

    ## False alarms
    A zero in the last layer of the model or of a residual branch, in a LoRA pair or in a gate
    begins alike, but its units get different gradients and differ after a step or two. Dropout
    makes units differ as well. Embeddings are left out, and so is what no gradient reaches; where
    it reaches a constant layer as exact zeros, step after step, the layer is reported.

    ## References
    Goodfellow, Bengio & Courville, "Deep Learning" (2016), section 8.4, on breaking symmetry.
    CS231n, "Neural Networks Part 2", "Pitfall: all zero initialization".
    """
    for seen in observations(run, "initialization-symmetry"):
        yield _evidence(seen)


def _evidence(seen: Observation) -> Evidence:
    found = seen.detail.get("params")
    names = cast("list[str]", found) if isinstance(found, list) else []
    count = int(seen.number("count"))
    return Evidence(
        site=seen.site,
        step=STEP,
        message=say(
            "all {units} units of `{param}` are alike, and still are after three steps of gradient "
            "descent; so it is in {layers} of {model}",
            units=int(seen.number("units")),
            param=names[0] if names else seen.site.fqn,
            layers=counted(count, "{n} weight", "{n} weights"),
            model=seen.site.model,
        ),
        numbers={"weights": count, "units": seen.number("units"), "value": seen.number("value")},
        cause=say("They were initialized with the same numbers, and nothing tells them apart."),
        fix=say("nn.init.kaiming_normal_({param})", param=names[0] if names else "weight"),
        excluded=(
            say("a zero that training makes different"),
            say("a layer of one unit"),
        ),
        layers=first_layers(name.rpartition(".")[0] for name in names),
    )
