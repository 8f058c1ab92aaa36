"""Which models are found, in whatever way a script builds, holds, copies and calls them."""

from __future__ import annotations

import copy
import io
import pickle

import torch
import torch.nn.functional as F
from torch import nn

from tests.capture.watched import batch, mlp, train, watched


def test_a_model_is_named_by_its_variable():
    with watched() as recording:
        classifier = mlp()
        train(classifier)
    assert recording.models == {"classifier"}
    assert recording.model().kind == "Sequential"


def test_a_model_built_before_watching_is_found_by_its_call():
    early = mlp()
    with watched() as recording:
        train(early)
    assert recording.models == {"early"}
    assert recording.sites("grad.l2") == {"0.weight", "0.bias", "2.weight", "2.bias"}


def test_a_model_is_named_by_the_attribute_of_a_plain_trainer():
    class Trainer:
        def __init__(self):
            self.net = mlp()
            self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

        def fit(self):
            x, y = batch()
            for _ in range(2):
                self.optimizer.zero_grad()
                F.cross_entropy(self.net(x), y).backward()
                self.optimizer.step()

    with watched() as recording:
        Trainer().fit()
    assert recording.models == {"net"}


def test_a_model_without_a_variable_is_named_by_its_class():
    class Tower(nn.Sequential):
        pass

    with watched() as recording:
        models = [Tower(*mlp())]
        train_first(models)
    assert recording.models == {"Tower"}


def train_first(held):
    x, y = batch()
    optimizer = torch.optim.SGD(held[0].parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        F.cross_entropy(held[0](x), y).backward()
        optimizer.step()


def test_folds_one_after_another_are_models_of_their_own():
    with watched() as recording:
        for _ in range(3):
            net = mlp()
            train(net, steps=4)
    assert recording.models == {"net", "net#2", "net#3"}
    for model in recording.models:
        assert len(recording.series("update.ratio", "0.weight", model)) == 4


def test_two_models_of_the_same_variable_name_are_kept_apart():
    def generator():
        model = mlp()
        train(model, steps=2)

    def discriminator():
        model = mlp(sizes=(6, 3))
        train(model, steps=2)

    with watched() as recording:
        generator()
        discriminator()
    assert recording.models == {"model", "model#2"}
    assert len(recording.model("model#2").params) == 2


def test_the_highest_ancestor_is_the_model_even_if_only_its_methods_are_called():
    class Vae(nn.Module):
        def __init__(self):
            super().__init__()
            self.down, self.up = nn.Linear(6, 4), nn.Linear(2, 6)

        def encode(self, x):
            return self.down(x).chunk(2, dim=1)

        def decode(self, z):
            return self.up(z)

    with watched() as recording:
        vae = Vae()
        optimizer = torch.optim.Adam(vae.parameters())
        x, _ = batch()
        for _ in range(3):
            optimizer.zero_grad()
            mean, spread = vae.encode(x)
            loss = F.mse_loss(vae.decode(mean + 0.1 * spread), x)
            loss.backward()
            optimizer.step()
    assert recording.models == {"vae"}
    assert recording.sites("output.mean") == {"down", "up"}
    assert recording.sites("grad.l2") == {"down.weight", "down.bias", "up.weight", "up.bias"}


def test_a_part_called_before_the_whole_was_built_becomes_part_of_the_whole():
    with watched() as recording:
        encoder = nn.Linear(6, 8)
        x, _ = batch()
        encoder(x)
        model = nn.Sequential(encoder, nn.ReLU(), nn.Linear(8, 3))
        train(model)
    assert recording.models == {"model"}
    assert {series.site.model for series in recording.run.series("loss")} == {"model"}


def test_a_deepcopied_model_is_found_by_its_call():
    with watched() as recording:
        original = mlp()
        train(original, steps=2)
        clone = copy.deepcopy(original)
        train(clone, steps=2)
    assert recording.models == {"original", "clone"}
    assert recording.sites("output.mean") == {"0", "1", "2"}


def test_a_deepcopied_model_takes_in_its_parts_that_were_called_first():
    with watched() as recording:
        original = mlp()
        clone = copy.deepcopy(original)
        x, _ = batch()
        clone[0](x)
        train(clone, steps=2)
        clone[0](x)
        train(clone, steps=2)
    assert recording.models == {"clone"}


def test_an_unpickled_model_is_found_by_its_call():
    with watched() as recording:
        reborn = pickle.loads(pickle.dumps(mlp()))
        train(reborn)
        saved = io.BytesIO()
        torch.save(reborn, saved)
        saved.seek(0)
        again = torch.load(saved, weights_only=False)
        train(again)
    assert recording.models == {"reborn", "again"}


def gan_steps(steps: int):
    generator, critic = mlp(sizes=(4, 8, 6)), mlp(sizes=(6, 8, 1))
    of_generator = torch.optim.Adam(generator.parameters(), lr=1e-3)
    of_critic = torch.optim.Adam(critic.parameters(), lr=1e-3)
    loss = nn.BCEWithLogitsLoss()
    real, _ = batch()
    ones, zeros = torch.ones(5, 1), torch.zeros(5, 1)
    for _ in range(steps):
        fake = generator(torch.randn(5, 4))
        of_critic.zero_grad()
        loss(critic(real), ones).backward()
        loss(critic(fake.detach()), zeros).backward()
        of_critic.step()
        of_generator.zero_grad()
        loss(critic(fake), ones).backward()
        of_generator.step()


def test_both_models_of_a_gan_are_found():
    with watched() as recording:
        gan_steps(5)
    assert recording.models == {"generator", "critic"}
    losses = {series.site.model for series in recording.run.series("loss")}
    assert losses in ({"critic", "critic+generator"}, {"critic", "generator+critic"})
    holders = {param.optimizers for param in recording.model("critic").params}
    assert holders == {("Adam",)}
    assert {p.optimizers for p in recording.model("generator").params} == {("Adam#2",)}


def distill(teacher_has_gradient: bool):
    teacher, student = mlp(sizes=(6, 8, 3)), mlp(sizes=(6, 3))
    teacher.requires_grad_(False)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    x, _ = batch()
    for _ in range(3):
        with torch.set_grad_enabled(teacher_has_gradient):
            target = teacher(x)
        optimizer.zero_grad()
        F.mse_loss(student(x), target).backward()
        optimizer.step()


def test_a_teacher_without_gradient_is_no_model_in_training():
    with watched() as recording:
        distill(teacher_has_gradient=False)
    assert recording.models == {"student"}


def test_a_frozen_teacher_called_with_gradients_enabled_is_no_model_in_training():
    with watched() as recording:
        distill(teacher_has_gradient=True)
    assert recording.models == {"student"}
    assert {series.site.model for series in recording.run.series("output.mean")} == {"student"}


def test_one_optimizer_over_two_models_trains_both():
    with watched() as recording:
        encoder, decoder = nn.Linear(6, 2), nn.Linear(2, 6)
        optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1)
        x, _ = batch()
        for _ in range(3):
            optimizer.zero_grad()
            F.mse_loss(decoder(encoder(x)), x).backward()
            optimizer.step()
    assert recording.models == {"encoder", "decoder"}
    assert recording.values("update.ratio", "weight", "encoder")
    assert recording.values("update.ratio", "weight", "decoder")
    assert {series.site.model for series in recording.run.series("loss")} == {"encoder+decoder"}


def test_two_phases_with_an_optimizer_each_train_one_model():
    with watched() as recording:
        net = mlp()
        train(net, steps=4, optimizer=torch.optim.SGD(net[2].parameters(), lr=0.1))
        train(net, steps=4, optimizer=torch.optim.Adam(net.parameters()))
    assert recording.models == {"net"}
    assert set(recording.run.optimizers) == {"SGD", "Adam"}
    assert len(recording.series("update.ratio", "0.weight")) == 4
    assert len(recording.series("update.ratio", "2.weight")) == 8


def test_a_shared_parameter_is_measured_once():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.head = nn.Embedding(7, 4), nn.Linear(4, 7, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, x):
            return self.head(self.embed(x))

    with watched() as recording:
        tied = Tied()
        train(tied, data=(torch.arange(5), torch.arange(5)))
    assert recording.sites("grad.l2") == {"embed.weight"}
    assert [param.fqn for param in recording.model().params] == ["embed.weight"]
    assert recording.sites("output.mean") == {"embed", "head"}


def test_a_module_replaced_during_training_is_described_again():
    with watched() as recording:
        net = mlp()
        train(net, steps=5)
        net[1] = nn.Tanh()
        train(net, steps=2)
        net[2] = nn.Linear(8, 3, bias=False)
        train(net, steps=2)
    assert recording.module("1").kind == "Tanh"
    assert [p.fqn for p in recording.model().params] == ["0.weight", "0.bias", "2.weight"]


def test_a_layer_frozen_during_training_is_described_again():
    with watched() as recording:
        net = mlp()
        train(net, steps=5)
        net[0].requires_grad_(False)
        train(net, steps=2)
    assert [param.trainable for param in recording.model().params] == [False, False, True, True]


def test_tensors_held_by_an_optimizer_but_by_no_living_model_are_stale():
    with watched() as recording:
        net = mlp()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        net[2] = nn.Linear(8, 3)
        train(net, steps=5, optimizer=optimizer)
    facts = recording.run.optimizers["SGD"]
    assert facts.stale == ((3, 8), (3,))
    assert facts.unheld == ("net/2.weight", "net/2.bias")


def test_a_model_is_forgotten_with_its_variable_and_its_name_is_not_reused():
    with watched() as recording:
        net = mlp()
        train(net, steps=2)
        del net
        net = mlp(sizes=(6, 3))
        train(net, steps=2)
    assert recording.models == {"net", "net#2"}


def test_lazy_parameters_are_found_once_they_are_there():
    with watched() as recording:
        lazy = nn.Sequential(nn.LazyLinear(8), nn.ReLU(), nn.LazyLinear(3))
        x, _ = batch()
        lazy(x)
        train(lazy)
    assert recording.models == {"lazy"}
    assert len(recording.sites("grad.l2")) == 4


def test_layers_moved_past_the_hooks_of_torch_have_their_new_names_at_the_next_step():
    with watched() as recording:
        net = mlp()
        train(net)
        net._modules["head"] = net._modules.pop("2")
        net._modules["extra"] = nn.Linear(3, 3)
        train(net)
        del net._modules["extra"]
        train(net)
    assert recording.models == {"net"}
    assert recording.series("grad.l2", "2.weight").steps.tolist() == [0, 1, 2]
    assert recording.series("grad.l2", "head.weight").steps.tolist() == [3, 4, 5, 6, 7, 8]
    assert recording.series("grad.l2", "extra.weight").steps.tolist() == [3, 4, 5]
