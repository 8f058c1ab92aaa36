"""Downloads from a publisher that answers well, badly, or not at all."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO
from urllib.error import URLError

import pytest

from traindx.datasets.download import Opener, save
from traindx.datasets.fashion_mnist import PUBLISHER, load_full
from traindx.errors import DataError

LAST = "t10k-labels-idx1-ubyte"


class Publisher:
    """Serves files from memory, packed, and remembers which were asked for."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.bodies = {f"{PUBLISHER}/{name}.gz": gzip.compress(files[name]) for name in files}
        self.asked: list[str] = []

    def __call__(self, url: str) -> IO[bytes]:
        self.asked.append(url)
        return io.BytesIO(self.bodies[url])


@pytest.fixture
def publisher(small_files: dict[str, bytes]) -> Publisher:
    return Publisher(small_files)


@pytest.fixture
def cache(bare_machine: Path) -> Path:
    return bare_machine / "cache" / "traindx" / "fashion-mnist"


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()} if folder.is_dir() else {}


def test_a_download_leaves_the_four_files_in_the_cache(
    publisher: Publisher, small_files: dict[str, bytes], cache: Path
):
    loaded = load_full(download=True, opener=publisher)
    assert loaded.train_images.shape == (5, 28, 28)
    assert contents(cache) == small_files


def test_a_second_load_asks_the_publisher_nothing(publisher: Publisher):
    load_full(download=True, opener=publisher)
    load_full(download=True, opener=publisher)
    assert len(publisher.asked) == 4


def test_a_download_into_an_explicit_folder_leaves_the_cache_alone(
    publisher: Publisher, small_files: dict[str, bytes], cache: Path, tmp_path: Path
):
    load_full(tmp_path / "mine", download=True, opener=publisher)
    assert contents(tmp_path / "mine") == small_files
    assert not cache.exists()


def test_nothing_is_downloaded_unasked(publisher: Publisher):
    with pytest.raises(DataError, match="allow `download=True`"):
        load_full(opener=publisher)
    assert publisher.asked == []


def test_progress_goes_to_stderr(publisher: Publisher, capsys: pytest.CaptureFixture[str]):
    load_full(download=True, opener=publisher)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"{LAST}.gz" in captured.err


def refuse(url: str) -> IO[bytes]:
    raise URLError(ConnectionRefusedError(111, "Connection refused"))


def break_off(url: str) -> IO[bytes]:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise ConnectionResetError("Connection reset by peer")

    return Broken()


@pytest.mark.parametrize("opener", [refuse, break_off])
def test_a_failing_connection_names_the_address_and_leaves_nothing(
    opener: Opener, small_files: dict[str, bytes], cache: Path
):
    with pytest.raises(DataError, match=r"`http://.*\.gz` could not be downloaded whole: .*onnect"):
        load_full(download=True, opener=opener)
    assert contents(cache) == {}


def bad_bodies(good: bytes) -> Iterator[bytes]:
    yield b""
    yield gzip.compress(good)[:-9]  # cut in the packed data
    yield gzip.compress(good[:-1])  # whole, but short
    yield gzip.compress(good[:-1] + b"\xff")  # altered
    yield gzip.compress(good + b"more")  # longer than published
    yield gzip.compress(b"<html>404</html>")
    yield b"<html>404</html>"


def test_a_bad_last_file_is_named_and_not_kept(
    publisher: Publisher, small_files: dict[str, bytes], cache: Path
):
    others = {name: data for name, data in small_files.items() if name != LAST}
    for body in bad_bodies(small_files[LAST]):
        publisher.bodies[f"{PUBLISHER}/{LAST}.gz"] = body
        with pytest.raises(DataError, match=f"`{PUBLISHER}/{LAST}.gz`"):
            load_full(download=True, opener=publisher)
        assert contents(cache) == others


def test_an_interrupted_download_goes_on_with_the_missing_file(
    publisher: Publisher, small_files: dict[str, bytes], cache: Path
):
    good = publisher.bodies[f"{PUBLISHER}/{LAST}.gz"]
    publisher.bodies[f"{PUBLISHER}/{LAST}.gz"] = good[:-9]
    with pytest.raises(DataError):
        load_full(download=True, opener=publisher)
    publisher.bodies[f"{PUBLISHER}/{LAST}.gz"] = good
    load_full(download=True, opener=publisher)
    assert len(publisher.asked) == 5
    assert contents(cache) == small_files


def test_an_endless_body_is_not_read_to_its_end(
    small_files: dict[str, bytes],
):
    bomb = gzip.compress(bytes(50_000_000))
    taken: list[int] = []

    class Body(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            data = super().read(size)
            taken.append(len(data))
            return data

    with pytest.raises(DataError):
        load_full(download=True, opener=lambda url: Body(bomb))
    assert sum(taken) < len(bomb)


def test_a_folder_that_cannot_be_written_is_named(publisher: Publisher, tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match=r"file/sub/.*` could not be written: .* `path`\."):
        load_full(tmp_path / "file" / "sub", download=True, opener=publisher)


def test_a_failed_rename_leaves_no_partial_file(tmp_path: Path):
    (tmp_path / "target").mkdir()  # a folder cannot be replaced by a file
    with pytest.raises(DataError, match=r"target` could not be written"):
        save(b"data", tmp_path / "target")
    assert [file.name for file in tmp_path.iterdir() if file.is_file()] == []


def test_loading_what_is_there_imports_no_progress_bar():
    program = (
        "import sys; from traindx.datasets import fashion_mnist; fashion_mnist.load_subset(); "
        "sys.exit('rich' in sys.modules or 'torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
