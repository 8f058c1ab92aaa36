"""Where the full set is looked for, and what is said of files that are not the publisher's."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import numpy as np
import pytest

from traindx.datasets.fashion_mnist import load_full
from traindx.datasets.idx import read_idx
from traindx.errors import DataError

TEST_IMAGES = "t10k-images-idx3-ubyte"


def write_packed(files: dict[str, bytes], folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name, data in files.items():
        (folder / f"{name}.gz").write_bytes(gzip.compress(data))
    return folder


def is_loaded(files: dict[str, bytes], path: Path | None = None) -> bool:
    loaded = load_full(path).test_images
    return np.array_equal(loaded, read_idx(io.BytesIO(files[TEST_IMAGES]), ""))


@pytest.mark.parametrize("layout", [".", "fashion-mnist", "FashionMNIST/raw"])
def test_an_explicit_folder_may_have_the_publishers_or_torchvisions_layout(
    layout: str, small_files: dict[str, bytes], tmp_path: Path
):
    write_packed(small_files, tmp_path / "root" / layout)
    assert is_loaded(small_files, tmp_path / "root")


def test_files_may_lie_unpacked(small_files: dict[str, bytes], tmp_path: Path):
    for name, data in small_files.items():
        (tmp_path / name).write_bytes(data)
    assert is_loaded(small_files, tmp_path)


@pytest.mark.parametrize(
    "place",
    ["system/fashion-mnist", "work/data/FashionMNIST/raw", "cache/traindx/fashion-mnist"],
)
def test_the_usual_places_are_searched(
    place: str, small_files: dict[str, bytes], bare_machine: Path
):
    write_packed(small_files, bare_machine / place)
    assert is_loaded(small_files)


def test_the_environment_comes_before_the_usual_places(
    small_files: dict[str, bytes], bare_machine: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TRAINDX_DATA", str(bare_machine / "mine"))
    write_packed(small_files, bare_machine / "mine")
    write_packed(dict.fromkeys(small_files, b""), bare_machine / "system")
    assert is_loaded(small_files)


def test_an_explicit_folder_is_the_only_one(small_files: dict[str, bytes], bare_machine: Path):
    write_packed(small_files, bare_machine / "system")
    with pytest.raises(DataError, match="not all are in any of `elsewhere`"):
        load_full("elsewhere")


def test_nothing_found_says_where_it_was_sought_and_what_to_do(bare_machine: Path):
    with pytest.raises(DataError) as caught:
        load_full()
    message = str(caught.value)
    assert str(bare_machine / "system" / "fashion-mnist") in message
    assert str(bare_machine / "cache" / "traindx") in message
    assert message.endswith("Pass `path=`, set `TRAINDX_DATA`, or allow `download=True`.")


def test_a_folder_with_three_of_the_four_files_does_not_count(
    small_files: dict[str, bytes], tmp_path: Path
):
    folder = write_packed(small_files, tmp_path / "root")
    (folder / f"{TEST_IMAGES}.gz").unlink()
    with pytest.raises(DataError, match=f"needs the files .*{TEST_IMAGES}"):
        load_full(folder)


def test_an_altered_file_is_named_with_both_checksums(
    small_files: dict[str, bytes], tmp_path: Path
):
    altered = {**small_files, TEST_IMAGES: small_files[TEST_IMAGES][:-1] + b"\xff"}
    folder = write_packed(altered, tmp_path / "root")
    with pytest.raises(DataError, match=rf"{TEST_IMAGES}.gz` should unpack to sha256 \w+; got \w+"):
        load_full(folder)


def test_a_file_truncated_before_packing_is_named(small_files: dict[str, bytes], tmp_path: Path):
    short = {**small_files, TEST_IMAGES: small_files[TEST_IMAGES][:-1]}
    folder = write_packed(short, tmp_path / "root")
    with pytest.raises(DataError, match=f"{TEST_IMAGES}.gz` is truncated"):
        load_full(folder)


def test_a_file_truncated_after_packing_is_named(small_files: dict[str, bytes], tmp_path: Path):
    folder = write_packed(small_files, tmp_path / "root")
    file = folder / f"{TEST_IMAGES}.gz"
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(DataError, match=f"{TEST_IMAGES}.gz` could not be read"):
        load_full(folder)


@pytest.mark.parametrize(
    "content", [b"<html>not found</html>", gzip.compress(b"<html>")], ids=["plain", "packed"]
)
def test_a_web_page_in_place_of_a_file_is_named(
    content: bytes, small_files: dict[str, bytes], tmp_path: Path
):
    folder = write_packed(small_files, tmp_path / "root")
    (folder / f"{TEST_IMAGES}.gz").write_bytes(content)
    with pytest.raises(DataError, match=f"{TEST_IMAGES}.gz`"):
        load_full(folder)
