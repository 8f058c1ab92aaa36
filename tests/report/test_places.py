"""What a person types, found among the modules and parameters of a run."""

from __future__ import annotations

import pytest

from tests.report.sample import IMG_NAME, sample_run
from traindx.errors import UsageError
from traindx.records import Site
from traindx.report.layers import layers
from traindx.report.places import all_sites, findings_at, findings_of, matching
from traindx.run import Run


@pytest.mark.parametrize("word", ["bn2", "net.bn2", "net/bn2"])
def test_a_path_is_found_with_its_model_or_without(word: str) -> None:
    assert matching(sample_run(), word) == [Site("net", "bn2")]


def test_a_pattern_finds_several_in_network_order() -> None:
    found = matching(sample_run(), "bn?")
    assert [site.fqn for site in found] == ["bn1", "bn2"]
    assert next(iter(matching(sample_run(), "net.*.bias"))).fqn == "conv1.bias"


def test_a_name_is_taken_as_it_is_before_it_is_a_pattern() -> None:
    run = sample_run()
    assert matching(run, IMG_NAME) == [Site("net", IMG_NAME)]


def test_a_model_is_a_place() -> None:
    assert matching(sample_run(), "critic") == [Site("critic")]


def test_the_nearest_names_are_told() -> None:
    with pytest.raises(UsageError, match=r"no layer or parameter `bn3` in `net`, `critic`.*`bn2`"):
        matching(sample_run(), "bn3")


def test_nothing_like_it_names_no_nearest() -> None:
    with pytest.raises(UsageError, match=r"`@@@` in `net`, `critic`\.$"):
        matching(sample_run(), "@@@")


def test_a_run_without_models_says_so() -> None:
    with pytest.raises(UsageError, match="knows no model"):
        matching(Run(), "bn1")


def test_a_layer_has_the_findings_of_its_parameters() -> None:
    run = sample_run()
    conv1 = layers(run.models["net"])[0]
    assert [f.code for f in findings_of(run, conv1)] == ["G001"]
    assert findings_at(run, conv1.site) == []
    assert [f.code for f in findings_at(run, Site("net", IMG_NAME), active=False)] == ["N002"]
    assert len(all_sites(run)) == 1 + 6 * 3 + 1 + 2 * 3
