"""Trainings in several threads, and with workers in other processes."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tests.capture.matrix.training import Cases, Net, Training, batch, plain, sgd

CASES = Cases()


def loaded(method: str) -> Training:
    """An epoch a step, with batches from two workers, which draw the order and some noise."""
    net = Net()
    optimizer = sgd(net)
    data = TensorDataset(*batch(32))

    def step(i: int) -> object:
        losses: list[torch.Tensor] = []
        loader = DataLoader(
            data, batch_size=8, shuffle=True, num_workers=2, multiprocessing_context=method
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # newer Pythons warn of forks beside threads
            for x, y in loader:
                optimizer.zero_grad()
                losses.append(F.mse_loss(net(x), y))
                losses[-1].backward()
                optimizer.step()
        return [loss.detach() for loss in losses]

    return Training(step, (net, optimizer), steps=2)


@CASES(slow=True)
def workers_by_fork() -> Training:
    return loaded("fork")


@CASES(slow=True, references=False)  # no different from fork in this process, and slow
def workers_by_spawn() -> Training:
    return loaded("spawn")


@CASES()
def two_threads_that_train() -> Training:
    nets = [Net(), Net()]
    optimizers = [sgd(net) for net in nets]
    x, y = batch()

    def train(i: int, losses: list[Any]) -> None:
        for _ in range(4):
            optimizers[i].zero_grad()
            loss = F.mse_loss(nets[i](x), y)
            loss.backward()
            optimizers[i].step()
            losses.append(loss.detach())

    def step(_: int) -> object:
        losses: list[list[Any]] = [[], []]
        threads = [threading.Thread(target=train, args=(i, losses[i])) for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return losses

    return Training(step, (*nets, *optimizers))


class Evaluating:
    """Another model is evaluated in another thread, all the time."""

    def __init__(self, net: nn.Module) -> None:
        self._net, self._over = net, threading.Event()
        self._thread = threading.Thread(target=self._evaluate)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _evaluate(self) -> None:
        while not self._over.is_set():
            with torch.no_grad():
                self._net(batch()[0])


@CASES(references=False)  # what the other thread holds at the moment is anybody's guess
def evaluation_in_another_thread() -> Training:
    other = Net()
    return plain(Net(), steps=30, within=(lambda: Evaluating(other),), held=(other,))
