"""The order of sites in a network."""

from dataclasses import replace

from tests.rules.recording import chain, linear
from traindx.records import RUN, Site
from traindx.rules.order import Places, network_order
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
