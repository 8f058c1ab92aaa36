"""Names found in the frames of those who call, without a trace in them."""

from __future__ import annotations

import inspect
import weakref
from typing import Any

from torch import nn

from traindx.capture.owners import Names, common, name_in_frames, parent


class Thing:
    """Something that can be held weakly."""


def test_a_variable_of_the_nearest_frame_names_its_value():
    def inner(argument):
        return name_in_frames(argument, inspect.currentframe())

    outermost = Thing()
    assert inner(outermost) == "argument"


def test_an_ambiguous_name_leaves_it_to_the_next_frame():
    def inner(argument):
        again = argument
        return name_in_frames(again, inspect.currentframe())

    outermost = Thing()
    assert inner(outermost) == "outermost"


def test_private_names_and_attributes_of_modules_do_not_count():
    class Holder(nn.Module):
        def ask(self):
            return name_in_frames(self.thing, inspect.currentframe())

    holder: Any = Holder()
    holder.thing = Thing()
    _hidden = holder.thing
    assert holder.ask() is None


def test_what_a_frame_holds_can_be_freed_after_it_was_looked_at():
    thing, other = Thing(), Thing()
    assert name_in_frames(thing, inspect.currentframe()) == "thing"
    dead = weakref.ref(other)
    del other
    assert dead() is None


def test_the_users_own_snapshot_of_its_variables_is_left_alone():
    thing = Thing()
    mine = locals()
    assert name_in_frames(thing, inspect.currentframe()) in ("thing", None)
    assert mine["thing"] is thing


def test_variables_made_by_exec_are_left_alone():
    thing = Thing()
    exec("made_too = 5")
    before = locals().get("made_too")
    name_in_frames(thing, inspect.currentframe())
    assert locals().get("made_too") == before


def test_the_module_around_others_is_what_their_paths_begin_with():
    assert common(["encoder.0.attn", "encoder.0.mlp"]) == "encoder.0"
    assert common(["encoder.1", "encoder.10"]) == "encoder"
    assert common(["head"]) == "head"
    assert common(["head", ""]) == common(["head", "body"]) == ""


def test_a_parameter_is_a_part_of_the_module_before_its_last_dot():
    assert parent("encoder.0.weight") == "encoder.0"
    assert parent("weight") == ""


def test_a_name_that_is_taken_gets_the_next_number_that_is_free():
    names = Names()
    assert [names.new(name) for name in ("net", "net", "net#4", "net", "net")] == [
        "net",
        "net#2",
        "net#4",
        "net#3",
        "net#5",
    ]


def test_a_name_that_was_given_back_is_given_out_again():
    names = Names()
    given = [names.new("net") for _ in range(4)]
    names.give_back(given[1])
    assert [names.new("net") for _ in range(2)] == ["net#2", "net#5"]
