"""N021: BatchNorm averages the zeros that sequences are padded with."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import median

from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.records import Site
from traindx.rules.normalization.running import no_running_norm, running_norms
from traindx.rules.rule import rule
from traindx.run import Run


@rule(
    "N021",
    severity=Severity.WARNING,
    reads=("norm.zero_rows",),
    applies=no_running_norm,
    lasting=True,
)
def bn_counts_padding(run: Run, *, rows: float = 0.3) -> Iterator[Evidence]:
    """BatchNorm averages padding as if it were data.

    ## Why it matters
    Sequences of unlike length are padded with zeros to the longest of the batch. BatchNorm over
    positions counts those zeros: its mean lies between the data and 0, its variance is mostly the
    distance between the two, and both change with how much of a batch is padding. In evaluation,
    with sequences of other lengths, the data are scaled otherwise than in training.

    ## How it is measured
    Of what autograd keeps of the layer's input in training, (B, C) or (B, C, L): the fraction of
    the vectors of C numbers that are all exactly 0. It must be at least `rows` in the median of the
    last three measurements.

    ## How to fix
    Normalize the real positions alone: `out[mask] = norm(x[mask])`. Or use LayerNorm, which
    normalizes each position by itself.

    ## False alarms
    Features that really are all zero in much of the data, such as counts of rare words. Not seen:
    padding that has passed a layer with a bias, which makes other constants of it, and images.

    ## References
    Shen et al., "PowerNorm: rethinking batch normalization in transformers" (ICML 2020), section
    3, on what statistics of a batch do in sequences. Ioffe & Szegedy, "Batch Normalization" (2015).
    """
    for model in run.models.values():
        for norm in running_norms(model):
            series = run.at("norm.zero_rows", Site(model.name, norm.fqn))
            known = [v for v in series.tail(3) if math.isfinite(v)] if series else []
            if series is not None and known and median(known) >= rows:
                yield Evidence(
                    site=series.site,
                    step=series.step,
                    message=say(
                        "{rows:.0%} of the vectors that `{norm}` averages are nothing but zeros "
                        "(threshold {threshold:.0%}), as padding is",
                        rows=median(known),
                        norm=norm.fqn,
                        threshold=rows,
                    ),
                    numbers={"rows": median(known)},
                    cause=say("Padding counts as data, and as much more as sequences are shorter."),
                    fix=say(
                        """\
out = torch.zeros_like(x)
out[mask] = {norm}(x[mask])  # the real positions alone""",
                        norm=norm.fqn or "norm",
                    ),
                    series=("norm.zero_rows",),
                )
