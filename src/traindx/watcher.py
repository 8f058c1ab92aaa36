"""`traindx.watch`: watch a training from one's own program or notebook."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from traindx import recording
from traindx.config import Config, load
from traindx.errors import UsageError
from traindx.findings import Finding
from traindx.languages import chosen, translate
from traindx.messages import Message, say
from traindx.report.untrusted import plain
from traindx.run import Run
from traindx.session import Options, Session
from traindx.subjects import modules, optimizers

if TYPE_CHECKING:
    from torch import nn
    from torch.optim.optimizer import Optimizer

Tell = Callable[[str], None]


def watch(
    model: nn.Module | Sequence[nn.Module] | None = None,
    optimizer: Optimizer | Sequence[Optimizer] | None = None,
    *,
    name: str = "notebook",
    every: int | None = None,
    budget: float | None = None,
    folder: str | Path | None = None,
    trap_nan: bool | None = None,
    compiled_activations: bool | None = None,
    first_weights: bool | None = None,
    config: str | Path | None = None,
    contexts: Sequence[str] | None = None,
) -> Watch:
    """Watch a training from here on, in a notebook or in one's own program.

    ```python
    with traindx.watch(model, optimizer) as w:
        train(model, optimizer)
    w                    # in a notebook: what is wrong, where, and what to change
    w.report()           # writes the page and says where it is

    w = traindx.watch(model)   # without a block: watched until it is closed
    ...
    w.findings()         # what is known by now
    w.close()
    ```

    With a model, only that one (and the optimizers that hold its parameters) is watched, from its
    first call on, under the name of its variable; a model that has it as a part, such as a wrapper,
    is watched as a whole. Without one, whatever trains is watched.

    In a script that `traindx run` watches, it looks at that run, which its own end does not end.

    One training at a time is watched in a process. A watch that is never closed ends when nothing
    refers to it any more (one that was never kept: when the program ends), and, unless its `with`
    block is going on, when the same line calls `watch` again or, in a notebook, any line does.
    What it has found is saved, and one line says where.

    Args:
        model: The model, or several that train together; None for all that train.
        optimizer: The optimizer, or several; None for those that hold the model's parameters.
        name: Stem of the run file.
        every: Measure exactly every N-th step; by default on a ladder that keeps to the budget.
        budget: Largest fraction of training time that measuring and listening may take, 0.03 by
            default.
        folder: Where the run file goes, `traindx-runs` by default.
        trap_nan: Whether to replay the batch of a loss or gradient that is not finite.
        compiled_activations: Whether to run models of `torch.compile` eagerly in measured steps, so
            that their activations are measured; losses then agree to rounding only.
        first_weights: Whether the run file has weights of the first layer, as a picture of them; it
            has by default.
        config: A file with settings; the nearest `pyproject.toml` by default. The arguments above
            overrule it.
        contexts: What is so by design, such as `gan`, so that nothing is made of it.

    Raises:
        WrongTypeError: Something is not what it should be, such as a class in place of a model.
        UsageError: Another training is being watched, or a value is wrong.
    """
    subjects = modules(model), optimizers(optimizer)
    settings = load(None if config is None else Path(config)).over(
        "`{}`",
        every=every,
        budget=budget,
        runs=folder,
        trap_nan=trap_nan,
        compiled_activations=compiled_activations,
        first_weights=first_weights,
        contexts=None if contexts is None else list(contexts),
    )
    place = _Place.of(sys._getframe(1))  # pyright: ignore[reportPrivateUsage]
    language = settings.lang or chosen(os.environ)
    run_going_on = _make_way(place)
    if run_going_on is not None:
        return _Onlooker(run_going_on, place, language)
    watched = _begun(str(name), settings, place, language)
    watched._expect(*subjects)  # pyright: ignore[reportPrivateUsage]
    return watched


class Watch:
    """A training that is being watched, or was: see `traindx.watch`.

    Attributes:
        closed: Whether it has ended.
    """

    def __init__(
        self, name: str, session: Session, page: Path, place: _Place, language: str
    ) -> None:
        self._name = name
        self._session = session
        self._page = page
        self._place = place
        self._language = language
        self._tell = _teller(language)
        self._in_block = False

    def _expect(self, models: list[nn.Module], optimizers: list[Optimizer]) -> None:
        self._session.expect(models, optimizers)

    @property
    def run(self) -> Run:
        """What has been measured up to now."""
        return self._session.run

    @property
    def closed(self) -> bool:
        """Whether it has ended."""
        return self._session.ended

    def close(self) -> Run:
        """Stop watching, judge, and save the verdict; a second time does nothing."""
        return self._end(0)

    def _end(self, exit_code: int | None) -> Run:
        if not self.closed:
            _finish(self._session, exit_code)
            if exit_code == 0 and self.run.steps == 0:
                self._tell(
                    say(
                        "No optimizer step was seen that the watch is for, so there is nothing to "
                        "judge."
                    )
                )
        return self.run

    def __enter__(self) -> Watch:
        if self.closed:
            raise UsageError(
                say("This watch is closed. Begin another: `with traindx.watch(model) as w:`.")
            )
        self._in_block = True
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        self._in_block = False
        self._end(0 if error is None else 1)

    def findings(self) -> list[Finding]:
        """The findings that hold, causes first; while it trains, up to the last measured step."""
        return [finding for finding in self._session.judge().findings if finding.active]

    def report(self, path: str | Path | None = None) -> Path:
        """Write the page and return where it is; by default beside the run file.

        Raises:
            UsageError: It cannot be written.
        """
        from traindx.report.html.page import render

        self._session.judge()
        saved = self.run.path
        target = Path(path) if path else saved.with_suffix(".html") if saved else self._page
        page = render(self.run, self._language)
        try:
            target.write_text(page, encoding="utf-8")
        except OSError as error:
            message = say("Cannot write `{file}`: {why}.", file=target, why=error.strerror)
            raise UsageError(message) from error
        return target

    def __repr__(self) -> str:
        from traindx.report.story import headline

        self._session.judge()
        state = say("closed") if self.closed else say("watching")
        line = say(
            "<traindx watch {name}, {state}: {verdict}>",
            name=repr(self._name),
            state=state,
            verdict=headline(self.run),
        )
        return plain(translate(line, self._language))

    def _repr_html_(self) -> str:
        from traindx.report.notebook import render

        self._session.judge()
        return render(self.run, language=self._language)


class _Onlooker(Watch):
    """What `watch` gives to a script that `traindx run` watches: it ends nothing."""

    def __init__(self, session: Session, place: _Place, language: str) -> None:
        name = str(session.run.header.get("script", "run"))
        super().__init__(name, session, Path(f"{name}.html").absolute(), place, language)
        self._left = False
        if session not in _looked_at:
            _looked_at[:] = [session]
            self._tell(
                say(
                    "`traindx run` watches this script, so `traindx.watch` looks at that run as it "
                    "is, and ends nothing."
                )
            )

    @property
    def closed(self) -> bool:
        return self._left or self._session.ended

    def _end(self, exit_code: int | None) -> Run:
        self._left = True
        return self.run


# -- one at a time -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Open:
    """What is watched now, and what it takes to end it once nobody refers to the watch."""

    session: Session
    watch: weakref.ref[Watch]
    tell: Tell


_open: list[_Open] = []
_looked_at: list[Session] = []
"""The run of `traindx run` that an onlooker has been told of."""


def _begun(name: str, settings: Config, place: _Place, language: str) -> Watch:
    """A watch with a session of its own, which ends with it."""
    options = Options.of(settings)
    tell = _teller(language)
    session = Session(name, options, warn=tell)
    watched = Watch(name, session, options.folder / f"{name}.html", place, language)
    # These know the session only, so that whoever forgets the watch ends it.
    weakref.finalize(watched, _forgotten, session, tell).atexit = False
    _open[:] = [_Open(session, weakref.ref(watched), tell)]
    atexit.unregister(_at_exit)
    atexit.register(_at_exit)
    session.start()
    return watched


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a program calls `watch`: the file, the line, and the thread."""

    file: str
    line: int
    thread: int

    @classmethod
    def of(cls, frame: FrameType) -> _Place:
        return cls(frame.f_code.co_filename, frame.f_lineno, threading.get_ident())


def _make_way(place: _Place) -> Session | None:
    """End the watch that was left open where a cell or a loop comes around again.

    The session of `traindx run`, if that is what goes on.
    """
    going_on = recording.current()
    if going_on is None:
        return None
    if not _open or _open[0].session is not going_on:
        assert isinstance(going_on, Session), "nothing else records"
        return going_on
    earlier = _open[0].watch()
    if earlier is not None and not _left_open(earlier, place):
        raise UsageError(
            say(
                "One training at a time is watched, and the watch {name} is not closed. Close it "
                "first: `w.close()`, or leave its `with` block.",
                name=repr(earlier._name),  # pyright: ignore[reportPrivateUsage]
            )
        )
    _give_up(_open[0].session, _open[0].tell)
    return None


def _left_open(earlier: Watch, place: _Place) -> bool:
    """Whether nobody can miss it: no block is going on, and the user has started anew."""
    before = earlier._place  # pyright: ignore[reportPrivateUsage]
    if earlier._in_block or before.thread != place.thread:  # pyright: ignore[reportPrivateUsage]
        return False
    return before == place or hasattr(sys, "ps1")  # a notebook or a prompt has `sys.ps1`


def _forgotten(session: Session, tell: Tell) -> None:
    """Nobody refers to the watch any more.

    Where nothing has trained yet, it was never kept: `traindx.watch(model)` as a statement of its
    own, which watches on.
    """
    if session.begun:
        _give_up(session, tell)


def _at_exit() -> None:
    for left in _open.copy():
        _give_up(left.session, left.tell)


def _give_up(session: Session, tell: Tell) -> None:
    """End a watch that nobody has closed, and say so."""
    if not (session.ended or session.forked):
        tell(_ended(_finish(session, None)))


def _finish(session: Session, exit_code: int | None) -> Run:
    _open[:] = [left for left in _open if left.session is not session]
    return session.finish(exit_code)


def _ended(run: Run) -> Message:
    from traindx.report.story import headline

    if run.path is None:
        return say("The watch that was left open is closed: {verdict}.", verdict=headline(run))
    return say(
        "The watch that was left open is closed: {verdict}. It is saved in {file}.",
        verdict=headline(run),
        file=run.path,
    )


def _teller(language: str) -> Tell:
    def tell(text: str) -> None:
        print(f"traindx: {plain(translate(text, language))}", file=sys.stderr)

    return tell
