"""The errors traindx raises for its users: each states the contract, what came and the repair."""


class TraindxError(Exception):
    """Something the user can repair; the command line prints it and exits with `exit_code`."""

    exit_code = 2

    @property
    def message(self) -> str:
        """What to tell the user, as it can be translated; `str` of an error is English."""
        return self.args[0] if self.args else ""


class WrongTypeError(TraindxError, TypeError):
    """A function was given something of another kind than it takes."""


class BadRunFileError(TraindxError, ValueError):
    """A run file is missing, damaged, foreign, or of a schema this version does not know."""


class UsageError(TraindxError, ValueError):
    """A command was asked for something that does not exist or cannot be done."""


class DataError(TraindxError, ValueError):
    """A data set file is missing, truncated, altered, or not what its name says."""


class ArgumentError(TraindxError, ValueError):
    """A mathematical function was given values for which it is not defined."""
