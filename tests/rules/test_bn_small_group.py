"""N003: how many values a batch statistic is made of."""

from __future__ import annotations

import math
from array import array
from dataclasses import replace
from itertools import groupby

import pytest

from tests.rules.recording import Recording, batchnorm_net, evaluated
from traindx.findings import Severity
from traindx.measured import LONG
from traindx.records import Bundle, Item, Point, Record, Scalar, Site, TensorStats
from traindx.rules.catalog import find
from traindx.rules.engine import judge

CHANNELS = 10


def noise_of(size: float) -> float:
    """How far the variance of so many independent normal values is off."""
    return math.sqrt(2 / (size - 1))


def run_of(
    batches: list[int],
    *,
    noise: float | None = None,
    positions: int | None = 1,
    kind: str = "BatchNorm2d",
    training: int = 1,
    updates: int = 1,
    initial_weight: float = 0.0,
    momentum: float | None = 0.1,
    more: int = 0,
) -> Recording:
    """A run whose layer `bn2` sees these batches, `bn1` and `more` sixteen times as many values."""
    others = [f"more.{i}" for i in range(more)]
    model = batchnorm_net("bn1", "bn2", *others, momentum=momentum)
    modules = [replace(m, kind=kind) if m.fqn == "bn2" else m for m in model.modules]
    recording = Recording(replace(model, modules=(*modules,)))
    for step, batch in enumerate(batches):
        recording.scalar(step, "batch.size", batch)
        for fqn, times in (("bn1", 16), ("bn2", 1), *((other, 16) for other in others)):
            values = batch * (positions or 1) * times
            # A batch of one value has no variance.
            found = noise if noise is not None else noise_of(max(values, 2))
            recording.scalar(step, "norm.training", training, fqn)
            recording.scalar(step, "norm.updates", updates, fqn)
            recording.scalar(step, "norm.initial_weight", initial_weight, fqn)
            recording.scalar(step, "norm.variance_noise", found, fqn)
            if positions:
                count = values * CHANNELS * updates
                stats = TensorStats(count, 0.0, float(count), -3.0, 3.0)
                recording.items.append(Record(step, Site("net", fqn), Point.OUTPUT, stats))
        recording.measured(step)
    return recording


def test_fires_as_a_warning_on_batches_of_eight():
    (finding,) = run_of([8] * 20).findings("N003")
    assert finding.severity is Severity.WARNING
    assert finding.evidence.site == ("net", "bn2")
    assert finding.evidence.numbers["size"] == 8
    assert finding.evidence.layers == ("bn2",)
    assert finding.evidence.numbers["expected_noise"] == pytest.approx(noise_of(8))
    assert finding.evidence.message == (
        "1 of 2 normalization layers normalize by too few values: `bn2` by 8 a channel (threshold "
        "16), and their variance is off by 53% from batch to batch (median of 10 measured steps)"
    )
    assert "The variance of 8 independent values is uncertain by" in finding.evidence.cause


def test_fires_as_an_error_on_batches_of_two():
    (finding,) = run_of([2] * 20).findings("N003")
    assert finding.severity is Severity.ERROR
    assert "(threshold 4)" in finding.evidence.message


def test_fires_with_a_repair_for_the_layers_there_are():
    (finding,) = run_of([8] * 20).findings("N003")
    assert "math.gcd(8, m.num_features)" in finding.evidence.fix
    (finding,) = run_of([8] * 20, kind="BatchNorm1d").findings("N003")
    assert "net.set_submodule(name, torch.nn.GroupNorm(1, m.num_features))" in finding.evidence.fix


@pytest.mark.parametrize(("batch", "severity"), [(3, "error"), (4, "warning"), (15, "warning")])
def test_the_thresholds_are_where_they_are_said_to_be(batch: int, severity: str):
    (finding,) = run_of([batch] * 20).findings("N003")
    assert finding.severity.value == severity


def test_silent_from_sixteen_values_on():
    assert run_of([16] * 20).findings("N003") == ()


def test_silent_where_the_noise_is_not_there():
    """Samples that are alike: the formula speaks of independent ones."""
    least = 0.5 * noise_of(8)
    assert run_of([8] * 20, noise=0.99 * least).findings("N003") == ()
    assert len(run_of([8] * 20, noise=1.01 * least).findings("N003")) == 1


def test_silent_on_a_small_last_batch_of_each_epoch():
    assert run_of([64, 64, 64, 2] * 10).findings("N003") == ()


def test_silent_on_a_layer_that_trains_in_eval_mode():
    assert run_of([2] * 20, training=0).findings("N003") == ()


def test_silent_while_the_initial_statistics_weigh():
    assert run_of([2] * 20, initial_weight=0.06).findings("N003") == ()
    assert len(run_of([2] * 20, initial_weight=0.05).findings("N003")) == 1


def test_silent_until_three_steps_are_measured():
    assert run_of([2] * 2).findings("N003") == ()
    assert len(run_of([2] * 3).findings("N003")) == 1


def test_silent_on_synchronized_layers_whose_batch_is_that_of_all_processes():
    assert run_of([2] * 20, kind="SyncBatchNorm").findings("N003") == ()


def test_silent_on_two_images_whose_many_positions_scatter_little():
    """A convolution over 2 x 7 x 7 values, correlated as those of images are."""
    assert run_of([2] * 20, positions=49, noise=0.3).findings("N003") == ()


def test_positions_that_all_resemble_each_other_count_as_few():
    (finding,) = run_of([2] * 20, positions=49, noise=0.6).findings("N003")
    assert finding.evidence.site.fqn == "bn1"  # as noisy, and stands before the other
    assert finding.evidence.numbers["size"] == pytest.approx(1 + 2 / 0.36)
    assert "in batches of 2 the variance at `bn1` is off by 60%" in finding.evidence.message
    assert "as that of 6.6 independent values would be (threshold 16;" in finding.evidence.message


def test_silent_on_sixteen_samples_however_much_they_scatter():
    assert run_of([16] * 20, positions=49, noise=2.0).findings("N003") == ()


def test_micro_batches_do_not_add_up():
    """Four passes of 4 samples: 16 in a step, whose variances the measurement averages."""
    (finding,) = run_of([4] * 20, updates=4, noise=noise_of(4) / 2).findings("N003")
    assert finding.evidence.numbers["size"] == 4
    assert finding.evidence.numbers["noise"] == pytest.approx(noise_of(4), rel=0.01)


def test_micro_batches_of_a_cumulative_average_weigh_the_same():
    recording = run_of([4] * 20, updates=4, noise=0.4, momentum=None)
    (finding,) = recording.findings("N003")
    assert finding.evidence.numbers["noise"] == pytest.approx(0.8)


def test_a_batch_that_is_passed_twice_is_not_halved():
    """Checkpointing runs a layer again in backward: two updates, outputs counted once."""
    recording = run_of([20] * 20, updates=2)
    for i, item in enumerate(recording.items):
        if isinstance(item, Record):
            stats = replace(item.stats, count=item.stats.count // 2)
            recording.items[i] = replace(item, stats=stats)
    assert recording.findings("N003") == ()


def test_a_compiled_model_is_judged_by_its_noise():
    (finding,) = run_of([4] * 20, positions=None, noise=noise_of(6)).findings("N003")
    assert finding.evidence.numbers["size"] == pytest.approx(6)
    assert run_of([4] * 20, positions=None, noise=noise_of(30)).findings("N003") == ()


def test_a_step_whose_noise_could_not_be_recovered_does_not_count():
    assert run_of([2] * 20, noise=math.nan).findings("N003") == ()


def test_clears_when_batches_become_larger():
    (finding,) = run_of([4] * 20 + [64] * 10).findings("N003")
    assert not finding.active


def test_is_not_evaluated_without_running_statistics():
    recording = Recording(batchnorm_net())
    recording.measured(0)
    verdict = recording.verdict("N003")
    assert not evaluated(verdict, "N003")
    assert "no normalization layer" in verdict.not_evaluated[0].reason


def in_bundles(items: list[Item]) -> list[Item]:
    """The items as a training writes them: the numbers of each step as one."""
    written: list[Item] = []
    for _, some in groupby(items, key=lambda item: item.step):
        together = list(some)
        records = [item for item in together if isinstance(item, Record)]
        scalars = [item for item in together if isinstance(item, Scalar)]
        counts, moments = array("q"), array("d")
        for it in (record.stats for record in records):
            counts.extend((it.count, it.nonfinite, it.sampled, it.zeros))
            moments.extend((it.mean, it.m2, it.min, it.max))
        if records:
            places = tuple((record.point, record.site) for record in records)
            names = tuple((scalar.quantity, scalar.site) for scalar in scalars)
            values = array("d", [scalar.value for scalar in scalars])
            written.append(Bundle(records[0].step, places, counts, moments, names, values))
        written += [item for item in together if not isinstance(item, Record | Scalar)]
    return written


@pytest.mark.parametrize("large", range(10, 16))
def test_batches_that_become_small_are_told_as_soon_as_if_each_number_were_looked_at(large: int):
    recording = run_of([32] * large + [8] * 12, more=LONG)
    found = judge(in_bundles(recording.items), [find("N003")]).findings
    assert found == recording.findings("N003")
    assert [finding.first_step for finding in found] == [large + 5]
