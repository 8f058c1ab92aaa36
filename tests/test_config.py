"""Settings: what a file may say, what goes before what, and what is told of mistakes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from traindx import config
from traindx.baseline import baseline_text, read_baseline
from traindx.config import Config, load
from traindx.errors import UsageError
from traindx.findings import Evidence, Finding, Severity, Verdict
from traindx.records import Site
from traindx.rules.catalog import catalog

DOCS = Path(__file__).parents[1] / "docs" / "configuration.md"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(text: str, name: str = "traindx.toml") -> Config:
    Path(name).write_text(text, "utf-8")
    return load(Path(name))


def complaint(text: str, name: str = "traindx.toml") -> str:
    with pytest.raises(UsageError) as error:
        written(text, name)
    message = str(error.value)
    assert error.value.exit_code == 2
    assert f"`{name}`" in message
    assert "\n" not in message
    return message


# -- where settings are --------------------------------------------------------------------------


def test_the_nearest_pyproject_from_the_folder_upward_counts(folder: Path):
    inner = folder / "a" / "b"
    inner.mkdir(parents=True)
    (folder / "pyproject.toml").write_text("[tool.traindx]\nevery = 3\n")
    assert load(folder=inner).every == 3
    (folder / "a" / "pyproject.toml").write_text("[tool.traindx]\nevery = 4\n")
    assert load(folder=inner).every == 4


@pytest.mark.parametrize("text", ["", "[project]\nname = 'x'\n", "[tool.ruff]\n[tool.traindx]\n"])
def test_a_file_that_sets_nothing_leaves_everything_as_it_is(text: str):
    assert written(text, "pyproject.toml") == Config()


def test_without_any_file_everything_is_as_by_default(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(config, "_nearest", lambda folder: None)
    assert load() == Config()


def test_a_file_of_another_name_has_the_keys_at_its_top_or_in_the_table():
    assert written("every = 5\n").every == 5
    assert written("[tool.traindx]\nevery = 5\n").every == 5
    with pytest.raises(UsageError, match="knows no key `tools`"):
        written("[tools]\nevery = 5\n")


def test_only_what_the_file_gives_differs_from_the_default():
    settings = written("budget = 0.5\n")
    assert settings == Config(budget=0.5, sources={"budget": "traindx.toml"})


def test_paths_begin_at_the_folder_of_the_file(folder: Path):
    (folder / "sub").mkdir()
    settings = written("runs = 'r'\nbaseline = '/b.json'\n", "sub/traindx.toml")
    assert settings.runs == folder / "sub" / "r"
    assert settings.baseline == Path("/b.json")


def test_the_example_of_the_docs_is_understood(folder: Path):
    example = DOCS.read_text("utf-8").partition("```toml\n")[2].partition("```")[0]
    settings = written(example, "pyproject.toml")
    assert settings.select == {code for code in catalog() if code[0] in "NG"} | {"F005"}
    assert settings.ignore[0].covers("G003", Site("net", "decoder.aux"))
    assert settings.contexts == ("gan",)
    assert settings.baseline == folder / "traindx-baseline.json"
    assert (settings.budget, settings.runs) == (0.02, folder / "runs")
    assert (settings.fail_on, settings.lang) == (Severity.WARNING, "en")
    assert settings.rules == {"N001": {"gap": 0.3}, "G006": {"window": 16.0}}


def test_every_key_is_documented():
    keys = {key.replace("_", "-") for key in config._KEYS}  # pyright: ignore[reportPrivateUsage]
    page = DOCS.read_text("utf-8")
    assert {key for key in keys if f"\n| `{key}` |" not in page} == set()


# -- the command line over it --------------------------------------------------------------------


def test_an_option_replaces_the_key_of_its_name_and_nothing_else():
    settings = written("budget = 0.5\nselect = ['N']\nignore = ['G003']\n")
    over = settings.over(budget=0.1, select=["G006,O003", "F005"], ignore=None, every=None)
    assert over.budget == 0.1
    assert over.select == {"G006", "O003", "F005"}
    assert over.ignore == settings.ignore
    assert over.sources == {
        "budget": "--budget",
        "select": "--select",
        "ignore": "traindx.toml",
    }


def test_a_zero_on_the_command_line_is_a_value():
    assert Config().over(budget=0.0).budget == 0.0
    with pytest.raises(UsageError, match=r"^--every takes a whole number from 1 on; it is 0"):
        Config().over(every=0)


def test_a_mistake_on_the_command_line_names_the_option():
    with pytest.raises(UsageError, match=r"^--context: There is no context `gam`"):
        Config().over(contexts=["gam"])
    with pytest.raises(UsageError, match=r"^--select: There is no rule `N999`"):
        Config().over(select=["N999"])


# -- what is told of mistakes --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("selct = ['N']", "`traindx.toml` knows no key `selct`; the nearest is `select`."),
        ("fail_on = 'error'", "`traindx.toml` knows no key `fail_on`; the nearest is `fail-on`."),
        (
            "select = ['bn-stat-stale']",
            "`traindx.toml`, `select`: There is no rule `bn-stat-stale`; "
            "the nearest is `N002` (bn-stats-stale).",
        ),
        ("select = []", "`traindx.toml`, `select` names no rule; leave it out to apply them all."),
        ("select = 3", "`traindx.toml`, `select` takes a list of names in quotes; it is 3."),
        ("select = [3]", "`traindx.toml`, `select` takes a list of names in quotes; it is [3]."),
        (
            "ignore = ['bn-eval-gab@x']",
            "`traindx.toml`, `ignore`: There is no rule `bn-eval-gab`; "
            "the nearest is `N001` (bn-eval-gap).",
        ),
        (
            "ignore = ['N001@']",
            "`traindx.toml`, `ignore`: `N001@` names no site after its `@`; "
            "`*` stands for every one.",
        ),
        (
            "contexts = ['warm']",
            "`traindx.toml`, `contexts`: There is no context `warm`; the nearest is `warmup`.",
        ),
        ("budget = 1.5", "`traindx.toml`, `budget` takes a number from 0 to 1; it is 1.5."),
        ("budget = nan", "`traindx.toml`, `budget` takes a number from 0 to 1; it is nan."),
        ("budget = true", "`traindx.toml`, `budget` takes a number from 0 to 1; it is True."),
        ("every = 0", "`traindx.toml`, `every` takes a whole number from 1 on; it is 0."),
        ("every = 2.0", "`traindx.toml`, `every` takes a whole number from 1 on; it is 2.0."),
        ("every = true", "`traindx.toml`, `every` takes a whole number from 1 on; it is True."),
        ("trap-nan = 1", "`traindx.toml`, `trap-nan` takes true or false; it is 1."),
        ("runs = ''", "`traindx.toml`, `runs` takes a path; it is ''."),
        (
            "fail-on = 'fatal'",
            '`traindx.toml`, `fail-on` takes one of "error", "warning", "info"; it is \'fatal\'.',
        ),
        (
            "lang = 'de'",
            '`traindx.toml`, `lang` takes one of "en", "zh-Hant"; it is \'de\'.',
        ),
        ("rules = 1", "`traindx.toml`, `rules` takes a table; it is 1."),
        ("rules.N001 = 1", "`traindx.toml`, `rules.N001` takes a table; it is 1."),
        (
            "rules.bn-stat-stale.gap = 1",
            "`traindx.toml`, `rules`: There is no rule `bn-stat-stale`; "
            "the nearest is `N002` (bn-stats-stale).",
        ),
        (
            "rules.N001.gab = 1",
            "`traindx.toml`, `rules.N001` knows no key `gab`; the nearest is `gap`.",
        ),
        ("rules.O003.gap = 1", "`traindx.toml`, `rules.O003`: O003 has no options."),
        (
            "rules.N001.gap = 'x'",
            "`traindx.toml`, `rules.N001.gap` takes a finite number; it is 'x'.",
        ),
        (
            "rules.N001.gap = inf",
            "`traindx.toml`, `rules.N001.gap` takes a finite number; it is inf.",
        ),
        (
            "rules.N001.gap = -1",
            "`traindx.toml`, `rules.N001.gap` takes a number from 0 on; it is -1.",
        ),
        (
            "rules.G006.fraction = 2",
            "`traindx.toml`, `rules.G006.fraction` takes a number from 0 to 1; it is 2.",
        ),
    ],
)
def test_a_mistake_names_the_file_the_key_and_what_would_be_right(text: str, told: str):
    assert complaint(text) == told


@pytest.mark.parametrize("text", ["tool = 1", "[tool]\ntraindx = []", "[[tool.traindx]]"])
def test_a_table_that_is_none_is_a_mistake(text: str):
    assert "takes a table" in complaint(text, "pyproject.toml")


def test_a_threshold_below_zero_may_be_lower_still():
    assert written("rules.F005.log10_bound = -5").rules == {"F005": {"log10_bound": -5.0}}


@pytest.mark.parametrize(
    ("text", "line"),
    [("every = 1\nbudget = = 2\n", "line 2"), ("every = 1\nselect = [\n", "line 3")],
)
def test_a_malformed_file_is_named_with_its_line(text: str, line: str):
    assert line in complaint(text)


def test_a_file_that_is_no_text_or_not_there_is_refused():
    Path("traindx.toml").write_bytes(b"runs = '\xff'\n")
    with pytest.raises(UsageError, match=r"`traindx\.toml` is not valid TOML"):
        load(Path("traindx.toml"))
    with pytest.raises(UsageError, match=r"Cannot read `missing\.toml`: No such file"):
        load(Path("missing.toml"))


def test_what_a_value_shows_of_itself_is_short_and_plain():
    assert len(complaint(f"every = '{'x' * 500}'")) < 150
    assert complaint('every = "\\u001b[31m"').isprintable()


# -- ignoring ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "site", "covered"),
    [
        ("N001", Site("net", "a.b"), True),
        ("N", Site("net", "a.b"), True),
        ("bn-eval-gap", Site("net", "a.b"), True),
        ("G", Site("net", "a.b"), False),
        ("N001@a.*", Site("net", "a.b"), True),
        ("N001@a", Site("net", "a.b"), False),
        ("N001@net.a.b", Site("net", "a.b"), True),
        ("N001@net", Site("net"), True),
        ("N001@SGD", Site("", "SGD"), True),
        ("N001@A.*", Site("net", "a.b"), False),
        ("N001@*", Site(""), True),
    ],
)
def test_an_ignored_rule_is_ignored_where_its_pattern_fits(entry: str, site: Site, covered: bool):
    (ignore,) = written(f"ignore = ['{entry}']").ignore
    assert ignore.covers("N001", site) is covered


# -- baselines -----------------------------------------------------------------------------------


def finding(code: str = "N001", fqn: str = "a", *, active: bool = True) -> Finding:
    evidence = Evidence(Site("net", fqn), 0, "seen", {})
    return Finding(1, code, "x", Severity.ERROR, active, evidence, 0, 0, 1)


def test_a_baseline_knows_the_active_findings_it_was_written_of():
    old, cleared, new = finding(), finding(fqn="b", active=False), finding(fqn="c")
    Path("base.json").write_text(baseline_text(Verdict((old, cleared))))
    judging = written("baseline = 'base.json'").judging()
    assert judging.passed_over(old).startswith("known: in the baseline ")
    assert judging.passed_over(cleared) == ""
    assert judging.passed_over(new) == ""


def test_a_baseline_is_the_same_in_whatever_order_the_findings_are():
    one, other = finding(), finding("G003")
    assert baseline_text(Verdict((one, other))) == baseline_text(Verdict((other, one)))


def test_the_example_of_a_baseline_in_the_docs_is_one():
    example = DOCS.read_text("utf-8").partition("```json\n")[2].partition("```")[0]
    Path("base.json").write_text(example)
    assert len(read_baseline(Path("base.json"))) == 1
    keys = set(json.loads(baseline_text(Verdict((finding(),))))["findings"][0])
    assert set(json.loads(example)["findings"][0]) == keys


@pytest.mark.parametrize(
    "document", ["", "[", "[]", "3", {"schema": 2}, {"schema": 1}, {"schema": 1, "findings": [3]}]
)
def test_what_is_no_baseline_is_refused(document: Any):
    text = document if isinstance(document, str) else json.dumps(document)
    Path("base.json").write_text(text)
    with pytest.raises(UsageError, match=re.escape("`base.json` is no baseline of schema 1")):
        read_baseline(Path("base.json"))


def test_a_baseline_that_is_not_there_is_refused():
    with pytest.raises(UsageError, match=r"Cannot read the baseline `none\.json`: No such file"):
        read_baseline(Path("none.json"))


@pytest.mark.parametrize("key", ["budget", "rules.N001.gap"])
def test_a_number_too_large_for_a_float_is_a_mistake_of_the_user(key: str):
    assert f"`traindx.toml`, `{key}` takes a" in complaint(f"{key} = 1{'0' * 400}\n")


def test_brackets_without_end_are_a_mistake_of_the_user():
    assert "is not valid TOML" in complaint(f"select = {'[' * 5000}{']' * 5000}\n")


@pytest.mark.parametrize("code", ["G006", "N001", "N003", "O001"])
def test_a_window_in_which_a_rule_could_never_speak_is_refused(code: str):
    assert "takes a number from 4 on; it is 3." in complaint(f"rules.{code}.window = 3\n")
    assert written(f"rules.{code}.window = 4\n").rules == {code: {"window": 4.0}}


def test_a_working_directory_that_is_gone_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch):
    (folder / "gone").mkdir()
    monkeypatch.chdir(folder / "gone")
    (folder / "gone").rmdir()
    with pytest.raises(UsageError, match="The working directory is gone"):
        load()
