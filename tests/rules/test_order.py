"""The order of sites in a network."""

from dataclasses import replace

from tests.rules.recording import chain, linear
from traindx.facts import OptimizerFacts
from traindx.records import RUN, Site
from traindx.rules.order import Places, network_order, optimizers_of
from traindx.run import Run


def test_modules_stand_in_the_order_of_their_first_call_and_uncalled_ones_last():
    modules = (linear("idle", None), linear("late", 2), linear("early", 0), linear("spare", None))
    model = replace(chain(1), modules=modules)
    assert list(network_order(model)) == ["early", "late", "idle", "spare"]


def test_a_parameter_stands_where_its_module_does_and_a_model_before_its_modules():
    run = Run()
    run.models = {"net": chain(3), "other": replace(chain(3), name="other")}
    places = Places(run)
    assert places.of(Site("net", "1.weight")) == places.of(Site("net", "1"))
    in_order = [RUN, Site("net"), Site("net", "0"), Site("net", "2"), Site("net", "gone.weight")]
    in_order += [Site("other"), Site("other", "0")]
    assert sorted(reversed(in_order), key=places.of) == in_order


def test_a_model_has_the_optimizers_that_hold_its_parameters_and_no_others():
    run = Run()
    run.optimizers = {name: OptimizerFacts(name, "SGD", (), 1) for name in ("a", "b", "c")}
    held = (("b",), (), ("a", "b"), ("gone",))
    params = tuple(
        replace(param, optimizers=names) for param, names in zip(chain(4).params, held, strict=True)
    )
    model = replace(chain(4), params=params)
    assert [optimizer.name for optimizer in optimizers_of(run, model)] == ["b", "a"]
