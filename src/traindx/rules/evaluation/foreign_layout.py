"""E019: weights that were ported lie in the order of another framework."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity, first_layers
from traindx.messages import Message, say
from traindx.rules.probed import STEP, Observation, observations
from traindx.rules.rule import rule
from traindx.run import Run


@rule("E019", severity=Severity.ERROR, reads=("probe.reread_loss",), source="probe")
def foreign_layout(run: Run, *, fits: float = 0.5) -> Iterator[Evidence]:
    """Weights that were brought from elsewhere lie in the order of another framework.

    ## Why it matters
    A dense layer of Keras or Flax keeps its matrix as (inputs, outputs), one of torch as (outputs,
    inputs). Where both are equal, nothing fails when it is not transposed. Nor does it when the
    gates of an LSTM or GRU come in another order: every shape is right, and the model knows nothing
    of what it has learned. Fine-tuning then starts from weights that are worse than random ones.

    ## How it is measured
    By preflight, on the first batch, of at least 16 samples: the data loss of the model over that
    of the best guess that does not look at the input; if it is over 0.8, the same with all square
    matrices of linear layers transposed, and with the gates of all LSTM or GRU layers in each other
    order. A loss of at most `fits` of the guess's is reported: weights that were never trained fit
    a batch in no order.

    ## How to fix
    `layer.weight.copy_(torch.from_numpy(w.T))`; of gates, cut the matrices into blocks along axis 0
    and join them in torch's order: i, f, g, o of an LSTM, r, z, n of a GRU.

    ## False alarms
    None is known: a model that knows nothing of its batch, and in another order knows it well, has
    been brought here in the wrong one. Weights of which a part only is in a foreign order, and a
    new head on a ported body, are not seen.

    ## References
    Keras documentation, `Dense` (kernel of shape (inputs, units)) and `LSTM`; ONNX operators `LSTM`
    (iofc) and `GRU` (zrh); PyTorch documentation, `torch.nn.Linear`, `torch.nn.LSTM` (ifgo).
    """
    for seen in observations(run, "ported-weights"):
        if seen.number("loss", 1.0) <= fits:
            yield _evidence(seen, fits)


def _evidence(seen: Observation, fits: float) -> Evidence:
    transposed = seen.text("kind") == "transposed"
    what = (
        say("its square matrices transposed")
        if transposed
        else say("the gates of its recurrent layers read as {order}", order=seen.text("order"))
    )
    return Evidence(
        site=seen.site,
        step=STEP,
        message=say(
            "before training the loss of {model} is {before:.2f} of that of a guess, and with "
            "{what} {loss:.2g} (threshold {threshold:g}), first `{place}`",
            model=seen.site.model,
            before=seen.number("before"),
            what=what,
            loss=seen.number("loss"),
            threshold=fits,
            place=seen.site.fqn,
        ),
        numbers={"before": seen.number("before"), "reread": seen.number("loss")},
        cause=say("The weights were brought here as another framework keeps them."),
        fix=_fix(seen, transposed=transposed),
        excluded=(say("new weights, which fit a batch in no order"),),
        layers=first_layers(seen.names("layers")),
    )


def _fix(seen: Observation, *, transposed: bool) -> Message:
    if transposed:
        return say("layer.weight.copy_(torch.from_numpy(w.T))  # (outputs, inputs)")
    order = seen.text("order")
    own = "rzn" if len(order) == 3 else "ifgo"
    return say(
        "blocks = dict(zip('{order}', w.chunk({n})))  # and of each bias\n"
        "w = torch.cat([blocks[gate] for gate in '{own}'])",
        order=order,
        n=len(order),
        own=own,
    )
