"""The report of an audit: what was found, layer by layer, and what was not looked at."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from traindx.findings import Severity
from traindx.messages import say
from traindx.norm.audit.check import Audit, audit
from traindx.norm.audit.facts import Family, Layer, Malformed, Seen, Settings, Statistics, Subject
from traindx.report.audit import document, render

LIVE = Settings(eps=1e-5, momentum=0.1, tracks=True, training=False, trainable=True)


def layer(fqn: str, gap: float, share: float | None = None, *, var: float = 2.0) -> Layer:
    statistics = Statistics(np.array([0.5, -1.0]), np.array([2.0, var]), "float32", 400)
    seen = Seen(256, 256, 1.0, gap=gap, share=share)
    return Layer(fqn, "BatchNorm2d", Family.BATCH, "float32", statistics, LIVE, seen=seen)


STALE = audit(
    Subject(
        "net.py:make",
        (layer("0.1", 0.8, 0.16), layer("1.1", 0.7, 0.27), layer("2.1", 0.02, 0.57)),
        live=True,
        batch=True,
        change=12.8,
        rest=0.0075,
    )
)


def of(*layers: Layer, **subject: Any) -> Audit:
    return audit(Subject("w.pt", layers, live=True, batch=True, **subject))


def test_the_report_of_a_stale_model() -> None:
    shown = (
        "net.py:make: 3 normalization layers, 2 errors\n"
        "\n"
        "error eval-gap\n"
        "  where     0.1: on the batch, evaluation is 0.8 standard deviations off, and makes 16%\n"
        "            of the change of the model's output\n"
        "            1.1: on the batch, evaluation is 0.7 standard deviations off, and makes 27%\n"
        "            of the change of the model's output\n"
        "  fix       Recalibrate: `traindx norm recalibrate net.py:make --out NEW.pt`.\n"
        "\n"
        "evaluation against the batch\n"
        "            gap  share of the change\n"
        "  0.1       0.8                  16%\n"
        "  1.1       0.7                  27%\n"
        "  2.1      0.02                  57%\n"
        "  - from running to batch statistics the output changes by 12.8 of its size; 1% of that\n"
        "    is interaction: what layers do together, beyond each alone\n"
        "\n"
        "checked\n"
        f"  - {len(STALE.checked)} checks looked"
    )
    assert render(STALE, width=88) == shown


def test_what_is_said_alike_of_several_layers_is_said_once() -> None:
    found = render(of(*(layer(f"l{i}", 0.1, var=0.0) for i in range(9))))
    assert "l0, l1, l2, l3, l4, l5 and 3 more" in found
    assert found.count("1 of 2 running variances are 0") == 1


def test_many_different_layers_stay_readable() -> None:
    found = render(of(*(layer(f"layer.{i}", 1 + i / 10, 0.001) for i in range(500))))
    assert "and 494 more" in found
    assert "and 480 more with smaller gaps" in found
    assert len(found.splitlines()) < 60


def test_a_gap_that_is_no_number_comes_first() -> None:
    lines = render(of(layer("small", 0.1), layer("bad", math.nan), layer("large", 0.4)))
    rows = lines[lines.index("share of the change") :].splitlines()
    assert [row.split()[0] for row in rows[1:4]] == ["bad", "large", "small"]


def test_names_of_a_file_cannot_write_on_the_terminal() -> None:
    name = "\x1b[2J[bold red]a\r\n\u202eb[/]"
    malformed = Malformed(name, say("why"))
    found = render(audit(Subject(name, (layer(name, 0.9),), (malformed,), live=True, batch=True)))
    assert all(character.isprintable() or character == "\n" for character in found)
    assert "[bold red]a b[/]" in found


@pytest.mark.parametrize("width", [20, 60, 88, 200])
def test_no_line_is_wider_than_asked(width: int) -> None:
    long = layer("encoder." + "block." * 30 + "norm", 0.9, 0.5)
    found = render(of(long), width=width)
    # Code and names that cannot be broken may be: the table never is.
    table = found[found.index("evaluation against") :].splitlines()
    assert all(len(line) <= max(width, 60) for line in table)


def test_nothing_found_says_so_and_what_was_not_looked_at() -> None:
    bare = Layer("bn", "BatchNorm", statistics=layer("x", 0).statistics)
    found = render(audit(Subject("w.pt", (bare,))))
    assert found.startswith("w.pt: 1 normalization layer, nothing found")
    assert "not checked" in found
    assert "a checkpoint does not tell; name the model, as `file.py:name`" in " ".join(
        found.split()
    )


def test_colour_marks_the_severity_only_where_it_is_wanted() -> None:
    assert "\x1b[" in render(STALE, color=True)
    assert "\x1b[" not in render(STALE)


def test_it_speaks_chinese_throughout() -> None:
    found = render(STALE, language="zh-Hant")
    assert "3 個正規化層" in found
    sentences = [line for line in found.splitlines() if "traindx norm" not in line]
    english = ("evaluation", "standard", "change", "where", "error", "checks", "layers")
    assert not [word for word in english for line in sentences if f" {word} " in f" {line} "]


def test_the_document_has_every_number() -> None:
    content = json.loads(document(STALE))
    assert content["schema"] == 1
    assert [finding["fqn"] for finding in content["findings"]] == ["0.1", "1.1"]
    assert content["findings"][0] | {"message": "", "fix": ""} == {
        "check": "eval-gap",
        "severity": Severity.ERROR.value,
        "fqn": "0.1",
        "message": "",
        "fix": "",
        "numbers": {"gap": 0.8, "share": 0.16},
    }
    assert content["layers"][2] == {
        "fqn": "2.1",
        "kind": "BatchNorm2d",
        "gap": 0.02,
        "share": 0.57,
    }
    assert (content["output_change"], content["interaction"]) == (12.8, 0.0075)
    assert set(content["checked"]) == set(STALE.checked)
    assert content["not_checked"] == []


def test_the_document_is_json_whatever_the_numbers() -> None:
    text = document(of(layer("bad", math.inf), layer("worse", math.nan)))
    json.loads(text, parse_constant=lambda constant: pytest.fail(constant))
