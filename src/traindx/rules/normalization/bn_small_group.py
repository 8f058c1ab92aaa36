"""N003: a batch statistic is made of so few values that it is mostly noise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

from traindx.facts import ModelFacts, ModuleFacts
from traindx.findings import Evidence, Severity, first_layers
from traindx.messages import Message, say
from traindx.records import Site
from traindx.rules.normalization.running import (
    RECENT,
    no_running_norm,
    normalizes_by_batch,
    recent,
    running_norms,
    running_sites,
    settled,
)
from traindx.rules.order import of_facts
from traindx.rules.remembered import lately
from traindx.rules.rule import rule
from traindx.run import Run

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class _Group:
    """What one layer makes a statistic of, in one forward pass.

    Attributes:
        norm: The layer.
        step: The last step it was measured at.
        counted: Values a channel; infinite where they could not be counted.
        batch: Samples in a batch; 0 if unknown.
        noise: How far the variance of a batch lies from the running one, as a fraction of it.
        steps: Measured steps that these are the medians of.
    """

    norm: ModuleFacts
    step: int
    counted: float
    batch: float
    noise: float
    steps: int

    @property
    def size(self) -> float:
        """As how many independent values it counts."""
        if not self.batch or not self.noise:
            return self.counted
        return min(self.counted, max(self.batch, 1 + 2 / self.noise**2))

    @property
    def expected(self) -> float:
        """The noise of the variance of so many independent normal values."""
        return math.sqrt(2 / (self.size - 1)) if self.size > 1 else math.inf


@rule(
    "N003",
    severity=Severity.WARNING,
    reads=("norm.variance_noise",),
    applies=no_running_norm,
    remedies=("group-norm",),
    lasting=True,
)
def bn_small_group(
    run: Run, *, size: float = 16, error_size: float = 4, agreement: float = 0.5, window: float = 10
) -> Iterator[Evidence]:
    """A batch is so small that BatchNorm normalizes by noise.

    ## Why it matters
    In training BatchNorm divides each channel by the standard deviation of the few values it sees
    in this very batch. The variance of N independent values is itself uncertain by sqrt(2/(N - 1)):
    18 % for 64 of them, 37 % for 16, 82 % for 4. For N = 2 nothing is left of the data but which of
    two values is the larger: they become +1 and -1, whatever they are. A sample's activations then
    depend on its neighbours in the batch more than on itself, and in evaluation, which uses running
    statistics, the network sees inputs unlike those of training.

    ## How it is measured
    N is counted: the elements of the layer's output over its channels, in one forward pass, which
    is the batch size times the positions in a sample. Micro-batches of gradient accumulation do not
    add up: each is normalized by itself. The positions of one image resemble each other, so that
    the values count as fewer independent ones, between the batch size and N. As how many, the
    measured noise says: 1 + 2/noise^2, where noise is the RMS over channels of how far the batch's
    variance lies from the running one, as a fraction of it. Below `size` it is a warning, below
    `error_size` an error. The noise must really be there: at least `agreement` of what so few
    values have by the formula. Everything is the median over the last `window` measured steps, of
    at least 3, that no longer feel the initial statistics (weight of at most 5 %). Layers in eval
    mode, SyncBatchNorm (its batch is that of all processes) and layers without running statistics
    are left out. One finding per model, at its first such layer.

    ## How to fix
    Use larger batches. Where memory forbids it, put a normalization in its place that does not look
    at other samples, `nn.GroupNorm` or `nn.LayerNorm`; with several processes,
    `nn.SyncBatchNorm.convert_sync_batchnorm(model)` takes the statistics over all of them.
    Accumulating gradients does not help. In fine-tuning, keep the layers in eval mode: they then
    use the statistics they were pretrained with.

    ## False alarms
    A small last batch of an epoch does not move the median. A convolution over large images has
    hundreds of values even of two images, and is reported only if they scatter as if they were
    few. With 16 samples or more in a batch nothing is ever reported. Weights that move fast also
    part the batch's variance from the running one, but only small batches are looked at. BatchNorm
    over small batches may be wanted as a regularizer; ignore the rule for these layers then.
    Not seen: a network that splits its batch and normalizes the parts one by one.

    ## References
    Ioffe & Szegedy, "Batch Normalization" (ICML 2015). Wu & He, "Group Normalization" (ECCV 2018),
    figure 1, on the error of a ResNet-50 by batch size. Ioffe, "Batch Renormalization" (NeurIPS
    2017). Wu & Johnson, "Rethinking 'Batch' in BatchNorm" (2021).
    """
    for model in run.models.values():
        # A median of `window` values stands while fewer than half of them are other ones.
        large = lately(
            run,
            (bn_small_group, model.name),
            (model, window, size),
            reads=("batch.size", "output.count", "norm.updates"),
            lasts=(int(window) + 1) // 2,
            holds=partial(_all_large, run, model, int(window), size),
        )
        if large:
            continue
        groups = [_group(run, model, norm, int(window), size) for norm in running_norms(model)]
        small = [it for it in groups if it and it.size < size and _agrees(it, agreement)]
        if small:
            worst = min(small, key=lambda group: group.size)
            yield _evidence(model, small, worst, size, error_size)


def _agrees(group: _Group, agreement: float) -> bool:
    return group.noise >= agreement * group.expected


def _all_large(run: Run, model: ModelFacts, window: int, size: float) -> bool:
    """Whether every layer surely counts `size` values and more: in most models all do."""
    import numpy as np

    sites = running_sites(model)
    batches = run.recent("batch.size", _whole(model), window)
    counts, passes = (run.recent(name, sites, window) for name in ("output.count", "norm.updates"))
    if batches is None or counts is None or passes is None:
        return False
    noise, outputs = run.newest("norm.variance_noise", sites), run.newest("output.count", sites)
    if (noise.steps != outputs.steps).any():
        return False
    features = _features(model)
    with np.errstate(all="ignore"):
        per_pass = counts.min(axis=0) / features / passes.max(axis=0)
    per_pass[np.isnan(features)] = np.inf  # what cannot be counted is as large as the batch
    # What is close to the limit is counted one by one.
    return bool(batches.min() >= size and (per_pass > 1.001 * size).all())


@of_facts
def _whole(model: ModelFacts) -> tuple[Site, ...]:
    return (Site(model.name),)


@of_facts
def _features(model: ModelFacts) -> NDArray[np.float64]:
    """Of each layer that keeps running statistics its channels; NaN where they are not known."""
    import numpy as np

    features = [norm.options.get("num_features") for norm in running_norms(model)]
    return np.array([float(n) if isinstance(n, int) and n else math.nan for n in features])


def _group(
    run: Run, model: ModelFacts, norm: ModuleFacts, window: int, size: float
) -> _Group | None:
    """What a layer normalizes by, None if that is unknown, not the batch, or surely `size`."""
    site = Site(model.name, norm.fqn)
    noises = run.at("norm.variance_noise", site)
    if noises is None or norm.kind == "SyncBatchNorm" or not normalizes_by_batch(run, site):
        return None
    before = noises.step + 1
    passes = median(recent(run, "norm.updates", site, before, window) or (1,))
    if passes < 1:
        return None
    batch = median(recent(run, "batch.size", Site(model.name), before, window) or (0,))
    counts = recent(run, "output.count", site, before, window)
    counted = _counted(norm, counts, passes)
    if min(batch, counted) >= size:
        return None
    num_settled = settled(run, site, before=before, window=window)
    finite = [noise for noise in noises.tail(num_settled) if math.isfinite(noise)]
    if len(finite) < RECENT:
        return None
    noise = median(finite) * math.sqrt(_averaged(norm, passes))
    return _Group(norm, noises.step, max(batch, counted), batch, noise, len(finite))


def _counted(norm: ModuleFacts, counts: Sequence[float], passes: float) -> float:
    """Values a channel in one forward pass; infinite if outputs were not measured (compiled)."""
    features = norm.options.get("num_features")
    if not counts or not isinstance(features, int) or not features:
        return math.inf
    return median(counts) / features / passes


def _averaged(norm: ModuleFacts, passes: float) -> float:
    """How many passes' variances the measured one averages, for those that weigh less.

    Passes of one step weigh momentum (1 - momentum)^j, the last one most; (sum w)^2 / sum w^2.
    """
    momentum = norm.options.get("momentum")
    if not isinstance(momentum, float) or not 0 < momentum < 1:
        return 1.0 if momentum else passes
    kept = 1 - momentum
    return (1 - kept**passes) * (1 + kept) / (momentum * (1 + kept**passes))


def _evidence(
    model: ModelFacts, small: list[_Group], worst: _Group, size: float, error_size: float
) -> Evidence:
    severity = Severity.ERROR if worst.size < error_size else Severity.WARNING
    return Evidence(
        site=Site(model.name, small[0].norm.fqn),
        step=worst.step,
        message=_message(model, small, worst, error_size if severity is Severity.ERROR else size),
        numbers={
            "size": worst.size,
            "batch": worst.batch,
            "noise": worst.noise,
            "expected_noise": worst.expected,
            "layers": len(small),
        },
        cause=say(
            "The variance of {size:.2g} independent values is uncertain by sqrt(2/(N - 1)), "
            "{expected:.0%}.",
            size=worst.size,
            expected=worst.expected,
        ),
        fix=_fix(model, small),
        excluded=(
            say("a small last batch"),
            say("layers in eval mode"),
            say("statistics that have not settled"),
        ),
        series=("norm.variance_noise",),
        severity=severity,
        layers=first_layers(group.norm.fqn for group in small),
    )


def _message(model: ModelFacts, small: list[_Group], worst: _Group, threshold: float) -> Message:
    values = {
        "layers": len(small),
        "norms": len(running_norms(model)),
        "worst": worst.norm.fqn,
        "size": worst.size,
        "batch": worst.batch,
        "noise": worst.noise,
        "threshold": threshold,
        "steps": worst.steps,
    }
    if worst.size == worst.counted:
        return say(
            "{layers} of {norms} normalization layers normalize by too few values: `{worst}` by "
            "{size:.0f} a channel (threshold {threshold:g}), and their variance is off by "
            "{noise:.0%} from batch to batch (median of {steps} measured steps)",
            **values,
        )
    return say(
        "{layers} of {norms} normalization layers normalize by too few samples: in batches of "
        "{batch:.0f} the variance at `{worst}` is off by {noise:.0%} from batch to batch, as that "
        "of {size:.1f} independent values would be (threshold {threshold:g}; median of {steps} "
        "measured steps)",
        **values,
    )


def _fix(model: ModelFacts, small: list[_Group]) -> Message:
    """GroupNorm in place of the layers; of a single group where there are no positions."""
    if all(group.norm.kind == "BatchNorm1d" for group in small):
        return say(
            """\
# Batches of 32 or more (`DataLoader(..., batch_size=32, drop_last=True)`), or else normalize each
# sample by itself, before the optimizer is built:
for name, m in list({model}.named_modules()):
    if isinstance(m, torch.nn.BatchNorm1d):
        {model}.set_submodule(name, torch.nn.GroupNorm(1, m.num_features))""",
            model=model.name,
        )
    return say(
        """\
# Batches of 32 or more (`DataLoader(..., batch_size=32, drop_last=True)`), or else normalize each
# sample by itself, before the optimizer is built:
import math
for name, m in list({model}.named_modules()):
    if isinstance(m, torch.nn.modules.batchnorm._BatchNorm):
        groups = math.gcd(8, m.num_features)
        {model}.set_submodule(name, torch.nn.GroupNorm(groups, m.num_features))""",
        model=model.name,
    )
