"""Statistics kept as plain numbers are those that were added."""

from __future__ import annotations

import math

import numpy as np

from traindx.columns import FIELDS, Columns
from traindx.records import TensorStats

A = TensorStats(4, 0.5, 2.0, -1.0, 2.0, 0, 4, 1)
B = TensorStats(2**53, -3.0, 1e300, -math.inf, 1e-310, 3, 0, 0)


def test_what_was_added_comes_back_as_it_was() -> None:
    columns = Columns()
    columns.add(0, A)
    columns.add(7, B)
    assert columns.by_step() == {0: A, 7: B}
    assert isinstance(columns[1].count, int)
    assert (columns.at(7), columns.at(3)) == (B, None)


def test_measurements_of_one_step_merge() -> None:
    columns = Columns()
    columns.add(0, A)
    columns.add(3, A)
    columns.add(3, B)
    assert columns.by_step() == {0: A, 3: A.merge(B)}


def test_a_nan_stays_one() -> None:
    columns = Columns()
    columns.add(0, TensorStats(1, math.nan, math.nan, math.nan, math.nan, 1))
    assert math.isnan(columns[0].mean)


def test_each_field_is_an_array_over_the_steps() -> None:
    columns = Columns()
    columns.add(0, A)
    fields = columns.fields()
    columns.add(1, B)  # an array lent out does not keep it from growing
    assert {name: values.tolist() for name, values in fields.items()} == {
        name: [float(getattr(A, name))] for name in FIELDS
    }
    assert np.array_equal(columns.fields()["count"], [4.0, 2.0**53])
