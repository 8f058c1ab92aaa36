"""A series in a line of characters."""

from __future__ import annotations

import math

from traindx.report.sparkline import ASCII, BLOCKS, drawable, sparkline


def test_a_rise_goes_from_the_lowest_to_the_highest_character() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7], 8).text == BLOCKS
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7], 8, ASCII).text == ASCII


def test_a_spike_shows_whatever_the_width() -> None:
    values = [0.0] * 1000
    values[517] = 1.0
    assert sparkline(values, 20).text.count("█") == 1
    down = sparkline([-value for value in values], 20).text
    assert (down.count("▁"), down.count("█")) == (1, 19)


def test_what_is_not_finite_is_marked() -> None:
    assert sparkline([0, math.nan, 1, math.inf], 4).text == "▁x█x"
    assert sparkline([math.nan] * 3, 8).text == "xxx"


def test_more_than_two_decades_are_drawn_by_their_logarithm() -> None:
    drawn = sparkline([1, 10, 100, 1000], 4)
    assert (drawn.text, drawn.is_log) == ("▁▃▆█", True)
    assert not sparkline([1, 100], 2).is_log
    assert not sparkline([0, 1000], 2).is_log


def test_a_constant_series_is_a_flat_line_in_the_middle() -> None:
    assert set(sparkline([3.0] * 9, 5).text) == {"▅"}


def test_no_more_characters_than_values() -> None:
    assert len(sparkline([1, 2, 3], 20).text) == 3


def test_what_an_encoding_does_not_have_is_drawn_in_ascii() -> None:
    assert drawable("utf-8") == BLOCKS
    assert drawable("ascii") == drawable("latin-1") == drawable("no such") == ASCII
    assert drawable(None) == BLOCKS


def test_values_as_far_apart_as_a_float_allows_are_drawn() -> None:
    assert sparkline([-1.7e308, 0, 1.7e308], 3).text == "▁▅█"
    assert sparkline([0, 5e-324], 2).text == "▅▅"
