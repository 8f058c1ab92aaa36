"""What judging a large run costs: seconds per rule, and per measured step as the run grows.

Run it with `python benchmarks/rules.py`; `--layers` and `--steps` judge other runs. The run is that
of `benchmarks/page.py` with everything that the rules read of it beside.
"""

from __future__ import annotations

import argparse
import functools
import time
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from page import large_items

from traindx.facts import OptimizerFacts
from traindx.records import (
    RUN,
    Bundle,
    Description,
    Event,
    EventKind,
    Item,
    Record,
    Scalar,
    Site,
)
from traindx.rules.catalog import catalog
from traindx.rules.engine import Engine
from traindx.rules.rule import Rule

_OF_MODELS = {"batch.size": 64.0, "mode.training": 1.0}
_OF_PARAMS = {"grad.absent": 0.0}
_OF_OUTPUTS = {"units.dead_fraction": 0.1, "units.samples": 1024.0}
_OF_NORMS = {
    "norm.training": 1.0,
    "norm.updates": 1.0,
    "norm.tracked": 100.0,
    "norm.initial_weight": 0.0,
    "norm.running_change": 0.01,
    "norm.variance_noise": 0.2,
}


def judged_items(num_layers: int, num_steps: int) -> Iterator[list[Item]]:
    """A run of which every rule of the passive kind has something to read."""
    for step, items in enumerate(large_items(num_layers, num_steps)):
        head: list[Item] = []
        if step == 0:
            head.append(Description(0, OptimizerFacts("Adam", "Adam", ({"lr": 1e-3},), num_layers)))
        if step == 2:
            head.append(Event(step, EventKind.EVALUATION, Site("net"), {"training": False}))
        own = [item for place in _places(items) for item in _more(step, *place)]
        rate = Scalar(step, "lr", 1e-3, Site("", "Adam"))
        yield [*head, *_bundled(step, [*items[:-1], *own, rate]), items[-1]]


def _bundled(step: int, items: list[Item]) -> Iterator[Item]:
    """The items as a recorder writes them: what is one number or a record of numbers together."""
    records = [item for item in items if isinstance(item, Record)]
    scalars = [item for item in items if isinstance(item, Scalar) and item.quantity != "loss"]
    counts, moments = array("q"), array("d")
    for stats in (record.stats for record in records):
        counts.extend((stats.count, stats.nonfinite, stats.sampled, stats.zeros))
        moments.extend((stats.mean, stats.m2, stats.min, stats.max))
    places = _shared(tuple((record.point, record.site) for record in records))
    names = _shared(tuple((scalar.quantity, scalar.site) for scalar in scalars))
    values = array("d", [scalar.value for scalar in scalars])
    yield from (item for item in items if not isinstance(item, Record | Scalar))
    yield Bundle(step, places, counts, moments, names, values)
    yield from (item for item in items if isinstance(item, Scalar) and item.quantity == "loss")


@functools.lru_cache(maxsize=8)
def _shared(names: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same tuple for the same places, as bundles in a row share it."""
    return names


def _places(items: list[Item]) -> Iterator[tuple[Site, dict[str, float]]]:
    yield Site("net"), _OF_MODELS
    yield Site("", "Adam"), {"grad.uncleared": 0.0}
    yield RUN, {"backwards": 1.0}
    for item in items:
        if isinstance(item, Scalar) and item.quantity == "param.rms":
            yield item.site, _OF_PARAMS
            if item.site.fqn.endswith(".weight"):
                module = Site("net", item.site.fqn.rpartition(".")[0])
                is_norm = module.fqn.endswith("norm")
                yield module, _OF_NORMS if is_norm else _OF_OUTPUTS
                yield module, {"output.batch_share": 0.3}


def _more(step: int, site: Site, values: dict[str, float]) -> Iterator[Item]:
    for quantity, value in values.items():
        if quantity != "output.batch_share" or step < 4 or step % 4 == 0:
            yield Scalar(step, quantity, value, site)


def timed(rule: Rule, seconds: dict[str, float]) -> Rule:
    """The rule, noting the time it takes."""

    def watched(function: Callable[..., Any], collect: Callable[[Any], Any]) -> Any:
        @functools.wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            start = time.process_time()
            found = collect(function(*args, **options))
            seconds[rule.code] += time.process_time() - start
            return found

        return call

    return replace(rule, check=watched(rule.check, list), applies=watched(rule.applies, str))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=500)
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    seconds: dict[str, float] = defaultdict(float)
    engine = Engine([timed(rule, seconds) for rule in catalog().values()])
    judging: list[float] = []
    writing = 0.0
    for items in judged_items(options.layers, options.steps):
        start, ruled = time.process_time(), sum(seconds.values())
        engine.write(items)
        writing += time.process_time() - start
        judging.append(sum(seconds.values()) - ruled)
    start = time.process_time()
    engine.close()
    closing = time.process_time() - start
    quarter = max(len(judging) // 4, 1)
    print(f"{options.layers} layers, {options.steps} measured steps, seconds of CPU")
    for code, took in sorted(seconds.items(), key=lambda it: -it[1]):
        print(f"{code} {took:8.2f}")
    print(f"rules {sum(judging):.2f}, all else of writing {writing - sum(judging):.2f}, "
          f"the end {closing:.2f}")  # fmt: skip
    for name, some in (("first", judging[:quarter]), ("last", judging[-quarter:])):
        print(
            f"{1000 * sum(some) / len(some):.1f} ms of rules a measured step in the {name} quarter"
        )
    print(f"judged: {', '.join(engine.verdict.evaluated)}")


if __name__ == "__main__":
    main()
