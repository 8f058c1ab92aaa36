"""For tests of models: `assert_trainable` fails where preflight finds what stops learning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from traindx.findings import Severity
from traindx.report.text import render
from traindx.rules.judging import codes_of

if TYPE_CHECKING:
    from torch import nn
    from torch.optim.optimizer import Optimizer

    from traindx.run import Run


def assert_trainable(
    model: nn.Module,
    batch: Any,
    loss: Callable[..., Any] | None = None,
    optimizer: Optimizer | None = None,
    *,
    quick: bool = False,
    fail_on: Severity | str = Severity.ERROR,
    ignore: Sequence[str] = (),
) -> Run:
    """Fail with the report if preflight finds anything as severe as `fail_on`, or more.

    ```python
    def test_the_model_can_be_trained() -> None:
        assert_trainable(build(), (images, labels), nn.CrossEntropyLoss())
    ```

    Args:
        model: The model, in the mode it is trained in.
        batch: What it is called with, and the target: see `traindx.preflight`.
        loss: `loss(output, target)`; None takes the one that the model returns.
        optimizer: The optimizer, if there is one.
        quick: Whether to leave out the probes that train.
        fail_on: The mildest severity that fails the test.
        ignore: Codes or names of rules to pass over.

    Returns:
        What was measured and judged.

    Raises:
        AssertionError: There is such a finding; it is told in full.
    """
    from traindx.preflight.checking import preflight

    run = preflight(model, batch, loss, optimizer, quick=quick)
    passed_over, threshold = codes_of(ignore), Severity(fail_on)
    found = run.verdict.findings if run.verdict is not None else ()
    bad = [
        finding
        for finding in found
        if finding.active
        and finding.severity.rank <= threshold.rank
        and finding.code not in passed_over
    ]
    if bad:
        raise AssertionError(render(run, width=100))
    return run
