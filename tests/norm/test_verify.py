"""The worked example: what is printed, and what happens when a reference is wrong."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from traindx.cli.norm import app
from traindx.norm import verify as verification
from traindx.norm.choices import Estimator
from traindx.norm.lines import LINES
from traindx.norm.presets import torch_batch_norm
from traindx.norm.sheet import Table, by_fractions, by_reference
from traindx.norm.spec import Running
from traindx.norm.verify import LIMIT, verify, worst

SHEET = Path(__file__).with_name("sheet.txt").read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def printed() -> list[str]:
    outcome = CliRunner().invoke(app, ["verify"])
    assert outcome.exit_code == 0, outcome.output
    return outcome.output.splitlines()


def test_result_lines_equal_the_sheet_except_versions_and_scope(printed: list[str]) -> None:
    assert printed[1 : len(SHEET) - 1] == SHEET[1:-1]


def test_version_line_shows_the_installed_versions(printed: list[str]) -> None:
    versions = f"numpy={np.__version__} torch={torch.__version__} device=cpu dtype=float64"
    assert printed[0] == versions


def test_scope_line_says_what_was_compared(printed: list[str]) -> None:
    scope = printed[len(SHEET) - 1]
    assert scope.startswith("scope=one CPU BN batch")
    assert "against torch and fractions" in scope


def test_lines_below_the_sheet_are_exact_and_end_with_the_worst_deviation(
    printed: list[str],
) -> None:
    below = printed[len(SHEET) :]
    assert below[0] == (
        "fan_in_rule_enumerated= Var(output)=119/6 fan_in*s^2*v=119/6 equal=True cases=729"
    )
    assert [line.partition("=")[0] for line in below[1:]] == [
        "fan_in_rule_sampled",
        "Y_train_by_fractions",
        "running_mean_new_by_fractions",
        "running_var_new_by_fractions",
        "Y_eval_by_fractions",
        "sigmoid_chain_by_fractions",
        "worst_deviation",
    ]
    assert 0 < float(below[-1].split()[0].partition("=")[2]) <= 1e-15


def test_every_line_is_compared_with_torch_and_fractions() -> None:
    compared = {result.key: set(result.deviations) for result in verify()}
    assert all(compared[line.key] == {"torch", "fractions"} for line in LINES)


def test_biased_running_variance_exits_1_and_names_the_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    biased = replace(torch_batch_norm(), running=Running(Estimator.BIASED, 0.1))
    monkeypatch.setattr(verification, "by_reference", lambda: by_reference(batch=biased))
    outcome = CliRunner().invoke(app, ["verify"])
    assert outcome.exit_code == 1
    assert outcome.stderr.splitlines()[0] == (
        "BN_running_variance_after_one_batch differs from torch by 0.133 and "
        "differs from fractions by 0.133; allowed: 1e-12"
    )


def keys_at_fault(**wrong: object) -> list[str]:
    return [result.key for result in verify(replace(by_reference(), **wrong)) if result.faults]


def test_error_of_two_limits_is_found_and_half_a_limit_is_not() -> None:
    def shifted(by: float) -> Callable[[Table], Table]:
        right = by_reference().layer_norm
        return lambda x: [[number + by for number in row] for row in right(x)]

    assert keys_at_fault(layer_norm=shifted(2 * LIMIT)) == ["LayerNorm_rowwise_output"]
    assert keys_at_fault(layer_norm=shifted(LIMIT / 2)) == []
    results = verify(replace(by_reference(), layer_norm=shifted(LIMIT / 2)))
    assert "line=LayerNorm_rowwise_output" in worst(results)


def test_chain_is_judged_relative_to_its_tiny_value() -> None:
    off = 0.25**20 * (1 + 1e-10)  # an absolute error of only 1e-22
    assert keys_at_fault(chain_derivative=off) == [
        "constructed20sigmoid_chain_input_gradient",
        "sigmoid_chain_by_fractions",
    ]


def test_layer_that_depends_on_the_batch_is_not_called_invariant() -> None:
    def leaking(x: Table) -> Table:
        right = by_reference()
        return right.train(x) if len(x) > 1 else right.layer_norm(x)

    results = {r.key: r for r in verify(replace(by_reference(), layer_norm=leaking))}
    result = results["LayerNorm_first_sample_batch_composition_invariant"]
    assert result.text.endswith("= False")
    assert result.faults


def test_non_finite_and_missing_values_are_faults_not_passes() -> None:
    assert keys_at_fault(running_mean=[float("nan"), 0.2], running_var=[1.3]) == [
        "BN_running_mean_after_one_batch",
        "BN_running_variance_after_one_batch",
        "running_mean_new_by_fractions",
        "running_var_new_by_fractions",
    ]


def test_wrong_fractions_are_found_by_what_the_sheet_states(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wrong = replace(by_fractions(), running_var=[1.25, 1.3])
    monkeypatch.setattr(verification, "by_fractions", lambda: wrong)
    faulty = {result.key: result.faults for result in verify() if result.faults}
    assert "is stated as [1.3, 1.3]" in faulty["running_var_new_by_fractions"]


def test_without_torch_ours_is_still_verified_and_one_line_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "traindx.norm.sheet_torch", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    outcome = CliRunner().invoke(app, ["verify"])
    assert outcome.exit_code == 0, outcome.output
    lines = outcome.output.splitlines()
    assert " torch=none " in lines[0]
    assert lines[1 : len(SHEET) - 1] == SHEET[1:-1]
    assert lines[len(SHEET)] == "torch was not compared: it is not installed"
