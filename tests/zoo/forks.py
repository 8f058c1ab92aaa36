"""Runs programs in forks of one process that has torch and traindx loaded already.

To import them takes several times as long as a program of the zoo trains. Run as a script, this
file is that process: it reads an order a line, and answers each with the exit code.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import subprocess
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended."""

    code: int
    stdout: str
    stderr: str


class Forks:
    """The process that forks, for as long as it is open."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.zoo.forks"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
            env=environment,
        )

    def run(
        self, folder: Path, *arguments: object, watched: bool = False, **environment: str
    ) -> Ended:
        """Run a program, or the command line of traindx with `watched`, in a folder."""
        out, err = folder / "stdout.txt", folder / "stderr.txt"
        argv = [str(argument) for argument in arguments]
        order = {"argv": argv, "watched": watched, "folder": str(folder)}
        order["environment"] = environment
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        code = int(self._process.stdout.readline())
        return Ended(code, out.read_text(encoding="utf-8"), err.read_text(encoding="utf-8"))

    def close(self) -> None:
        """Let the process end, which it does when nothing more can come."""
        self._process.communicate()


def _serve() -> None:
    import torch
    import torch._dynamo  # as the first optimizer does, in more time than most programs train

    from traindx.capture import capture
    from traindx.cli import main, run
    from traindx.rules.catalog import catalog

    assert capture
    assert torch._dynamo
    assert run
    torch.set_num_threads(1)
    catalog()
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if not pid:
            os.environ.update(order["environment"])
            _run(order["argv"], Path(order["folder"]), main.main if order["watched"] else None)
        _, status = os.waitpid(pid, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()
    os._exit(0)


def _run(argv: list[str], folder: Path, command: object) -> NoReturn:
    """What the fork does: run the command, or else the script, as a process of its own would."""
    os.chdir(folder)
    for number, name in ((1, "stdout.txt"), (2, "stderr.txt")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    code = 0
    try:
        if callable(command):
            sys.argv = ["traindx", *argv]
            command()
        else:
            sys.argv = argv
            runpy.run_path(argv[0], run_name="__main__")
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(bool(ended.code))
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    _serve()
