"""N012: a normalization takes the mean of single numbers, and erases its input."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from traindx.facts import ModelFacts
from traindx.findings import Evidence, Severity, first_layers
from traindx.messages import say
from traindx.records import EventKind, Site
from traindx.rules.normalization.scale import normalizations
from traindx.rules.probed import observations
from traindx.rules.remembered import remembered
from traindx.rules.rule import rule
from traindx.run import Run, Series

_OF_BATCHES = ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm")


@rule("N012", severity=Severity.ERROR, reads=("norm.group", "probe.norm_group"), lasting=True)
def norm_input_degenerate(run: Run) -> Iterator[Evidence]:
    """A normalization takes mean and variance of single numbers, and so erases its input.

    ## Why it matters
    A number less its own mean is 0. A normalization whose groups hold one number each returns its
    bias, the same for every input; what comes before it is not seen by what comes after it, and
    gets no gradient. PyTorch refuses some of these shapes, but not all: GroupNorm with a group for
    each channel of vectors in a batch of two or more, LayerNorm of one feature.

    ## How it is measured
    By shapes: the numbers that share a mean and a variance in the training forward are counted,
    before training by preflight. There must be more than one. RMSNorm, which would leave the sign,
    is judged alike.

    ## How to fix
    Use fewer groups, so that each holds several channels; normalize a single feature over the
    batch, with its mean and deviation in the training data.

    ## False alarms
    None are known: by arithmetic the output is constant. A layer that is given larger inputs later
    on, and single numbers in the first two measured steps only, would be reported all the same.

    ## References
    Wu & He, "Group normalization" (ECCV 2018), section 3. Ba, Kiros & Hinton, "Layer
    normalization" (2016).
    """
    looked_at = (
        run.additions("norm.group"),
        run.additions("probe.norm_group"),
        run.num_events(EventKind.OBSERVED),
    )
    for model in run.models.values():
        what, state = (norm_input_degenerate, model.name), (model, *looked_at)
        sizes = remembered(run, what, state, partial(_sizes, run, model))
        single = [fqn for fqn, size in sizes.items() if size.last == 1]
        if single:
            yield Evidence(
                site=Site(model.name, single[0]),
                step=sizes[single[0]].step,
                message=say(
                    "`{layer}` takes mean and variance of single numbers, so that its output is "
                    "its bias whatever its input ({count} of {norms} normalization layers)",
                    layer=single[0],
                    count=len(single),
                    norms=len(sizes),
                ),
                numbers={"group": 1, "layers": len(single)},
                cause=say("A number less its own mean is 0: the input is erased."),
                fix=say("Choose fewer groups, other axes, or a larger batch."),
                layers=first_layers(single),
            )


def _sizes(run: Run, model: ModelFacts) -> dict[str, Series]:
    """Of each normalization, by fqn, how many numbers it takes a mean of."""
    unused = set[Site]()
    for seen in observations(run, "normalization-layout"):
        if seen.text("kind") in _OF_BATCHES and not seen.detail.get("training"):
            unused.add(seen.site)  # it uses statistics of its own
    return {
        norm.fqn: size
        for norm in normalizations(model)
        if (size := _group(run, Site(model.name, norm.fqn))) and size.site not in unused
    }


def _group(run: Run, site: Site) -> Series | None:
    """How many numbers a layer takes a mean of: in training, or before it."""
    return run.at("norm.group", site) or run.at("probe.norm_group", site)
