"""S005: modules that the forward pass never calls."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import counted, in_turn, say
from traindx.rules.probed import STEP, Observation, observations
from traindx.rules.rule import rule
from traindx.run import Run


@rule("S005", severity=Severity.WARNING, reads=("probe.unreached",), source="probe")
def unused_module(run: Run) -> Iterator[Evidence]:
    """A module of the model is never called in its forward pass.

    ## Why it matters
    A layer, an activation or a dropout that is made in `__init__` and forgotten in `forward` does
    nothing, and no error says so: the network is another one than it looks, shallower, linear or
    unregularized. Its parameters are initialized, saved, counted and decayed, but never trained.

    ## How it is measured
    One forward pass and loss of the batch, with every module's calls counted, and one backward
    pass; four more with other random numbers, if a parameter is left out. A module is reported if
    neither it nor any module in it is called and no gradient reaches its parameters: what is used
    without a call (a weight given to a function, the parts of `nn.MultiheadAttention`) gets a
    gradient. It is a warning if the module has parameters that are to be trained, and information
    else; of those without parameters, the first of each kind stands for all.

    ## How to fix
    Call it in `forward`, or delete it. If it is used on other batches only, nothing is wrong.

    ## False alarms
    A branch that only some batches take (an expert without tokens, a head of another task) is not
    called on this batch. A layer that is dropped at random nearly always is in one of five passes.
    A dropout whose `p` alone is read, as attention does, is not called at all; that is no more than
    information, as is any module without parameters. Empty containers, `nn.Identity` and loss
    modules are left out.

    ## References
    PyTorch documentation, `find_unused_parameters` of `DistributedDataParallel`, which must be told
    of the same modules. Wardat et al., "DeepDiagnosis" (ICSE 2022), on layers that are missing.
    """
    for seen in observations(run, "modules-called"):
        yield _evidence(seen)


def _evidence(seen: Observation) -> Evidence:
    params = int(seen.number("parameters"))
    own = counted(params, "{n} parameter", "{n} parameters")
    more = int(seen.number("more"))
    message = say(
        "`{module}` ({kind}, {parameters} to be trained) is never called in the forward pass",
        module=seen.site.fqn,
        kind=seen.text("kind"),
        parameters=own,
    )
    others = say("so it is with {n} more of this kind", n=more)
    return Evidence(
        site=seen.site,
        step=STEP,
        message=in_turn((message, others)) if more else message,
        numbers={"parameters": params, "more": more},
        cause=say("The model makes the module, and its `forward` does not use it."),
        fix=say("Call `{module}` in `forward`, or delete it.", module=seen.site.fqn),
        excluded=(say("a weight that is used without a call"),),
        severity=Severity.WARNING if params else Severity.INFO,
    )
