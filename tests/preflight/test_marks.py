"""Numbers that stand for none, in columns of others."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from traindx.preflight.marks import marks_of

VALUES = torch.randn(40, 3, generator=torch.Generator().manual_seed(0))
HOLES = torch.zeros(40, 3, dtype=torch.bool)
HOLES[[3, 7, 20], [0, 0, 2]] = True


@pytest.mark.parametrize("mark", [-999.0, 1e4, -60.0])
@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_the_same_number_far_from_all_others_is_one(mark: float, scale: float):
    found = marks_of(scale * torch.where(HOLES, mark, VALUES))
    assert found is not None
    assert found.value == pytest.approx(scale * mark)
    assert (found.elements, found.columns) == (3, 2)


@pytest.mark.parametrize(
    "table",
    [
        VALUES,
        VALUES.clamp(-1, 1),  # the same number again and again, but at the border of the others
        torch.where(HOLES, -9.0, VALUES),  # not far
        torch.where(HOLES, 999 * VALUES, VALUES),  # far, but never the same
        torch.where(HOLES & (torch.arange(40)[:, None] == 3), -999.0, VALUES),  # only once
        (VALUES > 1.2).float(),  # a flag
        VALUES[:5],
    ],
)
def test_other_numbers_are_none(table: Tensor):
    assert marks_of(table) is None
