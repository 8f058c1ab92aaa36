"""`traindx rules` and `traindx rule`."""

import json
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from traindx.cli import rules as commands
from traindx.errors import UsageError
from traindx.rules.catalog import catalog
from traindx.rules.page import markdown

app = typer.Typer()
app.command("rules")(commands.rules)
app.command("rule")(commands.rule)


def said(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_the_list_has_a_line_a_rule_with_code_name_and_severity():
    lines = said("rules").splitlines()
    assert [line.split()[:3] for line in lines] == [
        [rule.code, rule.name, rule.severity.value] for rule in catalog().values()
    ]
    summaries = [rule.summary for rule in catalog().values()]
    assert all(map(str.endswith, lines, summaries))


def test_the_list_as_json_holds_what_a_program_needs():
    listed = json.loads(said("rules", "--json"))
    assert [rule["code"] for rule in listed] == list(catalog())
    (gap,) = [rule for rule in listed if rule["code"] == "N001"]
    assert gap["name"] == "bn-eval-gap"
    assert gap["options"] == {"gap": 0.5, "error_gap": 1.0, "window": 10}
    causes = "G006 L018 N002 N003 N004 N005 N010 N012 N015 N019 N021 N022 O001"
    assert gap["explained_by"] == causes.split()
    assert gap["silent_in"] == []


@pytest.mark.parametrize("asked", ["N001", "n001", "bn-eval-gap"])
def test_a_page_is_plain_markdown_where_nobody_looks_at_it(asked: str):
    assert said("rule", asked) == markdown(catalog()["N001"])


def test_a_page_on_a_terminal_is_rendered(monkeypatch: pytest.MonkeyPatch, capsys):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "100")
    commands.rule("N001")
    shown = capsys.readouterr().out
    assert "N001 bn-eval-gap" in shown
    assert "## Why it matters" not in shown
    assert "Why it matters" in shown


def test_an_unknown_code_is_one_sentence_and_a_usage_error():
    with pytest.raises(UsageError, match=r"^There is no rule `N0001`; the nearest is `N001`.*\.$"):
        CliRunner().invoke(app, ["rule", "N0001"], catch_exceptions=False)


def test_a_page_loads_nothing_that_measures_or_draws():
    code = (
        "import sys; from traindx.cli.rules import rule; rule('N001'); "
        "assert not {'torch', 'numpy', 'plotly', 'rich.markdown'} & sys.modules.keys()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("# N001")
