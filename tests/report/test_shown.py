"""One place of a run on the terminal, and all layers at a glance."""

from __future__ import annotations

from tests.report.sample import BOLD_NAME, IMG_NAME, sample_run
from traindx.records import Site
from traindx.report import shown
from traindx.report.places import matching
from traindx.report.sparkline import ASCII

RUN = sample_run()


def _shown(word: str, **options) -> str:
    return shown.render(RUN, matching(RUN, word), **options)


def test_a_layer_is_shown_with_its_facts_its_parameters_and_its_finding() -> None:
    text = _shown("bn2")
    assert text.startswith("net · bn2 (BatchNorm2d, layer 4 of 6)\n")
    assert "parameter weight, 64x32, float32, trained by Adam" in text
    assert "error N001 bn-eval-gap" in text
    assert "norm.running_gap" in text


def test_each_quantity_has_its_first_last_least_and_greatest_value() -> None:
    [line] = [line for line in _shown("bn2").splitlines() if "norm.running_gap" in line]
    series = RUN.at("norm.running_gap", Site("net", "bn2"))
    assert series is not None
    values = [f"{value:.4g}" for value in (series.first, series.last, 0.0, max(series.values))]
    assert line.split()[1:5] == [values[0], values[1], "0", values[3]]


def test_a_parameter_named_alone_is_shown_once() -> None:
    text = _shown("bn2.weight")
    assert text.count("update.ratio") == 1
    assert "output.rms" not in text


def test_a_parameter_is_not_shown_again_after_its_layer() -> None:
    text = _shown("bn*")
    assert text.count("net · bn1") == 1
    assert "net · bn1.weight" not in text


def test_where_the_stream_has_no_blocks_the_line_is_ascii() -> None:
    lines = [line for line in _shown("bn2", levels=ASCII).splitlines() if "output.rms" in line]
    assert all(line.isascii() for line in lines)


def test_a_series_over_decades_says_that_its_scale_is_logarithmic() -> None:
    text = _shown("conv1.weight")
    assert "log: the line is drawn on a logarithmic scale" not in text  # it spans less than two
    assert "x: a value that is not finite" in _shown("critic.*")


def test_what_was_skipped_here_is_an_event_of_the_place() -> None:
    assert "step 0: output not measured: compiled" in _shown(f"critic.{BOLD_NAME}")


def test_control_characters_in_names_are_not_shown() -> None:
    for text in (_shown("critic*"), shown.render_layers(RUN)):
        assert "\x1b" not in text
        assert "[bold]x[/]" in text


def test_the_layers_are_listed_in_network_order_with_what_was_found() -> None:
    lines = shown.render_layers(RUN).splitlines()
    [bn2] = [line for line in lines if " bn2 " in line]
    assert bn2.split()[:3] == ["4", "bn2", "BatchNorm2d"]
    assert bn2.split()[-1] == "N001"
    assert [line for line in lines if IMG_NAME[:20] in line]


def test_columns_keep_their_place_in_chinese() -> None:
    lines = shown.render_layers(RUN, language="zh-Hant").splitlines()
    assert lines[0].startswith("1 個錯誤、1 個警告")
    [bn2] = [line for line in lines if " bn2 " in line]
    assert bn2.split()[-1] == "N001"
    assert "位置      net · bn2" in _shown("bn2", language="zh-Hant")
