"""Scripts that start processes: each child is as it would be, and none writes for the parent."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.twins import WATCHED, run, run_files, same, write
from traindx.run import Run

PROCESSES = """
    import multiprocessing, os, subprocess, sys
    from concurrent.futures import ProcessPoolExecutor

    class Task:
        def __init__(self, n):
            self.n = n

        def __call__(self):
            return self.n ** 2

    def work(task):
        return task(), __name__, sys.argv, sys.path[0], task.__class__.__module__

    def fail(n):
        return 1 / n

    def exits():
        print("child", __name__, flush=True)
        sys.exit(5)

    if __name__ == "__main__":
        context = multiprocessing.get_context(sys.argv[1])
        with context.Pool(2) as pool:
            print(pool.map(work, [Task(2), Task(3)]))
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            print(pool.submit(work, Task(4)).result())
            print(repr(pool.submit(fail, 0).exception()))
        child = context.Process(target=exits)
        child.start()
        child.join()
        print(child.exitcode)
        queue = context.Queue()
        child = context.Process(target=queue.put, args=(os.environ.get("HOME"),))
        child.start()
        print(queue.get())
        child.join()
        print(subprocess.run([sys.executable, "-c", "import sys; print('traindx' in sys.modules)"],
                             capture_output=True, text=True))
"""

TRAINING = """
        import torch
        torch.nn.Linear(1, 1)(torch.ones(1, 1)).sum().backward()
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children_run_as_they_would_and_write_nothing(tmp_path: Path, method: str):
    write(tmp_path / "script.py", PROCESSES + TRAINING)
    assert same(tmp_path, "script.py", method).code == 0
    (file,) = run_files(tmp_path)
    header = Run.load(file).header
    assert (header["exit_code"], header["backwards"]) == (0, 1)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_modules_children_find_the_module_again(tmp_path: Path, method: str):
    write(tmp_path / "package" / "__init__.py", "")
    write(tmp_path / "package" / "part.py", PROCESSES)
    assert same(tmp_path, "-m", "package.part", method).code == 0


def test_a_worker_that_fails_in_the_parents_face_shows_the_same_traceback(tmp_path: Path):
    source = """
        import multiprocessing

        def fail(n):
            return 1 / n

        if __name__ == "__main__":
            with multiprocessing.get_context("fork").Pool(1) as pool:
                pool.map(fail, [1, 0])
    """
    write(tmp_path / "script.py", source)
    assert b"RemoteTraceback" in same(tmp_path, "script.py").stderr


def test_children_report_nothing_of_their_own(tmp_path: Path):
    write(tmp_path / "script.py", PROCESSES)
    said = run((*WATCHED, "script.py", "fork"), tmp_path).stderr
    assert said.count(b"traindx: ") == 1
