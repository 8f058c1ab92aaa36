"""The healthy programs: each learns what its docstring promises, and traindx finds nothing.

A program that did not learn would be no measure of false alarms.
"""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.zoo.forks import Forks

PROGRAMS = sorted(Path(__file__).parents[2].joinpath("zoo", "healthy").glob("*.py"))
SEEDS = range(5)
EXPECTED = re.compile(r"^Expected: (?P<metric>.+?) (?P<sign>[<>]) (?P<bound>\d+\.\d+)", re.M)
# What people train, and the ways in which they do; a kind is a program of that name.
KINDS = {
    "networks": """mlp conv_bn vgg resnet unet mobilenet convnext capsules lstm gru_regression
        packed_sequences weight_norm_tcn seq2seq ctc vit post_norm_transformer prenorm_transformer
        rotary_decoder masked_language_model graph_network deep_sets mixture_of_experts
        hypernetwork siren neural_ode""",
    "aims": """autoencoder vae vq_vae gan wgan_gp diffusion realnvp simclr moco simsiam triplet
        siamese dqn reinforce actor_critic ppo raw_target_regression imbalanced label_noise ordinal
        quantile cox_survival multitask distillation super_resolution pinn maml""",
    "ways": """amp_bf16 fp16_scaler gradient_accumulation embedding_classifier tied_gru lora
        finetune_frozen_backbone frozen_bn_finetune progressive_unfreezing ema swa sam lbfgs lion
        manual_sgd cyclic_lr cosine_restarts full_batch batch_of_one tiny_data train_to_overfit
        mixup curriculum quantization_aware kfold resume evaluate_first compiled streaming""",
}

each_program = pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)


def promise_of(program: Path) -> re.Match[str]:
    docstring = ast.get_docstring(ast.parse(program.read_text(encoding="utf-8")))
    promise = EXPECTED.search(docstring or "")
    assert promise, "the docstring needs a line `Expected: METRIC > BOUND`"
    return promise


def output_of(forks: Forks, program: Path, seed: int, folder: Path) -> str:
    """What a program prints by itself."""
    ended = forks.run(folder, program, "--seed", seed)
    assert (ended.code, ended.stderr) == (0, "")
    return ended.stdout


def watched(forks: Forks, program: Path, seed: int, folder: Path) -> tuple[str, dict[str, Any]]:
    """What a program prints while it is watched, and the diagnosis."""
    document = folder / "diagnosis.json"
    options = ("run", "--quiet", "--runs", folder, "--json", document, "--fail-on", "info")
    ended = forks.run(folder, *options, program, "--seed", seed, watched=True)
    assert document.exists(), ended.stderr
    diagnosis = json.loads(document.read_text(encoding="utf-8"))
    assert (diagnosis["findings"], ended.code, ended.stderr) == ([], 0, "")
    return ended.stdout, diagnosis


def assert_promise_kept(program: Path, output: str) -> None:
    promise = promise_of(program)
    last_line = output.splitlines()[-1]
    printed = re.fullmatch(rf"{re.escape(promise['metric'])}[ :=]+(\d+\.\d+)", last_line)
    assert printed, f"the last line should be the promised metric, not {last_line!r}"
    value, bound = float(printed[1]), float(promise["bound"])
    assert value > bound if promise["sign"] == ">" else value < bound, last_line


def test_there_are_programs_of_every_kind():
    wanted = {name for names in KINDS.values() for name in names.split()}
    assert wanted - {program.stem for program in PROGRAMS} == set()
    assert len(PROGRAMS) >= 72


@each_program
def test_a_program_promises_a_number_and_takes_a_seed(program: Path):
    assert promise_of(program)
    assert '"--seed", type=int, default=0' in program.read_text(encoding="utf-8")


@each_program
def test_a_program_takes_nothing_but_data_from_traindx(program: Path):
    imports = re.findall(r"^\s*(?:from|import)\s+(traindx\S*)", program.read_text("utf-8"), re.M)
    assert set(imports) <= {"traindx.datasets"}


@pytest.mark.slow
@each_program
def test_a_program_learns_what_it_promises_with_every_seed(
    program: Path, forks: Forks, tmp_path: Path
):
    outputs = [output_of(forks, program, seed, tmp_path) for seed in SEEDS]
    for output in outputs:
        assert_promise_kept(program, output)
    assert len(set(outputs)) == len(SEEDS)


@pytest.mark.slow
@each_program
def test_nothing_is_found_and_a_program_prints_the_same_with_and_without_traindx(
    program: Path, forks: Forks, tmp_path: Path
):
    output, diagnosis = watched(forks, program, 0, tmp_path)
    assert diagnosis["run"]["measured_steps"] >= 10
    assert output == output_of(forks, program, 0, tmp_path)
