"""No message lacks its twin, and no twin its message."""

from __future__ import annotations

import importlib
import pkgutil
from string import Formatter

import pytest

from tests.languages.templates import not_literal, templates, untranslatable
from traindx.languages import LANGUAGES, messages

OTHERS = [language for language in LANGUAGES if language != "en"]


def fields(template: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(template) if name is not None}


@pytest.mark.parametrize("language", OTHERS)
def test_every_message_has_a_twin(language: str) -> None:
    known = messages(language)
    missing = {place: text for text, place in templates().items() if text not in known}
    assert not missing


@pytest.mark.parametrize("language", OTHERS)
def test_every_twin_has_a_message(language: str) -> None:
    assert not messages(language).keys() - templates().keys()


@pytest.mark.parametrize("language", OTHERS)
def test_twins_name_the_same_values(language: str) -> None:
    # A number whose noun has no plural may say its `one` without it: "1 步" of "{n} step".
    assert not {
        template: twin
        for template, twin in messages(language).items()
        if fields(template) != fields(twin)
    }


@pytest.mark.parametrize("language", OTHERS)
def test_a_template_is_translated_in_one_file_only(language: str) -> None:
    folder = importlib.import_module(f"traindx.languages.{language.replace('-', '_').lower()}")
    seen: list[str] = []
    for file in pkgutil.iter_modules(folder.__path__, f"{folder.__name__}."):
        seen += importlib.import_module(file.name).MESSAGES
    assert len(seen) == len(set(seen))


def test_every_template_is_a_literal() -> None:
    assert not not_literal()


def test_nothing_that_a_person_reads_is_a_bare_text() -> None:
    assert not untranslatable()
