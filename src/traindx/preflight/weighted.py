"""What a model multiplies by weights in one pass, by modules or in the open, and what reaches it.

A tensor is of the data if it was made of the batch, moving if it was made of the part of it that is
being moved, and learned if it was made of parameters alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from traindx.preflight.calls import Call, Calls
from traindx.preflight.inside import Inside
from traindx.preflight.structures import tensors

_CONVOLUTIONS = {
    *("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"),
}
_PRODUCTS = {
    *("linear", "matmul", "__matmul__", "__rmatmul__", "mm", "bmm", "mv", "einsum", "tensordot"),
    *("addmm", "baddbmm", "bilinear", "sparse_mm"),
}
_RECURRENT = {
    *("gru", "lstm", "rnn_tanh", "rnn_relu", "gru_cell", "lstm_cell", "rnn_tanh_cell"),
    *("rnn_relu_cell", "multi_head_attention_forward"),
}
_WEIGHTED = _CONVOLUTIONS | _PRODUCTS | _RECURRENT
_EMBEDDINGS = {"embedding", "embedding_bag"}


@dataclass(frozen=True, slots=True)
class Moves:
    """Steps away from where tensors are, the same at every pass.

    Attributes:
        times: By how many steps they are moved.
    """

    times: float

    def moved(self, tensor: Tensor, place: int) -> Tensor:
        """A tensor moved by a random step as large as its numbers spread, its place's own."""
        generator = torch.Generator().manual_seed(place)
        step = torch.randn(tensor.shape, generator=generator).to(tensor)
        spread = tensor.detach().double().std(correction=0).clamp_min(1e-3).to(tensor.dtype)
        return tensor + self.times * spread * step


class Weighted(NamedTuple):
    """One product of what is moving with what is learned.

    Attributes:
        place: The innermost module that it was called in.
        output: What it returned.
        given: Features that it was given, channels of a convolution.
        made: Features that it made.
        behind: Whether it was given what another of them has made.
        source: How many words the embedding has that it was given; 0 if it was none.
    """

    place: str
    output: Tensor
    given: int
    made: int
    behind: bool
    source: int


class Weighting(Calls):
    """Inside, the products of the data with weights are noted.

    Args:
        inside: Which module of the model is being called.
        params: The parameters of the model.
        data: The tensors of the batch.
        moving: Those of them that are being moved.
        embeddings: How the embeddings of the batch are moved; None if they are not.

    Attributes:
        layers: The products of what is moving.
        others: How many products there are besides, of data that is not.
    """

    def __init__(
        self,
        inside: Inside,
        params: Iterable[nn.Parameter],
        data: Sequence[Tensor],
        moving: Sequence[Tensor],
        embeddings: Moves | None,
    ) -> None:
        super().__init__()
        self.layers: list[Weighted] = []
        self.others = 0
        self._inside = inside
        self._held: list[Tensor] = [*data, *moving]  # so that no id is used twice
        self._data, self._moving = set(map(id, data)), set(map(id, moving))
        self._learned = {id(param) for param in params}
        self._behind: set[int] = set()
        self._words: dict[int, int] = {}
        self._embeddings = embeddings
        self._embedded = 0

    def answer(self, call: Call) -> Any:
        """See what its result is made of, and move embeddings."""
        result, given = call.run(), call.given()
        if call.name in _EMBEDDINGS and any(id(t) in self._data for t in given):
            result = self._embed(result, given)
        made = tensors(result)
        if call.name == "__setitem__" and isinstance(call.args[0], Tensor):
            made = [call.args[0]]
        self._follow(given, made)
        if call.name in _WEIGHTED and made:
            self._note(call.name, given, made)
        return result

    def _embed(self, result: Any, given: list[Tensor]) -> Any:
        """Embeddings of the batch are where its words become numbers that can be moved."""
        if self._embeddings is None or not isinstance(result, Tensor):
            return result
        self._embedded += 1
        result = self._embeddings.moved(result, 1000 + self._embedded)
        self._held.append(result)
        self._moving.add(id(result))
        weight = next((t for t in given if t.is_floating_point() and t.dim() == 2), None)
        self._words[id(result)] = 0 if weight is None else weight.shape[0]
        return result

    def _follow(self, given: list[Tensor], made: list[Tensor]) -> None:
        """What something is made of, its results are of."""
        ids, made_ids = set(map(id, given)), set(map(id, made))
        self._held += made
        for marked in (self._data, self._moving, self._behind):
            if ids & marked:
                marked |= made_ids
        if ids & self._learned and not made_ids & self._data:
            self._learned |= made_ids
        words = max((self._words.get(one, 0) for one in ids), default=0)
        if words:
            self._words.update(dict.fromkeys(made_ids, words))

    def _note(self, name: str, given: list[Tensor], made: list[Tensor]) -> None:
        """A product, if it is one of the data with weights."""
        data = [t for t in given if id(t) in self._data or id(t) in self._moving]
        weights = [t for t in given if id(t) in self._learned and t.dim() > 1]
        if not data or not weights:
            return
        moving = [t for t in data if id(t) in self._moving]
        if not moving:
            self.others += 1
            return
        axis = _axis(name, given, weights[0])
        self.layers.append(
            Weighted(
                place=self._inside.innermost.fqn,
                output=made[0].detach().clone(),
                given=_features(moving[0], axis),
                made=_features(made[0], axis),
                behind=any(id(t) in self._behind for t in moving),
                source=max(self._words.get(id(t), 0) for t in moving),
            )
        )
        self._behind |= set(map(id, made))


def _axis(name: str, given: list[Tensor], weight: Tensor) -> int:
    """Where features lie: channels before space, rows behind a weight, the last axis else."""
    if name in _CONVOLUTIONS:
        return 1
    return -2 if name not in _RECURRENT and name != "linear" and given[0] is weight else -1


def _features(tensor: Tensor, axis: int) -> int:
    return tensor.shape[axis] if tensor.dim() > 1 else tensor.numel()
