"""The thresholded linear unit, and where it sends its gradients."""

import numpy as np
import torch

from traindx.norm.tlu import tlu, tlu_backward


def test_tlu_and_its_gradients_agree_with_torch() -> None:
    rng = np.random.default_rng(0)
    y, dz, threshold = rng.normal(size=(4, 3, 2)), rng.normal(size=(4, 3, 2)), rng.normal(size=3)
    moving = [torch.tensor(y, requires_grad=True), torch.tensor(threshold, requires_grad=True)]
    z = torch.maximum(moving[0], moving[1][:, None])
    dy, dthreshold = torch.autograd.grad(z, moving, torch.tensor(dz))
    assert np.array_equal(tlu(y, threshold), z.detach().numpy())
    ours = tlu_backward(dz, y, threshold)
    assert np.allclose(ours[0], dy.numpy(), rtol=0, atol=1e-15)
    assert np.allclose(ours[1], dthreshold.numpy(), rtol=0, atol=1e-12)
