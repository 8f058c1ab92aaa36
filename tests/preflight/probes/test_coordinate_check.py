"""Whether what a step changes grows with the width."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.preflight.cases import case_of, classifier, codes, finding, labelled, probed, reason
from traindx.errors import UsageError
from traindx.findings import Severity
from traindx.preflight.targets import case_named
from traindx.run import Run

PROGRAM = """
import torch
from torch import nn


def batch():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(32, 16, generator=generator)
    return x, torch.randint(0, 5, (32,), generator=generator)


def layers(width):
    return nn.Sequential(
        nn.Linear(16, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 5)
    )


def standard(width=64):
    net = layers(width)
    return net, batch(), nn.CrossEntropyLoss(), torch.optim.Adam(net.parameters(), lr=1e-3)


def maximal(width=64):
    net = layers(width)
    for layer in net[2], net[4]:
        nn.init.normal_(layer.weight, std=width ** -0.5)
    nn.init.zeros_(net[4].weight)
    rates = [(net[0], 1e-3), (net[2], 1e-3 * 64 / width), (net[4], 1e-3 * 64 / width)]
    groups = [{"params": layer.parameters(), "lr": lr} for layer, lr in rates]
    return net, batch(), nn.CrossEntropyLoss(), torch.optim.Adam(groups)


def halfway(d_model=64):
    net = layers(d_model)
    groups = [{"params": net[0].parameters(), "lr": 0.064 / d_model}]
    groups.append({"params": net[2:].parameters()})
    return net, batch(), nn.CrossEntropyLoss(), torch.optim.Adam(groups, lr=1e-3)


def of_size(units):
    return standard(units)


def heads(width=64):
    if width % 64:
        raise ValueError("64 heads need a multiple of 64")
    return standard(width)


def fixed():
    return standard()


net = layers(8)
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    (tmp_path / "wide.py").write_text(PROGRAM, encoding="utf-8")
    return str(tmp_path / "wide.py")


def look(target: str, argument: str | None = None) -> Run:
    return probed(case_named(target, width_argument=argument), "coordinate-check")


def exponents(run: Run) -> dict[str, float]:
    return {series.site.fqn: series.last for series in run.series("probe.width_exponent")}


@pytest.mark.slow
def test_the_standard_parametrization_is_told_as_information(program: str):
    run = look(f"{program}:standard")
    found = finding(run, "S008")
    assert found.severity is Severity.INFO
    assert found.evidence.site.fqn in ("2", "4")
    slopes = exponents(run)
    assert slopes.keys() == {"0", "2", "4"}
    assert slopes["4"] > 0.6
    assert slopes["0"] < 0.25


@pytest.mark.slow
def test_the_maximal_update_parametrization_is_not_reported(program: str):
    run = look(f"{program}:maximal")
    assert codes(run) == []
    assert max(exponents(run).values()) < 0.25


@pytest.mark.slow
def test_rates_that_depend_on_the_width_and_do_not_make_up_for_it_are_a_warning(program: str):
    found = finding(look(f"{program}:halfway"), "S008")
    assert found.severity is Severity.WARNING
    assert "d_model^" in found.evidence.message


def test_an_argument_without_a_default_is_a_width_if_it_is_named(program: str):
    case = case_named(f"{program}:of_size", width_argument="units")
    assert case.widths is not None
    assert (case.widths.argument, case.widths.base) == ("units", 64)
    assert case.widths.case(8).model[0].out_features == 8  # pyright: ignore


def test_a_name_that_is_no_argument_is_refused(program: str):
    with pytest.raises(UsageError, match="has no argument `breadth`"):
        case_named(f"{program}:standard", width_argument="breadth")


def test_a_width_that_cannot_be_made_is_told(program: str):
    assert "cannot be made with width=32: UsageError" in reason(look(f"{program}:heads"))


@pytest.mark.parametrize(
    "make",
    [
        lambda program: case_named(f"{program}:fixed"),
        lambda program: case_named(f"{program}:net", shape="4x16"),
        lambda program: case_of(classifier(), labelled(), nn.CrossEntropyLoss()),
    ],
)
def test_without_a_function_of_the_width_there_is_nothing_to_see(
    program: str, make: Callable[[str], Any]
):
    told = reason(probed(make(program), "coordinate-check"))
    assert told == "no function makes the model in other widths"


def test_the_random_state_of_the_program_is_as_before(program: str):
    case = case_named(f"{program}:standard")
    before = torch.get_rng_state()
    probed(case, "coordinate-check")
    assert torch.equal(before, torch.get_rng_state())
