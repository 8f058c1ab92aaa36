"""N006: a normalization works along another axis than that of the features it is given."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.facts import ModelFacts, ModuleFacts
from traindx.findings import Evidence, Severity
from traindx.messages import Message, say
from traindx.records import Site
from traindx.rules.remembered import remembered
from traindx.rules.rule import rule
from traindx.run import Run


@rule("N006", severity=Severity.WARNING, reads=("norm.feature_axis",), lasting=True)
def norm_axis_wrong(run: Run) -> Iterator[Evidence]:
    """A normalization works along another axis than that of the features it is given.

    ## Why it matters
    `nn.LayerNorm` normalizes the last axes, `nn.BatchNorm1d` each entry of axis 1. Convolutions
    have their features on axis 1, linear layers, embeddings and recurrent ones on the last. Where
    the two do not match, positions are normalized in place of features: LayerNorm takes away from
    each channel its level over time or space, BatchNorm keeps a weight for each position and mixes
    features of unlike size. It runs without an error wherever the sizes were chosen to fit.

    ## How it is measured
    By the autograd graph: from the normalization back over activations, additions, transpositions
    and the reshapes of a linear layer to the linear layer, convolution or embedding that the input
    comes from, which tells the axis of its features. A LayerNorm must include that axis, BatchNorm
    must have it at axis 1. An input whose way leads through another reshape, or whose added
    branches disagree, is not judged.

    ## How to fix
    Move the features to where the layer takes them, and back:
    `norm(x.transpose(1, 2)).transpose(1, 2)`.

    ## False alarms
    A linear layer between two transpositions mixes positions, and the features stay where they
    were. A LayerNorm along time or space on purpose, of each channel by itself, is reported.

    ## References
    Ba, Kiros & Hinton, "Layer normalization" (2016). Ioffe & Szegedy, "Batch Normalization" (ICML
    2015), section 3.2. PyTorch documentation, `torch.nn.LayerNorm` and `torch.nn.BatchNorm1d`.
    """
    looked_at = run.additions("norm.feature_axis"), run.additions("norm.own_axis")
    for model in run.models.values():
        what, state = (norm_axis_wrong, model.name), (model, *looked_at)
        yield from remembered(run, what, state, lambda it=model: [*_wrong(run, it)])


def _wrong(run: Run, model: ModelFacts) -> Iterator[Evidence]:
    for module in model.in_network_order():
        site = Site(model.name, module.fqn)
        given, own = run.at("norm.feature_axis", site), run.at("norm.own_axis", site)
        if given is None or own is None:
            continue
        by_layer = "normalized_shape" in module.options
        if given.last < own.last if by_layer else given.last != own.last:
            yield _evidence(model, module, int(given.last), int(own.last), given.step)


def _evidence(model: ModelFacts, module: ModuleFacts, given: int, own: int, step: int) -> Evidence:
    by_layer = "normalized_shape" in module.options
    return Evidence(
        site=Site(model.name, module.fqn),
        step=step,
        message=_message(module, given, own, by_layer),
        numbers={"feature_axis": given, "own_axis": own},
        cause=say("The layer before it has its features on axis {axis}.", axis=given),
        fix=say(
            "{norm}(x.transpose({a}, {b})).transpose({a}, {b})  # with the size of axis {a}",
            norm=module.fqn or model.name,
            a=given,
            b=own,
        ),
        excluded=(say("layers that mix positions between two transpositions"),),
        severity=Severity.WARNING if by_layer else Severity.ERROR,
    )


def _message(module: ModuleFacts, given: int, own: int, by_layer: bool) -> Message:
    if by_layer:
        return say(
            "`{layer}` ({kind}) normalizes from axis {own} on, and the features of what it is "
            "given lie on axis {given}",
            layer=module.fqn,
            kind=module.kind,
            own=own,
            given=given,
        )
    return say(
        "`{layer}` ({kind}) normalizes each entry of axis {own}, and the features of what it is "
        "given lie on axis {given}",
        layer=module.fqn,
        kind=module.kind,
        own=own,
        given=given,
    )
