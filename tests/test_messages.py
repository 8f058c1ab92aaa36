"""A sentence that remembers how it was made."""

from __future__ import annotations

import copy
import json
import pickle

import pytest

from traindx.messages import Message, counted, in_turn, listed, say


def test_a_message_is_its_english_sentence() -> None:
    message = say("the loss is {loss:.3g} at {site}", loss=1.23456, site="{net}")
    assert message == "the loss is 1.23 at {net}"
    assert json.dumps(message) == '"the loss is 1.23 at {net}"'
    assert (message.template, message.values["loss"]) == (
        "the loss is {loss:.3g} at {site}",
        1.23456,
    )


def test_a_message_without_a_value_that_it_names_is_an_error() -> None:
    with pytest.raises(KeyError):
        say("the loss is {loss}")


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))]
)
@pytest.mark.parametrize("message", [say("{{{n}}} steps", n=3), Message("stored {as} it is")])
def test_a_copy_remembers_as_much(message: Message, copied) -> None:
    other = copied(message)
    assert (other, other.template, dict(other.values)) == (
        message,
        message.template,
        dict(message.values),
    )


@pytest.mark.parametrize(("number", "words"), [(0, "0 steps"), (1, "1 step"), (2, "2 steps")])
def test_one_is_singular_and_every_other_number_plural(number: int, words: str) -> None:
    assert counted(number, "{n} step", "{n} steps") == words


def test_names_stand_in_a_row_and_clauses_one_after_another() -> None:
    assert listed(()) == ""
    assert listed(["a"]) == "a"
    assert listed(["a", say("b"), "c"]) == "a, b, c"
    assert in_turn(["a", "b"]) == "a; b"
