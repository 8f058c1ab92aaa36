"""S004: layers or tensors that a model uses and does not hold."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import counted, say
from traindx.rules.rule import rule
from traindx.run import Run, Series

_LOOKS = 2
"""Measured steps at which a tensor must be left out."""


@rule("S004", severity=Severity.ERROR, reads=("model.unregistered",), lasting=True)
def unregistered_module(run: Run) -> Iterator[Evidence]:
    """Layers or tensors of a model are no parameters of it, so that nothing trains them.

    ## Why it matters
    A module finds its parameters among its own attributes: modules and `nn.Parameter`. Layers in a
    Python list or dict, and plain tensors that require a gradient, are used in `forward` but are
    not in `parameters()`. So no optimizer gets them and they stay as they were initialized; they
    are not saved, not moved to the GPU, and `train()` and `eval()` do not reach them.

    ## How it is measured
    Exactly, by identity, at the first four measured steps of a model: of each attribute of each of
    its modules the tensors in it, and those of modules in it, up to two containers deep. A tensor
    counts if it is a leaf that has a gradient, is no parameter of the model, is in no optimizer,
    and has not been written to since the measured step before.

    ## How to fix
    Put the layers into `nn.ModuleList` or `nn.ModuleDict`, tensors into `nn.Parameter` or
    `nn.ParameterList`, before the optimizer is made.

    ## False alarms
    What an optimizer holds is trained, wherever it stands: layers that another model shares, the
    architecture weights of a search, a discriminator that a generator keeps in a list. A network
    that only helps (a teacher, one that compares pictures) is told by having no gradients or by
    its eval mode; in training mode and with gradients it counts. Tensors that somebody updates by
    hand are written to. A tensor that is no attribute of the model is not looked for.

    ## References
    PyTorch documentation, `torch.nn.ModuleList` and "Modules", on submodules in plain containers.
    Nikanjam et al., "Faults in deep reinforcement learning programs" (2021), on parameters that are
    never updated.
    """
    for series in run.series("model.unregistered"):
        if len(series) >= _LOOKS:
            yield _evidence(series)


def _evidence(series: Series) -> Evidence:
    count = int(series.last)
    owner, _, attribute = series.site.fqn.rpartition(".")
    return Evidence(
        site=series.site,
        step=series.step,
        message=say(
            "`{attribute}` of {owner} holds {tensors} with a gradient that are in no optimizer and "
            "not among the parameters of {model}",
            attribute=attribute,
            owner=owner or series.site.model,
            tensors=counted(count, "{n} tensor", "{n} tensors"),
            model=series.site.model,
        ),
        numbers={"tensors": count},
        cause=say(
            "A module does not look for parameters in lists and dicts, nor among plain tensors."
        ),
        fix=say(
            "self.{attribute} = nn.ModuleList(self.{attribute})  # nn.Parameter(…) for a tensor",
            attribute=attribute,
        ),
        excluded=(
            say("what another optimizer holds"),
            say("tensors that are updated by hand"),
            say("helpers in eval mode"),
        ),
    )
