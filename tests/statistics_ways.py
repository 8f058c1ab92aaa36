"""Both ways that statistics on the CPU are taken, for tests that hold them to one standard."""

from collections.abc import Iterator

import pytest

from traindx.stats import native

COMPILED = bool(native.FUNCTIONS)
"""Whether there was a compiler here."""


@pytest.fixture(
    scope="module", autouse=True, params=[*(["in one pass"] if COMPILED else []), "no compiler"]
)
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every test of a module that imports this runs in both ways."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "no compiler":
            patch.setattr(native, "FUNCTIONS", {})
        yield request.param
