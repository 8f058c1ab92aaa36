"""The demo's stale network audited and repaired: layers named, shares told, the gap closed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
import torch

from traindx.demo import stale_batchnorm, targets
from traindx.findings import Severity
from traindx.norm.audit.check import audit
from traindx.norm.audit.facts import Subject
from traindx.norm.modules.audited import of_model
from traindx.norm.modules.checkpoints import load_into
from traindx.norm.modules.recalibrate import recalibrate
from traindx.norm.torch_layers import spec_of


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("stale") / "stale.pt"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["stale_batchnorm", "--epochs", "2", "--save", str(file)])
        stale_batchnorm.main()
    return file


def audited(model: torch.nn.Module, images: torch.Tensor) -> tuple[Subject, list[tuple[str, str]]]:
    subject = of_model(model, (images,))
    serious = [one for one in audit(subject).found if one.severity is Severity.ERROR]
    return subject, [(one.check, one.hit.fqn) for one in serious]


def test_audit_names_the_layers_and_their_shares_and_recalibration_closes_the_gap(
    weights: Path,
) -> None:
    model, loader, accuracy = targets.fashion_mnist()
    load_into(model, weights)
    images = next(iter(loader))[0]
    before = accuracy(model)

    subject, serious = audited(model, images)
    assert serious == [("eval-gap", fqn) for fqn in ("0.1", "1.1", "2.1")]
    shares = [cast(Any, layer.seen).share for layer in subject.layers if layer.seen]
    assert subject.rest is not None
    assert subject.change is not None
    assert sum(shares) + subject.rest == pytest.approx(1)
    assert max(range(3), key=shares.__getitem__) == 2  # the one before the classifier
    assert subject.change > 1

    change = recalibrate(model, loader)
    assert [layer.fqn for layer in change.layers] == ["0.1", "1.1", "2.1"]
    assert min(layer.gap for layer in change.layers) > 0.5
    after = accuracy(model)
    assert before < 0.4
    assert after > 0.8

    subject, serious = audited(model, images)
    assert serious == []
    assert max(cast(Any, layer.seen).gap for layer in subject.layers if layer.seen) < 0.05
    assert subject.change is not None
    assert subject.change < 0.1
    running = spec_of(cast(Any, model)[0][1]).running
    assert running is not None
    assert running.momentum == 0.001  # the repair is of numbers alone


def test_the_target_is_the_scripts_own_network() -> None:
    model, loader, accuracy = targets.fashion_mnist()
    assert model.state_dict().keys() == stale_batchnorm.build_model().state_dict().keys()
    assert len(cast(Any, loader.dataset)) == 6000
    assert 0 <= accuracy(model) <= 1
