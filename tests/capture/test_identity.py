"""A watched script prints the same losses and ends in the same state, to the last bit."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.zoo.forks import Forks
from traindx.run import Run

START = """
import hashlib, pickle, random
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

random.seed(0); np.random.seed(0); torch.manual_seed(0)
x, y = torch.randn(24, 6), torch.randint(0, 3, (24,))
models, optimizers = [], []


def update(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(float(loss.detach()).hex())


"""

END = """

def digest(value):
    if isinstance(value, torch.Tensor):
        entries = value.detach().reshape(-1).view(torch.uint8)
        return hashlib.sha256(entries.numpy()).hexdigest()
    if isinstance(value, dict):
        return {key: digest(held) for key, held in value.items()}
    if isinstance(value, (list, tuple)):
        return [digest(held) for held in value]
    return repr(value)


for held in (*models, *optimizers):
    print(digest(held.state_dict()))
print(digest(torch.get_rng_state()))
print(hashlib.sha256(repr(np.random.get_state()).encode()).hexdigest())
print(hashlib.sha256(repr(random.getstate()).encode()).hexdigest())
"""

SCRIPTS = {
    "mlp": """
        net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(inplace=True), nn.Linear(16, 3))
        optimizer = torch.optim.AdamW(net.parameters())
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12)
        for _ in range(12):
            update(optimizer, F.cross_entropy(net(x), y))
            nn.utils.clip_grad_norm_(net.parameters(), 0.1)
            schedule.step()
            with torch.no_grad():
                print(float(net(x).sum()).hex())
        models, optimizers = [net], [optimizer]
    """,
    "conv": """
        net = nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Dropout2d(0.3),
            nn.Flatten(), nn.Linear(64, 3),
        )
        optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
        images = torch.randn(24, 1, 6, 6).to(memory_format=torch.channels_last)
        data = torch.utils.data.TensorDataset(images, y)
        for epoch in range(3):
            for part, target in torch.utils.data.DataLoader(data, batch_size=8, shuffle=True):
                update(optimizer, F.cross_entropy(net(part), target))
            net.eval()
            print(float(F.cross_entropy(net(images), y).detach()).hex())
            net.train()
        models, optimizers = [net], [optimizer]
    """,
    "transformer": """
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True, norm_first=True)
        net = nn.ModuleDict({
            "embed": nn.Embedding(20, 8),
            "encoder": nn.TransformerEncoder(layer, 2, enable_nested_tensor=False),
            "head": nn.Linear(8, 20),
        })
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
        tokens = torch.randint(0, 20, (8, 10))
        mask = nn.Transformer.generate_square_subsequent_mask(9)
        for _ in range(8):
            out = net["head"](net["encoder"](net["embed"](tokens[:, :-1]), mask=mask))
            update(optimizer, F.cross_entropy(out.flatten(0, 1), tokens[:, 1:].flatten()))
        models, optimizers = [net], [optimizer]
    """,
    "lstm": """
        net = nn.LSTM(6, 8, num_layers=2, dropout=0.2, batch_first=True)
        head = nn.Linear(8, 3)
        optimizer = torch.optim.RMSprop([*net.parameters(), *head.parameters()])
        series = torch.randn(24, 5, 6)
        for _ in range(8):
            update(optimizer, F.cross_entropy(head(net(series)[0][:, -1]), y))
        models, optimizers = [net, head], [optimizer]
    """,
    "gan": """
        generator = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 6))
        critic = nn.Sequential(nn.Linear(6, 16), nn.LeakyReLU(0.2, inplace=True), nn.Linear(16, 1))
        of_generator = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
        of_critic = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.999))
        loss = nn.BCEWithLogitsLoss()
        for _ in range(8):
            fake = generator(torch.randn(24, 4))
            ones, zeros = torch.ones(24, 1), torch.zeros(24, 1)
            update(of_critic, loss(critic(x), ones) + loss(critic(fake.detach()), zeros))
            update(of_generator, loss(critic(fake), ones))
        models, optimizers = [generator, critic], [of_generator, of_critic]
    """,
    "checkpointing": """
        from torch.utils.checkpoint import checkpoint

        net = nn.ModuleList(
            nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Dropout(0.4)) for _ in range(3)
        )
        optimizer = torch.optim.Adam(net.parameters())
        x.requires_grad_()
        for _ in range(8):
            hidden = x
            for reentrant, block in zip((True, False, True), net):
                hidden = checkpoint(block, hidden, use_reentrant=reentrant)
            update(optimizer, F.cross_entropy(hidden[:, :3], y))
        models, optimizers = [net], [optimizer]
    """,
    "amp": """
        net = nn.Sequential(nn.Linear(6, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 3))
        optimizer = torch.optim.AdamW(net.parameters())
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=3)
        for step in range(10):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = F.cross_entropy(net(x), y) * (float("inf") if step == 4 else 1)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            scaler.step(optimizer)
            scaler.update()
            print(float(loss.detach()).hex(), scaler.get_scale())
        models, optimizers = [net], [optimizer]
    """,
    "compiled": """
        net = nn.Sequential(
            nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 3)
        )
        fast = torch.compile(net, backend="aot_eager")
        optimizer = torch.optim.Adam(net.parameters())
        data = torch.utils.data.TensorDataset(x, y)
        for epoch in range(4):
            for part, target in torch.utils.data.DataLoader(data, batch_size=8, shuffle=True):
                update(optimizer, F.cross_entropy(fast(part), target))
        models, optimizers = [net], [optimizer]
    """,
}
QUICK = {"mlp", "gan"}

each_script = pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow)
             for name in SCRIPTS]
)  # fmt: skip


def printed(forks: Forks, folder: Path, script: str, *, watched: bool = False) -> str:
    """Everything a script prints."""
    command = ("run", "--every", "1", script) if watched else (script,)
    done = forks.run(folder, *command, watched=watched)
    assert done.code == 0, done.stderr
    assert "measuring stopped" not in done.stderr
    return done.stdout


@each_script
def test_a_watched_script_is_the_same_to_the_last_bit(name: str, tmp_path: Path, forks: Forks):
    script = tmp_path / f"{name}.py"
    script.write_text(START + textwrap.dedent(SCRIPTS[name]) + END, encoding="utf-8")
    bare = printed(forks, tmp_path, script.name)
    assert bare.count("0x") >= 8
    assert printed(forks, tmp_path, script.name, watched=True) == bare
    assert list(tmp_path.glob("traindx-runs/*.traindx"))


FORKS = """
import os
import torch
import torch.nn.functional as F
from torch import nn

net = nn.Linear(6, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


def steps(count):
    for _ in range(count):
        optimizer.zero_grad()
        F.cross_entropy(net(torch.ones(5, 6)), torch.zeros(5, dtype=torch.long)).backward()
        optimizer.step()


steps(3)
child = os.fork()
if child == 0:
    steps(40)
    os._exit(0)
os.waitpid(child, 0)
steps(2)
"""


def test_a_forked_child_that_trains_writes_nothing(tmp_path: Path, forks: Forks):
    (tmp_path / "forks.py").write_text(FORKS, encoding="utf-8")
    printed(forks, tmp_path, "forks.py", watched=True)
    (path,) = tmp_path.glob("traindx-runs/*.traindx")
    run = Run.load(path)
    assert run.steps == 5
    assert len(run.at("update.ratio", run.series("update.ratio", fqn="weight")[0].site) or ()) == 5
