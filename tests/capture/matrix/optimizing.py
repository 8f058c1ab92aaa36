"""Trainings that differ in how gradients are computed and applied."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from tests.capture.matrix.training import Cases, Net, Training, batch, plain, sgd

CASES = Cases()


@CASES()
def accumulation() -> Training:
    net = Net()
    optimizer = sgd(net)
    x, y = batch()

    def step(i: int) -> object:
        loss = F.mse_loss(net(x), y) / 4
        loss.backward()
        if i % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()
        return loss.detach()

    return Training(step, (net, optimizer), steps=12)


def scaled(make: Callable[[Any], torch.optim.Optimizer], *, autocast: bool) -> Training:
    """With a GradScaler, gradients clipped by norm, and a fifth step that is skipped."""
    net = Net()
    optimizer = make(net.parameters())
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=2)
    x, y = batch()

    def step(i: int) -> object:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            loss = F.mse_loss(net(x), y) * (float("inf") if i == 4 else 1.0)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        scaler.step(optimizer)
        scaler.update()
        return loss.detach(), norm, scaler.get_scale()

    return Training(step, (net, optimizer, scaler), steps=8)


@CASES()
def grad_scaler_that_skips_a_step() -> Training:
    return scaled(lambda params: torch.optim.SGD(params, lr=0.1), autocast=True)


@CASES()
def grad_scaler_and_a_fused_optimizer() -> Training:
    return scaled(lambda params: torch.optim.AdamW(params, fused=True), autocast=False)


@CASES(slow=True)
def fused_optimizer() -> Training:
    net = Net()
    return plain(net, optimizer=torch.optim.AdamW(net.parameters(), fused=True))


@CASES()
def autocast_to_bfloat16() -> Training:
    return plain(Net(), within=(lambda: torch.autocast("cpu", torch.bfloat16),))


@CASES()
def clipping_by_value() -> Training:
    net = Net()
    optimizer = sgd(net)
    x, y = batch()

    def step(i: int) -> object:
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        nn.utils.clip_grad_value_(net.parameters(), 0.01)
        optimizer.step()
        return loss.detach()

    return Training(step, (net, optimizer))


@CASES(slow=True)
def closures_with_a_line_search() -> Training:
    net = Net()
    optimizer = torch.optim.LBFGS(
        net.parameters(), lr=0.1, max_iter=6, line_search_fn="strong_wolfe"
    )
    x, y = batch()

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        return loss

    return Training(lambda i: optimizer.step(closure).detach(), (net, optimizer))  # pyright: ignore


@CASES()
def several_backward_calls_on_one_graph() -> Training:
    net = Net()
    optimizer = sgd(net, lr=0.01)
    x, y = batch()

    def step(i: int) -> object:
        optimizer.zero_grad()
        out = torch.softmax(net(x), 1)
        near, far = F.mse_loss(out, y), out.log().mean()
        near.backward(retain_graph=True)
        far.backward()
        optimizer.step()
        return near.detach(), far.detach()

    return Training(step, (net, optimizer))


@CASES()
def two_networks_against_each_other() -> Training:
    generator, critic = Net(outputs=6), Net(outputs=1)
    of_generator = torch.optim.Adam(generator.parameters())
    of_critic = torch.optim.Adam(critic.parameters())

    def step(i: int) -> object:
        fake = generator(torch.randn(8, 6))
        of_critic.zero_grad()
        real = F.softplus(-critic(torch.randn(8, 6))).mean()
        loss = real + F.softplus(critic(fake.detach())).mean()
        loss.backward()
        of_critic.step()
        of_generator.zero_grad()
        fooled = F.softplus(-critic(fake)).mean()
        fooled.backward()
        of_generator.step()
        return loss.detach(), fooled.detach()

    return Training(step, (generator, critic, of_generator, of_critic))


@CASES()
def gradient_of_a_gradient() -> Training:
    critic = Net(outputs=1)
    optimizer = torch.optim.Adam(critic.parameters())

    def step(i: int) -> object:
        x = torch.randn(8, 6, requires_grad=True)
        out = critic(x)
        (slope,) = torch.autograd.grad(out.sum(), x, create_graph=True)
        optimizer.zero_grad()
        loss = out.mean() + 10 * (slope.norm(2, 1) - 1).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Training(step, (critic, optimizer))


@CASES(unseen="backward is never called", references=False)
def gradients_by_autograd_grad_and_updates_by_hand() -> Training:
    net = Net()
    x, y = batch()

    def step(i: int) -> object:
        params = list(net.parameters())
        loss = F.mse_loss(net(x), y)
        gradients = torch.autograd.grad(loss, params)
        with torch.no_grad():
            for param, gradient in zip(params, gradients, strict=True):
                param -= 0.1 * gradient
        return loss.detach()

    return Training(step, (net,))


class OwnOptimizer:
    """Not one of torch's."""

    def __init__(self, params: Any) -> None:
        self.params = list(params)

    def zero_grad(self) -> None:
        for param in self.params:
            param.grad = None

    def step(self) -> None:
        with torch.no_grad():
            for param in self.params:
                param -= 0.1 * param.grad


@CASES()
def an_optimizer_that_is_not_torch_s() -> Training:
    net = Net()
    return plain(net, optimizer=OwnOptimizer(net.parameters()))


@CASES()
def an_optimizer_for_each_parameter_within_backward() -> Training:
    net = Net()
    x, y = batch()
    optimizers = {param: torch.optim.SGD([param], lr=0.01) for param in net.parameters()}

    def update(param: torch.Tensor) -> None:
        optimizers[param].step()  # pyright: ignore[reportArgumentType]
        optimizers[param].zero_grad()  # pyright: ignore[reportArgumentType]

    for param in net.parameters():
        param.register_post_accumulate_grad_hook(update)

    def step(i: int) -> object:
        loss = F.mse_loss(net(x), y)
        loss.backward()
        return loss.detach()

    return Training(step, (net, *optimizers.values()))


@CASES()
def optimizer_replaced_during_training() -> Training:
    net = Net()
    x, y = batch()
    used: list[torch.optim.Optimizer] = []

    def step(i: int) -> object:
        if i % 2 == 0:
            used.append(torch.optim.Adam(net.parameters(), lr=0.01))
        used[-1].zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        used[-1].step()
        return loss.detach()

    return Training(step, (net, used))


@CASES(slow=True)
def frozen_layer_unfrozen_during_training() -> Training:
    net = Net()
    net.first.requires_grad_(False)
    return plain(net, after=lambda i: net.first.requires_grad_(i >= 2) and None)


@CASES(awaited=True)
def moving_average_of_the_weights() -> Training:
    net = Net()
    average = torch.optim.swa_utils.AveragedModel(net)

    def after(i: int) -> object:
        average.update_parameters(net)
        return average(batch()[0]).detach()

    return plain(net, after=after, held=(average,))


@CASES()
def running_statistics_renewed_for_the_averaged_weights() -> Training:
    net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    average = torch.optim.swa_utils.AveragedModel(net)

    def after(i: int) -> object:
        average.update_parameters(net)
        if i % 2:
            torch.optim.swa_utils.update_bn([batch(16)[0], batch(12)[0]], average)
            torch.optim.swa_utils.update_bn([batch(16)[0]], net)
        average.eval()
        with torch.no_grad():
            out = average(batch()[0])
        average.train()
        return out

    return plain(net, after=after, held=(average,))


@CASES()
def weights_set_through_data() -> Training:
    net = Net()

    def after(i: int) -> None:
        net.first.weight.data = net.first.weight.data.clone() * 0.9
        net.last.weight = nn.Parameter(net.last.weight.detach().clone())

    return plain(net, after=after)


@CASES()
def loss_with_parameters() -> Training:
    class Weighted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(()))

        def forward(self, out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return F.mse_loss(out, y) * self.weight.exp() - self.weight

    net, loss = Net(), Weighted()
    params = [*net.parameters(), *loss.parameters()]
    return plain(net, loss=loss, optimizer=torch.optim.SGD(params, lr=0.01), held=(loss,))


@CASES()
def model_copied_and_pickled_after_each_step() -> Training:
    net = Net()
    copies: list[nn.Module] = []

    def after(i: int) -> object:
        copies.append(copy.deepcopy(net))
        copies[-1](batch()[0]).sum().backward()
        return pickle.loads(pickle.dumps(net)).first.weight, copies[-1].last.weight.grad  # pyright: ignore

    return plain(net, after=after, held=(copies,))


@CASES()
def schedule_and_evaluation() -> Training:
    net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 3))
    optimizer = torch.optim.RMSprop(net.parameters())
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 6)

    def after(i: int) -> object:
        schedule.step()
        net.eval()
        with torch.no_grad():
            out = net(batch()[0])
        net.train()
        return out, schedule.get_last_lr()

    return plain(net, optimizer=optimizer, after=after, held=(schedule,))
