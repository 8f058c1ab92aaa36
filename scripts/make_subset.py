"""Makes the embedded Fashion-MNIST subset from the full set, to the byte as it is shipped.

The first 600 training and the first 100 test images of each class, in their original order (the
publisher shuffled them): four IDX arrays one after another, in one xz file without time stamps.
Nothing is drawn at random, so no generator's version can change the result.
"""

from __future__ import annotations

import argparse
import hashlib
import lzma
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from traindx.datasets.fashion_mnist import CLASSES, SUBSET_PATH, load_full
from traindx.datasets.idx import ByteArray, encode_idx

TRAIN_PER_CLASS = 600
TEST_PER_CLASS = 100


def first_of_each_class(labels: ByteArray, count: int) -> NDArray[np.intp]:
    """Ascending indices of the first `count` examples of each class."""
    firsts = [np.flatnonzero(labels == label)[:count] for label in range(len(CLASSES))]
    return np.sort(np.concatenate(firsts))


def select(images: ByteArray, labels: ByteArray, count: int) -> list[ByteArray]:
    """The images and labels of the first `count` examples of each class."""
    chosen = first_of_each_class(labels, count)
    return [images[chosen], labels[chosen]]


def unpacked_subset(source: str | None) -> bytes:
    """The subset's four arrays in IDX, one after another."""
    full = load_full(source)
    train = select(full.train_images, full.train_labels, TRAIN_PER_CLASS)
    test = select(full.test_images, full.test_labels, TEST_PER_CLASS)
    return b"".join(map(encode_idx, train + test))


def main() -> None:
    """Writes the file and prints what `fashion_mnist.SUBSET_SHA256` has to be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", help="folder of the full set; default: wherever it is found")
    parser.add_argument("-o", "--output", type=Path, default=SUBSET_PATH)
    options = parser.parse_args()

    data = unpacked_subset(options.source)
    packed = lzma.compress(data, preset=9 | lzma.PRESET_EXTREME)
    options.output.write_bytes(packed)
    print(f"{options.output}: {len(packed)} bytes")
    print(f"sha256 of the {len(data)} unpacked bytes: {hashlib.sha256(data).hexdigest()}")


if __name__ == "__main__":
    main()
