"""A difference is shown by the smallest question, and its program shows both outputs."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from tests.norm.conformance.twin import Twin
from tests.zoo.forks import Forks
from traindx.norm.conformance.examine import studied
from traindx.norm.conformance.program import program
from traindx.norm.conformance.shrink import shrunk
from traindx.norm.conformance.study import Finding
from traindx.norm.conformance.target import Target
from traindx.norm.conformance.targets.pytorch import Torch

SMALL = {
    ("batch_norm", "running biased"): 4,
    ("layer_norm", "eps 1e-3"): 4,
    ("layer_norm", "one pass clipped"): 4,
    ("rms_norm", "axis 1"): 8,
    ("group_norm", "gradient without variance"): 8,
}
"""Numbers of an input that suffice."""


def first(target: Target, layer: str, name: str, part: str = "") -> Finding:
    return named(studied(target, layer).findings, name, part)


def named(found: Iterable[Finding], name: str, part: str) -> Finding:
    return next(one for one in found if one.difference.name == name and one.part.startswith(part))


NAMES = {
    "running biased": "running-variance",
    "eps 1e-3": "eps",
    "one pass clipped": "one-pass-variance",
    "axis 1": "axis",
    "gradient without variance": "gradient-without-variance",
}


@pytest.mark.parametrize(("kind", "fault"), SMALL)
def test_the_input_is_cut_to_a_few_numbers(kind: str, fault: str) -> None:
    twin = Twin(kind, fault)
    found = first(twin, "Layer", NAMES[fault])
    small = shrunk(twin, found)
    assert small.call.x.size <= SMALL[kind, fault] < found.call.x.size
    assert small.call.weight is None


def test_a_question_that_costs_seconds_is_hardly_cut() -> None:
    twin = Twin("layer_norm", "eps 1e-3")
    found = first(twin, "Layer", "eps")
    twin.slow, twin.asked = True, 0
    shrunk(twin, found)
    assert twin.asked < 10


def test_groups_of_channels_last_are_found_one_pass_with_their_programs(
    tmp_path: Path, forks: Forks
) -> None:
    target = Torch("torch-channels-last", channels_last=True)
    findings = studied(target, "GroupNorm").findings
    for part in ("forward", "forward float64", "backward", "backward float64"):
        found = named(findings, "one-pass-variance", part)
        small = shrunk(target, found)
        assert small.call.x.size <= 4
        assert np.all(small.call.x == np.round(small.call.x))
        got, expected = both(program(target, small), tmp_path, forks)
        worst = np.max(np.abs(got - expected))
        assert worst > 0.02 * np.max(np.abs(expected))


def test_torch_as_it_is_has_no_such_difference() -> None:
    found = studied(Torch("torch"), "GroupNorm").findings
    assert "one-pass-variance" not in {one.difference.name for one in found}


def test_a_program_of_torch_prints_what_the_finding_says(tmp_path: Path, forks: Forks) -> None:
    target = Torch("torch")
    found = shrunk(target, first(target, "BatchNorm", "constant-rounding"))
    got, expected = both(program(target, found), tmp_path, forks)
    assert np.all(expected == 0)
    assert np.all(np.abs(got) > 1e-4)


def test_a_framework_s_words_end_no_docstring() -> None:
    target = Torch("torch")
    found = first(target, "BatchNorm", "constant-rounding")
    target.version = '"""\nimport os  # \\'
    assert "\nimport os  #" not in program(target, found)


def both(source: str, folder: Path, forks: Forks) -> tuple[np.ndarray, np.ndarray]:
    """What a program prints, run on its own."""
    (folder / "program.py").write_text(source, encoding="utf-8")
    done = forks.run(folder, "program.py")
    assert done.code == 0, done.stderr
    lines = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    return tuple(np.array(eval_free(lines[name])) for name in ("got", "expected"))  # pyright: ignore


def eval_free(text: str) -> list[float]:
    """The numbers of a printed list."""
    return [float(number) for number in text.strip(" []").split(",")]
