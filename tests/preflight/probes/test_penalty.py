"""A penalty on the parameters raises the loss, or the sign is wrong."""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from tests.preflight.cases import case_of, classifier, codes, labelled, probed, reason


def penalized(model: nn.Module, strength: float) -> Callable[[Tensor, Tensor], Tensor]:
    def loss(output: Tensor, target: Tensor) -> Tensor:
        size = sum(param.square().sum() for param in model.parameters())
        return F.cross_entropy(output, target) + strength * size

    return loss


def test_a_penalty_with_the_wrong_sign_is_found():
    model = classifier()
    assert codes(probed(case_of(model, labelled(), penalized(model, -1e-3)), "penalty")) == ["L014"]


def test_a_penalty_with_the_right_sign_passes():
    model = classifier()
    run = probed(case_of(model, labelled(), penalized(model, 1e-3)), "penalty")
    assert (reason(run), codes(run)) == ("", [])


def test_a_head_whose_weight_the_loss_uses_is_no_penalty():
    body, head = classifier(), nn.Parameter(classifier()[2].weight.detach().clone())  # pyright: ignore
    body.head = head  # pyright: ignore[reportArgumentType]
    run = probed(
        case_of(body, labelled(), lambda o, t: F.cross_entropy(o @ head[:, :10], t)), "penalty"
    )
    assert reason(run) == "no term of the loss is of the parameters alone"


def test_a_loss_without_a_penalty_says_so():
    run = probed(case_of(classifier(), labelled(), F.cross_entropy), "penalty")
    assert reason(run) == "no term of the loss is of the parameters alone"
