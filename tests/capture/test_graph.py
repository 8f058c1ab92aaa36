"""What lies on the ways back through the autograd graph, and that nothing of it is kept."""

from __future__ import annotations

import gc
import math
import weakref
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.capture.watched import batch, mlp, train, watched
from traindx.capture.graph import Graph
from traindx.capture.transfer import Portion, TorchHost
from traindx.facts import PathFacts, TensorFacts


def paths_behind(graph: Graph) -> dict[int, PathFacts]:
    """The paths to each leaf, with the norms that they ask for."""
    ways = graph.ways()
    return ways.facts([float(norm) for norm in ways.norms])


def prediction_of(loss: torch.Tensor) -> TensorFacts:
    """What was compared, once it is read."""
    comparison = Graph(loss).comparison({})
    assert comparison is not None
    found: list[TensorFacts | None] = []

    def note(prediction: TensorFacts | None, _target: TensorFacts | None) -> list[Any]:
        found.append(prediction)
        return []

    unread = comparison.unread(note)
    Portion([unread], TorchHost()).items()
    (prediction,) = found
    assert prediction is not None
    return prediction


def paths_of(model: nn.Module, x: torch.Tensor, loss: Any = torch.mean) -> dict[str, PathFacts]:
    """The paths from a loss to each parameter, by fqn."""
    paths = paths_behind(Graph(loss(model(x))))
    return {fqn: paths[id(param)] for fqn, param in model.named_parameters() if id(param) in paths}


def sigmoid_chain(depth: int, width: int = 8, make=nn.Sigmoid) -> Any:
    torch.manual_seed(0)
    return nn.Sequential(
        *(part for _ in range(depth) for part in (nn.Linear(width, width), make()))
    )


def spectral(weight: torch.Tensor) -> float:
    return float(np.linalg.svd(weight.detach().numpy(), compute_uv=False)[0])


def test_a_sigmoid_chain_is_bounded_by_quarters_and_spectral_norms():
    net = sigmoid_chain(6)
    paths = paths_of(net, torch.randn(4, 8))
    for layer in range(6):
        later = [net[2 * i].weight for i in range(layer + 1, 6)]
        bound = sum(math.log10(spectral(weight)) for weight in later) + (6 - layer) * -math.log10(4)
        for kind in ("weight", "bias"):
            path = paths[f"{2 * layer}.{kind}"]
            assert path.sigmoids == 6 - layer
            assert path.norms == 0
            assert path.log10_bound == pytest.approx(bound, abs=0.02)


def test_a_bound_is_never_exceeded_by_the_gradient():
    net = sigmoid_chain(5)
    loss = net(torch.randn(1, 8)).mean()
    paths = paths_behind(Graph(loss))
    loss.backward()
    for layer in range(0, 10, 2):
        bias = net[layer].bias  # of one sample, its gradient is what arrives at the layer
        assert bias.grad.norm().log10() <= (paths[id(bias)].log10_bound or 0.0) + 0.02


def test_few_sigmoids_are_counted_without_reading_weights():
    path = paths_of(sigmoid_chain(3), torch.randn(4, 8))["0.weight"]
    assert path.sigmoids == 3
    assert path.log10_bound == pytest.approx(3 * math.log10(0.25))


def test_a_skip_connection_leads_around_the_sigmoids():
    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(8, 8)
            self.blocks = nn.ModuleList([nn.Linear(8, 8) for _ in range(6)])

        def forward(self, x):
            x = self.first(x)
            for block in self.blocks:
                x = x + torch.sigmoid(block(x))
            return x

    paths = paths_of(Residual(), torch.randn(4, 8))
    assert paths["first.weight"].sigmoids == 0
    assert paths["first.weight"].log10_bound == pytest.approx(6 * math.log10(1.25))
    assert paths["blocks.0.weight"].sigmoids == 1
    assert paths["blocks.0.weight"].log10_bound == pytest.approx(math.log10(0.25 * 1.25**5))


class FanOut(nn.Module):
    """A chain of sigmoid layers, each of which uses its input several times."""

    def __init__(self, depth: int, uses: int, width: int = 8):
        super().__init__()
        torch.manual_seed(0)
        self.uses = uses
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])

    def forward(self, x):
        for layer in self.layers:
            h = torch.sigmoid(layer(x))
            x = h
            for _ in range(self.uses - 1):
                x = x + h
        return x


def test_a_fan_out_adds_up_all_its_paths():
    """Using h + h + h carries back three times the gradient at every layer."""
    once = paths_of(FanOut(6, uses=1), torch.randn(4, 8))
    thrice = paths_of(FanOut(6, uses=3), torch.randn(4, 8))
    for layer in range(6):
        fqn = f"layers.{layer}.weight"
        assert thrice[fqn].sigmoids == once[fqn].sigmoids == 6 - layer
        gain = (thrice[fqn].log10_bound or 0.0) - (once[fqn].log10_bound or 0.0)
        assert gain == pytest.approx((6 - layer) * math.log10(3))


@pytest.mark.parametrize("uses", [1, 3, 6])
def test_the_bound_holds_with_a_fan_out(uses: int):
    net: Any = FanOut(5, uses)
    loss = net(torch.randn(1, 8)).mean()
    paths = paths_behind(Graph(loss))
    loss.backward()
    for layer in net.layers:
        assert layer.bias.grad.norm().log10() <= (paths[id(layer.bias)].log10_bound or 0.0) + 0.02


def test_one_way_of_unknown_gain_leaves_no_bound():
    class Beside(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(8, 8)

        def forward(self, x):
            h = self.first(x)
            return torch.sigmoid(h) + 0.001 * h.exp()

    path = paths_of(Beside(), torch.randn(4, 8))["first.weight"]
    assert (path.sigmoids, path.log10_bound) == (0, None)


@pytest.mark.parametrize(
    "operation",
    [
        lambda h: F.dropout(h, 0.5),
        lambda h: h / 3,
        lambda h: torch.add(h, h.detach(), alpha=5) - torch.sub(h.detach(), h, alpha=5),
        lambda h: h @ torch.tanh(h.T),
        lambda h: 1 / (1 + torch.exp(-h)),
        torch.tan,
    ],
    ids=["dropout", "division", "alpha", "two activations", "hand-written sigmoid", "tan"],
)
def test_an_operation_without_a_known_gain_is_not_taken_for_one_with(operation: Any):
    net = nn.Linear(8, 8)
    (path, _) = paths_behind(Graph(operation(net(torch.randn(8, 8))).mean())).values()
    assert path.log10_bound is None


@pytest.mark.parametrize("make", [nn.LSTM, nn.GRU])
def test_the_gates_of_a_recurrent_network_are_not_counted(make):
    net = make(8, 8, batch_first=True)
    paths = paths_of(net, torch.randn(2, 5, 8), lambda out: out[0].mean())
    assert {path.sigmoids for path in paths.values()} == {0}
    assert {path.log10_bound for path in paths.values()} == {None}


def test_a_normalization_on_the_path_leaves_no_bound():
    net = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Sigmoid(), nn.Linear(8, 8))
    paths = paths_of(net, torch.randn(4, 8))
    assert (paths["0.weight"].norms, paths["0.weight"].log10_bound) == (1, None)
    assert paths["3.weight"].log10_bound == 0.0
    assert paths["1.weight"].norms == 1  # its gradient is made inside the normalization


@pytest.mark.parametrize("norm", [nn.LayerNorm(8), nn.GroupNorm(2, 8)], ids=["layer", "group"])
def test_other_normalizations_are_known(norm):
    net = nn.Sequential(nn.Linear(8, 8), norm, nn.Sigmoid())
    assert paths_of(net, torch.randn(4, 8))["0.weight"].norms == 1


def test_an_operation_of_unknown_gain_leaves_no_bound():
    net = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 8))
    assert paths_of(net, torch.randn(4, 8))["0.weight"].log10_bound is None


def test_a_tanh_of_a_parameter_is_not_taken_for_a_weight():
    class Bounded(nn.Module):
        def __init__(self):
            super().__init__()
            self.raw = nn.Parameter(torch.randn(8, 8))

        def forward(self, x):
            for _ in range(5):
                x = torch.sigmoid(x @ torch.tanh(self.raw))
            return x

    path = paths_of(Bounded(), torch.randn(4, 8))["raw"]
    assert path.sigmoids == 1  # the nearest use
    assert path.log10_bound is None


def test_activations_are_seen_whether_functional_or_modules():
    class Functional(nn.Module):
        def __init__(self, modules):
            super().__init__()
            self.layers = nn.ModuleList(modules)

        def forward(self, x):
            for layer in self.layers:
                x = layer(x).sigmoid()
            return x

    chain = sigmoid_chain(5)
    functional = Functional([part for part in chain if isinstance(part, nn.Linear)])
    x = torch.randn(4, 8)
    of_modules = [path for _, path in sorted(paths_of(chain, x).items())]
    of_functions = [path for _, path in sorted(paths_of(functional, x).items())]
    assert of_modules == of_functions


def test_a_shared_weight_gets_the_gradients_of_all_its_uses():
    shared = nn.Linear(8, 8)
    net = nn.Sequential(shared, nn.Sigmoid(), shared, nn.Sigmoid(), shared)
    path = paths_of(net, torch.randn(4, 8))["0.weight"]
    assert path.sigmoids == 0
    assert path.log10_bound == pytest.approx(math.log10(1 + 1 / 4 + 1 / 16))


def test_a_convolutions_gain_counts_its_window():
    net: Any = nn.Sequential(
        *(p for _ in range(5) for p in (nn.Conv2d(2, 2, 3, padding=1), nn.Sigmoid()))
    )
    path = paths_of(net, torch.randn(1, 2, 6, 6))["0.weight"]
    bound = 5 * math.log10(0.25)
    for layer in range(2, 10, 2):
        kernel = net[layer].weight.flatten(1)
        bound += math.log10(spectral(kernel) * 3)
    assert path.log10_bound == pytest.approx(bound, abs=0.02)


def test_the_leaves_are_the_parameters_a_loss_depends_on():
    net = mlp()
    graph = Graph(net(batch()[0]).sum())
    assert {id(leaf) for leaf in graph.leaves} == {id(p) for p in net.parameters()}


def test_a_custom_function_with_an_attribute_named_variable_is_no_leaf():
    class Named(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.variable = "mine"
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    net = nn.Linear(6, 3)
    graph = Graph(Named.apply(net(batch()[0])).sum())
    assert len(graph.leaves) == 2
    assert len(paths_behind(graph)) == 2


def test_paths_are_written_with_the_model():
    with watched() as recording:
        net = sigmoid_chain(5)
        train(net, data=(torch.randn(4, 8), torch.rand(4, 8)), loss=F.mse_loss)
    params: dict[str, Any] = {param.fqn: param.path for param in recording.model().params}
    assert params["0.weight"].sigmoids == 5
    assert params["8.weight"].sigmoids == 1


def test_no_tensor_of_a_step_outlives_it():
    with watched():
        net = mlp()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        x, y = batch()
        dead: list[weakref.ref[torch.Tensor]] = []
        for _ in range(4):
            optimizer.zero_grad()
            out = net(x)
            loss = F.cross_entropy(out, y)
            loss.backward()
            optimizer.step()
            dead += [weakref.ref(out), weakref.ref(loss)]
            del out, loss
            assert not any(ref() is not None for ref in dead)


def test_no_graph_of_a_step_outlives_it():
    freed: list[int] = []

    class Watched(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.kept = Token()
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            return gradient

    class Token:
        def __del__(self):
            freed.append(1)

    class Net(nn.Linear):
        def forward(self, x):
            return Watched.apply(super().forward(x))

    with watched():
        net = Net(6, 3)
        train(net, steps=3)
        assert len(freed) >= 2  # the last one's loss is the training loop's own
        gc.collect()
        assert len(freed) == 3


def test_a_model_that_is_dropped_is_freed_while_watching():
    with watched():
        net = mlp()
        train(net, steps=3)
        model, weight = weakref.ref(net), weakref.ref(net[0].weight)
        del net
        gc.collect()
        assert model() is None
        assert weight() is None


TOKENS = torch.randint(0, 5, (4, 6))


@pytest.mark.parametrize(
    "loss",
    [
        lambda scores: F.cross_entropy(scores.softmax(-1).view(-1, 5), TOKENS.view(-1)),
        lambda scores: F.cross_entropy(scores.softmax(-1).transpose(1, -1), TOKENS),
        lambda scores: F.cross_entropy(scores.softmax(-1).permute(0, -1, 1).contiguous(), TOKENS),
        lambda scores: F.cross_entropy(
            scores.transpose(1, 2).softmax(1), TOKENS, label_smoothing=0.1, weight=torch.ones(5)
        ),
        lambda scores: F.nll_loss(scores.softmax(-1).reshape(-1, 5), TOKENS.view(-1)),
    ],
    ids=["flattened", "transposed", "permuted", "smoothed and weighted", "without logarithm"],
)
def test_a_softmax_is_seen_through_what_rearranges_it(loss: Any):
    prediction = prediction_of(loss(torch.randn(4, 6, 5, requires_grad=True)))
    assert prediction.operation == "SoftmaxBackward0"
    assert prediction.rows_sum_to_one


@pytest.mark.parametrize(
    "loss",
    [
        lambda scores: F.cross_entropy(scores.log_softmax(-1).view(-1, 5), TOKENS.view(-1)),
        lambda scores: F.nll_loss(scores.log_softmax(-1).view(-1, 5), TOKENS.view(-1)),
        lambda scores: F.cross_entropy(scores.sigmoid().view(-1, 5), TOKENS.view(-1)),
        lambda scores: F.cross_entropy(scores.transpose(1, 2).softmax(-1), TOKENS),
    ],
    ids=["log-softmax", "likelihood", "sigmoid", "softmax over another axis"],
)
def test_other_predictions_are_no_probabilities_over_classes(loss: Any):
    prediction = prediction_of(loss(torch.randn(4, 6, 5, requires_grad=True)))
    assert not prediction.rows_sum_to_one
