"""What a measured step collects, and how it is brought to the host."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import Tensor, nn

from tests.capture.watched import Recording, batch, mlp, train, watched
from traindx.capture import recorder as recording_of_a_step
from traindx.capture.models import TrackedModel
from traindx.capture.recorder import Recorder
from traindx.capture.transfer import Portion, TorchHost
from traindx.quantities import EXPONENTS
from traindx.records import Bundle, Item, Point, Record, Scalar, Site, Vector, one_by_one
from traindx.stats import Row, summarize


def model(name: str = "net", *, confirmed: bool = True) -> TrackedModel:
    tracked = TrackedModel(nn.Linear(2, 2), name)
    tracked.confirmed = confirmed
    return tracked


def items_of(recorder: Recorder) -> list[Item]:
    """What a step has collected, on the host."""
    return [*one_by_one(Portion(recorder.parts(), TorchHost()).items())]


def test_vectors_are_wanted_about_twice_in_every_doubling():
    recorder, wanted = Recorder(), []
    for round_ in range(100):
        wanted += [round_] if recorder.wants_vectors else []
        recorder.parts()
    assert wanted == [0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96]


def test_a_step_is_written_as_records_scalars_and_vectors_of_confirmed_models():
    recorder, net, other = Recorder(), model(), model("other", confirmed=False)
    recorder.step = 7
    for tracked in (net, other):
        recorder.tensor((tracked, "0", Point.OUTPUT), torch.tensor([1.0, 3.0]))
        recorder.scalar(tracked, "0", "output.batch_share", torch.tensor(0.5))
        recorder.vector(tracked, "0", "norm.batch_mean", torch.tensor([1.0, 2.0]))
    items = items_of(recorder)
    site = Site("net", "0")
    assert [type(item) for item in items] == [Record, Scalar, Vector, Vector]
    assert items[1] == Scalar(7, "output.batch_share", 0.5, site)
    assert Vector(7, "norm.batch_mean", site, (1.0, 2.0)) in items
    assert items_of(recorder) == []


def test_rounds_that_measure_alike_name_their_places_in_the_same_tuples():
    recorder, net, bundles = Recorder(), model(), list[Bundle]()
    for round_ in range(12):
        recorder.tensor((net, "0", Point.OUTPUT), torch.ones(3))
        for i in range(1 + round_ % 3):  # some things have turns
            recorder.scalar(net, str(i), "param.rms", 1.0)
        items = Portion(recorder.parts(), TorchHost()).items()
        bundles += [item for item in items if isinstance(item, Bundle)]
    assert len({id(bundle.places) for bundle in bundles}) == 1
    assert len({id(bundle.names) for bundle in bundles}) == 3
    assert [len(bundle.names) for bundle in bundles] == [1 + round_ % 3 for round_ in range(12)]


def test_exponents_merge_as_their_tensors_do():
    recorder, net = Recorder(), model()
    for value in (1.0, 2.0, 2.0):
        recorder.tensor((net, "0", Point.OUTPUT), torch.full((3,), value))
        recorder.tensors([((net, "0", Point.GRAD), torch.full((3,), value))])
    counts = {item.quantity: item.values for item in items_of(recorder) if isinstance(item, Vector)}
    assert [*counts["output.exponents"][40:42]] == [3.0, 6.0]
    assert [*counts["grad.exponents"][40:42]] == [0.0, 3.0]


def test_a_gradient_that_is_passed_on_is_read_once_as_long_as_nothing_is_written_to_it(monkeypatch):
    read: list[float] = []

    def summarized(tensor: torch.Tensor, **arguments: Any) -> Row:
        read.append(float(tensor[0]))
        return summarize(tensor, **arguments)

    monkeypatch.setattr(recording_of_a_step, "summarize", summarized)
    recorder, net, gradient = Recorder(), model(), torch.full((3,), 2.0)
    recorder.gradient((net, "0", Point.OUTPUT_GRAD), gradient, None)
    recorder.gradient((net, "1", Point.OUTPUT_GRAD), gradient, 4.0)
    assert read == [2.0]
    gradient.mul_(3.0)
    recorder.gradient((net, "2", Point.OUTPUT_GRAD), gradient, None)
    assert read == [2.0, 6.0]
    for value in range(20):  # each where the one before was
        recorder.gradient((net, "3", Point.OUTPUT_GRAD), torch.full((3,), float(value)), None)
    assert len(read) == 22
    records = [item for item in items_of(recorder) if isinstance(item, Record)]
    assert [record.stats.max for record in records][:3] == [2.0, 0.5, 6.0]
    recorder.gradient((net, "0", Point.OUTPUT_GRAD), gradient, None)
    assert len(read) == 23, "the next step reads anew"
    assert weakref.getweakrefcount(gradient) == 1
    recorder.let_go()
    assert weakref.getweakrefcount(gradient) == 0


def test_what_comes_again_is_not_read_again_within_a_step():
    recorder, net = Recorder(), model()
    for fqn, value, same in (("0", 1.0, "a"), ("1", 2.0, "a"), ("2", 3.0, "b"), ("3", 4.0, None)):
        recorder.tensor((net, fqn, Point.OUTPUT), torch.full((3,), value), same=same)
    records = [item for item in items_of(recorder) if isinstance(item, Record)]
    assert [record.stats.mean for record in records] == [1.0, 1.0, 3.0, 4.0]
    recorder.tensor((net, "0", Point.OUTPUT), torch.full((3,), 5.0), same="a")
    (record,) = (item for item in items_of(recorder) if isinstance(item, Record))
    assert record.stats.mean == 5.0


def test_dropping_the_outputs_of_a_model_drops_all_that_was_made_of_them():
    recorder, net, other = Recorder(), model(), model("other")
    for tracked in (net, other):
        recorder.tensor((tracked, "", Point.INPUT), torch.ones(3))
        recorder.tensor((tracked, "0", Point.OUTPUT), torch.ones(3))
        recorder.scalar(tracked, "0", "output.batch_share", 0.5)
        recorder.scalar(tracked, "0", "param.rms", 0.5)
    recorder.drop_outputs(net)
    items = [item for item in items_of(recorder) if isinstance(item, Record | Scalar | Vector)]
    assert [item for item in items if item.site.model == "net"] == [
        Scalar(0, "param.rms", 0.5, Site("net", "0"))
    ]
    assert len(items) == 1 + 5


def exponents_of(recording: Recording, point: str, fqn: str) -> dict[int, int]:
    """Elements by exponent at the last step they were taken at."""
    (found,) = [
        vectors
        for site, vectors in recording.run.vectors(f"{point}.exponents").items()
        if site.fqn == fqn
    ]
    counts = zip(EXPONENTS, found[-1].values, strict=True)
    return {exponent: int(count) for exponent, count in counts if count}


def by_exponent(tensor: Tensor) -> dict[int, int]:
    values = tensor.detach().double().abs()
    places = values[values > 0].log2().floor().clamp(EXPONENTS[0], EXPONENTS[-1])
    return {int(place): int((places == place).sum()) for place in places.unique()}


def test_outputs_gradients_and_parameters_have_exponents():
    net, (x, y) = mlp(), batch(32)
    hidden = net[:2](x)
    before = net[0].weight.clone()
    nn.functional.cross_entropy(net(x), y).backward()
    gradient = net[0].weight.grad.clone()
    net.zero_grad()
    with watched() as recording:
        train(net, steps=1, data=(x, y))
    assert exponents_of(recording, "output", "1") == by_exponent(hidden)
    assert exponents_of(recording, "grad", "0.weight") == by_exponent(gradient)
    assert exponents_of(recording, "param", "0.weight") == by_exponent(before)


def test_the_exponents_of_a_scaled_gradient_are_those_without_the_scale():
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12)
    net, (x, y) = mlp(), batch(32)
    nn.functional.cross_entropy(net(x), y).backward()
    gradient = net[0].weight.grad.clone()
    net.zero_grad()
    with watched() as recording:
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        scaler.scale(nn.functional.cross_entropy(net(x), y)).backward()
        scaler.step(optimizer)
    assert exponents_of(recording, "grad", "0.weight") == by_exponent(gradient)


def test_exponents_are_taken_ever_more_rarely():
    with watched() as recording:
        train(mlp(), steps=20)
    for point, fqn in (("output", "1"), ("grad", "0.weight"), ("param", "0.weight")):
        (found,) = [
            vectors
            for site, vectors in recording.run.vectors(f"{point}.exponents").items()
            if site.fqn == fqn
        ]
        assert [vector.step for vector in found] == [0, 1, 2, 3, 4, 6, 8, 12, 16]
