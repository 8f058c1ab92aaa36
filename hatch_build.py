"""Compiles `src/traindx/stats/sums.c` as traindx is installed, where there is a C compiler.

Without one the package is complete all the same: NumPy and torch then take the sums, in more time.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import platform_tags

FOLDER = Path("src", "traindx", "stats")
# Not -ffast-math: linked into a library, it changes the arithmetic of the whole process.
MATHEMATICS = ["-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast"]
FLAGS = ["-O3", "-std=c11", *MATHEMATICS, "-shared", "-fPIC"]
# Some compilers know no functions by generation of processor: the plain ones then serve all.
ATTEMPTS: list[list[str]] = [[], ["-DTRAINDX_PLAIN"]]


def compiled(root: Path) -> Path | None:
    """The library made of the C source below a folder; None where that cannot be done."""
    source, library = root / FOLDER / "sums.c", root / FOLDER / "_sums.so"
    new = library.with_name(f"_sums.so.{os.getpid()}")
    compiler = shlex.split(os.environ.get("CC") or "cc")
    for more in ATTEMPTS:
        command = [*compiler, *FLAGS, *more, str(source), "-o", str(new)]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=120)
            os.replace(new, library)  # whoever has loaded the one before keeps it
        except (OSError, subprocess.SubprocessError):
            continue
        return library
    with contextlib.suppress(OSError):  # a folder that cannot be written holds nothing of ours
        for path in (new, library):
            path.unlink(missing_ok=True)
    return None


class SumsHook(BuildHookInterface[Any]):
    """Puts the library into the wheel, which then is one for this platform alone."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before the files are gathered; `version` is `standard` or `editable`."""
        if sys.platform == "win32":
            return
        library = compiled(Path(self.root))
        if library is None:
            self.app.display_warning("no C compiler: measured steps will take more time")
        elif version == "standard":
            build_data["tag"] = f"py3-none-{next(platform_tags())}"
            build_data["pure_python"] = False
            build_data["artifacts"].append(library.relative_to(self.root).as_posix())
