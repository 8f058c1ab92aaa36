"""`Run.plot_*`: plotly figures with the numbers that were measured, and errors that help."""

from __future__ import annotations

import math

import pytest

from benchmarks.page import large_run
from tests.report.sample import sample_run
from traindx.errors import UsageError
from traindx.facts import ModelFacts, ModuleFacts, ParamFacts, PathFacts
from traindx.records import Description, Point, Record, Scalar, Site, TensorStats
from traindx.report.figures.site import GAP
from traindx.rules.catalog import catalog
from traindx.run import Run


@pytest.fixture(scope="module")
def run() -> Run:
    return large_run(8, 20)


def test_the_losses_carry_the_evaluations() -> None:
    figure = sample_run().plot_losses()
    evaluations = next(trace for trace in figure.data if trace.mode == "markers")
    assert list(evaluations.x) == [99, 199, 299, 399]
    assert figure.data[0].y[0] == pytest.approx(2.35)


def test_a_heatmap_has_a_row_a_site_and_hides_no_nan() -> None:
    figure = sample_run().plot_layers("grad.rms")
    assert len(figure.data) == 3
    assert len(figure.data[0].z) == 9
    assert any(1 in row for row in figure.data[2].z)


def test_a_site_is_found_by_its_path_and_shows_its_parameters(run: Run) -> None:
    figure = run.plot_site("blocks.0.linear")
    titles = [annotation.text for annotation in figure.layout.annotations]
    assert titles[:3] == ["loss", "output.rms", "output_grad.rms"]
    one = run.plot_site(Site("net", "blocks.0.linear.weight"), "grad.rms")
    series = run.series("grad.rms", fqn="blocks.0.linear.weight")[0]
    assert list(one.data[-1].y) == pytest.approx(list(series.values))


def test_exponents_are_shares_with_the_limits_of_half_precision(run: Run) -> None:
    figure = run.plot_exponents("blocks.0.linear", "grad.exponents")
    column = [row[0] for row in figure.data[0].customdata]
    assert sum(share for share in column if share) == pytest.approx(100.0)
    assert {shape.y0 for shape in figure.layout.shapes} >= {-14.5, -24.5}


def test_a_normalization_has_a_mark_a_channel(run: Run) -> None:
    figure = run.plot_norm("blocks.3.norm")
    assert len(figure.data[0].x) == 64
    vector = run.vectors("norm.batch_var")[Site("net", "blocks.3.norm")][-1]
    assert list(figure.data[2].y) == pytest.approx([math.sqrt(v) for v in vector.values])


def test_update_ratios_stand_beside_the_guide(run: Run) -> None:
    assert list(run.plot_updates().data[-1].y) == [1e-3, 1e-3]


def test_the_gap_drawn_is_the_threshold_of_the_rule() -> None:
    assert catalog()["N001"].options["gap"] == GAP


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda run: run.plot_layers("grad.rmx"), "Did you mean `grad.rms`?"),
        (lambda run: run.plot_layers("applied_grad.rms"), "was not measured in this run"),
        (lambda run: run.plot_layers("grad.exponents"), "use `plot_exponents`"),
        (lambda run: run.plot_site("blocks.0.linar"), "Did you mean `blocks.0.linear`?"),
        (lambda run: run.plot_norm("blocks.0.linear"), "`blocks.3.norm`"),
        (lambda run: run.plot_depth(step=77), "the nearest that was is 19"),
        (lambda run: run.plot_exponents("blocks.0.linear", "grad.exponent"), "`grad.exponents`?"),
        (lambda _: Run().plot_losses(), "nothing to draw"),
    ],
)
def test_what_is_not_there_is_told_with_what_is_near(run: Run, ask, words: str) -> None:
    with pytest.raises(UsageError) as error:
        ask(run)
    assert words in str(error.value)


# -- the theory's predictions --------------------------------------------------------------------


def stats(count: int, rms: float) -> TensorStats:
    return TensorStats(count, 0.0, count * rms * rms, -rms, rms)


def two_layers(given: int, bound: float | None = None, sigmoids: int = 0) -> Run:
    """Linear(100, 50) after a model input of `given` elements, then Linear(50, 10); batch of 4."""
    path = PathFacts(sigmoids, 0, bound) if bound is not None else None
    deeper = PathFacts(2 * sigmoids, 0, 2 * bound) if bound is not None else None
    facts = ModelFacts(
        "net",
        "Net",
        (ModuleFacts("", "Net", 0), ModuleFacts("a", "Linear", 1), ModuleFacts("b", "Linear", 2)),
        (
            ParamFacts("a.weight", (50, 100), "float32", True, path=deeper),
            ParamFacts("b.weight", (10, 50), "float32", True, path=path),
        ),
    )
    run = Run([Description(0, facts)])
    run.add(Record(0, Site("net"), Point.INPUT, stats(given, 2.0)))
    run.add(Record(0, Site("net", "a"), Point.OUTPUT, stats(200, 1.5)))
    run.add(Record(0, Site("net", "b"), Point.OUTPUT, stats(40, 3.0)))
    for name, rms in (("a.weight", 1e-5), ("b.weight", 1e-2)):
        run.add(Scalar(0, "param.rms", 0.1, Site("net", name)))
        run.add(Record(0, Site("net", name), Point.GRAD, stats(10, rms)))
    return run


def test_the_fan_in_rule_predicts_from_what_a_layer_was_given() -> None:
    _, predicted = two_layers(given=400).plot_depth("output.rms", 0).data
    # sqrt(100 * 0.1^2 * 2^2) and sqrt(50 * 0.1^2 * 1.5^2)
    assert list(predicted.y) == pytest.approx([2.0, math.sqrt(0.5) * 1.5])


def test_no_output_is_predicted_from_an_input_of_another_size() -> None:
    _, predicted = two_layers(given=399).plot_depth("output.rms", 0).data
    assert predicted.y[0] is None


def test_a_chain_of_sigmoids_bounds_the_gradient_from_the_last_layer_on() -> None:
    _, bound = two_layers(400, bound=-2.0, sigmoids=3).plot_depth("grad.rms", 0).data
    assert list(bound.y) == pytest.approx([1e-4, 1e-2])


def test_without_sigmoids_no_bound_is_drawn() -> None:
    assert len(two_layers(400, bound=-2.0).plot_depth("grad.rms", 0).data) == 1
    assert len(two_layers(400).plot_depth("grad.rms", 0).data) == 1
