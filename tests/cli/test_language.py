"""`--lang`, the settings and the environment: in which language the command line speaks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.twins import Command
from tests.report.sample import sample_items
from traindx.store.writer import Writer


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    writer = Writer(tmp_path / "sample.traindx")
    writer.write(list(sample_items()))
    writer.close()
    return writer.path


def test_english_is_spoken_where_nothing_else_is_asked(traindx: Command, saved: Path) -> None:
    assert "not evaluated" in traindx("check", saved)[1]


@pytest.mark.parametrize(
    "words",
    [("--lang", "zh-Hant", "check"), ("check", "--lang", "zh-Hant"), ("check", "--lang", "zh_TW")],
)
def test_the_option_stands_before_or_behind_the_command(
    traindx: Command, saved: Path, words: tuple[str, ...]
) -> None:
    out = traindx(*words, saved)[1]
    assert "未評估" in out
    assert "not evaluated" not in out


def test_the_environment_is_heard(
    traindx: Command, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "zh_TW.UTF-8")
    assert "未評估" in traindx("check", saved)[1]
    assert "not evaluated" in traindx("check", saved, "--lang", "en")[1]


def test_the_settings_overrule_the_environment_and_the_option_the_settings(
    traindx: Command, saved: Path
) -> None:
    Path("pyproject.toml").write_text('[tool.traindx]\nlang = "zh-Hant"\n', "utf-8")
    assert "未評估" in traindx("check", saved)[1]
    assert "not evaluated" in traindx("--lang", "en", "check", saved)[1]


def test_an_error_is_told_in_the_language_that_was_asked_for(traindx: Command, saved: Path) -> None:
    code, _, err = traindx("--lang", "zh-Hant", "check", "no.traindx")
    assert (code, err[: err.index("`")]) == (2, "traindx: 沒有名為 ")


def test_a_language_that_there_is_not_is_refused(traindx: Command, saved: Path) -> None:
    code, out, err = traindx("check", saved, "--lang", "xx")
    assert (code, out) == (2, "")
    assert "There is no language `xx`; there are `en`, `zh-Hant`." in err


def test_json_is_english_in_every_language(traindx: Command, saved: Path) -> None:
    english = traindx("check", saved, "--json", "-")[1]
    assert traindx("--lang", "zh-Hant", "check", saved, "--json", "-")[1] == english
    assert json.loads(english)["findings"]


def test_one_command_does_not_speak_for_the_next(traindx: Command, saved: Path) -> None:
    traindx("--lang", "zh-Hant", "check", saved)
    assert "not evaluated" in traindx("check", saved)[1]


def test_a_page_of_a_rule_has_its_titles_and_summary_translated(traindx: Command) -> None:
    _, out, _ = traindx("rule", "N001", "--lang", "zh-Hant")
    assert "## 為何重要\n" in out
    assert "## Why it matters" not in out
    assert "running statistics" in " ".join(out.split())  # the text itself is English
    assert "警告" in traindx("rules", "--lang", "zh-Hant")[1]


def test_where_the_output_has_no_chinese_a_mark_stands_in_its_place(
    traindx: Command, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from traindx.cli.outcome import encodable

    class Ascii:
        encoding = "ascii"

    assert encodable("位置 net", Ascii()) == "?? net"  # pyright: ignore[reportArgumentType]
