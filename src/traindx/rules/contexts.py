"""Contexts: circumstances in which a sign of illness is none, inferred from a run or declared.

Each is one function that looks at a run, back only like a rule, and yields where the context holds
and why. Adding one is adding one function. A rule names those it is silent in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from itertools import pairwise, permutations
from math import prod
from statistics import median

from traindx.errors import UsageError
from traindx.facts import ModelFacts, ParamFacts
from traindx.findings import Context
from traindx.messages import say
from traindx.records import RUN, EventKind, Site
from traindx.rules.order import ancestors, of_facts
from traindx.run import Run, Series

Infer = Callable[[Run], Iterable[Context]]

INFERRED: dict[str, Infer] = {}
"""How each context is inferred, by name."""
DECLARED_ONLY = ("contrastive", "rl")
"""Contexts of which the measurements show nothing: they must be declared."""

_RISE = 2.0
"""By which factor the learning rate must rise from its start to speak of a warmup."""
_RECENT = 10
"""Measured steps that show how training goes on at present."""
_ZERO_STEPS = 100
"""Steps after which a weight that started at zero is no excuse any more."""
_GROWN = 0.1
"""Share of its siblings' RMS from which on a weight that started at zero has grown."""
_SPARSE = 0.5
"""Largest share of an embedding's rows that a step may look up for its gradient to be sparse."""
_SEEN = 10
"""Batches that a model's normalizations must have counted to call it pretrained."""
_LOW_RANK = 4
"""How many times smaller than the matrix it adapts the rank of a low-rank pair must be."""
_LORA = re.compile(r"(^|[._])lora_?(a|b|up|down)([._]|$)", re.IGNORECASE)


def inferred(infer: Infer) -> Infer:
    """Note a function as the one that infers the context of its name."""
    INFERRED[infer.__name__.strip("_").replace("_", "-")] = infer
    return infer


def names() -> tuple[str, ...]:
    """Every context that can be inferred or declared."""
    return tuple(sorted({*INFERRED, *DECLARED_ONLY}))


def known(name: str) -> str:
    """A context's name as it is written here.

    Raises:
        UsageError: There is no such context.
    """
    wanted = name.strip().casefold().replace("_", "-")
    if wanted in names():
        return wanted
    (nearest,) = get_close_matches(wanted, names(), n=1, cutoff=0.0)
    raise UsageError(
        say("There is no context `{name}`; the nearest is `{nearest}`.", name=name, nearest=nearest)
    )


def contexts_of(run: Run, name: str, declared: Iterable[tuple[str, str]] = ()) -> list[Context]:
    """Where one context holds in a run.

    Args:
        run: The run.
        name: The context.
        declared: Names of declared contexts, each with its source; those that the run's own header
            declares count, too.
    """
    found = list(INFERRED[name](run)) if name in INFERRED else []
    header = run.header.get("contexts")
    if isinstance(header, list) and name in header:
        return [Context(name, say("declared for this run")), *found]
    sources = (source for each, source in declared if each == name)
    return [*(Context(name, say("declared by {source}", source=s)) for s in sources), *found]


# -- the learning rate ---------------------------------------------------------------------------


@inferred
def warmup(run: Run) -> Iterator[Context]:
    """The learning rate rises from its first value to at least twice that, without any fall.

    It ends where the rise does. A rate that stands still has ended its rise, until it rises on.
    """
    for series in run.series("lr"):
        peak, since = _rise(series)
        if series.first >= 0 and peak > 0 and peak >= _RISE * series.first:
            last_step = None if since is None else max(since - 1, 0)
            reason = say(
                "the learning rate of {optimizer} rose from {first:.3g} to {peak:.3g}",
                optimizer=series.site.fqn,
                first=series.first,
                peak=peak,
            )
            for site in _trained_by(run, series.site):
                yield Context("warmup", reason, site, series.first_step, last_step)


def _trained_by(run: Run, optimizer: Site) -> list[Site]:
    """An optimizer and the models it trains; of the only one that is the whole run."""
    if len(run.series("lr")) == 1:
        return [RUN]
    models = run.models.values()
    held = (m.name for m in models if any(optimizer.fqn in p.optimizers for p in m.params))
    return [optimizer, *map(Site, held)]


def _rise(series: Series) -> tuple[float, int | None]:
    """The top of the first rise, and the step it was reached at; None while it still rises."""
    if series.unchanged_since == series.first_step:  # constant: the most common of all
        return series.first, series.first_step
    reached, peak = series.first_step, series.first
    for (_, before), (step, value) in pairwise(series):
        if value < before:
            return peak, reached
        if value > peak:
            reached, peak = step, value
    return peak, None if reached == series.step else reached


# -- how the steps are taken ---------------------------------------------------------------------


@inferred
def accumulating(run: Run) -> Iterator[Context]:
    """In the median of the last 10 measured steps there are more backward passes than optimizers.

    A GAN's two optimizers, which share a step, take one pass each.
    """
    for series in run.series("backwards"):
        passes, turns = median(series.tail(_RECENT)), max(len(run.optimizers), 1)
        if passes > turns:
            reason = say("{passes:.0f} backward passes per step", passes=passes)
            yield Context("accumulating", reason)


@inferred
def amp_skipped(run: Run) -> Iterator[Context]:
    """A GradScaler skipped the step; the context is that one step."""
    skipped = run.events(EventKind.AMP_SKIPPED)
    if skipped:
        step = skipped[-1].step
        reason = say(
            "a GradScaler skipped {count} optimizer steps, last at step {step}",
            count=run.num_events(EventKind.AMP_SKIPPED),
            step=step,
        )
        yield Context("amp-skipped", reason, RUN, step, step)


@inferred
def gan(run: Run) -> Iterator[Context]:
    """Two optimizers hold a model each, and of two losses one reaches the first, one both.

    The loss that reaches both has to pass a model that its own optimizer does not train: a
    generator judged by a discriminator, or an actor by a critic.
    """
    reached = {tuple(sorted(series.site.models)) for series in run.series("loss")}
    holders = {name: some for name, model in run.models.items() if (some := _holders(model))}
    for judge, judged in permutations(holders, 2):
        apart = holders[judge].isdisjoint(holders[judged])
        if apart and (judge,) in reached and tuple(sorted((judge, judged))) in reached:
            reason = say(
                "one loss trains `{judge}` alone, another `{judged}` through `{judge}`",
                judge=judge,
                judged=judged,
            )
            yield Context("gan", reason)
            return


@of_facts
def _holders(model: ModelFacts) -> set[str]:
    return {name for param in model.params if param.trainable for name in param.optimizers}


# -- where training starts from ------------------------------------------------------------------


@inferred
def frozen(run: Run) -> Iterator[Context]:
    """No parameter of a module, or of the whole model, requires a gradient."""
    for model in run.models.values():
        trained = {up for p in model.params if p.trainable for up in ancestors(p.module)}
        counts: dict[str, int] = {}
        for param in model.params:
            if not param.trainable:
                path = [*ancestors(param.module), param.fqn]
                top = next((fqn for fqn in path if fqn not in trained), param.fqn)
                counts[top] = counts.get(top, 0) + 1
        for fqn, count in counts.items():
            reason = say("{count} of its parameters require no gradient", count=count)
            yield Context("frozen", reason, Site(model.name, fqn))


@inferred
def frozen_bn(run: Run) -> Iterator[Context]:
    """All normalizations with running statistics of a model are frozen.

    That is, they have trained in eval mode from the start, and none of their own weights requires
    a gradient.
    """
    for model in run.models.values():
        norms = [m.fqn for m in model.modules if m.options.get("track_running_stats")]
        flags = [run.at("norm.training", Site(model.name, fqn)) for fqn in norms]
        off = [f for f in flags if f and f.last == 0 and f.unchanged_since == f.first_step]
        trained = any(param.trainable and param.module in norms for param in model.params)
        if norms and len(off) == len(norms) and not trained:
            reason = say("{count} normalization layers are frozen in eval mode", count=len(norms))
            yield Context("frozen-bn", reason, Site(model.name))


@inferred
def pretrained(run: Run) -> Iterator[Context]:
    """A model's normalizations counted 10 batches before its first step, or most of it is frozen.

    Most is: more than half of the elements of its parameters require no gradient. Batches of its
    own steps up to the first measured one are taken off, as many a step as are seen later; fewer
    than 10 may be a trial pass.
    """
    for model in run.models.values():
        site = Site(model.name)
        if (counted := _counted_before(run, model)) >= _SEEN:
            reason = say("its normalization layers had seen {count:.0f} batches", count=counted)
            yield Context("pretrained", reason, site)
        elif (share := _frozen_share(model)) > 0.5:
            reason = say("{share:.0%} of its parameters are frozen", share=share)
            yield Context("pretrained", reason, site)


def _counted_before(run: Run, model: ModelFacts) -> float:
    """Batches that the normalizations had counted before the model's first step."""
    losses = (s for s in run.series("loss") if model.name in s.site.models)
    began = min((series.first_step for series in losses), default=0)
    before = [0.0]
    for series in run.series("norm.tracked", model=model.name):
        updates = run.at("norm.updates", series.site)
        if updates:
            own = (series.first_step - began + 1) * updates.first
            before.append(series.first - own)
    return max(before)


def _frozen_share(model: ModelFacts) -> float:
    sizes = [(prod(param.shape), param.trainable) for param in model.params]
    total = sum(size for size, _ in sizes)
    return sum(size for size, trainable in sizes if not trainable) / total if total else 0.0


# -- branches and layers of a kind of their own --------------------------------------------------


@inferred
def zero_init(run: Run) -> Iterator[Context]:
    """A weight was exactly 0 before step 0, so its branch passed no gradient at first.

    Where: the module that holds the weight's module, in which the branch lies. How long: until the
    weight's RMS is a tenth of the median over the model's weights of as many dimensions, but no
    longer than 100 steps. Biases do not count.
    """
    for model in run.models.values():
        measured = ((p, run.at("param.rms", Site(model.name, p.fqn))) for p in model.params)
        sizes = [(param, size) for param, size in measured if size]
        for param, size in sizes:
            if size.first_step <= 0 and size.first == 0 and _is_weight(param):
                like = [s.last for p, s in sizes if len(p.shape) == len(param.shape) and s.last > 0]
                until = _grown(size, _GROWN * median(like) if like else 0.0)
                branch = Site(model.name, param.module.rpartition(".")[0])
                reason = say("`{weight}` was exactly 0 at the start", weight=param.fqn)
                yield Context("zero-init", reason, branch, 0, until)


def _is_weight(param: ParamFacts) -> bool:
    return param.trainable and "bias" not in param.fqn.rpartition(".")[2]


def _grown(size: Series, enough: float) -> int:
    """The last step before a weight had grown to a size, `_ZERO_STEPS` if that comes first."""
    for step, value in size:
        if step > _ZERO_STEPS:
            break
        if value >= enough > 0:
            return step - 1
    return _ZERO_STEPS


@inferred
def lora(run: Run) -> Iterator[Context]:
    """Low-rank adapters: by name (`lora_A`, `lora_B`), or by shape.

    By shape: beside a frozen matrix of n x m two trained ones, r x m and n x r, with r at most a
    quarter of n and of m.
    """
    for model in run.models.values():
        named = {_adapted(p.module, p.fqn): p.fqn for p in model.params if _LORA.search(p.fqn)}
        for fqn, param in named.items():
            reason = say("`{weight}` is an adapter by its name", weight=param)
            yield Context("lora", reason, Site(model.name, fqn))
        for fqn, rank in _low_rank(model):
            if fqn not in named:
                reason = say("a trained pair of rank {rank} beside a frozen matrix", rank=rank)
                yield Context("lora", reason, Site(model.name, fqn))


def _adapted(module: str, fqn: str) -> str:
    """The module that an adapter's parameter belongs to: what stands before `lora_`."""
    found = _LORA.search(fqn)
    return fqn[: found.start()] if found else module


def _low_rank(model: ModelFacts) -> Iterator[tuple[str, int]]:
    """Modules that hold a frozen matrix and a trained pair of low rank, with the rank."""
    groups: dict[str, list[ParamFacts]] = {}
    for param in model.params:
        if len(param.shape) == 2:
            for holder in {param.module, param.module.rpartition(".")[0]}:
                groups.setdefault(holder, []).append(param)
    for holder, params in groups.items():
        trained = {param.shape for param in params if param.trainable}
        for n, m in {param.shape for param in params if not param.trainable}:
            ranks = {a for a, b in trained if b == m} | {b for a, b in trained if a == m}
            fits = (r for r in sorted(ranks) if _LOW_RANK * r <= min(n, m))
            rank = next((r for r in fits if (n, r) in trained or (r, n) in trained), None)
            if rank:
                yield holder, rank
                break


@inferred
def sparse_gradients(run: Run) -> Iterator[Context]:
    """A step looks up at most half of an embedding's rows, so that the others get no gradient.

    Counted in vectors that the layer put out at its last measured step, whichever rows they are.
    """
    for model in run.models.values():
        for module in model.modules:
            rows, width = module.options.get("num_embeddings"), module.options.get("embedding_dim")
            counts = run.at("output.count", Site(model.name, module.fqn))
            if counts and isinstance(rows, int) and isinstance(width, int) and width:
                looked_up = counts.last / width
                if looked_up <= _SPARSE * rows:
                    reason = say(
                        "a step looks up at most {looked_up:.0f} of {rows} rows",
                        looked_up=looked_up,
                        rows=rows,
                    )
                    yield Context("sparse-gradients", reason, Site(model.name, module.fqn))
