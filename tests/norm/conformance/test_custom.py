"""A user's own layer: understood where it is right, named where it is not, never trusted."""

from pathlib import Path

import pytest

from traindx.errors import UsageError
from traindx.norm.conformance import patience
from traindx.norm.conformance.matrix import TargetResult
from traindx.norm.conformance.running import matrix

SOURCE = '''
import numpy as np
import torch
from torch import nn


class Biased(nn.BatchNorm2d):
    """Its running variance is biased."""

    def forward(self, x):
        before = self.running_var.clone()
        y = super().forward(x)
        if self.training:
            n = x.numel() // x.shape[1]
            kept = before * (1 - self.momentum)
            self.running_var.copy_(kept + (self.running_var - kept) * (n - 1) / n)
        return y


class Right(nn.LayerNorm):
    pass


def biased(channels):
    return Biased(channels)


def right(channels):
    return Right(channels)


def function():
    def by_one_pass(x):
        mean = x.mean(axis=-1, keepdims=True)
        var = (x * x).mean(axis=-1, keepdims=True) - mean * mean
        return (x - mean) / np.sqrt(np.maximum(var, 0) + x.dtype.type(1e-5))

    return by_one_pass


def broken():
    raise RuntimeError("nothing here")


def crooked():
    return lambda x: x[:1]


def text():
    return lambda x: "no numbers"


def leaving():
    raise SystemExit(3)


class Silent(Exception):
    def __str__(self):
        raise RuntimeError("nothing to say")


def silent():
    raise Silent


def a_class():
    return nn.LayerNorm


def two(first, second):
    return nn.GroupNorm(first, second)


def named(*, channels):
    return nn.BatchNorm2d(channels)


def last_axis():
    def normalize(x):
        x -= x.mean(axis=-1, keepdims=True)
        x /= np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5)
        return x

    return normalize


generator = np.random.default_rng(0)


def restless():
    return lambda x: x + generator.normal(size=x.shape).astype(x.dtype)


def endless():
    def wait(x):
        while True:
            pass

    return wait


not_a_function = 3
'''


@pytest.fixture
def examined(tmp_path: Path, request: pytest.FixtureRequest):
    file = tmp_path / f"own_{abs(hash(request.node.name))}.py"
    file.write_text(SOURCE)

    def examine(name: str, norm: str | None = None) -> TargetResult:
        return matrix([f"{file}:{name}"], norm).targets[0]

    return examine


def names(found: TargetResult) -> set[str]:
    return {one.name for one in found.differences if one.severity != "info"}


def test_the_family_of_a_layer_is_found_out(examined) -> None:
    assert examined("right").layers[0].kind == "layer_norm"
    assert examined("biased").layers[0].kind == "batch_norm"


def test_a_right_layer_has_no_error(examined) -> None:
    assert names(examined("right", "torch.LayerNorm")) == set()


def test_a_biased_running_variance_is_named(examined) -> None:
    found = examined("biased", "torch.BatchNorm2d")
    text = [one.text for one in found.differences if one.name == "running-variance"]
    assert text == ["running variance biased, not unbiased"]


def test_a_function_of_an_array_is_a_layer_too(examined) -> None:
    found = examined("function", "layer_norm")
    assert "one-pass-variance" in names(found)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("broken", "RuntimeError: nothing here"),
        ("crooked", "an output of shape (1, 6, 4, 8)"),
        ("text", "TypeError"),
        ("leaving", "SystemExit: 3"),
        ("silent", "the layer raises Silent"),
        ("a_class", "the factory gives the class LayerNorm, and no layer"),
    ],
)
def test_what_goes_wrong_in_it_is_said_of_it(examined, name: str, words: str) -> None:
    found = examined(name, "layer_norm")
    assert [one.name for one in found.differences] == ["raises"]
    assert words in found.differences[0].text


def test_what_answers_otherwise_each_time_is_named(examined) -> None:
    assert names(examined("restless", "layer_norm")) == {"not-repeatable"}


def test_what_writes_into_its_input_is_named(examined) -> None:
    assert "overwrites-input" in names(examined("last_axis", "layer_norm"))


def test_axes_of_another_family_are_named_and_stop_nothing(examined) -> None:
    (axes,) = [one for one in examined("last_axis", "batch_norm").differences if one.name == "axes"]
    assert axes.text == "statistics over axes 3, not 0, 2, 3"


@pytest.mark.parametrize("name", ["two", "named"])
def test_a_factory_that_needs_more_than_a_number_is_refused(examined, name: str) -> None:
    with pytest.raises(UsageError, match="A factory is called without arguments"):
        examined(name)


def test_a_layer_that_does_not_return_is_waited_for_only_so_long(
    examined, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "SECONDS", 0.1)
    with pytest.raises(UsageError, match="has given no answer within"):
        examined("endless")


@pytest.mark.parametrize("name", ["not_a_function", "missing", ""])
def test_a_name_that_makes_no_layer_is_refused(examined, name: str) -> None:
    with pytest.raises(UsageError, match="has no function"):
        examined(name, "layer_norm")


@pytest.mark.parametrize("place", ["", "../up", "a b", "with\x1b[31mcolour"])
def test_what_is_no_name_of_a_module_is_refused(place: str) -> None:
    with pytest.raises(UsageError, match="neither the name of a module nor a Python file"):
        matrix([f"{place}:layer"], "layer_norm")


def test_a_module_that_cannot_be_imported_is_refused() -> None:
    with pytest.raises(UsageError, match=r"`no_such_place` cannot be imported"):
        matrix(["no_such_place:layer"], "layer_norm")


def test_an_unknown_family_is_refused(examined) -> None:
    with pytest.raises(UsageError, match="Conformance knows the families"):
        examined("right", "torch.weight_norm")
