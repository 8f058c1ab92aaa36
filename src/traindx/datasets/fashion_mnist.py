"""Fashion-MNIST (Xiao, Rasul, Vollgraf 2017): 28x28 grey images of ten kinds of clothing.

`load_subset` reads the real images that ship with traindx and needs nothing else; `load_full`
finds all 70,000 on this machine, or downloads them.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from traindx.datasets.download import Opener, fetch_gzip, open_url, save
from traindx.datasets.idx import ByteArray, read_idx
from traindx.errors import DataError

CLASSES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)

PUBLISHER = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"
SYSTEM_ROOT = Path("/usr/share/datasets")  # where Debian's dataset-fashion-mnist installs
SUBSET_PATH = Path(__file__).with_name("fashion_mnist_subset.xz")
SUBSET_SHA256 = "8bee4f463d98d32894e1b1263be7b7bd9754aea1f0be280ea19cab5f2e331d45"


@dataclass(frozen=True, slots=True)
class Source:
    """One file of the full set, as the publisher made it.

    Attributes:
        name: Its name without `.gz`.
        num_bytes: Its unpacked size.
        sha256: Checksum of the unpacked bytes; distributions pack them again.
    """

    name: str
    num_bytes: int
    sha256: str


SOURCES = (
    Source(
        "train-images-idx3-ubyte",
        47_040_016,
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    ),
    Source(
        "train-labels-idx1-ubyte",
        60_008,
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
    ),
    Source(
        "t10k-images-idx3-ubyte",
        7_840_016,
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
    ),
    Source(
        "t10k-labels-idx1-ubyte",
        10_008,
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
)


@dataclass(frozen=True, slots=True, eq=False)
class FashionMnist:
    """Images (N, 28, 28) and labels (N,), all uint8, in the order of the files.

    Attributes:
        train_images: Training images, 0 (background) to 255.
        train_labels: Their classes, as indices into `CLASSES`.
        test_images: Test images.
        test_labels: Their classes.
    """

    train_images: ByteArray
    train_labels: ByteArray
    test_images: ByteArray
    test_labels: ByteArray


def load_subset(path: Path = SUBSET_PATH) -> FashionMnist:
    """The embedded subset: of each class the first 600 training and the first 100 test images.

    Raises:
        DataError: The file is missing or not as it was shipped.
    """
    try:
        data = lzma.decompress(path.read_bytes())
    except (OSError, EOFError, lzma.LZMAError) as error:
        message = f"`{path}` should hold the embedded subset: {error}. Install traindx again."
        raise DataError(message) from error
    _check(data, SUBSET_SHA256, path, repair="Install traindx again.")
    stream = io.BytesIO(data)
    return FashionMnist(*(read_idx(stream, str(path)) for _ in range(4)))


def load_full(
    path: str | os.PathLike[str] | None = None,
    *,
    download: bool = False,
    opener: Opener = open_url,
) -> FashionMnist:
    """All 60,000 training and 10,000 test images, every file checked against the publisher's.

    Args:
        path: The only folder to look in. Without it: `TRAINDX_DATA`, Debian's data set package,
            torchvision's files under `./data`, the user's cache. Each may hold the four files
            themselves, in `fashion-mnist/`, or in torchvision's `FashionMNIST/raw/`.
        download: Where no folder holds them, fetch them into `path` or the user's cache.
        opener: Opens an address; for tests and proxies.

    Raises:
        DataError: A file is missing, truncated, altered, no IDX, or could not be fetched.
    """
    roots = [Path(path)] if path is not None else list(_usual_roots())
    folders = [folder for root in roots for folder in _layouts(root)]
    found = next((folder for folder in folders if _holds_all(folder)), None)
    if found is None and download:
        found = roots[0] if path is not None else _cache_root() / "fashion-mnist"
        _download_missing(found, opener)
    if found is None:
        raise DataError(_nowhere(folders))
    return FashionMnist(*(_read(source, found) for source in SOURCES))


def _usual_roots() -> Iterator[Path]:
    if configured := os.environ.get("TRAINDX_DATA"):
        yield Path(configured)
    yield SYSTEM_ROOT
    yield Path("data")
    yield _cache_root()


def _cache_root() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return Path(base or Path.home() / ".cache") / "traindx"


def _layouts(root: Path) -> tuple[Path, ...]:
    return root, root / "fashion-mnist", root / "FashionMNIST" / "raw"


def _holds_all(folder: Path) -> bool:
    return all(_stored(source, folder) for source in SOURCES)


def _stored(source: Source, folder: Path) -> Path | None:
    candidates = (folder / source.name, folder / f"{source.name}.gz")
    return next((file for file in candidates if file.is_file()), None)


def _nowhere(folders: list[Path]) -> str:
    places = ", ".join(f"`{folder}`" for folder in folders)
    names = ", ".join(f"`{source.name}`" for source in SOURCES)
    return (
        f"Fashion-MNIST needs the files {names} (or each with `.gz`) in one folder; not all are "
        f"in any of {places}. Pass `path=`, set `TRAINDX_DATA`, or allow `download=True`."
    )


def _download_missing(folder: Path, opener: Opener) -> None:
    for source in SOURCES:
        if _stored(source, folder) is None:
            url = f"{PUBLISHER}/{source.name}.gz"
            data = fetch_gzip(url, source.num_bytes, opener)
            _decode(data, source, url)
            save(data, folder / source.name)


def _read(source: Source, folder: Path) -> ByteArray:
    file = _stored(source, folder)
    assert file is not None
    try:
        data = file.read_bytes()
        unpacked = gzip.decompress(data) if file.suffix == ".gz" else data
    except (OSError, EOFError, zlib.error) as error:
        message = f"`{file}` could not be read: {error}. Delete it and load again."
        raise DataError(message) from error
    return _decode(unpacked, source, file)


def _decode(data: bytes, source: Source, where: Path | str) -> ByteArray:
    # The format comes before the checksum, since "truncated" says more than "altered".
    array = read_idx(io.BytesIO(data), str(where))
    _check(data, source.sha256, where, repair="Replace it with the publisher's file.")
    return array


def _check(data: bytes, sha256: str, where: Path | str, *, repair: str) -> None:
    digest = hashlib.sha256(data).hexdigest()
    if digest != sha256:
        raise DataError(f"`{where}` should unpack to sha256 {sha256}; got {digest}. {repair}")
