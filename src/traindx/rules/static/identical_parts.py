"""S014: parts of a model that began as copies of one another, and remain so."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.facts import ModelFacts
from traindx.findings import Evidence, Severity, first_layers
from traindx.messages import say
from traindx.records import Site
from traindx.rules.order import of_facts
from traindx.rules.rule import rule
from traindx.run import Run


@rule("S014", severity=Severity.WARNING, reads=("param.rms", "grad.rms"), hits=3)
def identical_parts(run: Run) -> Iterator[Evidence]:
    """Parts of a model hold the same weights and get the same gradients: they are one part.

    ## Why it matters
    Experts, heads of an ensemble or twin critics that are made with `copy.deepcopy` begin with the
    same numbers. Where the loss treats them alike they get the same gradients, and remain copies
    for good: an ensemble of eight is one member, eight times as dear.

    ## How it is measured
    At three measured steps in a row two trainable weights of one shape, of two or more axes, in
    one model have the same root mean square to the last digit, and so have their gradients, which
    are not 0. All of them are one finding, at the first copy.

    ## How to fix
    Make each part anew: `nn.ModuleList([make() for _ in range(n)])`, or initialize the copies again
    (`module.reset_parameters()`).

    ## False alarms
    Copies that are used differently, as the layers of `nn.TransformerEncoder` or branches with
    dropout, get different gradients at the first step. A weight that is shared is one parameter.
    Zeros, constants and identities are told apart by their gradients.

    ## References
    Lakshminarayanan et al., "Simple and scalable predictive uncertainty estimation using deep
    ensembles" (2017), section 2.4, on random initialization as what makes members differ.
    Goodfellow, Bengio & Courville, "Deep Learning" (2016), section 8.4, on breaking symmetry.
    """
    for model in run.models.values():
        groups = _groups(model)
        for sites in groups:
            weights = run.newest("param.rms", sites)
            sizes = weights.values.tolist()
            if len(set(sizes)) == len(sizes):  # as of nearly all: no gradient need be looked at
                continue
            gradients = run.newest("grad.rms", sites)
            if not (weights.steps == gradients.steps).all():
                continue
            pairs = [*zip(sizes, gradients.values.tolist(), strict=True)]
            if len(set(pairs)) < len(pairs) and all(min(pair) > 0 for pair in pairs):
                first = next(pair for pair in pairs if pairs.count(pair) > 1)
                alike = [site for site, pair in zip(sites, pairs, strict=True) if pair == first]
                yield _evidence(run, model, alike)
                break


@of_facts
def _groups(model: ModelFacts) -> list[tuple[Site, ...]]:
    """Where the weights of each shape are that there are several of."""
    shapes: dict[tuple[int, ...], list[Site]] = {}
    for param in model.params:
        if param.trainable and param.optimizers and len(param.shape) > 1:
            shapes.setdefault(param.shape, []).append(Site(model.name, param.fqn))
    return [tuple(sites) for sites in shapes.values() if len(sites) > 1]


def _evidence(run: Run, model: ModelFacts, alike: list[Site]) -> Evidence:
    owners = [site.fqn.rpartition(".")[0] for site in alike]
    return Evidence(
        site=Site(model.name, owners[1]),
        step=run.step,
        message=say(
            "`{second}` has the weights of `{first}` and gets its gradients, number for number; "
            "{count} weights of {model} of this shape are one",
            second=alike[1].fqn,
            first=alike[0].fqn,
            count=len(alike),
            model=model.name,
        ),
        numbers={"weights": len(alike)},
        cause=say("They were copied, and nothing that is done with them tells them apart."),
        fix=say("nn.ModuleList([make() for _ in range({count})])", count=len(alike)),
        excluded=(say("weights that are shared"), say("copies that get other gradients")),
        series=("grad.rms",),
        layers=first_layers(owners),
    )
