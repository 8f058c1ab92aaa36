"""Live models as an audit sees them: what each layer is given, and who changes the output."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from traindx.errors import UsageError
from traindx.norm.audit.check import audit
from traindx.norm.audit.facts import Family, Layer, Subject
from traindx.norm.modules import group_norm
from traindx.norm.modules.audited import of_checkpoint, of_model


def layer(subject: Subject, fqn: str) -> Layer:
    (found,) = [each for each in subject.layers if each.fqn == fqn]
    return found


def checks(subject: Subject) -> list[tuple[str, str]]:
    return [(one.check, one.hit.fqn) for one in audit(subject).found]


def net() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Conv2d(6, 8, 3, bias=False),
        nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(8 * 16, 4), nn.LayerNorm(4),
    )  # fmt: skip


def images(count: int = 12) -> Tensor:
    return 2 + torch.randn(count, 3, 8, 8, generator=torch.Generator().manual_seed(1))


def test_the_gap_is_that_of_the_formula() -> None:
    model = net()
    model(images())
    subject = of_model(model, (images(),))
    x = model[0](images()).detach().double()
    bn = model[1]
    scale = 1 / (bn.running_var.double() + bn.eps).sqrt()
    shift = (x.mean((0, 2, 3)) - bn.running_mean) * scale
    stretch = (x.var((0, 2, 3), correction=0) + bn.eps).sqrt() * scale - 1
    expected = float((shift**2 + stretch**2).mean().sqrt())
    seen = layer(subject, "1").seen
    assert seen is not None
    assert seen.gap == pytest.approx(expected, rel=1e-5)
    assert (seen.samples, seen.elements) == (12, 12 * 36)


def test_later_layers_see_what_batch_statistics_make_of_the_earlier() -> None:
    model = net()
    model[1].running_var.fill_(1e4)  # evaluation would give the second layer almost nothing
    subject = of_model(model, (images(),))
    twin = copy.deepcopy(model).train()
    x = twin[:4](images()).detach()
    second = layer(subject, "4").seen
    assert second is not None
    offset = float((x.mean((0, 2, 3)).abs() / x.std((0, 2, 3), correction=0)).max())
    assert second.offset == pytest.approx(offset, rel=1e-3)


def test_a_bias_before_batch_norm_and_instance_norm_is_found_and_no_other() -> None:
    assert ("bias-before-norm", "1") in checks(of_model(net(), (images(),)))
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.InstanceNorm2d(4), nn.Conv2d(4, 4, 3), nn.ReLU(),
                          nn.BatchNorm2d(4), nn.Conv2d(4, 4, 1), nn.GroupNorm(2, 4))  # fmt: skip
    assert checks(of_model(model, (images(),))) == [("bias-before-norm", "1")]


def test_the_bias_that_is_found_does_nothing() -> None:
    model = net().train()
    before = model(images())
    with torch.no_grad():
        model[0].bias += 7
    torch.testing.assert_close(model(images()), before, rtol=0, atol=1e-4)


def test_the_model_comes_back_as_it_was() -> None:
    model = net().train()
    model[4].eval()
    before = copy.deepcopy(model.state_dict())
    modes = [module.training for module in model.modules()]
    state = torch.get_rng_state()
    of_model(model, (images(),))
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert [module.training for module in model.modules()] == modes
    assert torch.equal(state, torch.get_rng_state())
    assert all(param.grad is None for param in model.parameters())
    assert not any(module._forward_pre_hooks or module._forward_hooks for module in model.modules())


# -- what torch itself does wrong -----------------------------------------------------------------


def offset_images(offset: float) -> Tensor:
    x = offset + torch.randn(8, 6, 5, 5, generator=torch.Generator().manual_seed(0))
    return x.to(memory_format=torch.channels_last)


@pytest.mark.parametrize("offset", [1e3, 1e4])
def test_a_group_norm_on_channels_last_is_flagged_with_its_actual_error(offset: float) -> None:
    x = offset_images(offset)
    layer_ = nn.GroupNorm(2, 6)
    right = F.group_norm(x.double().contiguous(), 2)
    wrong = float((layer_(x).detach().double() - right).abs().max())
    assert wrong > 0.1
    (found,) = audit(of_model(layer_, (x,))).found
    assert found.check == "channels-last-group-norm"
    assert found.hit.numbers["error"] == pytest.approx(wrong, rel=0.02)
    assert found.hit.numbers["offset"] == pytest.approx(offset, rel=0.4)


@pytest.mark.parametrize(
    ("make", "x"),
    [
        (lambda: nn.GroupNorm(2, 6), offset_images(1e4).contiguous()),  # the fix that is named
        (lambda: group_norm.GroupNorm(2, 6), offset_images(1e4)),  # the other one
        (lambda: nn.GroupNorm(2, 6), offset_images(1.0)),
        (lambda: nn.BatchNorm2d(6), offset_images(1e3)),
    ],
    ids=["contiguous", "ours", "small mean", "BatchNorm"],
)
def test_where_group_norm_is_right_nothing_is_said(
    make: Callable[[], nn.Module], x: Tensor
) -> None:
    assert checks(of_model(make(), (x,))) == []


def test_an_instance_norm_without_momentum_never_moves_as_the_check_says() -> None:
    model = cast(Any, nn.InstanceNorm1d)(3, momentum=None, track_running_stats=True)
    for _ in range(20):
        model(5 + torch.randn(4, 3, 16))
    assert model.running_mean.tolist() == [0, 0, 0]
    assert ("instance-norm-without-momentum", "") in checks(of_model(model))
    model.momentum = 0.1  # the fix that is named
    model(5 + torch.randn(4, 3, 16))
    assert model.running_mean[0] > 0.1
    assert checks(of_model(model)) == []


def test_a_group_of_one_element_loses_its_input_as_the_check_says() -> None:
    model = nn.GroupNorm(4, 4)
    x = torch.randn(5, 4)
    assert float(model(x).detach().abs().max()) < 1e-4
    assert checks(of_model(model, (x,))) == [("one-sample-groups", "")]
    assert checks(of_model(nn.GroupNorm(2, 4), (x,))) == []


def test_a_frozen_layer_goes_on_moving_as_the_check_says() -> None:
    model = cast(Any, nn.Sequential(nn.BatchNorm1d(3)).requires_grad_(False))
    model(5 + torch.randn(8, 3))
    assert model[0].running_mean[0] > 0.1
    assert ("frozen-but-updating", "0") in checks(of_model(model))
    model[0].eval()
    assert checks(of_model(model)) == []


def test_keras_momentum_gives_the_last_batch_as_the_check_says() -> None:
    model = cast(Any, nn.BatchNorm1d(1, momentum=0.99))
    for value in (5.0, -5.0):
        model(value + torch.randn(512, 1))
    assert float(model.running_mean) == pytest.approx(-5, abs=0.3)
    assert ("momentum-of-another-framework", "") in checks(of_model(model))


def test_checkpointing_counts_twice_and_is_found_by_the_steps() -> None:
    from torch.utils.checkpoint import checkpoint

    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    for _ in range(10):
        checkpoint(model, torch.randn(8, 3), use_reentrant=False).sum().backward()
    (found,) = [x for x in audit(of_model(model, steps=10)).found if x.check == "counter-disagrees"]
    assert found.hit.numbers["times"] == 2


# -- models of all kinds --------------------------------------------------------------------------


class LlamaRMSNorm(nn.Module):
    """As the models of Hugging Face have it: a class of its own, with `variance_epsilon`."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight, self.variance_epsilon = nn.Parameter(torch.ones(size)), 1e-6

    def forward(self, hidden_states: Tensor) -> Tensor:
        squares = hidden_states.pow(2).mean(-1, keepdim=True)
        return self.weight * hidden_states * torch.rsqrt(squares + self.variance_epsilon)


class LayerNorm2d(nn.LayerNorm):
    """As timm has it: over the channels of images."""

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class BatchNormAct(nn.BatchNorm2d):
    def forward(self, x: Tensor) -> Tensor:
        return F.relu(super().forward(x))


class Text(nn.Module):
    """Called by keywords, with integers, and returns a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.norm, self.head = nn.Embedding(9, 8), LlamaRMSNorm(8), nn.Linear(8, 9)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> dict[str, Tensor]:
        assert attention_mask is not None
        return {"logits": self.head(self.norm(hidden_states=self.embed(input_ids)))}


IDS = torch.arange(12).view(2, 6) % 9


@pytest.mark.parametrize("frozen", [False, True])
def test_a_dict_is_the_models_keywords(frozen: bool) -> None:
    given = {"input_ids": IDS, "attention_mask": torch.ones(2, 6)}
    model = Text().requires_grad_(not frozen)
    subject = of_model(model, (given,))
    norm = layer(subject, "norm")
    assert (norm.kind, norm.family) == ("LlamaRMSNorm", Family.RMS)
    assert norm.settings is not None
    assert norm.settings.eps == 1e-6
    assert norm.seen is not None
    assert norm.seen.elements == 8
    assert checks(subject) == []


def test_a_model_that_takes_a_dict_gets_it() -> None:
    class OfDict(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bn = nn.BatchNorm1d(3)

        def forward(self, batch: dict[str, Tensor]) -> Tensor:
            return self.bn(input=batch["x"])

    subject = of_model(OfDict(), ({"x": torch.randn(8, 3)},))
    seen = layer(subject, "bn").seen
    assert seen is not None
    assert (seen.elements, seen.share) == (8, pytest.approx(1))


def test_subclasses_are_what_they_compute() -> None:
    model = nn.Sequential(BatchNormAct(3), LayerNorm2d(3), nn.Conv2d(3, 3, 1))
    subject = of_model(model, (images(),))
    families = {each.fqn: (each.kind, each.family) for each in subject.layers}
    assert families["0"] == ("BatchNormAct", Family.BATCH)
    assert families["1"] == ("LayerNorm2d", Family.LAYER)
    seen = layer(subject, "1").seen
    assert seen is not None
    assert seen.elements == 3
    assert not checks(subject)


def test_statistics_of_unknown_classes_are_looked_at() -> None:
    class FrozenBatchNorm2d(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("running_mean", torch.zeros(3))
            self.register_buffer("running_var", torch.tensor([1.0, -1.0, 2.0]))

        def forward(self, x: Tensor) -> Tensor:
            return x

    assert checks(of_model(nn.Sequential(FrozenBatchNorm2d()))) == [("negative-variance", "0")]


@pytest.mark.filterwarnings("ignore:.*torch.jit.script")
def test_the_statistics_of_a_scripted_model_are_looked_at() -> None:
    scripted = torch.jit.script(nn.Sequential(nn.BatchNorm1d(3)))
    dict(scripted.named_buffers())["0.running_var"].fill_(-1)
    assert ("negative-variance", "0") in checks(of_model(scripted))
    with pytest.raises(UsageError, match="TorchScript"):
        of_model(scripted, (torch.randn(4, 3),))


def test_a_shared_layer_is_told_once() -> None:
    bn = cast(Any, nn.BatchNorm1d(3))
    bn.running_var.fill_(-1)
    bn.num_batches_tracked.fill_(9)
    assert checks(of_model(nn.Sequential(bn, nn.ReLU(), bn))) == [("negative-variance", "0")]


@pytest.mark.filterwarnings("ignore:.*torch.jit.script")
def test_a_compiled_model_is_looked_at_as_it_is_written() -> None:
    model = net()
    plain, wrapped = (
        of_model(model, (images(),)),
        of_model(cast(Any, torch.compile(model)), (images(),)),
    )
    assert [each.fqn for each in wrapped.layers] == [each.fqn for each in plain.layers]
    assert wrapped.change == plain.change
    assert (
        of_model(nn.Sequential(cast(Any, torch.compile(model))), (images(),)).change == plain.change
    )


def test_a_model_without_normalization_or_tensors_is_nothing() -> None:
    assert of_model(nn.Identity(), (torch.ones(1),)).layers == ()
    assert of_model(nn.Linear(2, 2)).layers == ()


@pytest.mark.filterwarnings("ignore")
def test_a_lazy_model_is_refused_and_looked_at_when_it_is_not() -> None:
    model = nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d())
    with pytest.raises(UsageError, match="lazy"):
        of_model(model, (torch.randn(4, 3),))
    assert isinstance(model[0], nn.LazyLinear)
    model(torch.randn(4, 3))
    assert [each.fqn for each in of_model(model, (torch.randn(4, 3),)).layers] == ["1"]


def test_a_quantized_model_is_looked_at() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.ao import quantization

        model = nn.Sequential(
            quantization.QuantStub(), nn.Linear(4, 4), nn.LayerNorm(4), quantization.DeQuantStub()
        )
        cast(Any, model).qconfig = cast(Any, quantization).default_qconfig
        quantization.prepare(model, inplace=True)
        model(torch.randn(8, 4))
        quantization.convert(model, inplace=True)
        assert checks(of_model(model, (torch.randn(8, 4),))) == []


def test_a_model_that_fails_in_evaluation_is_told_and_in_training_not_attributed() -> None:
    class Only(nn.Module):
        def __init__(self, training: bool) -> None:
            super().__init__()
            self.bn, self.only = nn.BatchNorm1d(3), training

        def forward(self, x: Tensor) -> Tensor:
            if self.bn.training is not self.only:
                raise RuntimeError("not in this mode")
            return self.bn(x)

    with pytest.raises(UsageError, match="not in this mode"):
        of_model(Only(True), (torch.randn(8, 3),))
    subject = of_model(Only(False), (torch.randn(8, 3),))
    assert "not in this mode" in str(subject.untried)
    assert subject.change is None


def test_a_single_sample_is_told() -> None:
    subject = of_model(nn.Sequential(nn.BatchNorm1d(3)), (torch.randn(1, 3),))
    assert "more than 1 value" in str(subject.untried)


def test_on_noise_no_gap_is_taken() -> None:
    subject = of_model(net(), (images(),), random=True)
    assert all(each.seen is None or each.seen.gap is None for each in subject.layers)
    assert "noise" in str(subject.untried)


def test_a_checkpoint_tells_what_its_model_does_of_its_statistics(tmp_path: Path) -> None:
    model = net()
    model(images())
    model[4].running_var[2] = -1
    torch.save({"epoch": 3, "state_dict": model.state_dict()}, tmp_path / "w.pt")
    subject = of_checkpoint(tmp_path / "w.pt", steps=1)
    assert (subject.live, subject.batch, subject.steps) == (False, False, 1)
    assert checks(subject) == [("negative-variance", "4")]


def test_a_real_model_of_other_dtypes_is_looked_at() -> None:
    for dtype in (torch.float64, torch.bfloat16):
        subject = of_model(net().to(dtype), (images().to(dtype),))
        half = [name for name, _ in checks(subject) if name.startswith("half")]
        assert bool(half) is (dtype is torch.bfloat16)


def test_every_output_of_a_model_counts() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.BatchNorm1d(3), nn.BatchNorm1d(3)

        def forward(self, x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
            return self.a(x), {"b": self.b(x), "label": x.argmax(1)}

    model = cast(Any, Two())
    model.a.running_var.fill_(4.0)
    model.b.running_var.fill_(4.0)
    subject = of_model(model, (torch.randn(64, 3),))
    shares = [each.seen.share for each in subject.layers if each.seen]
    assert shares == pytest.approx([0.5, 0.5])
