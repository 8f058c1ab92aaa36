"""Whether reshapes stand where axes should be exchanged."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from tests.preflight.cases import case_of, codes, finding, probed, reason
from traindx.preflight.probes.reshaped_axes import moved_axis
from traindx.run import Run

SAMPLES, STEPS, WIDTH, HEADS = 9, 7, 16, 4


class Net(nn.Module):
    """A classifier of sequences with something in its middle."""

    def __init__(self, middle: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.inlet, self.middle, self.out = nn.Linear(5, WIDTH), middle, nn.LazyLinear(3)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.middle(self.inlet(x)).relu().flatten(1))


def look(middle: Callable[[Tensor], Tensor], samples: int = SAMPLES) -> Run:
    x, labels = torch.randn(samples, STEPS, 5), torch.randint(0, 3, (samples,))
    net = Net(middle)
    net(x)  # so that the last layer knows its size
    return probed(case_of(net, (x, labels), nn.CrossEntropyLoss()), "reshaped-axes")


@pytest.mark.parametrize(
    ("middle", "words"),
    [
        (lambda h: h.reshape(SAMPLES, WIDTH, STEPS), "9x7x16 is reshaped to 9x16x7"),
        (lambda h: h.view(SAMPLES, HEADS, STEPS, 4), "9x7x16 is reshaped to 9x4x7x4"),
        (
            lambda h: h.view(SAMPLES, STEPS, 4, 4).transpose(1, 2).reshape(SAMPLES, STEPS, WIDTH),
            "9x4x7x4 is reshaped to 9x7x16",
        ),
        (
            lambda h: h.flatten(0, 1).tanh().view(STEPS, SAMPLES, WIDTH).transpose(0, 1),
            "rows that were 9x7 before they were merged are split into 7x9",
        ),
    ],
)
def test_reshapes_that_move_an_axis_are_told(middle: Callable[[Tensor], Tensor], words: str):
    run = look(middle)
    assert codes(run) == ["F013"]
    assert words in finding(run, "F013").evidence.message


def test_the_fix_names_the_axes():
    run = look(lambda h: h.reshape(SAMPLES, WIDTH, STEPS))
    assert finding(run, "F013").evidence.fix == "x.permute(0, 2, 1)"


@pytest.mark.parametrize(
    "middle",
    [
        lambda h: h.transpose(1, 2),
        lambda h: h.view(SAMPLES, STEPS, HEADS, 4).transpose(1, 2).flatten(2),
        lambda h: h.transpose(0, 1).flatten(0, 1).view(STEPS, SAMPLES, -1).transpose(0, 1),
        lambda h: (
            h.transpose(0, 1).flatten(0, 1).view(STEPS, 3, 3, -1).flatten(1, 2).transpose(0, 1)
        ),
        lambda h: h[:, :6].reshape(SAMPLES, 3, 2 * WIDTH),  # two steps at a time
        lambda h: (h @ h.mT).new_ones(SAMPLES, STEPS, STEPS + 1).view(SAMPLES, STEPS + 1, STEPS),
        lambda h: h.unsqueeze(1).view(SAMPLES, STEPS, 1, WIDTH),
    ],
)
def test_splitting_merging_and_transposing_are_not(middle: Callable[[Tensor], Tensor]):
    assert "F013" not in codes(look(lambda h: middle(h).flatten(1)[:SAMPLES]))


def test_channels_that_are_shuffled_block_by_block_are_not():
    def shuffled(h: Tensor) -> Tensor:
        for _ in range(2):
            h = h.reshape(-1, 2, 8).transpose(1, 2).reshape(-1, WIDTH)
        return h.view(SAMPLES, STEPS, WIDTH)

    assert not codes(look(shuffled))


def test_without_a_reshape_there_is_nothing_to_say():
    x, labels = torch.randn(8, 5), torch.randint(0, 3, (8,))
    run = probed(case_of(nn.Linear(5, 3), (x, labels), nn.CrossEntropyLoss()), "reshaped-axes")
    assert reason(run) == "nothing is reshaped"


# -- the batch -------------------------------------------------------------------------------------


def pictures(size: int = 16, channels: int = 3) -> Tensor:
    """Smooth pictures of several colours, channels last."""
    generator = torch.Generator().manual_seed(0)
    coarse = torch.rand(8, channels, 4, 4, generator=generator)
    smooth = nn.functional.interpolate(coarse, size=(size, size), mode="bilinear")
    return smooth.permute(0, 2, 3, 1).contiguous()


def seen(x: Tensor) -> Run:
    net = nn.Sequential(nn.Conv2d(x.shape[1], 4, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(3))
    net(x)
    labels = torch.randint(0, 3, (len(x),))
    return probed(case_of(net, (x, labels), nn.CrossEntropyLoss()), "reshaped-axes")


def test_pictures_whose_channels_were_viewed_to_the_front_are_told():
    x = pictures().view(8, 3, 16, 16)
    assert "is a view of 8x16x16x3" in finding(seen(x), "F013").evidence.message
    # a copy has forgotten what it was made of, and its pixels tell
    assert "its channels come last" in finding(seen(x.clone()), "F013").evidence.message


@pytest.mark.parametrize(
    "x",
    [
        pictures().permute(0, 3, 1, 2),
        pictures().permute(0, 3, 1, 2).contiguous(),
        pictures()[..., :1].expand(-1, -1, -1, 3).permute(0, 3, 1, 2).contiguous(),  # grey
        torch.rand(8, 3, 16, 16),
        torch.zeros(8, 3, 16, 16),
    ],
)
def test_pictures_with_channels_first_and_noise_are_not(x: Tensor):
    assert not codes(seen(x))


# -- shapes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "axis"),
    [
        ((2, 5, 8), (5, 16), 5),  # the last states of two layers, taken for those of a sample
        ((4, 28, 28, 3), (4, 3, 28, 28), 3),
        ((48, 6, 24), (6, 48, 24), 48),
        ((6, 6), (6, 6), 0),
        ((1, 6, 4), (6, 1, 4), 0),
        ((4, 12), (4, 3, 2, 2), 0),
        ((4, 12, 4), (4, 3, 16), 0),
        ((5, 7, 8), (5, 8, 7), 0),
        ((0, 4), (4, 0), 0),
        ((), (1, 1), 0),
    ],
)
def test_an_axis_has_moved_where_its_stride_has(
    before: tuple[int, ...], after: tuple[int, ...], axis: int
):
    assert moved_axis(before, after) == axis


@pytest.mark.parametrize(("order", "expected"), [((0, 1, 2), ["F013"]), ((0, 2, 1), [])])
def test_scores_that_are_flattened_on_the_way_to_their_loss(
    order: tuple[int, int, int], expected: list[str]
):
    def loss(scores: Tensor, labels: Tensor) -> Tensor:
        return nn.functional.cross_entropy(scores.permute(order).reshape(-1, 3), labels.flatten())

    x, labels = torch.randn(SAMPLES, 5, STEPS), torch.randint(0, 3, (SAMPLES, STEPS))
    assert (
        codes(probed(case_of(nn.Conv1d(5, 3, 1), (x, labels), loss), "reshaped-axes")) == expected
    )
