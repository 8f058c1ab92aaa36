"""S013: the wrong part is frozen, or none at all."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import counted, say
from traindx.rules.rule import rule
from traindx.run import Run, Series

_LOOKS = 2
"""Measured steps that must agree."""


@rule("S013", severity=Severity.WARNING, reads=("freeze.ignored", "freeze.fresh"), lasting=True)
def frozen_head(run: Run) -> Iterator[Evidence]:
    """A new last layer is frozen, or what is meant to be frozen is trained.

    ## Why it matters
    To fine-tune, one freezes what was trained before and trains what is new. If the loop that
    freezes runs after the last layer was replaced, that one stays random, and the rest has to make
    do with it. And `module.requires_grad = False` freezes nothing: a module has no such attribute,
    so that Python makes one, and the backbone is trained at the rate that was meant for the head.

    ## How it is measured
    Exactly, at the first measured steps of a model, and again when its last layer has changed.
    Freezing without effect: a module, or a parameter, has an attribute of its own with the value
    False that is called `requires_grad` or nearly so, while parameters of it require a gradient,
    have one, and are in an optimizer. A frozen new layer: the linear layer or convolution that is
    called last requires no gradient, and its weights have the distribution of torch's own
    initialization to four standard errors, none of them beyond its bound.

    ## How to fix
    `module.requires_grad_(False)` with the underscore at the end reaches every parameter. Freeze
    first and replace the last layer then, or unfreeze it: `model.head.requires_grad_(True)`.

    ## False alarms
    A model may have an option of its own that is called `requires_grad`; where it is False and the
    parameters are trained, it is not heeded. A last layer that is random on purpose is a warning.
    A layer that has been trained, or loaded, is off the distribution of new ones, as is one that
    was initialized in another way, of which nothing is said.

    ## References
    PyTorch documentation, `torch.nn.Module.requires_grad_` and "Transfer learning for computer
    vision". Yosinski et al., "How transferable are features in deep neural networks?" (2014).
    """
    for series in run.series("freeze.ignored"):
        if len(series) >= _LOOKS:
            yield _ignored(series)
    for series in run.series("freeze.fresh"):
        if len(series) >= _LOOKS and series.last == 1:
            yield _fresh(series)


def _ignored(series: Series) -> Evidence:
    count = int(series.last)
    place = series.site.fqn or series.site.model
    return Evidence(
        site=series.site,
        step=series.step,
        message=say(
            "an attribute says that `{place}` is frozen, but {parameters} of it are trained",
            place=place,
            parameters=counted(count, "{n} parameter", "{n} parameters"),
        ),
        numbers={"parameters": count},
        cause=say("`requires_grad = False` was set on a module, or was misspelt on a parameter."),
        fix=say("{place}.requires_grad_(False)", place=place),
        excluded=(say("parameters that no optimizer holds"),),
    )


def _fresh(series: Series) -> Evidence:
    place = series.site.fqn or series.site.model
    return Evidence(
        site=series.site,
        step=series.step,
        message=say(
            "the last layer `{place}` is frozen, and its weights are as torch draws new ones",
            place=place,
        ),
        numbers={},
        cause=say("It was frozen along with the rest, before it had learned anything."),
        fix=say("{place}.requires_grad_(True)  # before the optimizer is made", place=place),
        excluded=(say("a layer that was trained before or loaded"),),
    )
