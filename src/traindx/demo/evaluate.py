"""A model's accuracy with the statistics of each batch, and with the running ones."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm as BatchNorm

from traindx.datasets.fashion_mnist import load_subset
from traindx.trial import unchanged


def accuracies(program: str, weights: Path) -> tuple[float, float]:
    """Test accuracies of a demo program's saved weights: with batch and with running statistics."""
    module = import_module(f"traindx.demo.{program}")
    model = module.build_model()
    model.load_state_dict(torch.load(weights, weights_only=True))
    data = load_subset()
    test_set = module.as_dataset(data.test_images, data.test_labels)
    return accuracy_batch_and_running(model, *test_set.tensors, batch_size=250)


def accuracy_batch_and_running(
    model: nn.Module, images: Tensor, labels: Tensor, batch_size: int
) -> tuple[float, float]:
    """Accuracy with batch statistics, then with running statistics, all else in evaluation mode.

    The model comes back as it was: modes, running statistics and their counters.

    Args:
        model: Maps images to one logit a class.
        images: As the model expects them, shape (N, …).
        labels: Their classes, shape (N,).
        batch_size: Most images per forward pass; with batch statistics the accuracy depends on it.
    """
    norms = [module for module in model.modules() if isinstance(module, BatchNorm)]
    with unchanged(model), torch.no_grad():
        model.eval()
        running = _accuracy(model, images, labels, batch_size)
        for norm in norms:
            norm.train()
        batch = _accuracy(model, images, labels, batch_size)
    return batch, running


def _accuracy(model: nn.Module, images: Tensor, labels: Tensor, batch_size: int) -> float:
    # Equal parts, because a short last one would have statistics of its own, or none at all.
    num_parts = -(-len(labels) // batch_size)
    parts = zip(images.tensor_split(num_parts), labels.tensor_split(num_parts), strict=True)
    correct = sum(int((model(part).argmax(1) == truth).sum()) for part, truth in parts)
    return correct / len(labels)
