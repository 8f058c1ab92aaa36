"""Typed JSON refuses what is not of its type, and lets fields be added."""

from __future__ import annotations

import json
import math
from dataclasses import fields
from typing import Any

import pytest

from traindx.facts import (
    LossFacts,
    ModelFacts,
    ModuleFacts,
    OptimizerFacts,
    ParamFacts,
    PathFacts,
    TensorFacts,
)
from traindx.findings import Context, Evidence, Finding, NotEvaluated, Silenced, Verdict
from traindx.store.codec import MAX_DEPTH, MalformedError, number
from traindx.store.nouns import (
    CONTEXT,
    EVIDENCE,
    FACTS,
    FINDING,
    LOSS,
    MODEL,
    MODULE,
    NOT_EVALUATED,
    OPTIMIZER,
    OPTIONS,
    PARAM,
    PATH,
    SILENCED,
    TENSOR,
    VERDICT,
)

MODULE_TEXT = '{"fqn": "bn1", "kind": "BatchNorm2d"}'
OPTIMIZER_TEXT = '{"name": "SGD", "kind": "SGD", "groups": [], "num_params": 2}'


@pytest.mark.parametrize(
    ("codec", "cls", "text"),
    [
        (MODULE, ModuleFacts, MODULE_TEXT),
        (PATH, PathFacts, '{"sigmoids": 1, "norms": 2, "log10_bound": null}'),
        (PARAM, ParamFacts, '{"fqn": "w", "shape": [2], "dtype": "float32", "trainable": true}'),
        (MODEL, ModelFacts, '{"name": "net", "kind": "Net", "modules": [], "params": []}'),
        (OPTIMIZER, OptimizerFacts, OPTIMIZER_TEXT),
        (
            TENSOR,
            TensorFacts,
            '{"shape": [], "dtype": "", "operation": "", "min": 0, "max": "Infinity", '
            '"integers": true, "rows_sum_to_one": false}',
        ),
        (
            LOSS,
            LossFacts,
            '{"models": "", "operation": "", "loss": "", "prediction": null, "target": null}',
        ),
        (EVIDENCE, Evidence, '{"site": {"model": "m"}, "step": 1, "message": "", "numbers": {}}'),
        (
            FINDING,
            Finding,
            '{"id": 1, "code": "", "name": "", "severity": "error", "active": true, "evidence": '
            '{"site": {"model": "m"}, "step": 1, "message": "", "numbers": {}}, '
            '"first_step": 0, "last_step": 0, "count": 1}',
        ),
        (NOT_EVALUATED, NotEvaluated, '{"code": "G005", "reason": "needs preflight"}'),
        (SILENCED, Silenced, '{"code": "N001", "site": {"model": "m"}, "reason": "declared"}'),
        (CONTEXT, Context, '{"name": "gan", "reason": "two optimizers"}'),
        (VERDICT, Verdict, "{}"),
    ],
)
def test_every_field_of_a_noun_is_written(codec: Any, cls: type, text: str) -> None:
    noun = codec.loads(text)
    assert isinstance(noun, cls)
    assert set(codec.encode(noun)) == {field.name for field in fields(cls)}


def test_a_key_of_a_newer_version_is_ignored() -> None:
    module = MODULE.loads(MODULE_TEXT.replace("}", ', "colour": "red"}'))
    assert module == ModuleFacts("bn1", "BatchNorm2d")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (OPTIMIZER_TEXT.replace("2", '"2"'), "expected a whole number, found '2'"),
        (OPTIMIZER_TEXT.replace("2", "true"), "expected a whole number, found True"),
        (OPTIMIZER_TEXT.replace("2", "2.0"), "expected a whole number, found 2.0"),
        (OPTIMIZER_TEXT.replace("[]", "{}"), "expected an array, found {}"),
        (OPTIMIZER_TEXT.replace("[]", "[1]"), "expected an object, found 1"),
        (OPTIMIZER_TEXT.replace('"name": "SGD", ', ""), "every field of OptimizerFacts"),
        (OPTIMIZER_TEXT.replace('"SGD"', "null", 1), "expected a text, found None"),
        ("[]", "expected an object"),
        ("", "expected JSON"),
        ("{", "expected JSON"),
        ("[" * 100_000, "expected JSON"),
        ("9" * 10_000, "expected"),
    ],
)
def test_a_wrong_type_is_refused(text: str, message: str) -> None:
    with pytest.raises(MalformedError, match=message.replace("[", r"\[").replace("{", r"\{")):
        FACTS["optimizer"].loads(text)


@pytest.mark.parametrize("text", [b"{}", None, 1, 2.5])
def test_only_text_is_json(text: object) -> None:
    with pytest.raises(MalformedError, match="expected JSON text"):
        VERDICT.loads(text)


def test_a_number_beyond_all_floats_is_refused() -> None:
    text = '{"sigmoids": 1, "norms": 2, "log10_bound": 1' + "0" * 400 + "}"
    with pytest.raises(MalformedError, match="expected a number"):
        PATH.loads(text)


def test_nesting_that_would_overflow_a_readers_stack_is_refused() -> None:
    text = '{"a":' * (MAX_DEPTH + 1) + "0" + "}" * (MAX_DEPTH + 1)
    assert OPTIONS.dumps(OPTIONS.loads(text)) == text
    with pytest.raises(MalformedError, match="at most 32 levels"):
        OPTIONS.loads('{"a":' + text + "}")


def test_an_unknown_severity_is_refused() -> None:
    text = '{"site": {"model": "m"}, "step": 1, "message": "", "numbers": {}, "severity": "dire"}'
    with pytest.raises(MalformedError, match="expected a severity, found 'dire'"):
        EVIDENCE.loads(text)


def test_numbers_that_are_not_finite_are_texts_in_strict_json() -> None:
    numbers = [number(value) for value in (math.nan, math.inf, -math.inf, 0.5)]
    assert json.dumps(numbers, allow_nan=False) == '["NaN", "Infinity", "-Infinity", 0.5]'
