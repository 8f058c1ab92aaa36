"""What an installation gets."""

import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import traindx
from tests.statistics_ways import COMPILED

ROOT = Path(__file__).resolve().parent.parent


def build(kind: str, source: Path, folder: Path) -> Path:
    command = [sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "--outdir"]
    subprocess.run([*command, str(folder), str(source)], check=True, capture_output=True)
    return next(folder.glob("traindx-*"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return zipfile.ZipFile(build("wheel", ROOT, tmp_path_factory.mktemp("wheel")))


def metadata(wheel: zipfile.ZipFile) -> list[tuple[str, str]]:
    name = f"traindx-{traindx.__version__}.dist-info/METADATA"
    return Parser().parsestr(wheel.read(name).decode()).items()


def test_torch_is_never_installed_unless_asked_for(wheel: zipfile.ZipFile) -> None:
    needs = [value for key, value in metadata(wheel) if key == "Requires-Dist"]
    torch = [need for need in needs if need.startswith("torch")]
    assert len(torch) == 1
    assert torch[0].endswith("extra == 'torch'")
    assert {"numpy", "plotly", "rich", "typer"} <= {need.partition(">")[0] for need in needs}


def test_the_wheel_holds_the_package_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    tops = {name.partition("/")[0] for name in wheel.namelist()}
    assert tops == {"traindx", f"traindx-{traindx.__version__}.dist-info"}


def test_the_wheel_holds_every_file_of_the_package(wheel: zipfile.ZipFile) -> None:
    source = ROOT / "src"
    files = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    assert {name for name in files if "__pycache__" not in name} <= set(wheel.namelist())


def test_the_wheel_is_for_this_platform_where_it_holds_a_library(wheel: zipfile.ZipFile) -> None:
    tag = str(wheel.filename).rpartition("py3-none-")[2]
    holds = "traindx/stats/_sums.so" in wheel.namelist()
    assert holds == (tag != "any.whl")
    assert holds == COMPILED


def test_the_wheel_without_a_compiler_is_for_every_platform(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "source"
    files = ["pyproject.toml", "README.md", "LICENSE", "THIRD_PARTY_NOTICES", "hatch_build.py"]
    shutil.copytree(ROOT / "src", source / "src")
    for name in files:
        shutil.copy(ROOT / name, source / name)
    monkeypatch.setenv("CC", "false")
    wheel = build("wheel", source, tmp_path / "wheel")
    assert wheel.name.endswith("-py3-none-any.whl")
    assert "traindx/stats/_sums.so" not in zipfile.ZipFile(wheel).namelist()


def test_the_images_and_their_licence_travel_together(wheel: zipfile.ZipFile) -> None:
    names = {Path(name).name for name in wheel.namelist()}
    assert {"fashion_mnist_subset.xz", "fashion_mnist_LICENSE.txt"} <= names


@pytest.mark.parametrize("notice", ["LICENSE", "THIRD_PARTY_NOTICES"])
def test_the_licence_files_are_in_the_wheel_word_for_word(
    wheel: zipfile.ZipFile, notice: str
) -> None:
    name = f"traindx-{traindx.__version__}.dist-info/licenses/{notice}"
    assert wheel.read(name) == (ROOT / notice).read_bytes()


def test_the_wheel_says_that_its_types_can_be_relied_on(wheel: zipfile.ZipFile) -> None:
    assert "traindx/py.typed" in wheel.namelist()


@pytest.mark.slow
def test_the_source_archive_builds_the_same_wheel(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    archive = build("sdist", ROOT, tmp_path / "sdist")
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    source = tmp_path / f"traindx-{traindx.__version__}"
    rebuilt = zipfile.ZipFile(build("wheel", source, tmp_path / "again"))
    assert {i.filename: i.CRC for i in rebuilt.infolist()} == {
        i.filename: i.CRC for i in wheel.infolist()
    }


def test_the_lock_names_one_exact_version_a_line_and_torch_first() -> None:
    lines = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8").splitlines()
    pins = [line.partition(" ;")[0] for line in lines if not line.startswith("#")]
    assert pins[0].startswith("torch==")
    assert [pin for pin in pins if pin.count("==") != 1 or " " in pin] == []
