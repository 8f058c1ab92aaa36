"""Lines of a width in cells, Chinese or not."""

from __future__ import annotations

import pytest

from traindx.report.wrapping import clipped, padded, width_of, wrapped

CHINESE = "從損失回到 `1.weight` 的每一條路徑，都至少經過 20 個 sigmoid（門檻 4）。實測為 9.2e-20；"


@pytest.mark.parametrize("width", [10, 13, 20, 31, 80])
def test_no_line_of_chinese_is_too_wide_or_begins_with_what_closes(width: int) -> None:
    lines = list(wrapped(CHINESE, width))
    assert "".join(lines).replace(" ", "") == CHINESE.replace(" ", "")
    assert not any(line[0] in "，。；）" for line in lines)
    # What closes may hang over, and a word is not cut.
    assert all(width_of(line) <= width + 2 for line in lines if len(line.split()) > 1)


def test_an_opening_bracket_stays_with_what_follows() -> None:
    assert list(wrapped("一二三（四五）", 8)) == ["一二三", "（四五）"]


def test_english_breaks_between_words() -> None:
    assert list(wrapped("in 403 steps of the run", 12)) == ["in 403 steps", "of the run"]


def test_a_path_is_not_cut() -> None:
    path = "traindx-runs/train-20260102-030405.traindx"
    assert list(wrapped(f"see {path}", 12)) == ["see", path]


def test_a_label_is_padded_by_its_cells() -> None:
    assert padded("位置", 6) == "位置  "
    assert padded("where", 6) == "where "


def test_what_is_too_wide_is_clipped_by_its_cells() -> None:
    assert clipped("features", 8) == "features"
    assert clipped("features.0", 8) == "feature…"
    assert clipped("正規化層", 8) == "正規化層"
    assert width_of(clipped("正規化層層", 8)) <= 8
