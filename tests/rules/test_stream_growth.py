"""N013: streams that grow from block to block."""

from __future__ import annotations

from collections.abc import Sequence

from tests.rules.normed import output
from tests.rules.recording import Recording
from traindx.facts import ModelFacts, ModuleFacts
from traindx.findings import Severity


def net(count: int, *, inner: bool = True, kind: str = "Block") -> ModelFacts:
    blocks: list[ModuleFacts] = [ModuleFacts("", "Net", 0, 1), ModuleFacts("blocks", "Seq", 1, 1)]
    for i in range(count):
        blocks.append(ModuleFacts(f"blocks.{i}", kind if i % 2 else "Block", 2 * i + 2, 1))
        if inner:
            blocks.append(ModuleFacts(f"blocks.{i}.up", "Linear", 2 * i + 3, 1))
    return ModelFacts("net", "Net", tuple(blocks), ())


def run_of(
    first: Sequence[float], *, last: Sequence[float] = (), inner: bool = True, kind: str = "Block"
) -> Recording:
    """Outputs of the blocks at the first step, and at the last one."""
    recording = Recording(net(len(first), inner=inner, kind=kind))
    for step, sizes in enumerate((first, last or first)):
        for i, size in enumerate(sizes):
            output(recording, step, f"blocks.{i}", size)
        recording.measured(step)
    return recording


GROWING = [1.0, 2.0, 5.0, 12.0, 31.0]


def test_fires_when_the_signal_grows_all_the_way():
    (finding,) = run_of(GROWING).findings("N013")
    assert finding.severity is Severity.WARNING
    assert finding.evidence.site == ("net", "blocks")
    assert finding.evidence.message == (
        "the signal grows 31-fold from `blocks.0` to `blocks.4` at the first step (threshold 30), "
        "over 5 blocks"
    )


def test_is_an_error_when_it_grows_a_thousandfold():
    (finding,) = run_of([*GROWING[:4], 1001.0]).findings("N013")
    assert finding.severity is Severity.ERROR


def test_silent_on_growth_of_normalized_blocks():
    assert run_of([(i + 1) ** 0.5 for i in range(24)]).findings("N013") == ()


def test_silent_when_it_does_not_grow_all_the_way_or_no_longer():
    assert run_of([1.0, 2.0, 1.5, 12.0, 31.0]).findings("N013") == ()
    (finding,) = run_of(GROWING, last=[1.0, 1.1, 1.2, 1.3, 1.4]).findings("N013")
    assert not finding.active


def test_silent_on_few_blocks_on_plain_layers_and_on_blocks_of_unlike_kinds():
    assert run_of([1.0, 3.0, 9.0, 40.0]).findings("N013") == ()
    assert run_of(GROWING, inner=False).findings("N013") == ()
    assert run_of(GROWING, kind="Stage").findings("N013") == ()
