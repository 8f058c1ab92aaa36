"""Calls of torch functions, as a block sees them."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

from traindx.preflight.calls import Call, Calls


class Noted(Calls):
    """Notes the calls, and doubles what dropout is told to return."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Call] = []

    def answer(self, call: Call) -> Any:
        self.calls.append(call)
        return call.run() * 2 if call.name == "dropout" else call.run()


def test_a_call_says_what_was_called_with_what() -> None:
    x = torch.ones(2, 3)
    with Noted() as noted:
        torch.softmax(x, dim=1)
        torch.softmax(x, 0)
    by_name, by_place = noted.calls
    assert by_name.name == by_place.name == "softmax"
    assert (by_name.argument("dim", 1), by_place.argument("dim", 1)) == (1, 0)
    assert by_place.argument("dtype", 2, "none") == "none"
    assert [id(t) for t in by_name.given()] == [id(x)]


def test_what_is_answered_is_what_the_program_gets() -> None:
    x = torch.ones(2, 3)
    with Noted():
        doubled = F.dropout(x, training=False)
    assert torch.equal(doubled, 2 * x)


def test_calls_inside_a_call_are_not_seen() -> None:
    with Noted() as noted:
        F.cross_entropy(torch.zeros(2, 3), torch.tensor([0, 1]))
    assert [call.name for call in noted.calls][-1] == "cross_entropy"
    assert "log_softmax" not in [call.name for call in noted.calls]
