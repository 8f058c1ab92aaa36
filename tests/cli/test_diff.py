"""`traindx diff`: two saved runs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.twins import Command
from tests.report.sample import sample_items
from traindx.records import Bundle, Description, Item, Scalar
from traindx.store.writer import Writer


def _save(path: Path, items: Iterable[Item]) -> Path:
    writer = Writer(path)
    writer.write(list(items))
    writer.close()
    return path


@pytest.fixture
def before(tmp_path: Path) -> Path:
    return _save(tmp_path / "before.traindx", sample_items())


@pytest.fixture
def after(tmp_path: Path) -> Path:
    """The same run with a gap that is twice as large."""
    items = (
        replace(item, value=2 * item.value)
        if isinstance(item, Scalar) and item.quantity == "norm.running_gap"
        else item
        for item in sample_items()
    )
    return _save(tmp_path / "after.traindx", items)


def test_what_differs_is_told(traindx: Command, before: Path, after: Path) -> None:
    code, out, err = traindx("diff", before, after)
    assert (code, err) == (0, "")
    assert "norm.running_gap at net · bn2" in out


def test_a_run_and_itself_differ_in_nothing(traindx: Command, before: Path) -> None:
    _, out, _ = traindx("diff", before, before)
    assert out.startswith("0 findings gone, 0 new,")
    assert "measured otherwise" not in out
    assert "set otherwise" not in out


def test_the_document_goes_to_a_file_or_to_standard_output(
    traindx: Command, before: Path, after: Path, tmp_path: Path
) -> None:
    _, out, _ = traindx("diff", before, after, "--json", "-")
    assert {change["site"] for change in json.loads(out)["medians"]} == {"bn2", "bn1"}
    _, told, _ = traindx("diff", before, after, "--json", tmp_path / "diff.json")
    assert told.startswith("0 findings gone")
    assert json.loads((tmp_path / "diff.json").read_text("utf-8")) == json.loads(out)


def test_new_findings_fail_only_where_that_is_asked(
    traindx: Command, before: Path, tmp_path: Path
) -> None:
    finite = [
        item
        for item in sample_items()
        if isinstance(item, Description | Bundle) or item.site.model != "critic"
    ]
    clean = _save(tmp_path / "clean.traindx", finite)
    assert traindx("diff", clean, before)[0] == 0
    assert traindx("diff", clean, before, "--fail-on", "error")[0] == 1
    assert traindx("diff", before, clean, "--fail-on", "info")[0] == 0


@pytest.mark.parametrize("order", [0, 1])
def test_a_path_that_is_no_run_is_one_message(
    traindx: Command, before: Path, tmp_path: Path, order: int
) -> None:
    paths = [before, tmp_path / "no.traindx"]
    code, out, err = traindx("diff", *(paths if order else paths[::-1]))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "There is no run file" in err


def test_the_document_has_the_keys_that_are_promised(
    traindx: Command, before: Path, after: Path
) -> None:
    promised = Path(__file__).parents[2].joinpath("docs", "json.md").read_text("utf-8")
    table = promised.split("# The JSON of `traindx diff`")[1]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    written = json.loads(traindx("diff", before, after, "--json", "-")[1])
    assert list(written) == [key for row in rows for key in row.split("`")[1::2]]
