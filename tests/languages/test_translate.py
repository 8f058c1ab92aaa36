"""Messages in another language, made now or found again in what was stored."""

from __future__ import annotations

import time

import pytest

from traindx.languages import LANGUAGES, chosen, messages, named, translate
from traindx.messages import Message, counted, listed, say

ZH = "zh-Hant"


def test_english_is_as_it_is() -> None:
    message = say("the loss of {model}", model="net")
    assert translate(message, "en") is message


def test_a_message_keeps_its_numbers_and_their_formats() -> None:
    message = say("measuring cost {percent:.1f} % of the training time", percent=2.125)
    assert translate(message, ZH) == "量測佔訓練時間的 2.1 %"


def test_a_message_inside_another_is_translated_and_a_name_is_not() -> None:
    inside = say("the loss of {model}", model="the loss")
    message = say("{one}, {other}", one=inside, other="error")
    assert translate(message, ZH) == "the loss 的損失，error"


def test_a_layer_called_like_a_word_keeps_its_name() -> None:
    assert translate(listed(["error", say("error")]), ZH) == "error、錯誤"


def test_chinese_has_no_plural() -> None:
    words = [translate(counted(n, "{n} step", "{n} steps"), ZH) for n in (1, 2)]
    assert words == ["1 步", "2 步"]


def test_what_has_no_twin_stays_english() -> None:
    assert translate(say("nobody says {what}", what="this"), ZH) == "nobody says this"
    assert translate("nor this", ZH) == "nor this"


@pytest.mark.parametrize(
    "message",
    [
        say("The script ended with exit code {code}.", code=3),
        say("torch.compile is used: activations are not measured"),
        say(
            "{dropped} items were dropped, as the run file could not be written for long.",
            dropped=9,
        ),
        say("dtype {dtype} is not a floating-point type", dtype="int64"),
    ],
)
def test_a_sentence_that_was_stored_is_found_again(message: Message) -> None:
    stored = translate(str(message), ZH)
    assert stored == translate(message, ZH) == translate(Message(str(message)), ZH)
    assert stored != message


def test_a_message_inside_a_stored_one_is_translated_too() -> None:
    inner = say("the budget of {budget:.0%} was exceeded", budget=0.03)
    outer = say("measured every {every} steps: {reason}", every=64, reason=inner)
    assert translate(str(outer), ZH) == translate(outer, ZH) == "每 64 步量測一次：超出了 3% 的預算"


def test_braces_in_a_stored_sentence_are_text() -> None:
    stored = translate("measuring stopped at step 3: KeyError('{x}')", ZH)
    assert stored == "量測在第 3 步停止：KeyError('{x}')"


def test_a_stored_name_is_not_taken_for_a_word() -> None:
    assert translate("dtype error is not a floating-point type", ZH) == "dtype error 不是浮點型別"


def test_a_stored_text_of_little_else_than_values_stays_as_it_is() -> None:
    assert translate("one, two; three: four", ZH) == "one, two; three: four"


def test_a_long_hostile_text_costs_next_to_nothing() -> None:
    text = "in eval mode " + " of normalization layers are off by more than " * 4000
    started = time.process_time()
    assert translate(text, ZH) == text
    assert time.process_time() - started < 1.0


def test_every_twin_can_be_filled_with_text() -> None:
    for template, twin in messages(ZH).items():
        filled = translate(Message(template), ZH)  # values that are the names of the fields
        assert "{" not in filled or "{" in twin


@pytest.mark.parametrize(
    ("environ", "language"),
    [
        ({}, "en"),
        ({"LANG": "zh_TW.UTF-8"}, ZH),
        ({"LANG": "zh_HK"}, ZH),
        ({"LANG": "zh_CN.UTF-8"}, "en"),
        ({"LANG": "zh_TW.UTF-8", "LC_ALL": "C"}, "en"),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "zh_TW.UTF-8"}, ZH),
        ({"LANG": "zh_TW.UTF-8", "LC_ALL": ""}, ZH),
    ],
)
def test_the_environment_chooses_as_for_every_program(environ, language: str) -> None:
    assert chosen(environ) == language


@pytest.mark.parametrize(
    ("name", "language"),
    [("en", "en"), ("zh-Hant", ZH), ("ZH-hant", ZH), ("zh_TW", ZH), ("zh-CN", None), ("fr", None)],
)
def test_a_language_is_known_by_several_names(name: str, language: str | None) -> None:
    assert named(name) == language
    assert language is None or language in LANGUAGES
