"""The command line in this process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.twins import Command
from traindx.cli import language
from traindx.cli.main import main


@pytest.fixture(autouse=True)
def _language_of_its_own() -> Iterator[None]:
    """No test speaks the language that the one before it asked for."""
    yield
    language.forget()


@pytest.fixture
def traindx(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs the command line in this process: exit code, standard output and error."""

    def call(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["traindx", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        code = stop.value.code or 0
        assert isinstance(code, int)
        return code, captured.out, captured.err

    return call
