"""Training under `traindx run` prints, saves and raises what it does under `python`."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
from pathlib import Path
from textwrap import dedent

import pytest

from tests.cli.twins import (
    PYTHON,
    TRAINDX,
    WATCHED,
    outcome,
    run,
    run_files,
    same,
    wait_for,
    write,
)
from tests.zoo.forks import Forks
from traindx.run import Run

TRAINING = """
    import copy, hashlib, io, logging, os, random, sys, warnings

    os.environ["OMP_NUM_THREADS"] = "2"
    import numpy as np
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(8, 16)
            self.norm = nn.BatchNorm1d(16)
            self.act = nn.ReLU(inplace=True)
            self.drop = nn.Dropout(0.2)
            self.last = nn.Linear(16, 2)

        def forward(self, x):
            return self.last(self.drop(self.act(self.norm(self.first(x)))))

    calls = []

    def note(module, inputs, outputs):
        calls.append(type(outputs).__name__)

    def sha(thing):
        buffer = io.BytesIO()
        torch.save(thing, buffer)
        return hashlib.sha256(buffer.getvalue()).hexdigest()

    def penalty(model, x):
        x = x.clone().requires_grad_()
        (grad,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        return grad.pow(2).mean()

    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    if __name__ == "__main__" and sys.argv[1:] == ["load"]:
        model = torch.load("model.pt", weights_only=False).eval()
        print(model(torch.ones(1, 8)).tolist(), [m for m in sys.modules if "traindx" in m])

    elif __name__ == "__main__":
        torch.manual_seed(0), random.seed(0), np.random.seed(0)
        print("threads", torch.get_num_threads(), torch.get_num_interop_threads())
        print("grad mode", torch.is_grad_enabled(), torch.get_default_dtype())
        model = Net()
        handles = [
            model.first.register_forward_hook(note), model.last.register_full_backward_hook(note)
        ]
        model.last.weight.register_hook(lambda g: g * 1.5)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)
        x, y = torch.randn(64, 8), torch.randint(2, (64,))
        loader = DataLoader(TensorDataset(x, y), 16, shuffle=True, num_workers=2,
                            multiprocessing_context=os.environ.get("METHOD"))
        for epoch in range(2):
            for batch, target in loader:
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(Doubled.apply(model(batch)), target)
                (loss + penalty(model, batch)).backward()
                optimizer.step()
                print(epoch, loss.item(), sha(model.state_dict()), sha(optimizer.state_dict()))
            scheduler.step()
            twin = copy.deepcopy(model)
            twin(x).sum().backward()
            print("twin", len(twin.first._forward_hooks), calls)
            while handles:
                handles.pop().remove()
            print("whole", sha(model), [p.grad.sum().item() for p in twin.parameters()])
        with torch.no_grad():
            print("eval", model.eval()(x).sum().item())
        torch.save(model, "model.pt")
        print(random.random(), np.random.rand(), torch.rand(()).item())
        print(hashlib.sha256(torch.get_rng_state().numpy().tobytes()).hexdigest())
        print(logging.root.handlers, logging.root.level, len(warnings.filters))
        warnings.warn("in main", DeprecationWarning)
        print([s for s in map(str, sys.meta_path) if "traindx" in s])
"""


def saved(folder: Path) -> str:
    return hashlib.sha256((folder / "model.pt").read_bytes()).hexdigest()


def test_training_prints_and_saves_the_same(tmp_path: Path):
    write(tmp_path / "script.py", TRAINING)
    plain = outcome((*PYTHON, "script.py"), tmp_path)
    by_python = saved(tmp_path)
    done = run((TRAINDX, "run", "script.py"), tmp_path)
    assert (plain.code, done.returncode) == (0, 0), done.stderr.decode()
    assert done.stdout == plain.stdout
    assert done.stderr.startswith(plain.stderr)
    assert saved(tmp_path) == by_python
    loaded = outcome((*PYTHON, "script.py", "load"), tmp_path)
    assert (loaded.code, b"] []" in loaded.stdout) == (0, True)
    recorded = Run.load(run_files(tmp_path)[0])
    assert (recorded.steps, list(recorded.models)) == (8, ["model"])


@pytest.mark.slow
def test_workers_that_are_spawned_change_nothing(tmp_path: Path):
    write(tmp_path / "script.py", TRAINING.replace("num_workers=2", "num_workers=1"))
    env = {"METHOD": "spawn"}
    plain = outcome((*PYTHON, "script.py"), tmp_path, env=env)
    done = run((TRAINDX, "run", "script.py"), tmp_path, env=env)
    assert done.stdout == plain.stdout
    assert done.stderr.startswith(plain.stderr)
    assert len(run_files(tmp_path)) == 1


FAILING = """
    import sys
    import torch
    from torch import nn
    from torch.utils.data import DataLoader

    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            raise ValueError("in backward")

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
            self.where = None

        def forward(self, x):
            if self.where == "forward":
                return self.inner(x.reshape(-1, 2))
            x = self.inner(x)
            return Broken.apply(x) if self.where == "backward" else x

    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, i):
            if where == "worker" and i == 7:
                raise KeyError("in the worker")
            return torch.ones(4) * i

    where = sys.argv[1]
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for i, batch in enumerate(DataLoader(Data(), 2, num_workers=1 if where == "worker" else 0)):
        model.where = where if i == 2 else None
        optimizer.zero_grad()
        loss = model(batch).pow(2).mean()
        loss.backward()
        if where == "step" and i == 2:
            optimizer.param_groups[0]["lr"] = "fast"
        optimizer.step()
        print(loss.item())
"""


RARER = [pytest.param(where, marks=pytest.mark.slow) for where in ("backward", "step")]


@pytest.mark.parametrize("where", ["forward", "worker", *RARER])
def test_an_exception_in_training_has_its_own_traceback(tmp_path: Path, where: str):
    write(tmp_path / "script.py", FAILING)
    plain = same(tmp_path, "script.py", where)
    assert (plain.code, b"Traceback" in plain.stderr) == (1, True)
    (file,) = run_files(tmp_path)
    recorded = Run.load(file)
    assert recorded.header["exit_code"] == 1
    assert recorded.ended
    assert recorded.steps == (3 if where == "worker" else 2)
    checked = run((TRAINDX, "check", file), tmp_path)
    assert checked.returncode in (0, 1)
    assert checked.stderr == b""


UNCLEARED = """
    import pathlib, sys, time
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for i in range(int(sys.argv[1])):
        loss = model(torch.randn(16, 8)).pow(2).mean()
        loss.backward()
        optimizer.step()  # and no zero_grad
        if i == 30:
            print(loss.item(), flush=True)
        if i > 400:
            pathlib.Path("ready").touch()
            time.sleep(0.01)
"""


def test_what_is_left_of_a_killed_training_can_be_checked_and_reported(tmp_path: Path):
    write(tmp_path / "script.py", UNCLEARED)
    ready = tmp_path / "ready"
    with subprocess.Popen((*WATCHED, "script.py", "100000"), cwd=tmp_path) as process:
        wait_for(ready, process)
        while not any(Run.load(file).steps > 10 for file in run_files(tmp_path)):
            assert process.poll() is None
        os.kill(process.pid, signal.SIGKILL)
    checked = run((TRAINDX, "check"), tmp_path)
    assert checked.returncode == 1, checked.stderr.decode()
    assert b"G006" in checked.stdout
    reported = run((TRAINDX, "report"), tmp_path)
    assert (reported.returncode, reported.stderr) == (0, b"")
    assert "missing-zero-grad" in (tmp_path / reported.stdout.decode().strip()).read_text("utf-8")


FAILURE = """
    import importlib.abc, sys

    class Finder(importlib.abc.MetaPathFinder):
        def find_spec(self, name, path, target=None):
            if name == "traindx.capture.capture":
                sys.meta_path.remove(self)
                from traindx.capture.recorder import Recorder
                count = 0
                original = Recorder.tensor
                def tensor(*args, **kwargs):
                    nonlocal count
                    count += 1
                    if count > 20:
                        raise RuntimeError("injected")
                    return original(*args, **kwargs)
                Recorder.tensor = tensor

    sys.meta_path.insert(0, Finder())
"""


def test_a_failure_of_our_own_is_one_warning_and_the_training_goes_on(tmp_path: Path, forks: Forks):
    write(tmp_path / "inject" / "sitecustomize.py", FAILURE)
    write(tmp_path / "script.py", UNCLEARED)
    env = {"PYTHONPATH": str(tmp_path / "inject")}
    plain = forks.run(tmp_path, "script.py", "60")
    done = run((TRAINDX, "run", "script.py", "60"), tmp_path, env=env)
    said = done.stderr.decode()
    assert (done.returncode, done.stdout.decode()) == (plain.code, plain.stdout)
    first, _, report = said.partition("\n")
    assert "stopped" in first
    assert "RuntimeError('injected')" in first
    assert "traindx: " not in report
    assert "stopped" in " ".join(report.split())
    assert "stopped" in " ".join(run((TRAINDX, "check"), tmp_path).stdout.decode().split())


def test_what_cannot_be_stored_is_shown_all_the_same(tmp_path: Path, forks: Forks):
    write(tmp_path / "script.py", f"import os\nos.rmdir('gone'){dedent(UNCLEARED)}")
    write(tmp_path / "taken", "")
    (tmp_path / "gone").mkdir()
    words = ("run", "--runs", "taken/runs", "--json", "gone/x.json", "script.py", "60")
    done = forks.run(tmp_path, *words, watched=True)
    said = done.stderr
    assert (done.code, len(done.stdout.splitlines())) == (0, 1)
    assert said.startswith("traindx: Cannot store the run in `")
    assert said.count("Cannot store") == 1
    assert "G006" in said
    assert said.splitlines()[-1].startswith("traindx: Cannot write `")
    assert "Traceback" not in said


def test_a_full_disk_is_one_warning_before_the_training(tmp_path: Path):
    write(
        tmp_path / "script.py", f"import sys\nprint('starts', file=sys.stderr){dedent(UNCLEARED)}"
    )
    full = ("sh", "-c", 'ulimit -f 2; exec "$@"', "sh", TRAINDX, "run", "script.py", "60")
    done = run(full, tmp_path)
    said = done.stderr.decode()
    assert done.returncode == 0
    assert said.count("Cannot store") == 1
    assert said.index("Cannot store") < said.index("starts") < said.index("G006")
    assert run_files(tmp_path) == []
