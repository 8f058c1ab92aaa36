"""`traindx.watch` in somebody's own program or notebook."""

from __future__ import annotations

import copy
import gc
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import traindx
from traindx import recording
from traindx.errors import UsageError, WrongTypeError
from traindx.records import EventKind
from traindx.run import Run
from traindx.watcher import Watch, watch

torch = pytest.importorskip("torch")
nn = torch.nn


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:  # pyright: ignore
    """Runs go into a folder of the test's own, and no watch outlives it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LANG", "en_US.UTF-8")
    monkeypatch.delattr(sys, "ps1", raising=False)
    call = nn.Module.__call__
    yield
    left = recording.current()
    if left is not None:
        left.finish(None)  # pyright: ignore
    assert left is None
    assert nn.Module.__call__ is call


def mlp(*, width: int = 8) -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 1))


def sgd(model: Any) -> Any:
    return torch.optim.SGD(model.parameters(), lr=1e-3)


def train(_model: Any, _optimizer: Any = None, *, steps: int = 30, clear: bool = True) -> list[Any]:
    optimizer = _optimizer or sgd(_model)
    generator = torch.Generator().manual_seed(1)
    losses = []
    for _ in range(steps):
        if clear:
            optimizer.zero_grad()
        loss = _model(torch.randn(16, 8, generator=generator)).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def codes(watched: Watch) -> set[str]:
    return {finding.code for finding in watched.findings()}


def files(folder: str = "traindx-runs") -> list[Path]:
    return sorted(Path(folder).iterdir()) if Path(folder).exists() else []


# -- from its start to its end -------------------------------------------------------------------


def test_a_block_is_watched_judged_and_saved() -> None:
    net = mlp()
    with traindx.watch(net, every=1) as w:
        train(net, clear=False)
    assert codes(w) == {"G006"}
    assert w.run.steps == w.run.measured_steps == 30
    (file,) = files()
    assert file == w.run.path or file.samefile(w.run.path or "")
    saved = Run.load(file)
    assert saved.verdict == w.run.verdict
    assert (saved.ended, saved.header["exit_code"]) == (True, 0)


def test_it_watches_without_a_block_until_it_is_closed() -> None:
    net = mlp()
    w = watch(net, every=1)
    train(net, clear=False, steps=10)
    run = w.close()
    train(net, steps=10)
    assert run is w.run
    assert (w.closed, run.steps, codes(w)) == (True, 10, {"G006"})
    assert w.close() is run
    assert len(files()) == 1


def test_the_run_goes_up_to_the_last_step_whenever_somebody_asks() -> None:
    net = mlp()
    optimizer = sgd(net)
    with watch(net, every=1) as w:
        for step in range(5):
            train(net, optimizer, steps=1)
            assert w.run.step == step
            assert w.run.measured_steps == step + 1


def test_findings_are_known_in_the_middle_of_the_training() -> None:
    net = mlp()
    optimizer = sgd(net)
    with watch(net, every=1) as w:
        assert w.findings() == []
        train(net, optimizer, clear=False)
        assert codes(w) == {"G006"}
        assert not w.closed
        train(net, optimizer, steps=300)
        assert codes(w) == set()
    assert codes(w) == set()


def test_an_exception_leaves_the_block_unchanged_and_the_file_whole() -> None:
    net, error = mlp(), KeyError("mine")
    with pytest.raises(KeyError) as raised, watch(net) as w:  # noqa: PT012
        train(net, clear=False)
        raise error
    assert raised.value is error
    assert w.closed
    saved = Run.load(files()[0])
    assert (saved.steps, saved.header["exit_code"]) == (30, 1)


def test_a_block_that_trains_nothing_leaves_no_file_and_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with watch(mlp()) as w:
        pass
    assert (w.run.path, files()) == (None, [])
    assert "nothing to judge" in repr(w)
    assert capsys.readouterr().err == (
        "traindx: No optimizer step was seen that the watch is for, so there is nothing to judge.\n"
    )


def test_a_closed_watch_cannot_be_entered() -> None:
    w = watch(mlp())
    w.close()
    with pytest.raises(UsageError, match="This watch is closed"), w:
        pass


def test_losses_are_the_same_bit_for_bit() -> None:
    def losses(watched: bool) -> list[str]:
        torch.manual_seed(3)
        net = nn.Sequential(
            nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 1)
        )
        optimizer = torch.optim.AdamW(net.parameters())
        w = watch(net, optimizer, every=1) if watched else None
        found = []
        for step in range(25):
            found += train(net, optimizer, steps=1)
            traindx.log(twice=2 * found[-1], step=step)
        if w is not None:
            w.close()
        return [value.hex() for value in found] + [str(torch.get_rng_state().sum())]

    assert losses(watched=True) == losses(watched=False)


# -- which models --------------------------------------------------------------------------------


def test_a_model_given_has_the_name_of_its_variable() -> None:
    my_net = mlp()
    with watch(my_net):
        step = train  # called through a function that names it otherwise
        step(my_net)
    assert set(Run.load(files()[0]).models) == {"my_net"}


def test_a_given_model_is_known_though_only_its_parts_are_called() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encode, self.decode = nn.Linear(8, 4), nn.Linear(4, 1)

    vae = Two()
    with watch(vae, every=1) as w:
        train(lambda x: vae.decode(vae.encode(x)), sgd(vae))
    assert set(w.run.models) == {"vae"}
    assert {s.site.fqn for s in w.run.series("output.rms")} == {"encode", "decode"}


def test_other_models_are_left_alone_and_the_run_says_so() -> None:
    student, teacher = mlp(), mlp(width=5)
    with watch(student, every=1) as w:
        train(teacher, steps=20)
        train(student, steps=10)
    assert set(w.run.models) == {"student"}
    assert w.run.steps == 10
    assert set(w.run.optimizers) == {"SGD#2"} or set(w.run.optimizers) == {"SGD"}
    assert [s.site.model for s in w.run.series("loss")] == ["student"]
    notes = [str(event.detail["text"]) for event in w.run.events(EventKind.NOTE)]
    assert notes == [
        "`watch` was given `student`, so other models are left alone: a Sequential was seen."
    ]


def test_a_copy_that_trains_in_its_place_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    net = mlp()
    with watch(net) as w:
        train(copy.deepcopy(net))
    assert w.run.steps == 0
    assert "nothing to judge" in capsys.readouterr().err
    assert "other models are left alone: a Sequential was seen" in w._repr_html_()  # pyright: ignore


def test_a_model_that_was_compiled_before_is_watched() -> None:
    net = mlp()
    fast = torch.compile(net, backend="eager")
    for given in (fast, net):
        with watch(given, every=1) as w:
            train(fast, steps=5)
        assert w.run.steps == 5
        assert len(w.run.models) == 1
        assert len(w.run.series("grad.rms")) == 4
        assert [s.site.model for s in w.run.series("loss")] == list(w.run.models)


def test_without_a_model_all_that_train_are_watched() -> None:
    one, other = mlp(), mlp()
    with watch() as w:
        train(one)
        train(other)
    assert len(w.run.models) == 2


def test_several_models_are_given_as_a_list() -> None:
    generator, critic, third = mlp(), mlp(), mlp()
    with watch([generator, critic], [sgd(generator), sgd(critic)]) as w:
        train(generator)
        train(third)
        train(critic)
    assert set(w.run.models) == {"generator", "critic"}


def test_a_wrapper_of_a_given_model_is_watched_with_it() -> None:
    class Wrapper(nn.Module):
        def __init__(self, inner: Any) -> None:
            super().__init__()
            self.inner, self.head = inner, nn.Linear(1, 1)

        def forward(self, x: Any) -> Any:
            return self.head(self.inner(x))

    backbone = mlp()
    with watch(backbone, every=1) as w:
        whole = Wrapper(backbone)
        train(whole)
    assert set(w.run.models) == {"whole"}
    assert "inner.0" in {s.site.fqn for s in w.run.series("output.rms")}


def test_an_optimizer_that_holds_none_of_the_model_is_watched_if_it_was_given() -> None:
    net = mlp()
    optimizer = sgd(mlp())
    with watch(net, optimizer, every=1) as w:
        train(net, optimizer)
    assert w.run.steps == 30
    assert set(w.run.models) == {"net"}


def test_a_model_is_not_kept_alive() -> None:
    import weakref

    net = mlp()
    ref = weakref.ref(net)
    w = watch(net, sgd(net))
    train(net)
    del net
    gc.collect()
    assert ref() is None
    w.close()


# -- what is wrong with an argument --------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: watch(type(mlp())),  # pyright: ignore
            "`watch` takes a model, a `torch.nn.Module`, or a list of some; `model` is the class "
            "`Sequential`. Give an instance of it: `model = Sequential(...)`.",
        ),
        (lambda: watch("training"), "is a `str`. A name for the run goes into `name=`."),  # pyright: ignore
        (
            lambda: watch(sgd(mlp())),
            "The optimizer comes second: `traindx.watch(model, optimizer)`",
        ),
        (lambda: watch(mlp().parameters()), "is a `generator`. Give the object that you call on"),
        (lambda: watch([mlp(), 3]), "`model` is a `int`."),  # pyright: ignore
        (lambda: watch([]), "`model` is a `list`."),
        (
            lambda: watch(mlp(), mlp()),
            "`optimizer` is a `Sequential`. Put several models in a list: `traindx.watch([a, b])`.",
        ),
        (
            lambda: watch(mlp(), torch.optim.lr_scheduler.StepLR(sgd(mlp()), 1)),
            "is a `StepLR`. Give the optimizer inside of it: `optimizer=....optimizer`.",
        ),
        (lambda: watch(mlp(), "sgd"), "`optimizer` is a `str`. Leave it out, and those"),  # pyright: ignore
    ],
)
def test_what_is_no_model_or_optimizer_is_named_with_its_repair(
    call: Callable[[], object], said: str
) -> None:
    with pytest.raises(WrongTypeError) as raised:
        call()
    assert said in str(raised.value)
    assert isinstance(raised.value, TypeError)
    assert files() == []


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: watch(nn.ReLU()), "`model` is a `ReLU` without parameters."),
        (lambda: watch(every=0), "`every` takes a whole number from 1 on; it is 0."),
        (lambda: watch(budget=3.0), "`budget` takes a number from 0 to 1; it is 3.0."),
        (lambda: watch(folder=""), "`folder` takes a path; it is ''."),
        (lambda: watch(contexts=["gna"]), "`contexts`: "),
        (lambda: watch(config="missing.toml"), "Cannot read `missing.toml`"),
    ],
)
def test_a_wrong_value_is_named(call: Callable[[], object], said: str) -> None:
    with pytest.raises(UsageError) as raised:
        call()
    assert said in str(raised.value)
    assert files() == []


def test_settings_come_from_the_file_and_arguments_overrule_them() -> None:
    Path("pyproject.toml").write_text('[tool.traindx]\nevery = 7\nruns = "a"\nselect = ["N"]\n')
    net = mlp()
    with watch(net, folder="b") as w:
        train(net, clear=False)
    assert (len(files("b")), files("a")) == (1, [])
    assert w.run.header["every"] == 7
    assert codes(w) == set()


# -- one at a time -------------------------------------------------------------------------------


def test_a_second_watch_is_refused_and_the_first_goes_on() -> None:
    net = mlp()
    with watch(net, name="first", every=1) as first:
        train(net, clear=False, steps=15)
        with pytest.raises(UsageError, match="watch 'first' is not closed"):
            watch(net)
        train(net, clear=False, steps=15)
    assert (first.run.steps, codes(first)) == (30, {"G006"})
    assert len(files()) == 1


def test_a_second_watch_of_another_line_is_refused_in_a_script() -> None:
    first = watch(mlp())
    with pytest.raises(UsageError, match="is not closed"):
        watch(mlp())
    first.close()
    watch(mlp()).close()


def test_a_loop_that_comes_around_again_closes_the_earlier_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    kept = []
    for _ in range(3):
        net = mlp()
        kept.append(watch(net))
        train(net, clear=False)
    kept[-1].close()
    assert [w.closed for w in kept] == [True] * 3
    assert [codes(w) for w in kept] == [{"G006"}] * 3
    assert len(files()) == 3
    said = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[1] for line in said] == ["The watch that was left open is closed"] * 2


def test_a_notebook_cell_run_again_closes_the_earlier_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "ps1", "In : ", raising=False)
    names: dict[str, Any] = {"watch": watch, "mlp": mlp, "train": train}
    for cell in range(2):  # edited in between, so that it is another file and line
        source = "\n" * cell + "model = mlp(); w = watch(model); train(model, clear=False)"
        exec(compile(source, f"cell-{cell}", "exec"), names)
    names["w"].close()
    said = capsys.readouterr().err
    assert said.count("The watch that was left open is closed: 1 error") == 1
    assert "It is saved in " in said
    assert len(files()) == 2


def test_in_a_notebook_a_block_that_goes_on_is_not_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "ps1", "In : ", raising=False)
    with watch(mlp()) as w:
        with pytest.raises(UsageError, match="is not closed"):
            watch(mlp())
        assert not w.closed


def test_another_thread_does_not_close_it() -> None:
    raised: list[str] = []

    def begin() -> Watch | None:
        try:
            return watch(mlp())
        except UsageError as error:
            raised.append(str(error))
            return None

    w = begin()
    assert w is not None
    thread = threading.Thread(target=begin)
    thread.start()
    thread.join()
    w.close()
    assert len(raised) == 1


def test_a_watch_that_nobody_refers_to_is_closed_and_saved(
    capsys: pytest.CaptureFixture[str],
) -> None:
    net = mlp()
    w = watch(net)
    train(net, clear=False)
    del w
    gc.collect()
    assert recording.current() is None
    verdict = Run.load(files()[0]).verdict
    assert verdict is not None
    assert {f.code for f in verdict.findings} == {"G006"}
    assert "traindx: The watch that was left open is closed: 1 error" in capsys.readouterr().err


def test_a_watch_that_nobody_keeps_watches_on(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        net = mlp()
        watch(net)
        gc.collect()
        train(net, clear=False)
    watch(net).close()
    assert capsys.readouterr().err.count("closed: 1 error in 30 steps") == 2
    assert [codes_of(file) for file in files()] == [{"G006"}] * 2


def script(folder: Path, body: str, *before: str) -> subprocess.CompletedProcess[str]:
    source = """
        import os, sys
        import torch, traindx
        from torch import nn

        def train(model, steps=30, clear=False):
            optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
            for _ in range(steps):
                if clear:
                    optimizer.zero_grad()
                model(torch.randn(16, 8)).pow(2).mean().backward()
                optimizer.step()

        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
    """
    (folder / "script.py").write_text(textwrap.dedent(source) + textwrap.dedent(body))
    return subprocess.run(
        [sys.executable, *before, "script.py"],
        check=False,
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "LANG": "C"},
    )


@pytest.mark.slow
def test_a_watch_left_open_is_saved_when_the_interpreter_ends(tmp_path: Path) -> None:
    done = script(tmp_path, "traindx.watch(net)\ntrain(net)\n1 / 0")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-2] == "ZeroDivisionError: division by zero"
    assert "The watch that was left open is closed: 1 error" in done.stderr.splitlines()[-1]
    assert codes_of(files()[0]) == {"G006"}


@pytest.mark.slow
def test_inside_traindx_run_a_watch_looks_at_that_run_and_ends_nothing(tmp_path: Path) -> None:
    body = """
        with traindx.watch(net, every=1) as w:
            train(net)
        print(w.closed, *(finding.code for finding in w.findings()), w.run.steps)
        print(w.report().exists())
        with traindx.watch(net) as again:
            train(net)
        print(again.run.steps - w.run.steps, again.run is w.run)
        w.close()
        train(net)
    """
    done = script(tmp_path, body, "-m", "traindx", "run", "--every", "1", "--quiet")
    assert done.stdout == "True G006 30\nTrue\n0 True\n"
    assert done.stderr.splitlines() == [
        "traindx: `traindx run` watches this script, so `traindx.watch` looks at that run as it "
        "is, and ends nothing."
    ]
    (saved,) = Path("traindx-runs").glob("*.traindx")
    assert Run.load(saved).steps == 90
    assert codes_of(saved) == {"G006"}


@pytest.mark.slow
def test_a_forked_child_that_ends_leaves_the_parents_run_alone(tmp_path: Path) -> None:
    body = """
        w = traindx.watch(net)
        train(net, 10)
        if not os.fork():
            train(net, 10)
            traindx.log(child=1.0)
            sys.exit(0)
        os.wait()
        train(net, 10)
        w.close()
    """
    done = script(tmp_path, body)
    assert (done.returncode, done.stderr) == (0, "")
    (file,) = files()
    run = Run.load(file)
    assert (run.steps, run.series("logged")) == (20, [])


def codes_of(file: Path) -> set[str]:
    verdict = Run.load(file).verdict
    assert verdict is not None
    return {finding.code for finding in verdict.findings}


# -- how it is shown -----------------------------------------------------------------------------


def test_its_repr_is_one_line_with_the_verdict() -> None:
    net = mlp()
    w = watch(net, name="try\n1", every=1)
    assert (
        repr(w)
        == "<traindx watch 'try\\n1', watching: nothing to judge: no training step was recorded>"
    )
    train(net, clear=False)
    assert repr(w).startswith("<traindx watch 'try\\n1', watching: 1 error")
    w.close()
    assert repr(w).startswith("<traindx watch 'try\\n1', closed: 1 error")
    assert "\n" not in repr(w)


def test_the_page_lies_beside_the_run_file_or_where_it_is_wanted() -> None:
    net = mlp()
    with watch(net) as w:
        train(net, clear=False)
        early = w.report("early.html")
    page = w.report()
    assert early == Path("early.html")
    assert early.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert w.run.path is not None
    assert page == w.run.path.with_suffix(".html")
    assert "missing-zero-grad" in page.read_text(encoding="utf-8")
    with pytest.raises(UsageError, match=r"Cannot write `missing/page\.html`"):
        w.report("missing/page.html")


def test_a_notebook_shows_the_findings_before_and_after_it_is_closed() -> None:
    net = mlp()
    w = watch(net, every=1)
    train(net, clear=False)
    before = w._repr_html_()  # pyright: ignore
    w.close()
    for shown in (before, w._repr_html_()):  # pyright: ignore
        assert "G006 missing-zero-grad" in shown
        assert "zero_grad()" in shown


def test_it_speaks_the_language_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LC_ALL", raising=False)
    monkeypatch.setenv("LANG", "zh_TW.UTF-8")
    net = mlp()
    with watch(net) as w:
        train(net, clear=False)
    assert "已結束" in repr(w)
