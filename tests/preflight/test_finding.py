"""The model, the batch, the loss and the optimizer are found in a training that runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from tests.preflight.cases import classifier, labelled
from traindx.preflight.case import Case
from traindx.preflight.finding import Finder
from traindx.preflight.isolation import isolated


class Stop(BaseException):
    """Ends a training where its case was found."""


def found(train: Callable[[], object]) -> Case:
    """The case of a training; that it was stopped there is asserted."""
    cases: list[Case] = []

    def take(case: Case) -> None:
        cases.append(case)
        raise Stop

    finder = Finder(take)
    finder.arm()
    try:
        with pytest.raises(Stop):
            train()
    finally:
        finder.disarm()
    assert torch.overrides._get_current_function_mode_stack() == []  # pyright: ignore
    return cases[0]


@dataclass
class Noted:
    """What a training did, to compare with what was found."""

    loss: float = 0.0


def agrees(case: Case, noted: Noted) -> None:
    """The loss found, run again, is the loss of the training."""
    with isolated(case):
        assert case.loss().item() == noted.loss


def test_a_plain_training_is_found() -> None:
    noted = Noted()

    def train() -> None:
        model, (x, y) = classifier(), labelled()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loss = nn.CrossEntropyLoss()(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        noted.loss = loss.item()
        optimizer.step()

    case = found(train)
    agrees(case, noted)
    assert (case.name, case.batch_size) == ("model", 32)
    assert isinstance(case.optimizer, torch.optim.SGD)
    (compared,) = case.compared(case.output())
    assert compared.function == "cross_entropy"
    assert torch.equal(compared.target, labelled()[1])
    assert [tuple(t.shape) for t in case.targets] == [(32,)]
    assert case.subset(5).loss().isfinite()


def test_several_terms_and_a_penalty_are_found() -> None:
    noted = Noted()

    def train() -> None:
        net, (x, y) = classifier(), labelled()
        optimizer = torch.optim.Adam(net.parameters())
        out = net(x)
        loss = F.cross_entropy(out, y, label_smoothing=0.1)
        loss = loss + 1e-3 * sum(p.square().sum() for p in net.parameters())
        loss = loss + 0.01 * out.abs().mean()
        (loss / 4).backward()
        noted.loss = (loss / 4).item()
        optimizer.step()

    case = found(train)
    agrees(case, noted)
    with isolated(case):
        before = case.loss()
        with torch.no_grad():
            for param in case.model.parameters():
                param.zero_()
        assert case.loss().item() < before.item()  # the penalty is of the parameters as they are
    wide = case.double()
    assert wide.loss().dtype == torch.float64
    assert wide.loss().item() == pytest.approx(noted.loss, rel=1e-5)


class Outputs(dict[str, Tensor]):
    """An output with its loss in it, as many libraries have."""

    @property
    def loss(self) -> Tensor:
        """Its loss."""
        return self["loss"]


class WithLoss(nn.Module):
    """A model that is given its labels, and computes its loss."""

    def __init__(self) -> None:
        super().__init__()
        self.body = classifier()

    def forward(self, features: Tensor, labels: Tensor | None = None) -> Outputs:
        logits = self.body(features)
        loss = F.cross_entropy(logits, labels) if labels is not None else logits.sum()
        return Outputs(loss=loss, logits=logits)


def test_a_loss_in_the_model_is_found() -> None:
    noted = Noted()

    def train() -> None:
        model, (x, y) = WithLoss(), labelled()
        optimizer = torch.optim.AdamW(model.parameters())
        batch = {"features": x, "labels": y}
        outputs = model(**batch)
        outputs.loss.backward()
        noted.loss = outputs.loss.item()
        optimizer.step()

    case = found(train)
    agrees(case, noted)
    assert set(case.kwargs) == {"features", "labels"}
    assert [one.function for one in case.compared(case.output())] == ["cross_entropy"]
    assert case.subset(3).loss().isfinite()


def test_two_models_in_a_row_are_found_as_one() -> None:
    noted = Noted()

    def train() -> None:
        encoder, decoder = classifier(classes=4), classifier(features=4, classes=20)
        x, _ = labelled()
        optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()])
        code = encoder(x)
        loss = F.mse_loss(decoder(torch.tanh(code)), x) + 1e-3 * code.square().mean()
        loss.backward()
        noted.loss = loss.item()
        optimizer.step()

    case = found(train)
    agrees(case, noted)
    assert case.name == "encoder+decoder"
    assert {fqn.partition(".")[0] for fqn, _ in case.trainable()} == {"encoder", "decoder"}
    loss = case.double().loss()
    assert loss.dtype == torch.float64
    assert case.subset(2).loss().isfinite()


def test_twins_are_found_with_both_their_inputs() -> None:
    noted = Noted()

    def train() -> None:
        net, (x, _) = classifier(classes=4), labelled()
        other = x.flip(0)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        distance = (net(x) - net(other)).square().sum(1)
        loss = distance.mean()
        loss.backward()
        noted.loss = loss.item()
        optimizer.step()

    case = found(train)
    agrees(case, noted)
    assert len(case.args) == 2
    with isolated(case):
        case.loss().backward()
        assert all(param.grad is not None for param in case.model.parameters())


def test_a_model_used_by_its_parts_is_found_whole() -> None:
    class Autoencoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.decoder = classifier(classes=4), classifier(features=4, classes=20)

    def train() -> None:
        vae, (x, _) = Autoencoder(), labelled()
        optimizer = torch.optim.Adam(vae.parameters())
        F.mse_loss(vae.decoder(vae.encoder(x)), x).backward()
        optimizer.step()

    case = found(train)
    assert (case.name, type(case.model).__name__) == ("vae", "Autoencoder")


@pytest.mark.parametrize("closure", [True, False])
def test_a_step_with_a_closure_is_found(closure: bool) -> None:
    def train() -> None:
        model, (x, y) = classifier(), labelled()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def compute() -> float:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            return loss.item()

        if closure:
            optimizer.step(compute)
        compute()
        optimizer.step()

    assert found(train).loss_found is not None


def in_place(module: nn.Module) -> None:
    with torch.no_grad():
        for param in module.parameters():
            param -= 0.1 * cast(Any, param.grad)
            param.grad = None


def through_data(module: nn.Module) -> None:
    for param in module.parameters():
        param.data -= 0.1 * cast(Any, param.grad)
        param.grad = None


def by_new_parameters(module: nn.Module) -> None:
    for part in module.modules():
        for name, param in [*part.named_parameters(recurse=False)]:
            setattr(part, name, nn.Parameter(param.detach() - 0.1 * cast(Any, param.grad)))


@pytest.mark.parametrize("update", [in_place, through_data, by_new_parameters])
def test_an_update_by_hand_is_found_at_the_next_backward(
    update: Callable[[nn.Module], None],
) -> None:
    def train() -> None:
        model, (x, y) = classifier(), labelled()
        for _ in range(3):
            F.cross_entropy(model(x), y).backward()
            update(model)

    case = found(train)
    assert case.optimizer is None
    assert case.loss_found is not None


def test_loaders_are_found_by_what_they_are_for() -> None:
    def train() -> None:
        model = classifier()
        train_loader = DataLoader(TensorDataset(*labelled()), batch_size=8)
        val_loader = DataLoader(TensorDataset(*labelled()), batch_size=16)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with torch.no_grad():
            for x, _ in val_loader:
                model(x)
        for x, y in train_loader:
            F.cross_entropy(model(x), y).backward()
            optimizer.step()

    case = found(train)
    assert case.loaders.training.batch_size == 8
    assert list(case.loaders.others) == ["val_loader"]


def test_an_input_that_the_model_changes_is_found_as_it_was() -> None:
    class Changing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = classifier()

        def forward(self, x: Tensor) -> Tensor:
            x.mul_(2)
            return self.body(x)

    def train() -> None:
        model, (x, y) = Changing(), labelled()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    assert torch.equal(found(train).args[0], labelled()[0])


def test_autocast_is_part_of_the_case() -> None:
    noted = Noted()

    def train() -> None:
        model, (x, y) = classifier(), labelled()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x), y)
        loss.backward()
        noted.loss = loss.item()
        optimizer.step()

    case = found(train)
    agrees(case, noted)
    assert case.double().loss().dtype == torch.float64


def test_the_scale_of_a_scaler_is_divided_out() -> None:
    noted = Noted()

    def train() -> None:
        model, (x, y) = classifier(), labelled()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        loss = F.cross_entropy(model(x), y)
        noted.loss = loss.item()
        scaler.scale(loss).backward()
        scaler.step(optimizer)

    agrees(found(train), noted)


def test_the_discriminator_of_two_players_is_found_alone() -> None:
    def train() -> None:
        g, d = nn.Linear(3, 20), classifier(classes=1)
        optimizer = torch.optim.Adam(d.parameters())
        real, fake = labelled()[0], g(torch.randn(32, 3))
        ones = torch.ones(32, 1)
        loss = F.binary_cross_entropy_with_logits(d(real), ones)
        loss = loss + F.binary_cross_entropy_with_logits(d(fake.detach()), 0 * ones)
        loss.backward()
        optimizer.step()

    case = found(train)
    assert case.name == "d"
    assert len(case.args) == 2


def test_a_loss_out_of_sight_is_said() -> None:
    def train() -> None:
        model, (x, y) = classifier(), labelled()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        losses = F.cross_entropy(model(x), y, reduction="none")
        losses.backward(torch.ones(32))
        optimizer.step()

    case = found(train)
    assert case.loss_found is None
    assert case.why_no_loss == "`backward` was given no single number"


def test_an_output_that_is_a_distribution_is_found_with_its_loss() -> None:
    noted = Noted()

    class Density(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight, self.place = nn.Linear(20, 3), nn.Linear(20, 3)

        def forward(self, x: Tensor) -> Any:
            parts = torch.distributions.Normal(self.place(x), 1.0)
            weights = torch.distributions.Categorical(logits=self.weight(x))
            return torch.distributions.MixtureSameFamily(weights, parts)

    def train() -> None:
        torch.manual_seed(0)
        net, (x, y) = Density(), labelled()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        found = net(x)
        loss = -found.log_prob(y.float()).mean() - 0.1 * found.component_distribution.mean.std()
        loss.backward()
        noted.loss = loss.item()
        optimizer.step()

    case = found(train)
    assert case.batch_size == 32
    agrees(case, noted)


def test_a_model_that_is_called_with_other_weights_has_no_loss_to_play_again() -> None:
    def train() -> None:
        net, (x, y) = classifier(), labelled()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        own: dict[str, Tensor] = dict(net.named_parameters())
        inner = F.cross_entropy(torch.func.functional_call(net, own, (x,)), y)
        grads = torch.autograd.grad(inner, [*own.values()], create_graph=True)
        fast = {name: p - g for (name, p), g in zip(own.items(), grads, strict=True)}
        F.cross_entropy(torch.func.functional_call(net, fast, (x,)), y).backward()
        optimizer.step()

    case = found(train)
    assert case.loss_found is None
    assert case.why_no_loss == "the model is called with other weights than its own"
