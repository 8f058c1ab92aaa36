"""A script ends under `traindx run` as it ends under `python`: code, traceback, last words."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.twins import (
    OURS,
    PYTHON,
    WATCHED,
    Outcome,
    run,
    same,
    signalled,
    write,
)

ENDINGS = {
    "normally": ("print('end')", 0),
    "sys.exit(3)": ("import sys; sys.exit(3)", 3),
    "sys.exit(text)": ("import sys; sys.exit('bad weights')", 1),
    "sys.exit(None)": ("import sys; sys.exit(None)", 0),
    "sys.exit(-1)": ("import sys; sys.exit(-1)", 255),
    "sys.exit(256)": ("import sys; sys.exit(256)", 0),
    "sys.exit(True)": ("import sys; sys.exit(True)", 1),
    "sys.exit(130)": ("import sys; sys.exit(130)", 130),
    "exit(object)": ("exit((1, 'two'))", 1),
    "os._exit(4)": ("import os; print('lost'); os._exit(4)", 4),
    "os.abort": ("import os; print('x', flush=True); os.abort()", -signal.SIGABRT),
    "SIGTERM": ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
    "SIGKILL": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
    "KeyboardInterrupt": ("raise KeyboardInterrupt", -signal.SIGINT),
    "SIGINT": ("import os, signal; os.kill(os.getpid(), signal.SIGINT)", -signal.SIGINT),
    "an exception": ("def f(x):\n    return 1 / x\n\n\nf(0)", 1),
    "an import": ("import nothing", 1),
    "a module's exception": ("import json; json.loads('{')", 1),
    "GeneratorExit": ("raise GeneratorExit", 1),
    "a cause": (
        "try:\n    {}['x']\nexcept KeyError as e:\n    raise ValueError('no x') from e",
        1,
    ),
    "a context": ("try:\n    {}['x']\nfinally:\n    1 / 0", 1),
    "a circle": (
        "a, b = ValueError(1), ValueError(2)\na.__cause__ = b\nb.__cause__ = a\nraise a",
        1,
    ),
    "recursion": ("def f(n):\n    return f(n + 1)\n\n\nf(0)", 1),
    "deep": (
        "import sys\nsys.setrecursionlimit(9000)\n\n\n"
        "def f(n):\n    return f(n - 1) if n else g(5000)\n\n\n"
        "def g(n):\n    return f(0, 1) if not n else g(n - 1)\n\n\nf(3000)",
        1,
    ),
    "a syntax error": ("def f(:\n    pass", 1),
    "an indentation error": ("if True:\n\tx = 1\n        y = 2", 1),
    "an exception that equals none": (
        "class E(Exception):\n    def __eq__(self, other): raise TypeError\n    __hash__ = None\n"
        "raise E('odd') from E('cause')",
        1,
    ),
    "a note": ("e = ValueError('x')\ne.__notes__ = ['look here']\nraise e", 1),
    "an excepthook": ("import sys\nsys.excepthook = lambda *e: print('hook', *e[:2])\n1 / 0", 1),
    "an excepthook that exits": (
        "import sys\nsys.excepthook = lambda *e: sys.exit(9)\n1 / 0",
        9,
    ),
    "an excepthook that fails": (
        "import sys\n\n\ndef hook(*e):\n    {}['y']\n\n\nsys.excepthook = hook\n1 / 0",
        1,
    ),
    "a traceback limit": ("import sys\nsys.tracebacklimit = 0\n1 / 0", 1),
    "no stdout": ("import sys\nprint('x')\nsys.stdout.close()", 0),
    "stdout gone": ("import sys\nsys.stdout = None", 0),
    "stdout replaced": ("import sys\nsys.stdout = 5\nsys.stderr = sys.__stdout__\n1 / 0", 120),
    "chdir": ("import os\nos.mkdir('x')\nos.chdir('x')\nos.rmdir('../x')\n1 / 0", 1),
    "atexit": (
        "import atexit, sys\natexit.register(print, 'bye')\nprint('end', end='')\nsys.exit(5)",
        5,
    ),
    "atexit after an error": ("import atexit\natexit.register(print, 'bye')\n1 / 0", 1),
    "atexit after Ctrl-C": (
        "import atexit\natexit.register(print, 'bye')\nraise KeyboardInterrupt",
        -signal.SIGINT,
    ),
    "an open file": ("f = open('/dev/stderr', 'w')\nf.write('written at the end')", 0),
    "an open file at Ctrl-C": (
        "f = open('/dev/stderr', 'w')\nf.write('written at the end')\nraise KeyboardInterrupt",
        -signal.SIGINT,
    ),
    "a finalizer": (
        "class F:\n    def __del__(self): print('gone', __name__)\n\n\nf = F()",
        0,
    ),
    "a weak finalizer": ("import weakref\nweakref.finalize(print, print, 'gone')", 0),
    "a thread": (
        "import threading, time\n\n\ndef late():\n    time.sleep(0.2)\n    print('late')\n\n\n"
        "threading.Thread(target=late).start()\nprint('main')",
        0,
    ),
    "a thread after an error": (
        "import threading, time\n\n\ndef late():\n    time.sleep(0.2)\n    print('late')\n\n\n"
        "threading.Thread(target=late).start()\n1 / 0",
        1,
    ),
    "a thread that waits for the main one": (
        "import threading\n\n\ndef late():\n    threading.main_thread().join()\n    print('late')\n"
        "\n\nthreading.Thread(target=late).start()",
        0,
    ),
    "a thread that fails": (
        "import threading\nthreading.Thread(target=lambda: 1 / 0, name='t').start()",
        0,
    ),
    "a daemon": (
        "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()",
        0,
    ),
    "an idle pool": (
        "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(2)\n"
        "print(pool.submit(pow, 2, 3).result())",
        0,
    ),
    "asyncio": (
        "import asyncio\n\n\nasync def main():\n    await asyncio.to_thread(print)\n    1 / 0\n"
        "\n\nasyncio.run(main())",
        1,
    ),
    "a failing atexit": ("import atexit\natexit.register(int, 'x')\nprint('end')", 0),
    "a signal handler of its own": (
        "import os, signal, sys\nsignal.signal(signal.SIGINT, lambda *_: sys.exit(7))\n"
        "os.kill(os.getpid(), signal.SIGINT)\nsignal.pause()",
        7,
    ),
    "a child of its own": (
        "import os\nprint('before', flush=True)\npid = os.fork()\n"
        "if pid: print(os.waitpid(pid, 0)[1])\nelse: print('child')",
        0,
    ),
    "a child that fails": (
        "import os\npid = os.fork()\nif pid: print(os.waitpid(pid, 0)[1])\nelse: 1 / 0",
        0,
    ),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_script_ends_in_the_same_way(tmp_path: Path, ending: str):
    source, code = ENDINGS[ending]
    write(tmp_path / "script.py", source)
    assert same(tmp_path, "script.py").code == code


@pytest.mark.parametrize(
    "ending", ["an exception", "a cause", "sys.exit(3)", "SIGINT", "recursion"]
)
def test_a_module_ends_in_the_same_way(tmp_path: Path, ending: str):
    source, code = ENDINGS[ending]
    write(tmp_path / "package" / "part.py", source)
    assert same(tmp_path, "-m", "package.part").code == code
    write(tmp_path / "package" / "__main__.py", source)
    assert same(tmp_path, "package").code == code


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python has no exception groups yet")
def test_a_group_of_exceptions_is_shown_with_every_member(tmp_path: Path):
    source = """
        def f(x):
            raise KeyError(x)

        errors = []
        for x in "ab":
            try:
                f(x)
            except KeyError as error:
                errors.append(error)
        raise ExceptionGroup("several", [*errors, ExceptionGroup("inner", [ValueError(1)])])
    """
    write(tmp_path / "script.py", source)
    assert b"in f" in same(tmp_path, "script.py").stderr


WAITING = """
    import atexit, pathlib, time
    atexit.register(print, "atexit")
    print("waiting")
    pathlib.Path("ready").touch()
    time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_script_in_the_same_way(tmp_path: Path, number: signal.Signals):
    write(tmp_path / "script.py", WAITING)
    ready = tmp_path / "ready"
    plain = signalled((*PYTHON, "script.py"), tmp_path, ready, number)
    assert signalled((*WATCHED, "script.py"), tmp_path, ready, number) == plain
    assert plain.code == -number


def test_ctrl_c_while_threads_are_waited_for_ends_in_the_same_way(tmp_path: Path):
    source = """
        import atexit, pathlib, threading, time
        atexit.register(print, "atexit")

        def late():
            time.sleep(0.3)
            pathlib.Path("ready").touch()
            time.sleep(0.5)

        threading.Thread(target=late).start()
    """
    write(tmp_path / "script.py", source)
    ready = tmp_path / "ready"
    plain = signalled((*PYTHON, "script.py"), tmp_path, ready, signal.SIGINT)
    watched = signalled((*WATCHED, "script.py"), tmp_path, ready, signal.SIGINT)
    assert (watched.code, watched.stdout) == (plain.code, plain.stdout) == (0, b"atexit\n")
    assert watched.stderr.splitlines()[:2] == plain.stderr.splitlines()[:2]
    assert b"KeyboardInterrupt" in watched.stderr


def until_closed(command: tuple[str, ...], cwd: Path) -> Outcome:
    """What comes of a command whose output is read by somebody who stops reading."""
    pipe, env = subprocess.PIPE, {**os.environ, "PYTHONUNBUFFERED": ""}
    with subprocess.Popen(
        command, cwd=cwd, env=env, stdin=pipe, stdout=pipe, stderr=pipe
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdout.read(1)
        process.stdout.close()
        process.stdin.close()
        stderr = process.stderr.read()
    return Outcome(process.returncode, b"", OURS.sub(b"", stderr))


@pytest.mark.parametrize(
    "source",
    [
        "import sys\nfor _ in range(100_000): print('line')",
        "import os, sys\nos.write(1, b'x')\nsys.stdin.read()\nprint('y')",
    ],
    ids=["while it writes", "when it ends"],
)
def test_a_pipe_that_nobody_reads_ends_in_the_same_way(tmp_path: Path, source: str):
    write(tmp_path / "script.py", source)
    plain = until_closed((*PYTHON, "script.py"), tmp_path)
    watched = until_closed((*WATCHED, "script.py"), tmp_path)
    assert watched == plain
    assert b"BrokenPipeError" in plain.stderr


def test_a_child_of_the_scripts_own_says_nothing_of_traindx(tmp_path: Path):
    source, _ = ENDINGS["a child of its own"]
    write(tmp_path / "script.py", source)
    said = run((*WATCHED, "script.py"), tmp_path).stderr
    assert said.count(b"traindx: no training was seen") == 1
