from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from benchmarks.peering import builtin_rules as rules
from benchmarks.peering import debugger
from benchmarks.peering.builtin_rules import RULES, Rule, Saved, by_unit
from benchmarks.peering.debugger import Debugger, DebuggerByDefault
from benchmarks.peering.watching import Watch

Steps = list[Saved]


def said(rule: Rule, steps: Steps) -> set[str]:
    """All that a rule objects to over some steps."""
    return {name for step in steps for name in rule.look(step)}


def steps(count: int, make: Callable[[int], dict[str, Any]]) -> Steps:
    return [Saved(step, **make(step)) for step in range(count)]


def grads(value: float) -> Steps:
    return [Saved(0, gradients={"a.weight": torch.full((4,), value)})]


def relus(dead: int) -> Steps:
    out = torch.ones(200, 4)
    out[1:, :dead] = 0.0
    return [Saved(0, relu_outputs={"act": out})]


def losses(values: list[float]) -> Steps:
    return steps(len(values), lambda i: {"loss": values[i]})


def weights(values: list[float], **more: Any) -> Steps:
    return steps(
        len(values), lambda i: {"weights": {"a.weight": torch.full((3,), values[i])}, **more}
    )


def inputs(one: float, other: float) -> Steps:
    made = {name: torch.tensor([-s, s]) for name, s in (("one", one), ("other", other))}
    return [Saved(0, relu_inputs=made)]


def labels(counts: list[int], wrong: float) -> Steps:
    """Labels by their counts, of which a share is taken for the next class."""
    true = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    guess = true.clone()
    for label, count in enumerate(counts):
        of_class = (true == label).nonzero().flatten()[: int(wrong * count)]
        guess[of_class] = (label + 1) % len(counts)
    scores = nn.functional.one_hot(guess, len(counts)).float()
    return [Saved(0, classes=[(scores, true)])]


def validated(train: float, validation: float) -> Steps:
    return [Saved(0, loss=train), Saved(1, loss=train, validation=[validation])]


def images(mean: float, count: int = 500) -> Steps:
    return [Saved(0, images=[torch.full((count, 1, 2, 2), mean)])]


def tokens(zeros: int) -> Steps:
    return [Saved(0, tokens={"embedding": (torch.arange(10) >= zeros).long()})]


def spread(width: float) -> Steps:
    part = {"a.weight": torch.linspace(-width, width, 101)}
    return [Saved(0, weights=part, gradients=part)]


CASES: list[tuple[type[Rule], Steps, set[str]]] = [
    (rules.VanishingGradient, grads(0.9e-7), {"a.weight"}),
    (rules.VanishingGradient, grads(1.1e-7), set()),
    (rules.ExplodingTensor, grads(float("inf")), {"a.weight"}),
    (rules.ExplodingTensor, grads(1e30), set()),
    (rules.ExplodingTensor, losses([1.0, float("nan")]), {""}),
    (rules.DeadRelu, relus(dead=3), {"act"}),
    (rules.DeadRelu, relus(dead=2), set()),
    (rules.SaturatedActivation, [Saved(0, tanh_inputs={"t": torch.full((9, 2), 9.6)})], {"t"}),
    (rules.SaturatedActivation, [Saved(0, tanh_inputs={"t": torch.full((9, 2), 9.4)})], set()),
    (
        rules.SaturatedActivation,
        [Saved(0, sigmoid_inputs={"s": torch.full((9, 2), 17.1), "t": torch.full((9, 2), -22.0)})],
        {"s"},
    ),
    (rules.PoorWeightInitialization, inputs(1.0, 3.2), {"one", "other"}),
    (rules.PoorWeightInitialization, inputs(1.0, 3.1), set()),
    (rules.PoorWeightInitialization, spread(0.0005), {"a.weight"}),
    (rules.PoorWeightInitialization, spread(0.0006), set()),
    (rules.PoorWeightInitialization, losses([1.0] * 6), {""}),
    (rules.PoorWeightInitialization, losses([1.0] * 5), set()),
    (rules.PoorWeightInitialization, [*losses([*range(10, 0, -1)]), *grads(0.0)], set()),
    (rules.WeightUpdateRatio, weights([1.0, 12.0]), {"a.weight"}),
    (rules.WeightUpdateRatio, weights([1.0, 10.0]), set()),
    (rules.WeightUpdateRatio, weights([1.0, 1.0]), {"a.weight"}),
    (rules.UnchangedTensor, weights([1.0, 1.0, 1.000001]), {"a.weight"}),
    (rules.UnchangedTensor, weights([1.0, 1.0, 1.001]), set()),
    (rules.UnchangedTensor, weights([1.0, 1.0]), set()),
    (rules.AllZero, weights([0.0]), {"a.weight"}),
    (rules.AllZero, weights([1.0], gradients={"a.weight": torch.zeros(3)}), {"a.weight"}),
    (rules.AllZero, weights([1.0], gradients={"a.weight": torch.eye(3)}), set()),
    (rules.LossNotDecreasing, losses([1.0] * 11), {""}),
    (rules.LossNotDecreasing, losses([1.0] * 10), set()),
    (rules.LossNotDecreasing, losses([1.0] * 10 + [0.99]), set()),
    (rules.Overfit, validated(1.0, 1.11), {""}),
    (rules.Overfit, validated(1.0, 1.09), set()),
    (rules.Overtraining, steps(11, lambda _: {"loss": 1.0, "validation": [1.0]}), {""}),
    (rules.Overtraining, steps(10, lambda _: {"loss": 1.0, "validation": [1.0]}), set()),
    (rules.Overtraining, losses([1.0] * 50), set()),
    (rules.ClassImbalance, labels([550, 50], wrong=0.0), {""}),
    (rules.ClassImbalance, labels([500, 50], wrong=0.0), set()),
    (rules.ClassImbalance, labels([300, 300], wrong=0.75), {""}),
    (rules.ClassImbalance, labels([300, 300], wrong=0.65), set()),
    (rules.ClassImbalance, labels([400, 10], wrong=0.0), set()),
    (rules.CheckInputImages, images(0.21), {""}),
    (rules.CheckInputImages, images(0.19), set()),
    (rules.CheckInputImages, images(0.9, count=499), set()),
    (rules.NLPSequenceRatio, tokens(zeros=6), {"embedding"}),
    (rules.NLPSequenceRatio, tokens(zeros=5), set()),
]


@pytest.mark.parametrize(("rule", "saved", "expected"), CASES)
def test_a_rule_fires_where_its_documentation_says_and_not_before(
    rule: type[Rule], saved: Steps, expected: set[str]
):
    assert said(rule(), saved) == expected


def test_every_rule_has_a_case_that_fires_and_one_that_does_not():
    for rule in RULES:
        cases = [bool(expected) for of, _, expected in CASES if of is rule]
        assert {True, False} == set(cases), rule.__name__


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((8, 3), (8, 3)), ((8, 3, 5, 5), (200, 3)), ((8, 7, 3), (56, 3)), ((3,), (1, 3))],
)
def test_a_unit_is_a_channel_of_images_and_a_feature_of_anything_else(
    shape: tuple[int, ...], expected: tuple[int, ...]
):
    assert by_unit(torch.zeros(shape)).shape == expected


def train(model: nn.Module, kind: type[Debugger], steps: int = 30) -> Debugger:
    torch.manual_seed(0)
    x, y = torch.randn(64, 4), torch.randint(0, 2, (64,))
    with Watch([kind]) as watch:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(steps):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    (peer,) = watch.peers
    assert isinstance(peer, Debugger)
    assert peer.failure == ""
    return peer


def body() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


def test_a_dead_layer_is_found_and_named_by_the_rules_that_look_at_it():
    model = body()
    first = model[0]
    assert isinstance(first, nn.Linear)
    nn.init.constant_(first.bias, -50.0)
    peer = train(model, Debugger)
    assert peer.alarms["DeadRelu"] == (0, {"1"})
    assert "0.weight" in peer.alarms["VanishingGradient"][1]
    assert "0.weight" in peer.alarms["UnchangedTensor"][1]
    assert "DeadRelu" not in train(body(), Debugger).alarms


def test_what_is_saved_every_500_steps_shows_the_first_step_only():
    model = body()
    first = model[0]
    assert isinstance(first, nn.Linear)
    nn.init.constant_(first.bias, -50.0)
    peer = train(model, DebuggerByDefault)
    assert "DeadRelu" in peer.alarms
    assert "UnchangedTensor" not in peer.alarms


def test_weights_are_those_with_that_word_in_their_names():
    model = body()
    saved = Saved(0)
    debugger._save(saved, model)
    assert saved.weights.keys() == {"0.weight", "2.weight"}
    assert saved.gradients == {}


def test_a_sparse_gradient_is_looked_at_as_a_dense_one():
    embedding = nn.Embedding(5, 2, sparse=True)
    embedding(torch.tensor([1])).sum().backward()
    saved = Saved(0)
    debugger._save(saved, embedding)
    grad: Tensor = saved.gradients["weight"]
    assert grad.tolist() == [[0, 0], [1, 1], [0, 0], [0, 0], [0, 0]]
