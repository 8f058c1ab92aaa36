"""Trainings that differ in what the model is and how it is called."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.capture.matrix.training import Cases, Net, Training, batch, plain, quiet, sgd

CASES = Cases()


# -- sharing, parametrizations, adapters ---------------------------------------------------------


@CASES()
def layer_called_three_times() -> Training:
    layer = nn.Linear(6, 6)
    net = nn.Sequential(layer, nn.ReLU(), layer, nn.ReLU(inplace=True), layer)
    return plain(net, batch(outputs=6))


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(10, 6), nn.Linear(6, 10, bias=False)
        self.head.weight = self.embed.weight
        self.idle = nn.Linear(6, 6)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.embed(tokens))


@CASES()
def tied_weights_and_a_module_never_called() -> Training:
    return plain(Tied(), (torch.arange(8), torch.arange(8)), F.cross_entropy)


@CASES()
def weight_and_spectral_norm() -> Training:
    parametrizations = nn.utils.parametrizations
    first = parametrizations.weight_norm(nn.Linear(6, 8))
    return plain(nn.Sequential(first, nn.ReLU(), parametrizations.spectral_norm(nn.Linear(8, 3))))


@CASES(slow=True)
def orthogonal_weight() -> Training:
    first = nn.utils.parametrizations.orthogonal(nn.Linear(6, 6))
    return plain(nn.Sequential(first, nn.Linear(6, 3)))


@CASES(slow=True)
def weight_and_spectral_norm_by_hooks() -> Training:
    with quiet():
        first = nn.utils.weight_norm(nn.Linear(6, 8))
        return plain(nn.Sequential(first, nn.utils.spectral_norm(nn.Linear(8, 3))))


class Adapted(nn.Module):
    """A frozen linear layer with a trained correction of rank two."""

    def __init__(self, base: nn.Linear) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.lora_a = nn.Parameter(torch.randn(2, base.in_features) * 0.1)
        self.lora_b = nn.Parameter(torch.zeros(base.out_features, 2))

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + x @ self.lora_a.T @ self.lora_b.T


@CASES()
def lora() -> Training:
    net = nn.Sequential(Adapted(nn.Linear(6, 8)), nn.GELU(), Adapted(nn.Linear(8, 3)))
    trained = [param for param in net.parameters() if param.requires_grad]
    return plain(net, optimizer=torch.optim.AdamW(trained))


@CASES()
def module_replaced_during_training() -> Training:
    net = Net()

    def after(i: int) -> None:
        if i == 2:
            net.last = nn.Linear(8, 3)

    return plain(net, after=after)


@CASES()
def module_added_during_training() -> Training:
    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = sgd(net)

    def after(i: int) -> None:
        if i == 2:
            net.append(nn.Linear(3, 3))
            optimizer.add_param_group({"params": net[-1].parameters()})

    return plain(net, optimizer=optimizer, after=after)


@CASES()
def lazy_layers() -> Training:
    with quiet():
        net = nn.Sequential(nn.LazyLinear(8), nn.ReLU(), nn.LazyLinear(3))
        net(batch()[0])
    return plain(net)


@CASES()
def data_parallel() -> Training:
    return plain(nn.DataParallel(Net()))


# -- kinds of layers -----------------------------------------------------------------------------


class Recurrent(nn.Module):
    def __init__(self, kind: Any) -> None:
        super().__init__()
        self.cells, self.head = kind(6, 5, 2, dropout=0.2), nn.Linear(5, 3)

    def forward(self, sequence: Any) -> Tensor:
        out = self.cells(sequence)[0]
        if isinstance(out, nn.utils.rnn.PackedSequence):
            out = nn.utils.rnn.pad_packed_sequence(out)[0]
        return self.head(out[-1])


def recurrent(kind: Any, *, packed: bool = False) -> Training:
    sequence: Any = torch.randn(7, 4, 6)
    if packed:
        sequence = nn.utils.rnn.pack_padded_sequence(sequence, torch.tensor([7, 5, 5, 2]))
    return plain(Recurrent(kind), (sequence, batch(4)[1]))


@CASES()
def rnn() -> Training:
    return recurrent(nn.RNN)


@CASES(slow=True)
def gru() -> Training:
    return recurrent(nn.GRU)


@CASES()
def lstm_of_a_packed_sequence() -> Training:
    return recurrent(nn.LSTM, packed=True)


@CASES()
def recurrent_cell_in_a_loop() -> Training:
    class Loop(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.head = nn.GRUCell(6, 6), nn.Linear(6, 3)

        def forward(self, x: Tensor) -> Tensor:
            hidden = torch.zeros_like(x)
            for _ in range(5):
                hidden = self.cell(x, hidden)
            return self.head(hidden)

    return plain(Loop())


@CASES()
def sparse_embedding() -> Training:
    net = nn.Sequential(nn.Embedding(10, 6, sparse=True), nn.Linear(6, 3))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    return plain(net, (torch.arange(8), batch()[1]), optimizer=optimizer)


@CASES()
def sparse_embedding_with_sparse_adam() -> Training:
    net = nn.EmbeddingBag(10, 3, sparse=True, mode="sum")
    tokens = torch.arange(16).reshape(8, 2) % 10
    optimizer = torch.optim.SparseAdam(list(net.parameters()))
    return plain(net, (tokens, batch()[1]), optimizer=optimizer)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.into, self.out = nn.Linear(6, 18), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.into(x).chunk(3, -1)
        mixed = F.scaled_dot_product_attention(query, key, value, dropout_p=0.2, is_causal=True)
        return self.out(mixed)


@CASES()
def scaled_dot_product_attention() -> Training:
    return plain(Attention(), (torch.randn(4, 5, 6), torch.randn(4, 5, 3)))


@CASES(slow=True)
def transformer_with_a_padding_mask_and_a_fast_evaluation() -> Training:
    layer = nn.TransformerEncoderLayer(6, 2, 12, batch_first=True)
    with quiet():
        encoder = nn.TransformerEncoder(layer, 2)
    x, mask = torch.randn(4, 5, 6), torch.arange(5).ge(3).expand(4, 5)

    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = encoder

        def forward(self, x: Tensor) -> Tensor:
            return self.encoder(x, src_key_padding_mask=mask)

    net = Masked()

    def after(i: int) -> object:
        net.eval()
        with torch.no_grad(), quiet():
            out = net(x)
        net.train()
        return out

    return plain(net, (x, torch.randn(4, 5, 6)), after=after)


@CASES()
def convolutions_in_channels_last_with_dropout() -> Training:
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Dropout2d(0.3),
        nn.Conv2d(4, 4, 3), nn.GroupNorm(2, 4), nn.LeakyReLU(0.1, inplace=True), nn.Flatten(),
        nn.Linear(16, 3),
    )  # fmt: skip
    images = torch.randn(8, 1, 6, 6).to(memory_format=torch.channels_last)
    return plain(net, (images, batch()[1]))


# -- ways of writing it --------------------------------------------------------------------------


@CASES()
def in_place_on_outputs() -> Training:
    def way(self: Net, x: Tensor) -> Tensor:
        hidden = self.first(x)
        hidden.add_(1).relu_()
        out = self.last(hidden)
        out.mul_(2)
        out[:, 0] += 1
        return out

    return plain(Net(way))


@CASES()
def in_place_on_the_input() -> Training:
    net = Net(lambda self, x: self.last(self.first(x.add_(1))))
    return plain(net, lambda i: (batch()[0].clone(), batch()[1]))


@CASES()
def in_place_on_views_of_outputs() -> Training:
    def way(self: Any, x: Tensor) -> Tensor:
        left, right = self.first(x).chunk(2, 1)
        hidden = torch.cat([self.same(left), right], 1)
        hidden = self.same(hidden[:])
        hidden.view(-1).mul_(2.0)
        return self.last(hidden)

    net = Net(way)
    net.same = nn.Identity()
    return plain(net)


@CASES()
def returns_a_dict() -> Training:
    net = Net(lambda self, x: {"out": self.last(self.first(x)), "none": None})
    return plain(net, loss=lambda out, y: F.mse_loss(out["out"], y), steps=4)


@CASES(slow=True)
def returns_a_dataclass() -> Training:
    @dataclasses.dataclass
    class Out:
        out: Tensor

    net = Net(lambda self, x: Out(self.last(self.first(x))))
    return plain(net, loss=lambda out, y: F.mse_loss(out.out, y), steps=4)


@CASES()
def returns_nothing_and_keeps_its_output() -> Training:
    def way(self: Any, x: Tensor) -> None:
        self.kept = self.last(self.first(x))

    net: Any = Net(way)
    return plain(net, loss=lambda out, y: F.mse_loss(net.kept, y))


@CASES(references=False)  # a list that holds itself is let go by the collector of cycles alone
def returns_a_list_that_holds_itself() -> Training:
    def way(self: Any, x: Tensor) -> list[Any]:
        out: list[Any] = [self.last(self.first(x))]
        out.append(out)
        return out

    return plain(Net(way), loss=lambda out, y: F.mse_loss(out[0], y))


@CASES()
def takes_a_dict_that_holds_itself() -> Training:
    given: dict[str, Any] = {"x": batch()[0]}
    given["self"] = given
    return plain(Net(lambda self, d: self.last(self.first(d["x"]))), (given, batch()[1]))


@CASES()
def takes_keywords_only() -> Training:
    class Keywords(Net):
        def forward(self, *, x: Tensor) -> Tensor:  # pyright: ignore
            return self.last(self.first(x))

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Keywords()

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(x=x)

    return plain(Outer())


@CASES(slow=True)
def takes_a_list_of_numbers() -> Training:
    net = Net(lambda self, x: self.last(self.first(torch.tensor(x))))
    return plain(net, (batch()[0].tolist(), batch()[1]))


@CASES()
def forward_is_a_generator() -> Training:
    class Yields(Net):
        def forward(self, x: Tensor) -> Iterator[Tensor]:
            for i in range(3):
                yield self.last(self.first(x)) * i

    return plain(Yields(), loss=lambda out, y: sum(F.mse_loss(part, y) for part in out))


@CASES()
def takes_a_generator() -> Training:
    net = Net(lambda self, parts: sum(self.last(self.first(x)) for x in parts))
    x, y = batch()
    return plain(net, lambda i: ((x for _ in range(3)), y))


@CASES()
def call_overridden() -> Training:
    class Twice(Net):
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return super().__call__(*args, **kwargs) * 2

    return plain(Twice())


@CASES()
def module_without_length_truth_or_equality() -> Training:
    class Refuses(Net):
        def __len__(self) -> int:
            raise RuntimeError("no length")

        def __bool__(self) -> bool:
            raise RuntimeError("no truth")

        def __eq__(self, other: object) -> bool:
            raise RuntimeError("no equality")

        __hash__ = nn.Module.__hash__

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Refuses()

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(x)

    return plain(Outer())


@CASES()
def module_with_an_attribute_for_every_name() -> Training:
    class Generous(Net):
        def __getattr__(self, name: str) -> Any:
            try:
                return super().__getattr__(name)
            except AttributeError:
                if name.startswith("__"):
                    raise
                return torch.ones(3)

    return plain(Generous())


@CASES(slow=True)
def properties_that_raise() -> Training:
    class Raises(Net):
        @property
        def in_features(self) -> int:
            raise RuntimeError("property")

    return plain(nn.Sequential(Raises()))


class Tower(nn.Module):
    def __init__(self, height: int) -> None:
        super().__init__()
        self.rest = Tower(height - 1) if height else nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.rest(x)


@CASES(slow=True)
def modules_a_hundred_deep() -> Training:
    return plain(Tower(100), steps=2)


def frames() -> int:
    """How deep the stack is."""
    frame, depth = sys._getframe(), 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    return depth


@CASES(slow=True, references=False)  # hooks that follow its outputs take frames, too
def modules_nested_almost_to_the_limit() -> Training:
    """As deep as bare torch can be called: of the frames allowed, a few are left."""
    depth = (sys.getrecursionlimit() - frames() - 60) // 4
    return plain(Tower(depth), steps=2)


@CASES()
def recursion_almost_to_the_limit() -> Training:
    """Of the frames that Python allows, forward leaves so few that a layer can just be called."""
    left = 20

    def way(self: Net, x: Tensor) -> Tensor:
        def down(num: int) -> Tensor:
            return down(num - 1) if num else self.last(F.relu(self.first(x)))

        return down(sys.getrecursionlimit() - frames() - left)

    return plain(Net(way), steps=4)


@CASES(slow=True)
def quantization_aware() -> Training:
    import torch.ao.quantization as quantization

    with quiet():
        net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
        net.qconfig = quantization.get_default_qat_qconfig("fbgemm")  # pyright: ignore
        quantization.prepare_qat(net, inplace=True)
    return plain(net, within=(quiet,))


@CASES(references=False)  # scripted modules take no hooks on all modules
def scripted() -> Training:
    with quiet():
        net = torch.jit.script(nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)))
    return plain(net, within=(quiet,))  # pyright: ignore


@CASES(slow=True, references=False)
def traced_symbolically_and_by_example_after_each_step() -> Training:
    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))

    def after(i: int) -> object:
        with quiet():
            example = torch.jit.trace(net, batch()[0])
        symbolic = torch.fx.symbolic_trace(net)
        return example(batch()[0]).detach(), symbolic(batch()[0]).detach()  # pyright: ignore

    return plain(net, after=after)


@CASES(references=False, slow=True)
def exported_after_each_step() -> Training:
    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))

    def after(i: int) -> object:
        with quiet():
            program = torch.export.export(net, (batch()[0],), strict=bool(i % 2))
        return program.module()(batch()[0]).detach()

    return plain(net, after=after, steps=4)
