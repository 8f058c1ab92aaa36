"""`python -m tests.norm.convert.table`: the tables of docs/conversion.md, by converting."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.norm.convert.layers import KINDS, C, numbers, state
from traindx.norm.convert.carrying import Wish, carry
from traindx.norm.convert.content import Content, Stored
from traindx.norm.convert.frameworks.catalog import FRAMEWORKS
from traindx.norm.convert.frameworks.framework import by_pattern
from traindx.norm.convert.frameworks.linen import LINEN
from traindx.norm.convert.purpose import Purpose
from traindx.norm.convert.state import NormState, RefusedError
from traindx.norm.presets import preset

REST = ("LocalResponseNorm", "WeightNorm", "SpectralNorm")


def layers() -> dict[str, NormState]:
    """A layer of torch of each kind."""
    draw = np.random.default_rng(0).normal
    weight = {"weight": np.ones(C, np.float32), "direction": draw(size=(C, 3)).astype(np.float32)}
    vectors = {"kernel": draw(size=(C, 3)), "u": draw(size=C), "v": draw(size=3)}
    own = {kind: state("torch", kind) for kind in KINDS}
    own["LocalResponseNorm"] = NormState("lrn", preset("torch.LocalResponseNorm", size=5), {})
    own["WeightNorm"] = NormState("fc", preset("torch.weight_norm"), weight)
    own["SpectralNorm"] = NormState("fc", preset("torch.spectral_norm"), vectors)
    return own


def kinds() -> Iterator[str]:
    """Which kind goes from torch to which framework, and which comes back."""
    names = list(FRAMEWORKS)[1:]
    yield f"| layer of torch | {' | '.join(names)} |"
    yield f"|---{'|---' * len(names)}|"
    for kind, one in layers().items():
        cells = [_cell(one, name) for name in names]
        yield f"| {kind} | {' | '.join(cells)} |"


def _cell(one: NormState, name: str) -> str:
    there = _refusal(one, name) is None
    kind = one.spec.kind
    # Spectral normalization comes back from nowhere: its readers refuse it.
    back = there and kind != "SpectralNorm" and kind in FRAMEWORKS["torch"].presets
    return "there and back" if there and back else "there" if there else "–"


def refusals() -> Iterator[str]:
    """What is refused, with what is said."""
    yield "| what | to | what is said |"
    yield "|---|---|---|"
    for what, one, target, wish in _refused():
        said = _refusal(one, target, wish)
        assert said is not None, what
        yield f"| {what} | {target} | {said} |"
    yield f"| SpectralNorm of linen | torch | {_from_linen()} |"


def _refused() -> Iterator[tuple[str, NormState, str, Wish]]:
    training = Wish(Purpose.TRAINING)
    norm = numbers("BatchNorm")
    yield "momentum None", state("torch", "BatchNorm", momentum=None), "keras", Wish()
    yield (
        "LRN of even size",
        NormState("lrn", preset("torch.LocalResponseNorm", size=4), {}),
        "onnx",
        Wish(),
    )
    yield "running variance, for training", state("torch", "BatchNorm"), "linen", training
    counted = Wish(Purpose.TRAINING, elements=64)
    yield "no counter, for training", state("keras", "BatchNorm"), "torch", counted
    tracked = preset("torch.InstanceNorm2d", variance="unbiased", momentum=0.1)
    yield "tracked InstanceNorm", NormState("norm", tracked, norm), "nnx", Wish()
    plain = NormState("norm", preset("torch.BatchNorm2d"), numbers("LayerNorm"))
    yield "BatchNorm without statistics", plain, "keras", Wish()
    groups = NormState("norm", preset("mlx.GroupNorm", num_groups=2), numbers("GroupNorm"))
    yield "interleaved groups", groups, "torch", Wish()
    per_group = preset("onnx.GroupNormalization-18", num_groups=C)
    yield (
        "GroupNormalization of opset 18",
        NormState("norm", per_group, numbers("GroupNorm")),
        "torch",
        Wish(),
    )
    yield "eps below float32", state("torch", "BatchNorm", eps=1e-50), "onnx", Wish()
    several = preset("torch.LayerNorm", normalized_ndim=2)
    wide: dict[str, Any] = {"weight": np.ones((4, 5), np.float32)}
    yield "LayerNorm over two axes", NormState("norm", several, wide), "nnx", Wish()


def _refusal(one: NormState, target: str, wish: Wish | None = None) -> str | None:
    try:
        carry(one, FRAMEWORKS[target], wish or Wish())
    except RefusedError as error:
        return str(error.reason)
    return None


def _from_linen() -> str:
    name = ("batch_stats", "SpectralNorm_0", "fc/kernel/u")
    content = Content(Path("w.msgpack"), {name: Stored((1, 3), lambda: np.ones((1, 3)))})
    (said,) = LINEN.reads(content, by_pattern(())).refused.values()
    return str(said)


if __name__ == "__main__":
    print("\n".join((*kinds(), "", *refusals())))
