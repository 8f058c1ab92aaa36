"""The embedded subset: what it holds, that it is intact, and that it can be made again."""

from __future__ import annotations

import lzma
import subprocess
import sys
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from traindx.datasets.fashion_mnist import CLASSES, SUBSET_PATH, load_full, load_subset
from traindx.errors import DataError

REPOSITORY = Path(__file__).parents[2]
FULL_SET = REPOSITORY / "../shared/data/fashion-mnist"

needs_full_set = pytest.mark.skipif(
    not FULL_SET.is_dir(), reason="the full Fashion-MNIST is not beside the repository"
)


def test_the_subset_holds_6000_training_and_1000_test_images():
    subset = load_subset()
    assert subset.train_images.shape == (6000, 28, 28)
    assert subset.test_images.shape == (1000, 28, 28)
    assert subset.train_images.dtype == subset.test_images.dtype == np.uint8
    assert subset.train_labels.dtype == subset.test_labels.dtype == np.uint8


def test_every_class_has_its_equal_share():
    subset = load_subset()
    assert np.bincount(subset.train_labels).tolist() == [600] * len(CLASSES)
    assert np.bincount(subset.test_labels).tolist() == [100] * len(CLASSES)


def test_the_images_are_pictures_of_their_labels():
    # The nearest class mean is right for two thirds of the real test images.
    subset = load_subset()
    means = [subset.train_images[subset.train_labels == k].mean(0) for k in range(len(CLASSES))]
    distances = ((subset.test_images[:, None] - np.stack(means)) ** 2).sum((2, 3))
    assert (distances.argmin(1) == subset.test_labels).mean() > 0.6


def test_the_shipped_file_is_about_three_megabytes_with_its_licence_beside_it():
    assert SUBSET_PATH.stat().st_size < 3_000_000
    notice = resources.files("traindx.datasets").joinpath("fashion_mnist_LICENSE.txt")
    assert "2017 Zalando SE" in notice.read_text(encoding="utf-8")


@pytest.mark.parametrize("damage", ["truncated", "altered", "foreign", "missing"])
def test_a_damaged_subset_is_named(tmp_path: Path, damage: str):
    packed = SUBSET_PATH.read_bytes()
    contents = {
        "truncated": packed[:-1],
        "altered": lzma.compress(lzma.decompress(packed)[:-1] + b"\xff", preset=0),
        "foreign": b"no xz file",
    }
    file = tmp_path / "subset.xz"
    if damage in contents:
        file.write_bytes(contents[damage])
    with pytest.raises(DataError, match=r"`.*subset\.xz` should .* Install traindx again\."):
        load_subset(file)


@needs_full_set
def test_the_script_makes_the_shipped_file_again_to_the_byte(tmp_path: Path):
    made = tmp_path / "subset.xz"
    script = REPOSITORY / "scripts" / "make_subset.py"
    command = [sys.executable, script, "--source", FULL_SET, "-o", made]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert made.read_bytes() == SUBSET_PATH.read_bytes()
    assert "8bee4f463d98d328" in done.stdout


@needs_full_set
def test_the_full_set_has_70000_images_of_which_the_subset_is_a_part():
    full, subset = load_full(FULL_SET), load_subset()
    assert full.train_images.shape == (60_000, 28, 28)
    assert full.test_images.shape == (10_000, 28, 28)
    for label in range(len(CLASSES)):
        firsts = full.test_images[full.test_labels == label][:100]
        np.testing.assert_array_equal(subset.test_images[subset.test_labels == label], firsts)
