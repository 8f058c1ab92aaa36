"""`traindx norm presets`: the layers that are known, and the options of one."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from enum import Enum

from traindx.messages import say
from traindx.norm.presets import Preset
from traindx.report.untrusted import told
from traindx.report.wrapping import padded, width_of


def render_all(presets: Sequence[Preset], *, language: str = "en") -> str:
    """A line each: name, and how its behaviour is known."""
    name = max(width_of(preset.name) for preset in presets) + 2
    lines = [padded(preset.name, name) + preset.source for preset in presets]
    hint = say("`traindx norm presets NAME` shows the options of one.")
    return "\n".join([*lines, "", told(hint, language)])


def render(preset: Preset, *, language: str = "en") -> str:
    """One layer: its options with their defaults, and what a reader could stumble over."""
    options = preset.options
    name = max(map(width_of, options), default=0) + 2
    lines = [f"{preset.name} ({preset.source})"]
    lines += [f"  {padded(key, name)}{_shown(value, language)}" for key, value in options.items()]
    return "\n".join([*lines, *([preset.note] if preset.note else [])])


def _shown(default: object, language: str) -> str:
    if default is inspect.Parameter.empty:
        return told(say("must be given"), language)
    if isinstance(default, Enum):
        answers = ", ".join(member.name.lower() for member in type(default))
        return f"{default.name.lower()} ({answers})"
    return str(default)
