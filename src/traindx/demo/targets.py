"""The demo's networks for `traindx norm` and `traindx signal`: model, images, how it is tested.

traindx norm audit traindx.demo.targets:fashion_mnist --checkpoint stale.pt
traindx norm recalibrate traindx.demo.targets:fashion_mnist --checkpoint stale.pt --out fresh.pt
traindx signal traindx.demo.targets:sigmoid_chain
"""

import torch
from torch.utils.data import DataLoader

from traindx.datasets.fashion_mnist import load_subset
from traindx.demo import sigmoid_chain as chain
from traindx.demo.stale_batchnorm import accuracy, as_dataset, build_model


def fashion_mnist():
    """The network with fresh weights, its training images in batches, and its test accuracy."""
    data = load_subset()
    train_set = as_dataset(data.train_images, data.train_labels)
    test_loader = DataLoader(as_dataset(data.test_images, data.test_labels), batch_size=250)
    model = build_model()
    return model, DataLoader(train_set, batch_size=250), lambda m: accuracy(m, test_loader)


def sigmoid_chain():
    """The network of twenty sigmoid layers before training, and its training images in batches."""
    data = load_subset()
    torch.manual_seed(0)
    train_set = chain.as_dataset(data.train_images, data.train_labels)
    return chain.build_model(), DataLoader(train_set, batch_size=128)
