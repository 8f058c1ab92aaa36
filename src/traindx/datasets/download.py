"""Fetches a packed file and keeps it only once it is complete and checked."""

from __future__ import annotations

import gzip
import http.client
import os
import tempfile
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from traindx.errors import DataError

Opener = Callable[[str], IO[bytes]]

_CHUNK_BYTES = 1 << 16
_TIMEOUT_SECONDS = 30.0


def open_url(url: str) -> IO[bytes]:
    """The body of an address, as a stream."""
    return urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS)


def fetch_gzip(url: str, num_bytes: int, opener: Opener = open_url) -> bytes:
    """The unpacked content of a gzip file on the web, with a progress bar on stderr.

    Args:
        url: Its address.
        num_bytes: Unpacked size to expect; no more is read than shows that it is exceeded.
        opener: Opens the address.

    Raises:
        DataError: No connection, a broken one, or no gzip at its end.
    """
    try:
        with opener(url) as body, gzip.GzipFile(fileobj=body) as unpacked:
            return b"".join(_with_progress(unpacked, url.rpartition("/")[2], num_bytes))
    except (OSError, EOFError, zlib.error, http.client.HTTPException) as error:
        raise DataError(
            f"`{url}` could not be downloaded whole: {error}. Try again, or fetch the file by "
            f"other means and name its folder in `TRAINDX_DATA`."
        ) from error


def _with_progress(stream: gzip.GzipFile, name: str, num_bytes: int) -> Iterator[bytes]:
    # Rich takes longer to import than all the rest of this package, and only downloads need it.
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(name, total=num_bytes)
        received = 0
        while received <= num_bytes and (chunk := stream.read(_CHUNK_BYTES)):
            received += len(chunk)
            progress.update(task, completed=received)
            yield chunk


def save(data: bytes, path: Path) -> None:
    """Writes a file whole or not at all.

    Raises:
        DataError: The folder cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_and_rename(data, path)
    except OSError as error:
        raise DataError(
            f"`{path}` could not be written: {error.strerror or error}. Pass a folder you may "
            f"write to as `path`."
        ) from error


def _write_and_rename(data: bytes, path: Path) -> None:
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(partial, path)
    except BaseException:
        os.unlink(partial)
        raise
