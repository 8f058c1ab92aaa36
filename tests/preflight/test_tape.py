"""What a program does between model and loss is done again, on other outputs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from traindx.preflight.tape import Score, Tape, leading_to

Loss = Callable[[Tensor, Tensor], Tensor]


def played(loss: Loss, output: Tensor, target: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """A loss noted for one output, and played for another beside the loss itself."""
    model = nn.Identity()
    tape = Tape()
    with tape:
        tape.note(model, (output,), {}, output)
        made = loss(output, target)
    score = Score(tuple(leading_to(tape.entries, made)), made)
    return score.of([other], lambda tensor: tensor), loss(other, target)


def in_place(output: Tensor, target: Tensor) -> Tensor:
    total = torch.zeros(())
    total += F.cross_entropy(output, target)
    total += 0.1 * output.square().mean()
    return total


def masked(output: Tensor, target: Tensor) -> Tensor:
    kept = output.clone()
    kept[:, 0] = 0
    return F.nll_loss(torch.log_softmax(kept, 1), target)


def by_hand(output: Tensor, target: Tensor) -> Tensor:
    chosen = output[torch.arange(len(output)), target]
    return (output.logsumexp(1) - chosen).mean()


def reshaped(output: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(output.view(-1, 2), target.repeat_interleave(2) % 2)


def weighted(output: Tensor, target: Tensor) -> Tensor:
    weight = torch.sigmoid(output.detach()).mean()
    return weight * F.cross_entropy(output, target)


@pytest.mark.parametrize("loss", [F.cross_entropy, in_place, masked, by_hand, reshaped])
def test_a_loss_is_played_on_another_output(loss: Loss) -> None:
    torch.manual_seed(0)
    output, other = torch.randn(8, 4, requires_grad=True), torch.randn(8, 4, requires_grad=True)
    again, directly = played(loss, output, torch.randint(0, 4, (8,)), other)
    assert torch.equal(again, directly)
    (gradient,) = torch.autograd.grad(again, other)
    assert torch.equal(gradient, torch.autograd.grad(directly, other)[0])


def test_what_is_detached_is_taken_as_it_was() -> None:
    torch.manual_seed(0)
    output, other = torch.randn(8, 4, requires_grad=True), torch.randn(8, 4, requires_grad=True)
    target = torch.randint(0, 4, (8,))
    again, _ = played(weighted, output, target, other)
    expected = torch.sigmoid(output).mean() * F.cross_entropy(other, target)
    assert torch.allclose(again, expected)


def test_random_numbers_of_a_loss_are_those_that_were_drawn() -> None:
    output = torch.zeros(4, requires_grad=True)
    again, _ = played(
        lambda o, t: (o + torch.randn_like(t)).square().mean(), output, output, output
    )
    same, _ = played(lambda o, t: (o + t).square().mean(), output, output, output)
    assert again > 0
    assert same == 0


def test_nothing_else_is_kept() -> None:
    tape, output = Tape(), torch.randn(3, requires_grad=True)
    with tape:
        torch.randn(100).sin()
        tape.note(nn.Identity(), (output,), {}, output)
        loss = output.sum()
    assert [entry.name for entry in leading_to(tape.entries, loss)] == ["Identity", "sum"]
