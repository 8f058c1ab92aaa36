"""What no source file may hold."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "src" / "traindx").rglob("*.py"))
MAX_LINES = 400

# Where capture brings values to the host, and why that is not once too often.
SYNCS = {"item", "cpu", "tolist", "numpy"}
MAY_SYNC = {
    "capture/arrays.py::numbers": "an array of NumPy's",
    "capture/optimizers.py::_entries": "a gradient that is on the host",
    "capture/quiet.py::Quiet._read": "a loss that is on the host",
    "capture/transfer.py::_plain": "what is on the host, or what a copy has brought there",
    "stats/memory.py::_type_in_numpy": "a tensor of its own on the host",
    "stats/host.py::_sums_of_each": "arrays of NumPy's",
}

# The script runner is the one place that executes code: the user's own script.
MAY_EXECUTE = {"script.py"}
EXECUTES = {"eval", "exec", "compile"}
PICKLES = {"pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT / "src" / "traindx").as_posix()


def functions_with_calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    """Every call of a file, with the dotted name of the function it stands in."""

    def walk(node: ast.AST, inside: str) -> Iterator[tuple[str, ast.Call]]:
        for child in ast.iter_child_nodes(node):
            where = inside
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                where = f"{inside}.{child.name}".lstrip(".")
            if isinstance(child, ast.Call):
                yield inside, child
            yield from walk(child, where)

    yield from walk(ast.parse(path.read_text(encoding="utf-8")), "")


def test_every_module_says_what_it_is() -> None:
    trees = {name_of(path): ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES}
    assert [name for name, tree in trees.items() if not ast.get_docstring(tree)] == []


def test_no_named_tuple_has_a_second_base_which_python_3_10_refuses() -> None:
    classes = [
        (name_of(path), node)
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    ]
    tuples = [
        (name, node.name, len(node.bases))
        for name, node in classes
        if any(ast.unparse(base).endswith("NamedTuple") for base in node.bases)
    ]
    assert tuples
    assert [(name, cls) for name, cls, bases in tuples if bases > 1] == []


def test_no_file_is_longer_than_a_reader_bears() -> None:
    lines = {name_of(path): path.read_text(encoding="utf-8").count("\n") for path in SOURCES}
    assert {name: count for name, count in lines.items() if count > MAX_LINES} == {}


def test_values_reach_the_host_only_in_the_named_places() -> None:
    measuring = [p for p in SOURCES if name_of(p).startswith(("capture/", "stats/"))]
    found = {
        f"{name_of(path)}::{inside}"
        for path in measuring
        for inside, call in functions_with_calls(path)
        if isinstance(call.func, ast.Attribute) and call.func.attr in SYNCS
    }
    assert found == set(MAY_SYNC)


def unsafe(path: Path) -> Iterator[str]:
    """What in a file could run code that came as data."""
    for inside, call in functions_with_calls(path):
        match call.func:
            case ast.Name(id=name) if name in EXECUTES and name_of(path) not in MAY_EXECUTE:
                yield f"{name_of(path)}::{inside} calls {name}"
            case ast.Attribute(value=ast.Name(id="torch"), attr="load") if (
                "weights_only=True" not in map(ast.unparse, call.keywords)
            ):
                yield f"{name_of(path)}::{inside} calls torch.load for more than weights"
            case _:
                pass
    for module in PICKLES & imported_modules(path):
        yield f"{name_of(path)} imports {module}"


def imported_modules(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


def test_no_data_is_ever_executed() -> None:
    assert [problem for path in SOURCES for problem in unsafe(path)] == []


def test_the_search_for_unsafe_calls_finds_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    bad = tmp_path / "src" / "traindx" / "bad.py"
    bad.parent.mkdir(parents=True)
    bad.write_text("from pickle import loads\ndef f(x):\n    eval(x)\n    torch.load(x)\n")
    assert len(list(unsafe(bad))) == 3


def tracked_files() -> list[Path]:
    command = [
        "git",
        "-C",
        str(ROOT),
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]
    listed = subprocess.run(command, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]


# Spelled in pieces, so that this file passes its own test.
PLACES = re.compile(
    "|".join(("/wor" + "k/", "/far" + "m/", "/roo" + "t/", "/tm" + "p/[a-z]", "/hom" + "e/[a-z]"))
)
REGISTRIES = re.compile(
    "|".join(("pypi" + r"\.org", "python" + "hosted", "registry" + r"\.npmjs", "deb" + r"\.debian"))
)


def test_no_file_names_a_place_on_one_machine_or_a_package_registry() -> None:
    found: list[str] = []
    for path in tracked_files():
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue
        found += [
            f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
            for number, line in enumerate(lines, start=1)
            if PLACES.search(line) or REGISTRIES.search(line)
        ]
    assert found == []
