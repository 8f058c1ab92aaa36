"""Tools that are installed nowhere here are stood in for by what their documentation shows."""

import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.peering import tools
from benchmarks.peering.watching import Peer, Watch


def stand_in(monkeypatch: pytest.MonkeyPatch, name: str, **content: Any) -> None:
    module = ModuleType(name)
    for key, value in content.items():
        setattr(module, key, value)
    monkeypatch.setitem(sys.modules, name, module)


def train(
    kind: Callable[[Watch], Peer],
    steps: int = 2,
    spoil: Callable[[int, Tensor], Tensor] | None = None,
) -> Peer:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.5), nn.Linear(3, 1))
    with Watch([kind]) as watch:
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(steps):
            optimizer.zero_grad()
            out = net(torch.ones(4, 2))
            F.mse_loss(spoil(step, out) if spoil else out, torch.zeros(4, 1)).backward()
            optimizer.step()
            with torch.no_grad():
                F.mse_loss(torch.full((1,), 2.0), torch.zeros(1))
    (peer,) = watch.peers
    return peer


def nan_at(step: int) -> Callable[[int, Tensor], Tensor]:
    return lambda now, out: out * float("nan") if now == step else out


def test_a_loss_and_gradients_that_are_not_finite_are_named_at_their_first_step():
    peer = train(tools.NonFinite, 3, nan_at(1))
    assert peer.alarms["loss"] == (1, set())
    assert peer.alarms["gradient"] == (1, {"0.weight", "0.bias", "2.weight", "2.bias"})
    assert train(tools.NonFinite, 3).alarms == {}


def test_anomaly_mode_raises_its_error_in_backward_passes_and_is_off_elsewhere():
    with Watch([tools.Anomaly]) as watch:
        x = torch.zeros(1, requires_grad=True)
        with pytest.raises(RuntimeError, match="returned nan values") as caught:
            (x.sqrt() * 0).sum().backward()
        (peer,) = watch.peers
        assert isinstance(peer, tools.Anomaly)
        assert not peer.raised(ValueError("something else"))
        assert peer.alarms == {}
        assert peer.raised(caught.value)
        assert peer.alarms == {"nan": (0, set())}
    torch.autograd.set_detect_anomaly(False)
    train(tools.Anomaly)
    assert not torch.is_anomaly_enabled()


class UnderOverflow:
    """Raises at the output of a module that is not finite."""

    def __init__(self, model: nn.Module) -> None:
        self.module_names = {module: name for name, module in model.named_modules()}
        self.calls = 0
        for module in model.modules():
            module.register_forward_hook(self.forward_hook)

    def forward_hook(self, module: nn.Module, input: Any, output: Tensor) -> None:
        self.calls += 1
        if not output.isfinite().all():
            raise ValueError("DebugUnderflowOverflow: inf/nan detected, aborting")
        if output.dtype == torch.float64:
            raise RuntimeError("not for this type")


def test_the_frame_at_which_hugging_faces_tool_raises_is_the_place(
    monkeypatch: pytest.MonkeyPatch,
):
    stand_in(monkeypatch, "transformers")
    stand_in(monkeypatch, "transformers.debug_utils", DebugUnderflowOverflow=UnderOverflow)
    net = nn.Sequential(nn.Linear(1, 1), nn.ReLU())
    with Watch([tools.UnderOverflow]) as watch:
        torch.optim.SGD(net.parameters(), lr=0.1)
        net(torch.tensor([[1.0]]))
        net(torch.tensor([[float("inf")]]))
        net(torch.tensor([[float("inf")]]))
    (peer,) = watch.peers
    assert peer.alarms == {"inf or nan": (0, {"0"})}
    assert peer.failure == ""


def test_another_error_of_its_hook_is_its_failure_and_not_the_programs(
    monkeypatch: pytest.MonkeyPatch,
):
    stand_in(monkeypatch, "transformers")
    stand_in(monkeypatch, "transformers.debug_utils", DebugUnderflowOverflow=UnderOverflow)
    net = nn.Linear(1, 1).double()
    with Watch([tools.UnderOverflow]) as watch:
        torch.optim.SGD(net.parameters(), lr=0.1)
        net(torch.ones(1, 1, dtype=torch.float64))
    (peer,) = watch.peers
    assert peer.failure == "RuntimeError: not for this type"
    assert peer.alarms == {}


class Snitch:
    """Keeps rows, and objects to the rate and to the loss."""

    def __init__(self, model: nn.Module, optimizer: Any) -> None:
        self.rows: list[dict[str, Any]] = []
        made.append(self)

    def log(self, step: int, loss: float, val_loss: float | None = None) -> None:
        self.rows.append({"step": step, "val_loss": val_loss})

    def report(self) -> list[Any]:
        return [SimpleNamespace(code="GS008"), SimpleNamespace(code="GS005")]


made: list[Any] = []


def test_gradsnitch_is_given_each_loss_and_the_validation_before_it(
    monkeypatch: pytest.MonkeyPatch,
):
    made.clear()
    stand_in(monkeypatch, "gradsnitch", watch=Snitch)
    peer = train(tools.Gradsnitch, 2)
    assert peer.failure == ""
    assert made[0].rows == [{"step": 0, "val_loss": None}, {"step": 1, "val_loss": 4.0}]
    assert {code: sites for code, (_, sites) in peer.alarms.items()} == {
        "GS008": {"SGD"},
        "GS005": set(),
    }


def htop(monkeypatch: pytest.MonkeyPatch, badges: list[str]) -> None:
    """A table of one layer whose badge is another one at each reading."""
    layer = SimpleNamespace(mean_activation=0.0, grad_norm=0.0, layer_type="ReLU")
    monitor = SimpleNamespace(get_stats=lambda: {"act": layer})
    left = iter(badges)
    stand_in(monkeypatch, "nn_htop", Monitor=lambda model: monitor)
    stand_in(monkeypatch, "nn_htop.ui", _get_health_badge=lambda *_: next(left))


@pytest.mark.parametrize(
    ("badges", "alarms"),
    [
        (["LEARNING", "DEAD RELU", "LEARNING", "DEAD RELU"], set()),
        (["LEARNING", "DEAD RELU", "DEAD RELU", "LEARNING"], {"DEAD RELU"}),
        (["LEARNING", "EXPLODING", "LEARNING", "LEARNING"], {"EXPLODING"}),
        (["LEARNING"] * 4, set()),
    ],
)
def test_a_yellow_badge_counts_if_it_stays_and_a_red_one_at_once(
    monkeypatch: pytest.MonkeyPatch, badges: list[str], alarms: set[str]
):
    htop(monkeypatch, badges)
    peer = train(tools.NnHtop, 30)
    assert peer.failure == ""
    assert peer.alarms.keys() == alarms
    assert all(sites == {"act"} for _, sites in peer.alarms.values())


class Ormas:
    """Tells its sink of one thing of each severity at the first step."""

    def __init__(self, model: nn.Module, optimizer: Any, **options: Any) -> None:
        self.options = options
        made.append(self)

    def step(self, loss: Tensor) -> None:
        (hear,) = self.options["sinks"]
        hear("metrics", {"severity": "critical", "event": "none"})
        hear("event", {"severity": "info", "event": "structure"})
        hear(
            "event",
            {"severity": "warning", "event": "alarm", "diagnosis": "vanishing", "layer": "0"},
        )
        hear("event", {"severity": "critical", "event": "nonfinite_gradient", "layers": ["0", "2"]})
        hear("event", {"severity": "warning", "event": "loss_spike"})

    def close(self, report: bool) -> None:
        assert report is False


def test_warnings_critical_events_and_proofs_of_ormas_are_alarms(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
):
    made.clear()
    monkeypatch.chdir(tmp_path)
    stand_in(monkeypatch, "ormas_monitor", Monitor=Ormas)
    peer = train(tools.Ormas, 2)
    assert peer.failure == ""
    assert peer.alarms == {
        "vanishing": (0, {"0"}),
        "nonfinite_gradient": (0, {"0", "2"}),
        "loss_spike": (0, set()),
    }
    assert "check_every" not in made[0].options
    train(tools.OrmasOften, 2)
    assert made[1].options["check_every"] == 5


class Trace:
    """The outputs of a model that was called again, and the gradient that was sent back."""

    def __init__(self, model: nn.Module, args: Any, kwargs: Any, capture: Any) -> None:
        made.append(self)
        self.model = model
        self.out = model(*args, **kwargs)
        self.output_layers = ["out"]

    def __getitem__(self, label: str) -> Any:
        return SimpleNamespace(out=self.out, module="0:1")

    def log_backward(self, loss: Tensor) -> None:
        loss.backward()


def audit(trace: Trace) -> Any:
    found = [
        SimpleNamespace(severity="warning", check="gradient_flow_audit", modules=(), ops=("op",)),
        SimpleNamespace(severity="info", check="nothing", modules=(), ops=()),
    ]
    return SimpleNamespace(findings=found)


def test_a_copy_is_traced_with_the_same_numbers_and_gets_the_gradients_of_the_training(
    monkeypatch: pytest.MonkeyPatch,
):
    made.clear()
    options = SimpleNamespace(CaptureOptions=lambda **kwargs: kwargs)
    debug = SimpleNamespace(audit_trace=audit)
    stand_in(monkeypatch, "torchlens", trace=Trace, debug=debug)
    stand_in(monkeypatch, "torchlens.options", **vars(options))
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.5), nn.Linear(3, 1))
    with Watch([tools.Torchlens]) as watch:
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        out = net(torch.ones(4, 2))
        state = torch.get_rng_state()
        F.mse_loss(out, torch.zeros(4, 1)).backward()
        assert torch.equal(torch.get_rng_state(), state)
        grads = [param.grad.clone() for param in net.parameters() if param.grad is not None]
        optimizer.step()
        net(torch.ones(4, 2)).sum().backward()
    (peer,) = watch.peers
    assert peer.failure == ""
    (trace,) = made
    assert trace.model is not net
    assert torch.equal(trace.out, out)
    copied = [param.grad for param in trace.model.parameters()]
    for grad, other in zip(grads, copied, strict=True):
        torch.testing.assert_close(other, grad)
    assert peer.alarms == {"gradient_flow_audit": (0, {"0"})}
