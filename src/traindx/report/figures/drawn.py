"""The figures as plotly objects, for `Run.plot_*`."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import Any

from traindx.errors import UsageError
from traindx.messages import Message, listed, say
from traindx.quantities import QUANTITIES
from traindx.records import Site
from traindx.report.figures import distributions as distributions_
from traindx.report.figures import exponents as exponents_
from traindx.report.figures import norm as norm_
from traindx.report.figures.canvas import Canvas, Figure
from traindx.report.figures.depth import depth_figure, models_with
from traindx.report.figures.filters import filters_figure, first_layers
from traindx.report.figures.layers import layers_figure
from traindx.report.figures.losses import loss_figure
from traindx.report.figures.panels import TEMPLATE
from traindx.report.figures.quantiles import quantiles_figure
from traindx.report.figures.site import MAIN, REST, site_figure
from traindx.report.figures.tables import measured_quantities
from traindx.report.figures.thinning import spread
from traindx.report.figures.updates import updates_figure
from traindx.report.layers import layers
from traindx.run import Run


def losses(run: Run) -> Any:
    """Losses, learning rates, logged values and events."""
    return _drawn(
        loss_figure(Canvas(run)),
        say("the run has no loss, learning rate or logged value of two steps"),
    )


def over_layers(run: Run, quantity: str) -> Any:
    """A quantity over layers and steps."""
    _known(run, quantity)
    return _drawn(
        layers_figure(Canvas(run), quantity),
        say("`{quantity}` was not measured", quantity=quantity),
    )


def depth(run: Run, quantity: str, step: int | None) -> Any:
    """A quantity over the depth of the deepest model measured, with the theory's prediction."""
    _known(run, quantity)
    found = models_with(run, quantity)
    if not found:
        raise UsageError(
            say(
                "`{quantity}` was not measured at two layers or more of one model.",
                quantity=quantity,
            )
        )
    deepest = max(found, key=lambda profile: len(profile.layers))
    if step is not None and step not in deepest.measured:
        raise UsageError(_no_step(step, deepest.measured))
    steps = [step] if step is not None else spread(deepest.measured, 3)
    return _drawn(depth_figure(Canvas(run), deepest, steps))


def site(run: Run, place: Site | str, quantity: str | None) -> Any:
    """Everything measured of a layer and its parameters, or one quantity of it."""
    own = _site(run, place)
    below = _with_params(run, own)
    if quantity is not None:
        _known(run, quantity)
        figure = site_figure(Canvas(run), below, [(quantity,)])
        why = say("`{quantity}` was not measured at `{place}`", quantity=quantity, place=own)
        return _drawn(figure, why)
    figure = site_figure(Canvas(run), below, [*MAIN, *REST])
    return _drawn(figure, say("nothing was measured at `{place}`", place=own))


def exponents(run: Run, fqn: str | Site, quantity: str) -> Any:
    """The exponent histograms of a layer, or of its largest parameter."""
    _vector(quantity, exponents_.QUANTITIES)
    own = _site(run, fqn)
    canvas = Canvas(run)
    for candidate in _with_params(run, own):
        figure = exponents_.exponents_figure(canvas, quantity, candidate)
        if figure:
            return _drawn(figure)
    raise UsageError(
        say("`{quantity}` was not measured at `{place}`.", quantity=quantity, place=own)
    )


def norm(run: Run, fqn: str | Site, step: int | None) -> Any:
    """A normalization's batch statistics against its running ones."""
    own = _site(run, fqn)
    canvas = Canvas(run)
    channels = norm_.Channels(canvas, own)
    if not channels.steps:
        raise UsageError(_no_channels(run, own))
    if step is not None and step not in channels.steps:
        raise UsageError(_no_step(step, channels.steps))
    return _drawn(
        norm_.norm_figure(canvas, channels, channels.steps[-1] if step is None else step), ""
    )


def updates(run: Run) -> Any:
    """Update ratios over steps."""
    return _drawn(updates_figure(Canvas(run)), say("no update ratio was measured"))


def first_weights(run: Run, model: str | None) -> Any:
    """The weights of a first layer."""
    found = [one for one in first_layers(run) if model in (None, one.site.model)]
    if not found:
        raise UsageError(say("The weights of a first layer were not looked at."))
    return _drawn(filters_figure(Canvas(run), found[0]))


def distributions(run: Run, kind: str, model: str | None) -> Any:
    """Histograms of every layer."""
    return _drawn(distributions_.histograms_figure(Canvas(run), _distributed(run, kind, model)))


def quantiles(run: Run, kind: str, model: str | None) -> Any:
    """Quantiles along the depth."""
    return _drawn(quantiles_figure(Canvas(run), _distributed(run, kind, model)))


def _distributed(run: Run, kind: str, model: str | None) -> distributions_.Distributed:
    if kind not in distributions_.KINDS:
        known = listed(f"`{one}`" for one in distributions_.KINDS)
        raise UsageError(say("There is no kind `{kind}`; there are {known}.", kind=kind,
                             known=known))  # fmt: skip
    for own in distributions_.distributed(run):
        for one in own:
            if one.kind == kind and model in (None, one.model.name):
                return one
    raise UsageError(say("Distributions are noted in a preflight, and none are in this run."))


def _drawn(figure: Figure | None, why_not: str = "") -> Any:
    if figure is None:
        raise UsageError(say("There is nothing to draw: {why}.", why=why_not))
    # By name, since plotly publishes no types.
    objects = import_module("plotly.graph_objects")
    figure["layout"] = {**_dict(figure["layout"]), "template": TEMPLATE}
    return objects.Figure(figure)


def _dict(value: Any) -> dict[str, Any]:
    return value


def _known(run: Run, quantity: str) -> None:
    measured = measured_quantities(run)
    if quantity in measured:
        return
    if quantity not in QUANTITIES:
        run.series(quantity)  # which says so, with the nearest name
    if QUANTITIES[quantity].entries:
        raise UsageError(
            say("`{quantity}` has several numbers a step: use `plot_exponents` or `plot_norm`.",
                quantity=quantity)
        )  # fmt: skip
    problem = say("`{quantity}` was not measured in this run.", quantity=quantity)
    raise UsageError(_with_nearest(problem, quantity, measured))


def _vector(quantity: str, known: tuple[str, ...]) -> None:
    if quantity not in known:
        problem = say("There are no exponents `{quantity}`.", quantity=quantity)
        raise UsageError(_with_nearest(problem, quantity, list(known)))


def _with_nearest(problem: Message, name: str, known: list[str]) -> Message:
    near = get_close_matches(name, known, n=1, cutoff=0.4)
    if not near:
        return problem
    return say("{problem} Did you mean `{near}`?", problem=problem, near=near[0])


def _no_channels(run: Run, place: Site) -> Message:
    known = listed(sorted(f"`{site}`" for site in run.vectors("norm.batch_mean"))[:5])
    if not known:
        return say("No statistics of channels were measured in this run.")
    return say("No statistics of channels were measured at `{place}`; they were at {known}.",
               place=place, known=known)  # fmt: skip


def _site(run: Run, place: Site | str) -> Site:
    """The site of that name; of several models with it the first."""
    known = [s for model in run.models.values() for s in _sites(model.name, run)]
    if isinstance(place, Site):
        found = [place] if place in known else []
    else:
        found = [s for s in known if place in (s.fqn, f"{s.model}.{s.fqn}") or str(s) == place]
    if found:
        return found[0]
    names = [str(s) for s in known]
    problem = say("There is no module or parameter `{place}`.", place=place)
    raise UsageError(_with_nearest(problem, str(place), names))


def _sites(model: str, run: Run) -> list[Site]:
    facts = run.models[model]
    fqns = [*(m.fqn for m in facts.modules), *(p.fqn for p in facts.params)]
    return [Site(model, fqn) for fqn in fqns]


def _with_params(run: Run, own: Site) -> list[Site]:
    facts = run.models[own.model]
    found = next((layer for layer in layers(facts) if layer.site == own), None)
    params = sorted(found.params, key=lambda p: found.main_param != Site(own.model, p.fqn)) \
        if found else []  # fmt: skip
    return [own, *(Site(own.model, param.fqn) for param in params)]


def _no_step(step: int, measured: list[int]) -> Message:
    nearest = min(measured, key=lambda other: abs(other - step))
    return say("Step {step} was not measured there; the nearest that was is {nearest}.",
               step=step, nearest=nearest)  # fmt: skip
