"""What an audit looks at: normalization layers described without torch."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traindx.messages import Message

Array = NDArray[np.float64]
VANISHED = 1e-30
"""Variance of what never varies: an average in float32 stops at the smallest numbers, not at 0."""


class Family(str, Enum):
    """What a layer computes."""

    BATCH = "BatchNorm"
    INSTANCE = "InstanceNorm"
    GROUP = "GroupNorm"
    LAYER = "LayerNorm"
    RMS = "RMSNorm"
    SPECTRAL = "SpectralNorm"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Statistics:
    """Running statistics, (C,) each.

    Attributes:
        mean: The running mean.
        var: The running variance.
        dtype: The type they are kept in, as torch names it without `torch.`.
        batches: Batches they have seen, by their counter; None without one.
    """

    mean: Array
    var: Array
    dtype: str
    batches: int | None

    @property
    def initial(self) -> bool:
        """Whether they are 0 and 1, as a new layer's are."""
        return bool(np.all(self.mean == 0) and np.all(self.var == 1))


@dataclass(frozen=True, slots=True)
class Settings:
    """What a live layer is set to, as torch names it.

    Attributes:
        eps: Added to the variance.
        momentum: Weight of the new value; None averages all batches equally.
        tracks: Whether it keeps running statistics.
        training: Whether it is in training mode.
        trainable: Whether weight or bias takes gradients; None if it has neither.
    """

    eps: float | None
    momentum: float | None
    tracks: bool
    training: bool
    trainable: bool | None


@dataclass(frozen=True, slots=True)
class Spectral:
    """The vectors of spectral normalization against its weight.

    Attributes:
        u: Euclidean norm of u.
        v: Euclidean norm of v; None where there is no v.
        estimate: u·Wv, what the weight is divided by.
        sigma: The weight's greatest singular value.
    """

    u: float
    v: float | None
    estimate: float
    sigma: float

    @property
    def length(self) -> float:
        """Of the vector that is farther from length 1."""
        lengths = [length for length in (self.u, self.v) if length is not None]
        return max(lengths, key=lambda length: abs(length - 1))

    @property
    def times(self) -> float:
        """How many times too large the weight is."""
        return self.sigma / self.estimate if self.estimate else float("inf")


@dataclass(frozen=True, slots=True)
class Seen:
    """What a batch has shown of a live layer.

    Attributes:
        samples: Samples of the batch, which are what is independent in it.
        elements: Elements behind each statistic.
        offset: Greatest |mean| / std of what is normalized together.
        error: Greatest difference of torch's normalized values from those in float64, where the
            input lies channels last in the host's memory; None elsewhere.
        biased_layer: The layer with a bias whose very output it normalizes; empty if none.
        gap: `norm.running_gap` on the batch; None without running statistics.
        share: Part of the change of the model's output, from running to batch statistics, that
            this layer alone makes; None where it was not tried.
    """

    samples: int
    elements: int
    offset: float
    error: float | None = None
    biased_layer: str = ""
    gap: float | None = None
    share: float | None = None


@dataclass(frozen=True, slots=True)
class Layer:
    """One normalization layer.

    Attributes:
        fqn: Its name.
        kind: Its class; of a checkpoint what its tensors say it is.
        family: What it computes, whatever its class is called.
        weight_dtype: The type of its weight; empty without one.
        statistics: Its running statistics, if it has any.
        settings: What it is set to; None in a checkpoint.
        spectral: Of spectral normalization.
        seen: What a batch has shown; None without a batch, or if it was not called.
    """

    fqn: str
    kind: str
    family: Family = Family.OTHER
    weight_dtype: str = ""
    statistics: Statistics | None = None
    settings: Settings | None = None
    spectral: Spectral | None = None
    seen: Seen | None = None


@dataclass(frozen=True, slots=True)
class Malformed:
    """Tensors that are not what their names say: the layer, and why."""

    fqn: str
    reason: Message


@dataclass(frozen=True, slots=True)
class Subject:
    """What is audited.

    Attributes:
        name: A file or a target.
        layers: Its normalization layers.
        malformed: Layers that could not be read.
        steps: Optimizer steps it was trained for, if known.
        live: Whether it is a model and not a checkpoint.
        weights: The file whose weights were put into the model, if any.
        batch: Whether it was tried on a batch.
        random: Whether that batch is noise and not of the data the model is for.
        change: RMS of the change of the output from running to batch statistics, over the output's
            RMS; None where it was not tried.
        rest: Part of that change that no layer alone makes.
        untried: Why the change was not tried; empty if it was, or there was no batch.
    """

    name: str
    layers: tuple[Layer, ...]
    malformed: tuple[Malformed, ...] = ()
    steps: int | None = None
    live: bool = False
    weights: str = ""
    batch: bool = False
    random: bool = False
    change: float | None = None
    rest: float | None = None
    untried: Message | str = ""

    @property
    def recalibration(self) -> str:
        """The command that recalibrates it, with what is not known in capitals."""
        target = self.name if self.live and ":" in self.name else "TARGET"
        weights = self.weights if self.live else self.name
        words = ["traindx", "norm", "recalibrate", target]
        words += ["--checkpoint", weights] if weights else []
        return shlex.join([*words, "--out", "NEW.pt"])


def array(values: Any) -> Array:
    """Numbers in float64."""
    return np.asarray(values, dtype=np.float64)
