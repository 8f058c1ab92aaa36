"""P008: a layer makes numbers that the training's half precision cannot hold."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.records import Site
from traindx.rules.probed import STEP, observation, observations
from traindx.rules.rule import rule
from traindx.run import Run


@rule(
    "P008",
    severity=Severity.ERROR,
    reads=("probe.half_nonfinite",),
    source="probe",
    explained_by=("L007", "N013"),
)
def half_overflow(run: Run) -> Iterator[Evidence]:
    """A layer makes numbers that half precision cannot hold: they become infinite.

    ## Why it matters
    The greatest number of float16 is 65,504. A sum over many inputs, a square or an exponential is
    beyond it soon; the infinity that comes of it is NaN one or two layers on, and the loss scaler
    skips every step, or the weights are lost. In float32 the same model trains.

    ## How it is measured
    By preflight: one pass in the training's precision and one in float64 on the same batch, dropout
    off. Elements that are not finite in the first and finite in the second are counted for the
    output of every module without children. The first such module, in the order of the calls, is
    told, with the largest number that float64 has there.

    ## How to fix
    Use bfloat16, which has the range of float32; or compute that layer in float32:
    `with torch.autocast(device, enabled=False): y = layer(x.float())`. Scale queries before their
    product, and take norms and sums of squares in float32.

    ## False alarms
    An infinity that was put in on purpose, as in a mask, is infinite in float64 as well and does
    not count. Gradients that overflow because of the loss scale are the scaler's own business, and
    are not told.

    ## References
    Micikevicius et al., "Mixed precision training" (ICLR 2018), section 3. PyTorch documentation,
    "CUDA Automatic Mixed Precision: op-specific behavior".
    """
    for seen in observations(run, "half-precision"):
        if not seen.site.fqn:
            continue
        whole = observation(run, "half-precision", Site(seen.site.model))
        count = run.at("probe.half_nonfinite", seen.site)
        number = count.last if count is not None else 0.0
        yield Evidence(
            site=seen.site,
            step=STEP,
            message=say(
                "{number:.0f} elements that `{fqn}` ({kind}) makes are not finite in {dtype}; in "
                "float64 they are, and reach {largest:.3g}",
                number=number,
                fqn=seen.site.fqn,
                kind=seen.text("kind"),
                dtype=whole.text("dtype") if whole is not None else "",
                largest=seen.number("largest"),
            ),
            numbers={"nonfinite": number, "largest": seen.number("largest")},
            cause=say("The greatest number of float16 is 65504."),
            fix=say(
                "with torch.autocast(x.device.type, enabled=False): y = {fqn}(x.float())\n"
                "# or torch.autocast(device, dtype=torch.bfloat16)",
                fqn=seen.site.fqn,
            ),
            excluded=(say("what is not finite in float64 either"),),
        )
