"""Runs somebody's script as `python SCRIPT` would: same globals, paths, tracebacks, exit code."""

from __future__ import annotations

import builtins
import os
import pkgutil
import runpy
import signal
import sys
import threading
from collections.abc import Callable
from importlib.machinery import (
    BuiltinImporter,
    FrozenImporter,
    SourceFileLoader,
    SourcelessFileLoader,
)
from pathlib import Path
from types import CodeType, ModuleType, TracebackType

from traindx.errors import UsageError
from traindx.messages import say

INTERRUPTED = -signal.SIGINT
"""The exit code that stands for an end by Ctrl-C, as `subprocess` gives it."""

_PACKAGE = Path(__file__).parent
_OURS = (__file__, str(_PACKAGE / "on_import.py"), str(_PACKAGE / "capture") + os.sep)
"""Files whose functions stand on the stack between the interpreter and the script's own."""

_IN_USE = frozenset(
    (
        *("abc", "codecs", "encodings", "genericpath", "io", "ntpath", "os", "posixpath"),
        *("site", "stat", "_collections_abc", "_sitebuiltins", "__main__", "traindx"),
    )
)
"""Modules that are loaded before any script runs, so that none can have its own of that name."""


class Interrupted(BaseException):
    """The script was ended by Ctrl-C, and all has been said about it."""


def run_script(path: str, args: list[str]) -> int:
    """Run a file, a folder or an archive with a `__main__.py`; returns its exit code.

    Raises:
        UsageError: There is nothing to run.
    """
    place = _absolute(path)
    importer = pkgutil.get_importer(place)
    if importer is None:
        load = _loading(path, place)
        _become_main([path, *args])
        _put_first(os.path.dirname(os.path.realpath(path)))
        return _run(lambda: _exec(load()))
    if importer.find_spec("__main__", None) is None:
        raise UsageError(
            say("`{path}` has no `__main__.py`. Give the path of a Python file.", path=path)
        )
    _become_main([path, *args])
    _put_first(place, always=True)
    return _run(lambda: _run_module("__main__", alter_argv=False))


def run_module(name: str, args: list[str]) -> int:
    """Run a module as `python -m NAME` would; returns its exit code."""
    _become_main(["-m", *args])
    _put_first(os.getcwd())
    return _run(lambda: _run_module(name, alter_argv=True))


# -- before it runs --------------------------------------------------------------------------------


def _absolute(path: str) -> str:
    """The path as `__file__` shows it: the interpreter does not tidy what was typed."""
    return path if os.path.isabs(path) else os.path.join(os.getcwd(), path)


def _loading(path: str, place: str) -> Callable[[], CodeType]:
    """What loads the code of a file into `__main__`; that it can be read is certain at once."""
    compiled = place.endswith(".pyc")
    loader = (SourcelessFileLoader if compiled else SourceFileLoader)("__main__", place)
    try:
        data = loader.get_data(place)
    except OSError as error:
        reason = error.strerror
        raise UsageError(
            say("Cannot open the script `{path}`: {reason}.", path=path, reason=reason)
        ) from error

    def load() -> CodeType:
        main = vars(sys.modules["__main__"])
        main.update(__file__=place, __cached__=None, __loader__=loader)
        if isinstance(loader, SourceFileLoader):
            return compile(data, place, "exec", dont_inherit=True)
        code = loader.get_code("__main__")
        assert code is not None
        return code

    return load


def _exec(code: CodeType) -> None:
    _make_room(int(sys.version_info < (3, 12)))  # `exec` counts as a call in older ones
    exec(code, vars(sys.modules["__main__"]))


def _run_module(name: str, *, alter_argv: bool) -> None:
    _make_room()
    # What the interpreter itself calls for `-m`, so that errors and tracebacks are its own.
    runpy._run_module_as_main(name, alter_argv)  # pyright: ignore


def _become_main(argv: list[str]) -> None:
    """Give the script a `__main__` of its own and its arguments."""
    main = ModuleType("__main__")
    vars(main).update(__builtins__=builtins, __spec__=None, __annotations__={})
    sys.modules["__main__"] = main
    sys.argv[:] = argv


def _put_first(folder: str, *, always: bool = False) -> None:
    """Search for modules in `folder` first, in the place of the folder of our own command."""
    if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
        sys.path[0] = folder
    elif always:
        sys.path.insert(0, folder)
    else:
        return
    for name in _shadowed(folder):
        del sys.modules[name]


def _shadowed(folder: str) -> list[str]:
    """Modules we have loaded of which the folder has its own: the script must get that one."""
    finder = pkgutil.get_importer(folder)
    found: set[str] = set()
    for name in {name.partition(".")[0] for name in sys.modules} - _IN_USE:
        if BuiltinImporter.find_spec(name) or FrozenImporter.find_spec(name):
            continue
        spec = finder.find_spec(name, None) if finder else None
        if spec is not None and spec.loader is not None:
            found.add(name)
    return [name for name in sys.modules if name.partition(".")[0] in found]


# -- while it runs, and after ----------------------------------------------------------------------


def _run(body: Callable[[], None]) -> int:
    """Run to the end as the interpreter would: print a traceback, then wait for threads."""
    try:
        return _exit_code(body)
    finally:
        _end_threads()


def _make_room(more: int = 0) -> None:
    """Let the script recurse as deeply as if our caller, and all below it, were not there."""
    limit = sys.getrecursionlimit()
    ours = limit - _room() - 1
    sys.setrecursionlimit(limit + ours + more)


def _room() -> int:
    """How many more calls fit on the stack, this one included."""
    try:
        return 1 + _room()
    except RecursionError:
        return 1


def _exit_code(body: Callable[[], None]) -> int:
    try:
        body()
    except SystemExit as stop:
        return _meaning(stop.code)
    except BaseException as error:
        return _failure(error)
    return 0


def _meaning(code: object) -> int:
    """The exit code behind the argument of `sys.exit`; a message is printed."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF if -(2**63) <= code < 2**63 else 0xFF
    print(code, file=sys.stderr)
    return 1


def _failure(error: BaseException) -> int:
    """The exit code of a script that raised, once its excepthook has had its say."""
    try:
        _print_traceback(error)
    except SystemExit as stop:
        return _meaning(stop.code)
    return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1


def _print_traceback(error: BaseException) -> None:
    """Print it as if traindx stood nowhere on the stack, through the script's own excepthook."""
    _clean(error)
    sys.last_type, sys.last_value = type(error), error
    sys.last_traceback = error.__traceback__
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    except SystemExit:
        raise
    except BaseException as another:
        another.__context__ = None
        _clean(another)
        print("Error in sys.excepthook:", file=sys.stderr)
        sys.__excepthook__(type(another), another, another.__traceback__)
        print("\nOriginal exception was:", file=sys.stderr)
        sys.__excepthook__(type(error), error, error.__traceback__)


def _clean(error: BaseException) -> None:
    """Take our frames out of the tracebacks of an error and of those that led to it."""
    pending: list[BaseException | None] = [error]
    seen: set[int] = set()
    while pending:
        link = pending.pop()
        if link is not None and id(link) not in seen:
            seen.add(id(link))
            link.__traceback__ = _without_ours(link.__traceback__)
            pending += [link.__cause__, link.__context__, *getattr(link, "exceptions", ())]


def _without_ours(traceback: TracebackType | None) -> TracebackType | None:
    """The same traceback without our frames, and the import machinery that called them."""
    kept: list[TracebackType] = []
    while traceback is not None:
        if not _in(traceback, _OURS):
            kept.append(traceback)
        else:
            while kept and _in(kept[-1], ("<frozen importlib",)):
                kept.pop()
        traceback = traceback.tb_next
    rest = None
    for entry in reversed(kept):
        rest = TracebackType(rest, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return rest


def _in(traceback: TracebackType, files: tuple[str, ...]) -> bool:
    return traceback.tb_frame.f_code.co_filename.startswith(files)


def _end_threads() -> None:
    """Wait for the script's threads, and release those that wait for work, as at any exit."""
    try:
        threading._shutdown()  # pyright: ignore (what the interpreter itself calls)
    except BaseException as error:
        _clean(error)
        print(f"Exception ignored in: {threading!r}", file=sys.stderr)
        sys.__excepthook__(type(error), error, error.__traceback__)


def exit_as(code: int) -> None:
    """Leave the process as the script would have.

    Raises:
        Interrupted: It was ended by Ctrl-C; raise a `KeyboardInterrupt` at the top for it.
    """
    if code == INTERRUPTED:
        raise Interrupted
    sys.exit(code)
