"""Where run files are: naming a new one, finding the latest."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import datetime
from itertools import count
from pathlib import Path

from traindx.errors import BadRunFileError
from traindx.messages import say

FOLDER = Path("traindx-runs")
SUFFIX = ".traindx"
MAX_STEM_BYTES = 120  # file names end at 255, and the time, a number and `-journal` follow


def new_path(folder: Path, stem: str, time: datetime) -> Path:
    """Make an empty file `STEM-TIME.traindx` that was not there before, and the folder.

    Two runs that start in the same second get two files: the second is called `STEM-TIME-2`.

    Raises:
        OSError: The folder cannot be made or written to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{_as_file_name(stem)}-{time:%Y%m%d-%H%M%S}"
    for number in count(1):
        path = folder / f"{name}{f'-{number}' if number > 1 else ''}{SUFFIX}"
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            return path
    raise AssertionError("count ended")


def _as_file_name(stem: str) -> str:
    plain = "".join(c if c.isprintable() and c not in '/\\:*?"<>|' else "_" for c in stem)
    return plain.encode()[:MAX_STEM_BYTES].decode(errors="ignore").lstrip(".") or "run"


def run_files(folder: Path = FOLDER) -> list[Path]:
    """The run files of a folder, the last one written first; none if there is no such folder."""
    written: list[tuple[int, str, Path]] = []
    with suppress(OSError):
        for path in folder.iterdir():
            with suppress(OSError):  # it may vanish meanwhile
                if path.suffix == SUFFIX and path.is_file():
                    written.append((path.stat().st_mtime_ns, path.name, path))
    return [path for _, _, path in sorted(written, reverse=True)]


def latest(folder: Path = FOLDER) -> Path:
    """The run file that was last written to.

    Raises:
        BadRunFileError: There is none.
    """
    found = run_files(folder)
    if not found:
        raise BadRunFileError(
            say(
                "There is no run file in `{folder}`. `traindx run SCRIPT` makes one; name one of "
                "another folder by its path.",
                folder=folder,
            )
        )
    return found[0]
