"""Each rule on real training: a fault that fires it, and a near miss, one change away.

The faults are written as users write them; nothing here is recorded by hand.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import traindx
from traindx.findings import Finding, Severity
from traindx.report import story

Training = Callable[[], None]


@pytest.fixture
def findings(tmp_path: Path) -> Callable[[Training], list[Finding]]:
    """Runs a training watched; gives its active findings, causes before what they explain."""

    def run(training: Training) -> list[Finding]:
        torch.manual_seed(0)
        with traindx.watch(name="training", folder=tmp_path) as session:
            training()
        verdict = session.run.verdict
        assert verdict is not None
        assert [it for it in verdict.not_evaluated if "Error" in it.reason] == []
        return [finding for finding in verdict.findings if finding.active]

    return run


def problem(features: int = 20) -> tuple[Tensor, Tensor]:
    """Inputs and one of three classes, linearly separable."""
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(512, features, generator=generator)
    return inputs, (inputs @ torch.randn(features, 3, generator=generator)).argmax(1)


def fit(
    net: nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    steps: int = 90,
    each: Callable[[int], object] = lambda _step: None,
    batch: Callable[[int], tuple[Tensor, Tensor]] | None = None,
    clear_every: int = 1,
) -> None:
    """An ordinary loop; `each` runs before every step, such as an evaluation."""
    inputs, labels = problem()
    for step in range(steps):
        each(step)
        picked = torch.arange(step * 64, step * 64 + 64) % len(inputs)
        x, y = batch(step) if batch else (inputs[picked], labels[picked])
        if clear_every and step % clear_every == 0:
            optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        if clear_every < 2 or step % clear_every == clear_every - 1:
            optimizer.step()


def sgd(net: nn.Module, lr: float = 0.1) -> torch.optim.Optimizer:
    return torch.optim.SGD(net.parameters(), lr=lr)


def evaluate(net: nn.Module, *, back_to_training: bool = True) -> None:
    net.eval()
    with torch.no_grad():
        net(problem()[0])
    if back_to_training:
        net.train()


def mlp(norm: bool = False, momentum: float | None = 0.1) -> nn.Sequential:
    middle = [nn.BatchNorm1d(32, momentum=momentum)] if norm else []
    return nn.Sequential(nn.Linear(20, 32), *middle, nn.ReLU(), nn.Linear(32, 3))


def codes(found: list[Finding]) -> list[str]:
    return [finding.code for finding in found]


# -- O003 ------------------------------------------------------------------------------------------


def test_an_optimizer_of_a_model_that_was_copied_afterwards_fires_o003(findings):
    def training():
        net = mlp()
        optimizer = sgd(net)
        net = copy.deepcopy(net)
        fit(net, optimizer)

    (finding, *_) = findings(training)
    assert finding.code == "O003"
    assert finding.severity is Severity.ERROR


def test_a_layer_replaced_after_the_optimizer_was_built_fires_o003(findings):
    def training():
        net = mlp()
        optimizer = sgd(net)
        net[2] = nn.Linear(32, 3)
        fit(net, optimizer)

    (finding, *_) = findings(training)
    assert finding.code == "O003"
    assert finding.evidence.site.fqn == "2.weight"


def test_an_optimizer_of_a_copied_model_fires_o003_though_the_original_lives_on(findings):
    def training():
        net = mlp()
        optimizer = sgd(net)
        original = net
        net = copy.deepcopy(net)
        fit(net, optimizer)
        assert original is not net

    (finding, *_) = findings(training)
    assert finding.code == "O003"


def test_a_head_trained_alone_on_a_backbone_that_is_not_frozen_is_no_o003(findings):
    def training():
        net = mlp()
        fit(net, sgd(net[2]))

    assert findings(training) == []


# -- G003 ------------------------------------------------------------------------------------------


class Cut(nn.Module):
    """An encoder and a head, with something done to the code between them."""

    def __init__(self, between: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.encoder = nn.Linear(20, 16)
        self.head = nn.Linear(16, 3)
        self.between = between

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.between(torch.relu(self.encoder(x))))


def test_a_graph_cut_between_encoder_and_loss_fires_g003_as_an_error(findings):
    def training():
        net = Cut(lambda code: code.detach())
        fit(net, sgd(net))

    (finding,) = findings(training)
    assert (finding.code, finding.severity) == ("G003", Severity.ERROR)
    assert finding.evidence.site == ("net", "encoder")


class Outgrown(nn.Module):
    """A model with a head that its forward no longer calls."""

    def __init__(self) -> None:
        super().__init__()
        self.body = mlp()
        self.auxiliary = nn.Linear(32, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x)


def test_a_branch_that_is_never_called_fires_g003_as_a_warning(findings):
    def training():
        net = Outgrown()
        fit(net, sgd(net))

    (finding,) = findings(training)
    assert (finding.code, finding.severity) == ("G003", Severity.WARNING)
    assert finding.evidence.site.fqn == "auxiliary"


def test_a_frozen_encoder_is_no_g003(findings):
    def training():
        net = Cut(lambda code: code)
        net.encoder.requires_grad_(False)
        fit(net, sgd(net))

    assert findings(training) == []


# -- G006 ------------------------------------------------------------------------------------------


def test_gradients_that_are_never_cleared_fire_g006(findings):
    def training():
        net = mlp()
        fit(net, sgd(net, lr=1e-3), clear_every=0)

    assert codes(findings(training)) == ["G006"]


def test_gradients_cleared_by_their_data_are_no_g006(findings):
    def training():
        net = mlp()

        def clear(_step: int) -> None:
            for param in net.parameters():
                if param.grad is not None:
                    param.grad.data.zero_()

        fit(net, sgd(net), each=clear, clear_every=0)

    assert findings(training) == []


def test_gradients_cleared_once_in_sixteen_steps_fire_g006(findings):
    def training():
        net = mlp()
        optimizer = sgd(net, lr=1e-3)

        def clear(step: int) -> None:
            if step % 16 == 0:
                optimizer.zero_grad()

        fit(net, optimizer, steps=200, each=clear, clear_every=0)

    assert codes(findings(training)) == ["G006"]


def test_gradients_that_are_cleared_at_every_fourth_step_fire_g006(findings):
    def training():
        net = mlp()
        optimizer = sgd(net, lr=1e-3)
        fit(net, optimizer, clear_every=0, each=lambda step: step % 4 or optimizer.zero_grad())

    assert codes(findings(training)) == ["G006"]


def test_gradients_that_are_cleared_once_an_epoch_fire_g006(findings):
    def training():
        net = mlp()
        optimizer = sgd(net, lr=1e-4)
        fit(
            net,
            optimizer,
            steps=400,
            clear_every=0,
            each=lambda step: step % 50 or optimizer.zero_grad(),
        )

    assert codes(findings(training)) == ["G006"]


def test_accumulation_over_four_batches_is_no_g006(findings):
    def training():
        net = mlp()
        fit(net, sgd(net), steps=240, clear_every=4)

    assert findings(training) == []


# -- N004 ------------------------------------------------------------------------------------------


def test_a_model_left_in_eval_mode_after_its_first_evaluation_fires_n004(findings):
    def training():
        net = mlp(norm=True)
        first = 15

        def after_an_epoch(step: int) -> None:
            if step == first:
                evaluate(net, back_to_training=False)

        fit(net, sgd(net), each=after_an_epoch)

    (finding, *_) = findings(training)
    assert (finding.code, finding.severity) == ("N004", Severity.ERROR)


def test_a_pretrained_norm_kept_in_eval_mode_from_the_start_is_no_n004(findings):
    def training():
        net = mlp(norm=True)
        with torch.no_grad():
            for _ in range(40):
                net(problem()[0])  # statistics as a checkpoint would bring them
        net[1].eval()
        fit(net, sgd(net))

    assert findings(training) == []


def test_statistics_loaded_without_their_counter_and_kept_are_no_n004(findings):
    def training():
        net = mlp(norm=True)
        net.load_state_dict(
            {"1.running_mean": torch.randn(32), "1.running_var": torch.rand(32) + 1}, strict=False
        )
        net[1].eval()
        fit(net, sgd(net))

    assert findings(training) == []


def test_statistics_of_a_checkpoint_without_counters_are_no_n004(findings):
    def training():
        trained = mlp(norm=True)
        with torch.no_grad():
            for _ in range(40):
                trained(problem()[0])
        old = {k: v for k, v in trained.state_dict().items() if "num_batches" not in k}
        net = mlp(norm=True)
        net.load_state_dict(old, strict=False)
        net.eval()
        fit(net, sgd(net))

    assert findings(training) == []


def test_a_model_put_in_eval_mode_before_training_fires_n004(findings):
    def training():
        net = mlp(norm=True).eval()
        fit(net, sgd(net))

    assert codes(findings(training)) == ["N004"]


# -- N001, N002 ------------------------------------------------------------------------------------


def unlike_batches(step: int) -> tuple[Tensor, Tensor]:
    """Every batch comes from one of two domains, of which one is shifted."""
    inputs, labels = problem()
    picked = torch.arange(step * 64, step * 64 + 64) % len(inputs)
    return inputs[picked] + 4.0 * (step // 3 % 2), labels[picked]


def mixed_batches(step: int) -> tuple[Tensor, Tensor]:
    """Both domains, half and half in every batch."""
    inputs, labels = problem()
    picked = torch.arange(step * 64, step * 64 + 64) % len(inputs)
    return inputs[picked] + 4.0 * (torch.arange(64) % 2)[:, None], labels[picked]


def trained_on(batch: Callable[[int], tuple[Tensor, Tensor]], momentum: float) -> Training:
    def training():
        net = mlp(norm=True, momentum=momentum)
        fit(net, sgd(net, lr=0.01), steps=300, batch=batch)
        evaluate(net)

    return training


def test_domains_in_separate_batches_fire_n001(findings):
    (finding, *_) = findings(trained_on(unlike_batches, momentum=0.1))
    assert finding.code == "N001"
    assert finding.evidence.numbers["gap"] > 0.5


def test_the_same_domains_in_every_batch_are_no_n001(findings):
    assert findings(trained_on(mixed_batches, momentum=0.1)) == []


def test_a_momentum_of_one_thousandth_fires_n002(findings):
    (finding,) = findings(trained_on(mixed_batches, momentum=0.001))
    assert (finding.code, finding.severity) == ("N002", Severity.ERROR)
    assert finding.evidence.numbers["initial_weight"] == pytest.approx(0.999**300, rel=1e-3)


def test_a_cumulative_average_is_no_n002(findings):
    def training():
        net = mlp(norm=True, momentum=None)
        fit(net, sgd(net, lr=0.01), each=lambda step: step == 45 and evaluate(net))
        evaluate(net)

    assert findings(training) == []


# -- G001, F005 ------------------------------------------------------------------------------------


def deep(activation: type[nn.Module], depth: int, gain: float, norm: bool = False) -> nn.Sequential:
    layers: list[nn.Module] = []
    for i in range(depth):
        linear = nn.Linear(20 if i == 0 else 32, 32)
        nn.init.xavier_normal_(linear.weight, gain)
        layers += [linear, *([nn.BatchNorm1d(32)] if norm else []), activation()]
    return nn.Sequential(*layers, nn.Linear(32, 3))


def small_batch(step: int) -> tuple[Tensor, Tensor]:
    """Too few samples to say how much of the output depends on them."""
    inputs, labels = problem()
    picked = torch.arange(step * 16, step * 16 + 16) % len(inputs)
    return inputs[picked], labels[picked]


def test_a_deep_tanh_network_with_small_weights_fires_g001(findings):
    def training():
        net = deep(nn.Tanh, 12, gain=0.3)
        fit(net, sgd(net), batch=small_batch)

    assert codes(findings(training)) == ["G001"]


def test_a_very_deep_tanh_network_with_its_default_weights_fires_g001(findings):
    def training():
        layers = [layer for _ in range(30) for layer in (nn.Linear(20, 20), nn.Tanh())]
        net = nn.Sequential(*layers, nn.Linear(20, 3))
        fit(net, sgd(net), batch=small_batch)

    assert codes(findings(training)) == ["G001"]


def test_the_same_network_with_its_proper_gain_is_no_g001(findings):
    def training():
        net = deep(nn.Tanh, 12, gain=5 / 3)
        fit(net, sgd(net))

    assert findings(training) == []


def test_twelve_sigmoids_fire_f005_which_explains_the_vanishing_gradient(findings):
    def training():
        net = deep(nn.Sigmoid, 12, gain=1.0)
        fit(net, sgd(net))

    cause, *symptoms = findings(training)
    assert cause.code == "F005"
    assert codes(symptoms) == ["F001", "G001"]
    assert all(cause.id in symptom.caused_by for symptom in symptoms)
    assert cause.evidence.numbers["sigmoids"] == 12


def test_twelve_sigmoids_with_normalization_between_them_are_no_f005(findings):
    def training():
        net = deep(nn.Sigmoid, 12, gain=1.0, norm=True)
        fit(net, sgd(net))

    assert findings(training) == []


def test_thirty_tanh_layers_as_torch_initializes_them_fire_g001(findings):
    """A slow decay, a quarter of a decade a layer, that adds up to nothing."""

    def training():
        layers = [part for _ in range(30) for part in (nn.Linear(20, 20), nn.Tanh())]
        net = nn.Sequential(*layers, nn.Linear(20, 3))
        fit(net, sgd(net))

    cause, finding = findings(training)
    assert (cause.code, finding.code, finding.caused_by) == ("F001", "G001", (cause.id,))
    assert finding.evidence.numbers["slope"] < finding.thresholds["slope"]


def test_four_hundred_layers_whose_gradients_underflow_fire_g001(findings):
    def training():
        layers = [part for _ in range(400) for part in (nn.Linear(20, 20), nn.Tanh())]
        net = nn.Sequential(*layers, nn.Linear(20, 3))
        fit(net, sgd(net), steps=20)

    assert codes(findings(training)) == ["F001", "G001"]


class Tripled(nn.Module):
    """A sigmoid layer whose output is used three times."""

    def __init__(self, features: int, gain: float) -> None:
        super().__init__()
        self.linear = nn.Linear(features, 32)
        nn.init.xavier_normal_(self.linear.weight, gain)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.sigmoid(self.linear(x))
        return h + h + h


def test_a_fan_out_that_makes_up_for_the_sigmoids_is_no_f005(findings):
    def training():
        net = nn.Sequential(*(Tripled(20 if i == 0 else 32, 1.0) for i in range(12)))
        net.append(nn.Linear(32, 3))
        fit(net, sgd(net))

    assert codes(findings(training)) == ["F001", "G001"]


def test_gradients_that_are_never_finite_leave_g001_and_f005_unjudged(tmp_path: Path):
    with traindx.watch(name="training", folder=tmp_path) as session:
        net = deep(nn.Sigmoid, 12, gain=1.0)
        with torch.no_grad():
            next(net.parameters()).fill_(torch.nan)
        fit(net, sgd(net))
    assert session.run.verdict is not None
    reasons = {it.code: it.reason for it in session.run.verdict.not_evaluated}
    assert reasons["G001"] == reasons["F005"] == "the gradients of net are not finite"
    assert story.headline(session.run).startswith("1 error in ")


# -- F001 ------------------------------------------------------------------------------------------


class Residual(nn.Module):
    """A block whose branch starts at zero."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(20, 20)
        self.outer = nn.Linear(20, 20)
        nn.init.zeros_(self.outer.weight)
        nn.init.zeros_(self.outer.bias)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.outer(torch.relu(self.inner(x)))


def deep_relu(depth: int) -> nn.Sequential:
    """As torch initializes it."""
    layers = [part for _ in range(depth) for part in (nn.Linear(20, 20), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear(20, 3))


def test_twenty_relu_layers_as_torch_initializes_them_fire_f001(findings):
    def training():
        net = deep_relu(20)
        fit(net, sgd(net))

    cause, *symptoms = findings(training)
    assert (cause.code, cause.severity, cause.evidence.site.fqn) == ("F001", Severity.ERROR, "0")
    assert all(symptom.caused_by == (cause.id,) for symptom in symptoms)


def test_the_repair_that_f001_names_repairs_it(findings):
    def training():
        net = deep_relu(20)
        fix = findings_of_f001[0].evidence.fix
        exec(fix, {"torch": torch, "net": net})
        fit(net, sgd(net))

    def broken():
        net = deep_relu(20)
        fit(net, sgd(net), steps=5)

    findings_of_f001 = findings(broken)
    assert "F001" not in codes(findings(training))


def test_few_relu_layers_are_no_f001(findings):
    def training():
        net = deep_relu(4)
        fit(net, sgd(net))

    assert findings(training) == []


def test_inputs_that_are_all_alike_are_no_f001(findings):
    """A regression to what one and the same state is worth."""

    def training():
        net = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
        net.append(nn.Linear(32, 3))
        labels = torch.arange(64) % 3
        fit(net, sgd(net, lr=0.01), batch=lambda _step: (torch.ones(64, 20), labels))

    assert "F001" not in codes(findings(training))


def test_residual_branches_and_a_head_that_start_at_zero_are_no_f001(findings):
    def training():
        head = nn.Linear(20, 3)
        nn.init.zeros_(head.weight)
        nn.init.zeros_(head.bias)
        net = nn.Sequential(nn.Linear(20, 20), *(Residual() for _ in range(4)), head)
        fit(net, sgd(net))

    assert findings(training) == []


class Placed(nn.Module):
    """A sequence model with learned positions and a token of its own, the same for every sample."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(4, 16)
        self.position = nn.Embedding(6, 16)
        self.token = nn.Parameter(torch.zeros(1, 1, 16))
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.head = nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        places = torch.arange(6).expand(len(x), 6)
        h = torch.cat((self.token.expand(len(x), 1, 16), self.embed(x.view(-1, 5, 4))), 1)
        return self.head(self.layer(h + self.position(places))[:, 0])


def test_positions_and_learned_tokens_are_no_f001(findings):
    def training():
        net = Placed()
        fit(net, torch.optim.Adam(net.parameters(), lr=1e-3))

    assert findings(training) == []


# -- F003 ------------------------------------------------------------------------------------------


def large_batch(step: int) -> tuple[Tensor, Tensor]:
    inputs, labels = problem()
    picked = torch.arange(step * 256, step * 256 + 256) % len(inputs)
    return inputs[picked], labels[picked]


def biased(bias: float) -> nn.Sequential:
    second = nn.Linear(64, 64)
    nn.init.constant_(second.bias, bias)
    return nn.Sequential(nn.Linear(20, 64), nn.ReLU(), second, nn.ReLU(), nn.Linear(64, 3))


def test_biases_far_below_zero_fire_f003_as_an_error(findings):
    def training():
        net = biased(-4.0)
        fit(net, sgd(net), batch=large_batch)

    cause, *symptoms = findings(training)
    assert (cause.code, cause.severity, cause.evidence.site.fqn) == ("F003", Severity.ERROR, "3")
    assert all(symptom.caused_by == (cause.id,) for symptom in symptoms)


def test_steps_that_are_far_too_large_fire_f003_which_the_rate_explains(findings):
    def training():
        net = biased(0.0)
        fit(net, sgd(net, lr=10.0), steps=240, batch=large_batch)

    found = findings(training)
    rate = next(finding for finding in found if finding.code == "O001")
    dead = next(finding for finding in found if finding.code == "F003")
    assert dead.caused_by == (rate.id,)
    assert dead.evidence.numbers["first"] < 0.1 < 0.4 < dead.evidence.numbers["dead"]


def test_units_that_die_while_the_model_learns_all_the_same_are_no_f003(findings):
    def training():
        net = biased(0.0)
        fit(net, torch.optim.Adam(net.parameters(), lr=0.1), steps=240, batch=large_batch)

    assert "F003" not in codes(findings(training))


def test_units_that_are_dead_from_the_start_are_no_f003(findings):
    """Half of a layer never speaks; the other half learns, and no more die."""

    def training():
        net = biased(0.0)
        with torch.no_grad():
            net.get_parameter("2.bias")[:32] = -8.0
        fit(net, sgd(net), batch=large_batch)

    assert "F003" not in codes(findings(training))


def test_sparse_units_are_no_f003(findings):
    """Four in five of their values are zero, but nearly every unit is active for some sample."""

    def training():
        net = biased(-0.2)
        fit(net, sgd(net), batch=large_batch)

    assert findings(training) == []


# -- N003 ------------------------------------------------------------------------------------------


def batches_of(size: int) -> Callable[[int], tuple[Tensor, Tensor]]:
    def batch(_step: int) -> tuple[Tensor, Tensor]:
        inputs, labels = problem()
        picked = torch.randint(len(inputs), (size,))
        return inputs[picked], labels[picked]

    return batch


def test_batches_of_two_fire_n003_as_an_error(findings):
    def training():
        net = mlp(norm=True)
        fit(net, sgd(net, lr=0.01), steps=250, batch=batches_of(2))

    (finding,) = findings(training)
    assert (finding.code, finding.severity) == ("N003", Severity.ERROR)
    assert finding.evidence.site.fqn == "1"
    assert finding.evidence.numbers["size"] == 2


def test_accumulating_gradients_over_small_batches_fires_n003_all_the_same(findings):
    def training():
        net = mlp(norm=True)
        fit(net, sgd(net, lr=0.01), steps=800, batch=batches_of(6), clear_every=4)

    (finding,) = findings(training)
    assert (finding.code, finding.severity) == ("N003", Severity.WARNING)
    assert finding.evidence.numbers["size"] == 6


def test_the_repair_that_n003_names_repairs_it(findings):
    def training(fix: str = ""):
        net = mlp(norm=True)
        exec(fix, {"torch": torch, "net": net})
        fit(net, sgd(net, lr=0.01), steps=250, batch=batches_of(4))

    (finding,) = findings(training)
    assert findings(lambda: training(finding.evidence.fix)) == []


def test_two_images_with_many_positions_are_no_n003(findings):
    def training():
        net = nn.Sequential(nn.Unflatten(1, (1, 4, 5)), nn.Conv2d(1, 8, 3, padding=1))
        net.extend([nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(160, 3)])
        fit(net, sgd(net, lr=0.01), steps=250, batch=batches_of(2))

    assert findings(training) == []


def test_a_small_last_batch_of_each_epoch_is_no_n003(findings):
    def training():
        net = mlp(norm=True)
        small, large = batches_of(2), batches_of(64)
        fit(net, sgd(net), steps=250, batch=lambda step: (large, large, small)[step % 3](step))

    assert findings(training) == []


def test_frozen_statistics_in_small_batches_are_no_n003(findings):
    def training():
        net = mlp(norm=True)
        fit(net, sgd(net))
        net[1].requires_grad_(False).eval()
        fit(net, sgd(net, lr=0.01), steps=250, batch=batches_of(2))

    assert "N003" not in codes(findings(training))
