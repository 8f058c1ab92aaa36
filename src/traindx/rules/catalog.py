"""Every rule there is: found by walking the families, plus those of plug-ins."""

from __future__ import annotations

import pkgutil
import warnings
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType

from traindx import rules
from traindx.errors import UsageError
from traindx.messages import say
from traindx.rules.rule import Rule

PLUGINS = "traindx.rules"
"""The entry point group in which a package offers rules, or modules that hold some."""


@cache
def catalog() -> dict[str, Rule]:
    """Every rule by its code, in order of code."""
    found = {rule.code: rule for rule in _shipped()}
    for entry in entry_points(group=PLUGINS):
        _adopt(found, entry)
    return dict(sorted(found.items()))


def find(code_or_name: str) -> Rule:
    """The rule with this code or name.

    Raises:
        UsageError: There is none.
    """
    wanted = code_or_name.strip().casefold()
    by_word = {word.casefold(): rule for rule in catalog().values() for word in _words(rule)}
    if wanted in by_word:
        return by_word[wanted]
    nearest = by_word[get_close_matches(wanted, by_word, n=1, cutoff=0.0)[0]]
    raise UsageError(
        say(
            "There is no rule `{rule}`; the nearest is `{nearest}` ({name}).",
            rule=code_or_name,
            nearest=nearest.code,
            name=nearest.name,
        )
    )


def _words(rule: Rule) -> tuple[str, str]:
    return rule.code, rule.name


def _shipped() -> Iterator[Rule]:
    for family in pkgutil.iter_modules(rules.__path__, f"{rules.__name__}."):
        if family.ispkg:
            folder = import_module(family.name).__path__
            for file in pkgutil.iter_modules(folder, f"{family.name}."):
                yield from _rules_of(import_module(file.name))


def _rules_of(module: ModuleType) -> Iterable[Rule]:
    return (value for value in vars(module).values() if isinstance(value, Rule))


def _adopt(found: dict[str, Rule], entry: EntryPoint) -> None:
    """Take a plug-in's rules; whatever is wrong with it costs one warning, never the run."""
    try:
        offered = _offered(entry.load())
        taken = sorted(rule.code for rule in offered if found.get(rule.code, rule) is not rule)
        if taken:
            raise ValueError(f"{', '.join(taken)} is the code of another rule")
        found.update({rule.code: rule for rule in offered})
    except Exception as error:
        message = f"The rules of the plug-in `{entry.name}` are left out: {error}"
        warnings.warn(message, RuntimeWarning, stacklevel=2)


def _offered(loaded: object) -> list[Rule]:
    offered = [loaded] if isinstance(loaded, Rule) else []
    if isinstance(loaded, ModuleType):
        offered = list(_rules_of(loaded))
    if not offered:
        raise TypeError("it must name a rule or a module that holds rules")
    return offered
