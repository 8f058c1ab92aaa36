"""P001: gradients are too small for float16 and become zero."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity, first_layers
from traindx.messages import say
from traindx.records import Site
from traindx.rules.probed import STEP, observation
from traindx.rules.rule import rule
from traindx.run import Run


@rule("P001", severity=Severity.WARNING, reads=("probe.fp16_flushed",), source="probe")
def half_underflow(run: Run, *, flushed: float = 0.3, lost: float = 0.1) -> Iterator[Evidence]:
    """Gradients are smaller than what float16 can hold, and become zero.

    ## Why it matters
    The least number of float16 is 6e-8; what is under half of it becomes zero. Gradients of a mean
    over many elements lie there soon. What is flushed does not train: some weights stand still,
    and nothing says so, for the loss itself is fine. A loss scale lifts gradients into range
    before they are rounded; bfloat16 has the range of float32 and needs none.

    ## How it is measured
    By preflight: one pass in the training's precision, with its loss scale, and one in float64 on
    the same batch, dropout off. A parameter is told if more than `flushed` of the gradient's
    entries that are not 0 in float64 are 0 in the training, and these hold more than `lost` of its
    norm. All parameters with that are one finding.

    ## How to fix
    Use `torch.amp.GradScaler`: `scaler.scale(loss).backward(); scaler.step(optimizer);
    scaler.update()`. Or `dtype=torch.bfloat16` in `torch.autocast`, where the device has it.

    ## False alarms
    Gradients that are zero in float64, too (of ReLUs at rest, of embeddings that were not asked),
    do not count, nor do gradients over 0.001, which no flushing can hide: a saturated activation
    does. bfloat16 flushes nothing that float32 holds. Entries that are flushed and do not matter to
    the norm are not told. Where the loss draws random numbers of its own, the two passes cannot be
    compared, and nothing is said. The scale is the one of the first step; a scaler adapts it later.

    ## References
    Micikevicius et al., "Mixed precision training" (ICLR 2018), section 3.2. PyTorch documentation,
    "Automatic Mixed Precision examples".
    """
    found: dict[str, list[tuple[str, float, float]]] = {}
    for series in run.series("probe.fp16_flushed"):
        site, norm = series.site, run.at("probe.fp16_lost", series.site)
        seen = observation(run, "half-precision", Site(site.model))
        if seen is None or seen.text("dtype") != "float16":
            continue
        if norm is not None and series.last > flushed and norm.last > lost:
            found.setdefault(site.model, []).append((site.fqn, series.last, norm.last))
    for model, params in found.items():
        yield _evidence(run, model, params, len(run.series("probe.fp16_flushed", model=model)))


def _evidence(
    run: Run, model: str, params: list[tuple[str, float, float]], measured: int
) -> Evidence:
    fqn, share, norm = max(params, key=lambda param: param[2])
    seen = observation(run, "half-precision", Site(model))
    scale = seen.number("scale", 1.0) if seen is not None else 1.0
    return Evidence(
        site=Site(model),
        step=STEP,
        message=say(
            "in float16 the gradients of {few} of {all} parameters are flushed to zero, with a "
            "loss scale of {scale:g}: most at `{fqn}`, {share:.0%} of the entries with "
            "{norm:.0%} of the norm",
            few=len(params),
            all=measured,
            scale=scale,
            fqn=fqn,
            share=share,
            norm=norm,
        ),
        numbers={"parameters": len(params), "flushed": share, "lost": norm, "scale": scale},
        cause=say("They are smaller than 3e-8, half the least number of float16."),
        fix=say(
            "scaler = torch.amp.GradScaler()\n"
            "scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update()\n"
            "# or torch.autocast(device, dtype=torch.bfloat16)"
        ),
        excluded=(say("gradients that are zero in float64, too"),),
        layers=first_layers(fqn.rpartition(".")[0] for fqn, _, _ in params),
    )
