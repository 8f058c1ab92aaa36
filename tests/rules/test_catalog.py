"""The catalogue: every rule documented, named, covered, and found."""

from __future__ import annotations

import ast
import re
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from tests.rules import test_engine
from traindx.errors import UsageError
from traindx.quantities import QUANTITIES
from traindx.rules import catalog as catalog_module
from traindx.rules.catalog import catalog, find
from traindx.rules.page import SECTIONS, entry, markdown
from traindx.rules.rule import Rule

HERE = Path(__file__).parent
RULES = pytest.mark.parametrize("rule", catalog().values(), ids=lambda rule: rule.code)
FAMILIES = {
    "N": "normalization",
    "F": "forward",
    "G": "gradients",
    "O": "optimization",
    "L": "loss",
    "S": "static",
    "E": "evaluation",
    "P": "precision",
}


def test_the_catalogue_holds_the_rules_of_this_version():
    expected = (
        "E001 E002 E003 E004 E006 E007 E008 E009 E010 E013 E014 E015 E016 E017 E018 E019 "
        "F001 F002 F003 F005 F006 F011 F012 F013 G001 G002 G003 G005 G006 G009 G010 G011 "
        "L001 L002 L003 L004 L005 L007 L008 "
        "L009 L010 L011 L012 L014 L015 L016 L017 L018 L019 L020 N001 N002 N003 N004 N005 N006 "
        "N010 N011 N012 N013 N014 N015 N016 N017 N018 N019 N020 N021 N022 O001 O002 O003 O004 "
        "O005 O009 O010 O011 O012 O013 O014 O015 O016 O017 P001 P008 S001 S002 S004 S005 S008 S009 "
        "S011 S012 S013 S014 S015"
    )
    assert list(catalog()) == expected.split()


@RULES
def test_codes_and_names_are_well_formed(rule: Rule):
    assert re.fullmatch(r"[NFGOLEPDS]\d{3}", rule.code)
    assert re.fullmatch(r"[a-z]+(-[a-z]+)+", rule.name)


@RULES
def test_a_rule_stands_in_a_file_of_its_name_in_the_folder_of_its_family(rule: Rule):
    _, _, family, file = rule.check.__module__.split(".")
    assert family == FAMILIES[rule.code[0]]
    assert file == rule.name.replace("-", "_")


def test_names_are_unique():
    assert len({rule.name for rule in catalog().values()}) == len(catalog())


@RULES
def test_a_page_starts_with_one_sentence(rule: Rule):
    assert rule.summary.endswith(".")
    assert rule.summary.count(". ") == 0
    assert len(rule.summary) <= 100


@RULES
def test_a_page_has_its_sections_in_order_and_says_something_in_each(rule: Rule):
    assert tuple(re.findall(r"^## (.+)$", rule.page, re.MULTILINE)) == SECTIONS
    assert all(len(rule.section(title)) > 80 for title in SECTIONS)


@RULES
def test_every_option_is_a_number_and_explained_in_the_page(rule: Rule):
    for name, default in rule.options.items():
        assert isinstance(default, int | float)
        assert f"`{name}`" in rule.section("How it is measured")


@RULES
def test_a_rule_reads_known_quantities_and_names_known_rules(rule: Rule):
    assert set(rule.reads) <= set(QUANTITIES)
    assert set(rule.explained_by) <= set(catalog()) - {rule.code}


@RULES
def test_hysteresis_is_told_in_the_page_where_there_is_any(rule: Rule):
    words = {1: "", 2: "two measured steps", 3: "three measured steps"}
    assert words[rule.hits] in " ".join(rule.section("How it is measured").split())


@RULES
def test_a_rule_has_a_run_that_fires_it_and_a_near_miss(rule: Rule):
    tests = ast.parse((HERE / f"test_{rule.name.replace('-', '_')}.py").read_text())
    names = [node.name for node in tests.body if isinstance(node, ast.FunctionDef)]
    assert any(name.startswith("test_fires_") for name in names)
    assert sum(name.startswith("test_silent_") for name in names) >= 2


@RULES
def test_the_page_and_the_data_tell_the_thresholds(rule: Rule):
    for name, default in rule.options.items():
        assert f"| `{name}` | {default:g} |" in markdown(rule)
    assert entry(rule)["options"] == rule.options


@RULES
def test_a_rule_is_found_by_its_code_and_by_its_name_in_any_case(rule: Rule):
    assert find(rule.code.lower()) is rule
    assert find(rule.name.upper()) is rule


@pytest.mark.parametrize(
    ("asked", "nearest"),
    [("double-softmx", "L002"), ("bn-eval", "N001"), ("missing-zerograd", "G006"), ("g06", "G006")],
)
def test_an_unknown_rule_is_one_sentence_with_the_nearest(asked: str, nearest: str):
    with pytest.raises(UsageError) as error:
        find(asked)
    assert str(error.value).startswith(f"There is no rule `{asked}`; the nearest is `{nearest}")
    assert error.value.exit_code == 2


@pytest.mark.parametrize("asked", ["", "?", "日本"])
def test_whatever_is_asked_for_gets_an_answer(asked: str):
    with pytest.raises(UsageError, match="the nearest is"):
        find(asked)


# -- plug-ins ------------------------------------------------------------------------------------

PLUGIN_RULE = test_engine.alarm("X001")


def offer(monkeypatch: pytest.MonkeyPatch, *values: str) -> None:
    entries = [EntryPoint(f"plugin{i}", value, "traindx.rules") for i, value in enumerate(values)]
    monkeypatch.setattr(catalog_module, "entry_points", lambda group: entries)


def test_a_plug_in_adds_its_rules(monkeypatch: pytest.MonkeyPatch):
    offer(monkeypatch, f"{__name__}:PLUGIN_RULE", __name__)
    assert catalog.__wrapped__()["X001"] is PLUGIN_RULE


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("no_such_package", "No module named"),
        (f"{__name__}:FAMILIES", "it must name a rule"),
        (f"{__name__}:TAKEN", "N001 is the code of another rule"),
    ],
)
def test_a_broken_plug_in_is_one_warning(monkeypatch: pytest.MonkeyPatch, value: str, why: str):
    offer(monkeypatch, value)
    with pytest.warns(RuntimeWarning) as told:
        found = catalog.__wrapped__()
    assert len(told) == 1
    assert "The rules of the plug-in `plugin0` are left out" in str(told[0].message)
    assert why in str(told[0].message)
    assert found == catalog()


class _Holder:
    """What a plug-in with a code already taken offers; kept out of the module's own names."""

    rule = test_engine.alarm("N001")


def __getattr__(name: str) -> Rule:
    if name == "TAKEN":
        return _Holder.rule
    raise AttributeError(name)
