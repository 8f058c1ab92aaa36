"""Step numbers when several optimizers take turns."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.capture.watched import batch, mlp, train, watched
from traindx.capture.rounds import Rounds


def rounds_of(turns: str) -> list[str]:
    """The turns of each completed round, with the one that is pending at the end."""
    rounds, made, current = Rounds(), [], ""
    for name in turns:
        if rounds.repeats(name):
            made.append(current)
            current = ""
            rounds.end()
        current += name
        if rounds.took_turn(name):
            made.append(current)
            current = ""
            rounds.end()
    assert rounds.pending() == bool(current)
    return [*made, current] if current else made


def test_a_single_optimizer_makes_a_round_a_turn():
    assert rounds_of("AAAA") == ["A", "A", "A", "A"]


def test_two_that_take_turns_share_a_round_from_the_second_on():
    assert rounds_of("DGDGDGDG") == ["D", "G", "DG", "DG", "DG"]


def test_three_that_take_turns_share_a_round():
    assert rounds_of("ABC" * 4) == ["A", "B", "C", "ABC", "ABC", "ABC"]


def test_a_critic_of_five_turns_waits_in_vain_only_once():
    made = rounds_of("DDDDDG" * 4)
    assert "".join(made) == "DDDDDG" * 4
    assert all(sorted(set(turns)) == sorted(turns) for turns in made)


def test_phases_go_on_after_a_change():
    made = rounds_of("AAAABBBB")
    assert "".join(made) == "AAAABBBB"
    assert len(made) == 8


def test_one_that_stops_does_not_hold_up_the_other():
    made = rounds_of("DGDGDGDDDD")
    assert made == ["D", "G", "DG", "DG", "D", "D", "D", "D"]


def gan(steps: int, critic_turns: int = 1, every: int = 1):
    with watched(every=every) as recording:
        generator, critic = mlp(sizes=(4, 8, 6)), mlp(sizes=(6, 8, 1))
        of_generator = torch.optim.Adam(generator.parameters())
        of_critic = torch.optim.RMSprop(critic.parameters())
        for _ in range(steps):
            for _ in range(critic_turns):
                of_critic.zero_grad()
                critic(generator(torch.randn(5, 4)).detach()).mean().backward()
                of_critic.step()
            of_generator.zero_grad()
            (-critic(generator(torch.randn(5, 4))).mean()).backward()
            of_generator.step()
    return recording


def test_both_losses_of_a_gan_share_a_step():
    recording = gan(10)
    critic = recording.series("update.ratio", "0.weight", "critic")
    generator = recording.series("update.ratio", "0.weight", "generator")
    assert critic.steps.tolist() == [0, *range(2, 11)]
    assert generator.steps.tolist() == [*range(1, 11)]
    for series in recording.run.series("loss"):
        assert series.step == 10
    assert recording.run.steps == 11


def test_every_turn_of_a_critic_of_five_is_measured():
    recording = gan(4, critic_turns=5)
    assert len(recording.series("update.ratio", "0.weight", "critic")) == 20
    assert len(recording.series("update.ratio", "0.weight", "generator")) == 4


def test_a_rare_generator_is_measured_at_its_own_cadence():
    recording = gan(30, critic_turns=3, every=10)
    assert len(recording.series("update.ratio", "0.weight", "generator")) >= 3


def test_an_optimizer_that_stops_leaves_the_other_measured():
    with watched() as recording:
        first, second = mlp(), mlp()
        of_first = torch.optim.SGD(first.parameters(), lr=0.1)
        of_second = torch.optim.SGD(second.parameters(), lr=0.1)
        x, y = batch()
        for step in range(12):
            for _model, optimizer in ((first, of_first), (second, of_second))[: 1 + (step < 6)]:
                optimizer.zero_grad()
                F.cross_entropy(_model(x), y).backward()
                optimizer.step()
    assert len(recording.series("update.ratio", "0.weight", "first")) == 12
    assert len(recording.series("update.ratio", "0.weight", "second")) == 6


def test_two_optimizers_of_one_model_after_one_backward_share_a_step():
    with watched() as recording:
        net = mlp()
        of_body = torch.optim.SGD(net[0].parameters(), lr=0.1)
        of_head = torch.optim.Adam(net[2].parameters())
        x, y = batch()
        for _ in range(5):
            of_body.zero_grad()
            of_head.zero_grad()
            F.cross_entropy(net(x), y).backward()
            of_body.step()
            of_head.step()
    assert recording.run.steps == 6
    assert len(recording.series("update.ratio", "0.weight")) == 5
    assert len(recording.series("update.ratio", "2.weight")) == 5
    assert len(recording.values("loss")) == 5


def test_a_new_optimizer_of_the_same_kind_gets_a_name_of_its_own():
    with watched() as recording:
        net = mlp()
        train(net, steps=3)
        train(net, steps=3)
    assert set(recording.run.optimizers) == {"SGD", "SGD#2"}
    assert recording.run.steps == 6


def test_every_loss_of_models_trained_one_after_another_is_noted_apart():
    losses: list[float] = []
    with watched() as recording:
        for fold in range(3):
            torch.manual_seed(fold)
            net = mlp()
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            for step in range(4):
                optimizer.zero_grad()
                loss = F.cross_entropy(net(batch()[0]), batch()[1]) * (1 + step)
                loss.backward()
                losses.append(loss.item())
                optimizer.step()
    noted = sorted(
        (step, value) for series in recording.run.series("loss") for step, value in series
    )
    assert [value for _, value in noted] == losses


def test_a_program_that_makes_an_optimizer_for_every_task_is_not_measured_at_each_step():
    with watched(every=None, budget=1.0) as recording:
        net = mlp()
        for _ in range(60):
            train(net, steps=2)
    assert recording.header["measured_steps"] < 45
    assert len(recording.values("loss")) == recording.run.steps
