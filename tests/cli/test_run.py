"""A script finds the world under `traindx run` as it finds it under `python`."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.cli.twins import PYTHON, TRAINDX, WATCHED, outcome, run, run_files, same, twins, write

WORLD = """
    import os, signal, sys, types
    main = sys.modules["__main__"]
    print(sys.argv, sys.path[0], len(sys.path), os.getcwd(), sys.flags, sys.warnoptions)
    print(__name__, __file__, getattr(__spec__, "name", None), __builtins__, __package__, __doc__)
    print(type(__loader__), getattr(__loader__, "path", None), __cached__, __annotations__)
    print(main.__dict__ is globals(), sorted(globals()), type(main) is types.ModuleType)
    print([(s, signal.getsignal(s)) for s in signal.valid_signals()], sys.stdin.buffer.read())
    print(sys.excepthook is sys.__excepthook__, sys.stdout is sys.__stdout__, sys.gettrace())
    print({"torch", "numpy", "plotly", "concurrent.futures.thread"} & sys.modules.keys())
    import logging, random, warnings, threading, multiprocessing
    print(logging.root.handlers, logging.root.level, warnings.filters, len(threading.enumerate()))
    print(multiprocessing.get_start_method(allow_none=True))
    random.seed(1)
    print(random.random())
"""


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """A folder with the same program under several names."""
    write(tmp_path / "world.py", WORLD)
    write(tmp_path / "sub" / "world.py", WORLD)
    write(tmp_path / "folder" / "__main__.py", WORLD)
    write(tmp_path / "package" / "__init__.py", "")
    write(tmp_path / "package" / "__main__.py", WORLD)
    write(tmp_path / "package" / "part.py", WORLD)
    (tmp_path / "link.py").symlink_to(tmp_path / "sub" / "world.py")
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        archive.write(tmp_path / "folder" / "__main__.py", "__main__.py")
    subprocess.run([sys.executable, "-m", "compileall", "-b", "-q", "sub"], cwd=tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ("world.py",),
        ("./world.py", "--epochs", "3", "-m", "--", "--json", "-"),
        ("sub/../sub/world.py", "--", "-x"),
        ("sub/world.pyc",),
        ("link.py", "größe", "", " "),
        ("world.py", b"\xff"),
        ("folder", "--quiet"),
        ("./folder/", "x"),
        ("archive.zip", "--every", "x"),
        ("-m", "package", "--every", "x"),
        ("-m", "package.part", "--", "-m", "x"),
        ("-m", "world"),
    ],
    ids=str,
)
def test_a_script_finds_the_same_world(world: Path, words: tuple[str, ...]):
    seen = same(world, *words, stdin=b"piped\n")
    assert (seen.code, seen.stderr) == (0, b"")
    assert b"piped" in seen.stdout


def test_a_script_in_another_folder_finds_the_same_world(world: Path):
    assert same(world / "sub", "../world.py").code == 0
    assert same(world / "sub", world / "world.py").code == 0


@pytest.mark.parametrize(
    "env",
    [
        {"PYTHONPATH": "folder:elsewhere"},
        {"PYTHONSAFEPATH": "1"},
        {"PYTHONDEVMODE": "1"},
        {"PYTHONOPTIMIZE": "1", "PYTHONHASHSEED": "0", "PYTHONUNBUFFERED": "1"},
        {"PYTHONWARNINGS": "error", "PYTHONIOENCODING": "latin-1", "LC_ALL": "C"},
    ],
    ids=str,
)
def test_the_interpreter_obeys_the_same_variables(world: Path, env: dict[str, str]):
    assert same(world, "world.py", "é", env=env).code == 0
    assert same(world, "folder", env=env).code == 0
    assert same(world, "-m", "package.part", env={**env, "PYTHONPATH": str(world)}).code == 0


def test_an_interpreter_with_options_runs_the_script_as_it_would_without_traindx(world: Path):
    options = (sys.executable, "-X", "dev", "-W", "ignore", "-s")
    watched = (*options, "-m", "traindx", "run", "world.py", "x")
    assert outcome(watched, world) == outcome((*options, "world.py", "x"), world)


def test_an_isolated_interpreter_puts_no_folder_on_the_path(world: Path):
    options = (sys.executable, "-I")
    watched = (*options, "-m", "traindx", "run", "world.py")
    assert outcome(watched, world) == outcome((*options, "world.py"), world)


def test_modules_of_the_scripts_folder_come_before_those_traindx_uses(tmp_path: Path):
    names = ("secrets", "click", "textwrap", "shutil", "json", "numpy", "rich")
    for name in names:
        write(tmp_path / f"{name}.py", f"print('my own {name}')\n")
    write(tmp_path / "platform" / "__init__.py", "print('my own platform')\n")
    (tmp_path / "typing").mkdir()  # no module, since it comes after the one of the library
    imports = "\n".join(f"import {name}" for name in (*names, "platform", "typing"))
    write(tmp_path / "script.py", imports)
    assert same(tmp_path, "script.py").stdout.count(b"my own") == 8


def test_asking_where_torch_is_imports_nothing_and_breaks_nothing(tmp_path: Path):
    source = """
        import sys
        from importlib.util import find_spec
        spec = find_spec("torch")
        print(spec.name, spec.origin, type(spec.loader), spec.loader.get_filename("torch"))
        print(find_spec("numpy").origin, find_spec("nothing"), "torch" in sys.modules)
    """
    write(tmp_path / "script.py", source)
    assert same(tmp_path, "script.py").code == 0


def test_a_torch_that_fails_to_import_fails_with_its_own_traceback(tmp_path: Path):
    write(tmp_path / "torch.py", "raise OSError('libcudart.so is missing')\n")
    source = """
        import traceback
        try:
            import torch
        except OSError as error:
            print(error)
        import torch
    """
    write(tmp_path / "script.py", source)
    assert b"missing" in same(tmp_path, "script.py").stderr


def test_a_torch_unlike_any_other_is_imported_and_not_watched(tmp_path: Path):
    write(tmp_path / "torch.py", "__version__ = '0.0'\n")
    write(
        tmp_path / "script.py", "import torch; print(torch.__version__, type(torch.__loader__))\n"
    )
    assert same(tmp_path, "script.py").code == 0
    said = run((*WATCHED, "script.py"), tmp_path).stderr.decode()
    assert "torch cannot be watched" in said
    assert "Traceback" not in said


def test_warnings_show_as_they_do_without_traindx(tmp_path: Path):
    source = """
        import warnings
        warnings.warn("in main", DeprecationWarning)
        warnings.warn("hidden", PendingDeprecationWarning)
        import helper
        warnings.warn("shown", UserWarning)
        f = open(__file__)
        del f
        print("\\d")
    """
    write(tmp_path / "script.py", source)
    write(tmp_path / "helper.py", "import warnings; warnings.warn('no', DeprecationWarning)\n")
    shown = same(tmp_path, "script.py").stderr
    assert b"in main" in shown
    assert b"shown" in shown
    assert b"ResourceWarning" in same(tmp_path, "script.py", env={"PYTHONWARNINGS": "d"}).stderr


def test_a_script_that_never_trains_is_told_so_in_one_sentence(tmp_path: Path):
    write(tmp_path / "script.py", "print('done')\n")
    done = run((TRAINDX, "run", "script.py"), tmp_path)
    assert (done.returncode, done.stdout) == (0, b"done\n")
    assert run_files(tmp_path) == []
    assert done.stderr.decode().splitlines() == [
        "traindx: no training was seen: "
        "the script's process ran no backward pass and no optimizer step."
    ]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("missing.py",), "There is no script `missing.py`."),
        (("empty",), "`empty` has no `__main__.py`."),
        ((), "`traindx run` needs a script: `traindx run train.py`."),
        (("-m",), "`traindx run` needs a script: `traindx run -m package.train`."),
        (("",), "`` has no `__main__.py`."),
        ((".",), "`.` has no `__main__.py`."),
        (("--json", "-", "script.py"), "give `--json` a file"),
        (("--json", "empty", "script.py"), "Cannot write `empty`: it is a folder."),
        (("--json", "no/x.json", "script.py"), "Cannot write `no/x.json`: make the folder `"),
    ],
    ids=str,
)
def test_nothing_to_run_is_one_sentence(tmp_path: Path, words: tuple[str, ...], sentence: str):
    (tmp_path / "empty").mkdir()
    write(tmp_path / "script.py", "print('ran')\n")
    done = run((TRAINDX, "run", *words), tmp_path)
    assert run_files(tmp_path) == []
    (line,) = done.stderr.decode().splitlines()
    assert (done.returncode, done.stdout) == (2, b"")
    assert line.startswith("traindx: ")
    assert sentence in line


def test_a_module_that_is_missing_leaves_no_run_file(tmp_path: Path):
    assert same(tmp_path, "-m", "missing").code == 1
    assert run_files(tmp_path) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_script_is_one_sentence(tmp_path: Path):
    write(tmp_path / "script.py", "").chmod(0)
    done = run((TRAINDX, "run", "script.py"), tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"traindx: Cannot open the script `script.py`: Permission denied.\n"


@pytest.mark.parametrize(
    "words", [("--unknown",), ("--every", "0"), ("--budget", "2"), ("--budget", "nan")], ids=str
)
def test_an_option_that_makes_no_sense_ends_before_the_script(tmp_path: Path, words: tuple[str]):
    write(tmp_path / "script.py", "print('ran')\n")
    done = run((TRAINDX, "run", *words, "script.py"), tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"Traceback" not in done.stderr
    assert words[0].encode() in done.stderr
    assert not (tmp_path / "traindx-runs").exists()


def test_a_module_that_is_missing_is_named_as_python_does(tmp_path: Path):
    plain, watched = twins(tmp_path, "-m", "missing_module")
    assert watched == plain
    assert b"No module named missing_module" in plain.stderr


def test_a_closed_standard_error_gets_nothing_from_traindx(tmp_path: Path):
    write(tmp_path / "script.py", "print('only this')\n")
    shell = ("sh", "-c", 'exec "$@" 2>&-', "sh")
    plain = outcome((*shell, *PYTHON, "script.py"), tmp_path)
    assert outcome((*shell, *WATCHED, "script.py"), tmp_path) == plain
    assert plain.stdout == b"only this\n"
