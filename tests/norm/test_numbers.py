"""Arrays and options as people write them."""

from pathlib import Path

import numpy as np
import pytest

from traindx.errors import ArgumentError, UsageError
from traindx.norm.choices import Estimator
from traindx.norm.numbers import array, running, spec
from traindx.norm.spectral import PowerVectors


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,2;3,0;5,4", [[1, 2], [3, 0], [5, 4]]),
        ("1 2; 3 0", [[1, 2], [3, 0]]),
        ("1,-2.5e-3", [1, -0.0025]),
        ("7", [7]),
        ("[[1, 2], [3, 0]]", [[1, 2], [3, 0]]),
        (" [[[1]]]", [[[1]]]),
    ],
)
def test_an_array_is_written_in_rows_or_as_json(text: str, expected: object) -> None:
    assert array(text).tolist() == expected


def test_files_are_read_by_their_ending(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("\ufeff1,2\n3,0\n", encoding="utf-8")
    (tmp_path / "a.tsv").write_text("1\t2\n3\t0\n")
    np.save(tmp_path / "a.npy", np.array([[1, 2], [3, 0]], dtype=np.int16))
    for name in ("a.csv", "a.tsv", "a.npy"):
        assert array(str(tmp_path / name)).tolist() == [[1, 2], [3, 0]]


@pytest.mark.parametrize("text", ["", "a", "1,2;3", "[1, [2]]", "[1", '["x"]', "{}", "[" * 5000])
def test_what_is_no_array_is_told(text: str) -> None:
    with pytest.raises(UsageError, match="is no array of numbers"):
        array(text)


def test_a_hostile_file_runs_nothing_and_takes_no_memory(tmp_path: Path) -> None:
    pickled = tmp_path / "p.npy"
    np.save(pickled, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    promising = tmp_path / "big.npy"
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"
    padded = header + b" " * (117 - len(header)) + b"\n"
    promising.write_bytes(b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded)
    cut = tmp_path / "cut.npy"
    cut.write_bytes(b"\x93NUMPY\x01")
    words = tmp_path / "w.npy"
    np.save(words, np.array(["a"]))
    zipped = tmp_path / "z.npy"
    zipped.write_bytes(b"PK\x03\x04")
    for file in (pickled, promising, cut, words, zipped):
        with pytest.raises(UsageError):
            array(str(file))


def test_a_missing_file_and_a_large_array_are_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"Cannot read `.*no.csv`: No such file"):
        array(str(tmp_path / "no.csv"))
    np.save(tmp_path / "large.npy", np.zeros(100_001))
    with pytest.raises(UsageError, match="100000 at most"):
        array(str(tmp_path / "large.npy"))


def test_options_are_read_as_their_defaults_are() -> None:
    made = spec("torch.BatchNorm2d", ["eps=1e-3", "momentum=none"])
    assert made.eps == 1e-3
    assert made.running is not None
    assert made.running.momentum is None
    tracked = spec("torch.InstanceNorm1d", ["variance=unbiased", "momentum=0.2"])
    assert tracked.running is not None
    assert tracked.running.variance is Estimator.UNBIASED
    assert spec("torch.GroupNorm", ["num_groups=4"]).groups is not None


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("torch.BatchNorm1d", ["eps"], "An option is `NAME=VALUE`"),
        ("torch.BatchNorm1d", ["eps=abc"], "do not make a torch.BatchNorm1d"),
        ("torch.BatchNorm1d", ["one_sample=maybe"], "'maybe' is none of refuse"),
        ("torch.InstanceNorm1d", ["variance=x"], "'x' is none of biased"),
    ],
)
def test_an_option_that_makes_nothing_is_told(name: str, options: list[str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        spec(name, options)


def test_an_unknown_layer_is_told_with_near_names() -> None:
    with pytest.raises(ArgumentError, match=r"torch\.GroupNorm"):
        spec("torch.GroupNom", [])


def test_what_a_layer_remembers_comes_in_pairs() -> None:
    assert running(None, None, 0, u=None, v=None) is None
    assert isinstance(running(None, None, 0, u="1", v="1"), PowerVectors)
    for given in (("1", None, None, None), (None, None, "1", None)):
        with pytest.raises(UsageError, match="a mean and a variance"):
            running(given[0], given[1], 0, u=given[2], v=given[3])


def test_a_running_variance_is_not_negative() -> None:
    with pytest.raises(UsageError, match="A running variance is 0 or more; got -2"):
        running("0,0", "1,-2", 0, u=None, v=None)
