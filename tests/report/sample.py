"""A run written by hand: two models, eight layers, a fault and its symptoms, hostile names."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from traindx.facts import Json, LossFacts, ModelFacts, ModuleFacts, OptimizerFacts, ParamFacts
from traindx.findings import Evidence, Finding, NotEvaluated, Severity, Verdict
from traindx.records import (
    Description,
    Event,
    EventKind,
    Item,
    Point,
    Record,
    Scalar,
    Site,
    TensorStats,
)
from traindx.run import Run

IMG_NAME = "<img src=x onerror=alert(1)>"
MARKUP_NAME = "[bold]x[/]\x1b[31m"
LAYERS = ("conv1", "bn1", "conv2", "bn2", IMG_NAME, "head")
BOLD_NAME = "<b>score</b>"  # Plotly knows this tag.
CRITIC_LAYERS = (MARKUP_NAME, BOLD_NAME)
STEPS = tuple(range(10)) + tuple(range(10, 410, 8))  # The cadence of capture: 60 measured steps.
NORMS = ("bn1", "bn2")


def sample_run(verdict: Verdict | None = None) -> Run:
    """The run with its verdict, as if loaded from a file."""
    run = Run(sample_items(), path=Path("traindx-runs/train-20260102-030405.traindx"))
    run.verdict = verdict or sample_verdict()
    return run


def healthy_run(verdict: Verdict) -> Run:
    """The same run without the loss that becomes NaN."""
    items = (
        item
        for item in sample_items()
        if not (isinstance(item, Scalar) and item.quantity == "loss" and math.isnan(item.value))
    )
    run = Run(items, path=Path("traindx-runs/train-20260102-030405.traindx"))
    run.verdict = verdict
    return run


def sample_verdict() -> Verdict:
    """Three active findings, of which the first explains the second, and one cleared."""
    return Verdict(
        findings=(_gap(), _vanishing(), _spike(), _cleared()),
        evaluated=("G001", "G003", "G011", "N001", "N002", "O003"),
        not_evaluated=(
            NotEvaluated("F005", "the autograd graph was not walked"),
            NotEvaluated("G006", "needs two optimizer steps"),
        ),
    )


def _gap() -> Finding:
    return Finding(
        id=1,
        code="N001",
        name="bn-eval-gap",
        severity=Severity.ERROR,
        active=True,
        evidence=Evidence(
            site=Site("net", "bn2"),
            step=402,
            message="With its running statistics the layer would move the batch by 1.93 standard "
            "deviations; evaluation sees another network than training.",
            numbers={"gap": 1.93, "initial_weight": 0.818},
            point=Point.OUTPUT,
            cause="momentum 0.0005 leaves the initial running statistics a weight of 0.82 after "
            "402 updates.",
            fix="net.bn2.momentum = 0.1\n# or, once training is over:\n"
            "torch.optim.swa_utils.update_bn(loader, net)",
            excluded=("dropout: none in the model", "batch size: 64 samples suffice"),
            series=("norm.running_gap", "loss"),
        ),
        first_step=9,
        last_step=402,
        count=51,
        thresholds={"gap": 0.2, "after": 20.0},
        remedies=("recalibrate-bn",),
    )


def _vanishing() -> Finding:
    return Finding(
        id=2,
        code="G001",
        name="vanishing-depth",
        severity=Severity.ERROR,
        active=True,
        evidence=Evidence(
            site=Site("net", "conv1.weight"),
            step=402,
            message="The gradient is 3.1e-07 of the last layer's.",
            numbers={"ratio": 3.1e-7},
            point=Point.GRAD,
            cause="bn2 works with statistics of another scale.",
            fix="See N001.",
            series=("grad.rms",),
            layers=("conv1", "conv2", "head"),
            profiles=("grad.rms",),
        ),
        first_step=18,
        last_step=402,
        count=49,
        thresholds={"ratio": 1e-5},
        caused_by=(1,),
    )


def _spike() -> Finding:
    return Finding(
        id=3,
        code="G011",
        name="gradient-spike",
        severity=Severity.WARNING,
        active=True,
        evidence=Evidence(
            site=Site("critic", MARKUP_NAME + ".weight"),
            step=402,
            message=f"The gradient of {MARKUP_NAME}.weight is not finite.",
            numbers={"norm": math.inf, "times": math.nan},
            point=Point.GRAD,
            fix="Clip with `torch.nn.utils.clip_grad_norm_(critic.parameters(), 1.0)`.",
            series=("grad.rms",),
        ),
        first_step=330,
        last_step=402,
        count=10,
        thresholds={"growth": 10.0},
    )


def _cleared() -> Finding:
    return Finding(
        id=4,
        code="N002",
        name="bn-stats-stale",
        severity=Severity.INFO,
        active=False,
        evidence=Evidence(
            site=Site("net", IMG_NAME),
            step=9,
            message=f"{IMG_NAME} did not update its statistics.",
            numbers={"updates": 0.0},
        ),
        first_step=0,
        last_step=9,
        count=10,
    )


def sample_items() -> Iterator[Item]:
    """What was written of it."""
    yield Event(0, EventKind.STARTED, detail=_header())
    yield Description(0, _net())
    yield Description(0, _critic())
    yield Description(0, OptimizerFacts("Adam", "Adam", ({"lr": 0.001},), 12))
    yield Description(0, LossFacts("net", "NllLossBackward0", "NllLossBackward0", None, None))
    yield Event(
        0, EventKind.SKIPPED, Site("critic", BOLD_NAME), {"point": "output", "reason": "compiled"}
    )
    yield Event(0, EventKind.NOTE, detail={"text": "Two optimizers take turns."})
    measured = set(STEPS)
    for step in range(STEPS[-1] + 1):
        yield from _losses(step)
        if step % 100 == 99:
            yield Event(
                step, EventKind.EVALUATION, Site("net"), {"forwards": 10, "training": False}
            )
        if step in measured:
            yield from _measured(step)
    yield Event(
        STEPS[-1],
        EventKind.ENDED,
        detail={
            "exit_code": 0,
            "steps": STEPS[-1] + 1,
            "overhead_fraction": 0.0213,
            "budget_since": 200,
            "sink_seconds": 0.166,
            "seconds": 41.5,
        },
    )


def _header() -> dict[str, Json]:
    return {
        "id": "a1b2c3",
        "command": ["train.py", "--epochs", "3"],
        "started": "2026-01-02 03:04:05",
        "versions": {"traindx": "0.1.0", "torch": "2.13.0", "python": "3.11.2"},
    }


def _losses(step: int) -> Iterator[Item]:
    yield Scalar(
        step, "loss", 2.3 * math.exp(-step / 90) + 0.05 + 0.04 * math.sin(step), Site("net")
    )
    yield Scalar(
        step, "loss", math.nan if step > 330 else 0.7 + 0.1 * math.cos(step / 7), Site("critic")
    )


def _measured(step: int) -> Iterator[Item]:
    for name, layers in (("net", LAYERS), ("critic", CRITIC_LAYERS)):
        for depth, layer in enumerate(layers):
            yield from _of_layer(step, name, layer, depth)
    for layer in NORMS:
        gap = 1.93 * (1 - math.exp(-step / 60)) if layer == "bn2" else 0.01 + 0.02 * math.exp(-step)
        yield Scalar(step, "norm.running_gap", gap, Site("net", layer))
    yield Event(step, EventKind.MEASURED)


def _of_layer(step: int, model: str, layer: str, depth: int) -> Iterator[Item]:
    wave = 1 + 0.3 * math.sin(step / 9 + depth)
    grad = 10 ** (depth - 6) * wave * math.exp(-step / 120)
    broken = model == "critic" and step >= 330
    weight = Site(model, f"{layer}.weight")
    yield Record(step, Site(model, layer), Point.OUTPUT, stats(wave * 1.5))
    yield Record(step, Site(model, layer), Point.OUTPUT_GRAD, stats(grad / 8))
    yield Record(step, weight, Point.GRAD, stats(math.nan if broken else grad))
    if layer == IMG_NAME:
        yield Record(step, Site(model, f"{layer}.bias"), Point.GRAD, stats(0.0))
    yield Scalar(step, "param.rms", 0.1 + 0.01 * depth, weight)
    yield Scalar(step, "update.ratio", 1e-3 * wave, weight)


def stats(rms: float) -> TensorStats:
    """Statistics of 100 elements with this root mean square and mean 0."""
    bad = not math.isfinite(rms)
    mean = rms if bad else 0.0
    return TensorStats(100, mean, 100 * rms * rms, -rms, rms, nonfinite=100 if bad else 0)


def _net() -> ModelFacts:
    kinds = ("Conv2d", "BatchNorm2d", "Conv2d", "BatchNorm2d", "Linear", "Linear")
    return _model("net", "ConvNet", LAYERS, kinds)


def _critic() -> ModelFacts:
    return _model("critic", "Critic", CRITIC_LAYERS, ("Linear", "Linear"))


def _model(name: str, kind: str, layers: tuple[str, ...], kinds: tuple[str, ...]) -> ModelFacts:
    modules = [ModuleFacts("", kind, order=0, calls=1)]
    params: list[ParamFacts] = []
    for i, (layer, layer_kind) in enumerate(zip(layers, kinds, strict=True), start=1):
        modules.append(ModuleFacts(layer, layer_kind, order=i, calls=1))
        params.append(ParamFacts(f"{layer}.weight", (64, 32), "float32", True, ("Adam",)))
        params.append(ParamFacts(f"{layer}.bias", (64,), "float32", True, ("Adam",)))
    return ModelFacts(name, kind, tuple(modules), tuple(params))
