"""The only exceptions a user ever sees, and the one table of exit codes."""

from __future__ import annotations

from enum import IntEnum

from console import hints


class Exit(IntEnum):
    """Exit codes of every verb (the command-line contract)."""

    OK = 0
    FAILED = 1
    """It did not work; the diagnosis stands on stderr."""
    USAGE = 2
    """Wrong usage, or a preset that cannot be read."""
    NOTHING = 3
    """Nothing to act on: no server, no run."""
    BUSY = 4
    """Another run, server or console holds the lock."""
    INTERRUPTED = 130


class ConsoleError(Exception):
    """Something the user has to know: what happened, why, and what to do about it.

    Args:
        what: one sentence, what did not work.
        why: the reason, as concrete as it is known; may be empty.
        fix: what the user can do; names the flag, file or command.
        exit_code: the code a verb ends with when this reaches `main`.
    """

    cause: str | None = None
    """The stable word scripts rely on (`port-in-use`, `oom` …), where there is one."""

    def __init__(self, what: str, why: str = "", fix: str = "", exit_code: Exit = Exit.FAILED) -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.fix = fix
        self.exit_code = exit_code

    def __str__(self) -> str:
        return "\n".join(line for line in self.lines())

    def lines(self) -> list[str]:
        """The message as up to three labelled lines, its commands as this console was started."""
        parts = [self.what]
        if self.why:
            parts.append(f"  why: {self.why}")
        if self.fix:
            parts.append(f"  fix: {self.fix}")
        return [hints.told(part) for part in parts]


class UsageError(ConsoleError):
    """The command line or a preset cannot be understood."""

    def __init__(self, what: str, why: str = "", fix: str = "") -> None:
        super().__init__(what, why, fix, Exit.USAGE)


class BusyError(ConsoleError):
    """Somebody else holds what this verb needs."""

    def __init__(self, what: str, why: str = "", fix: str = "") -> None:
        super().__init__(what, why, fix, Exit.BUSY)


class NothingError(ConsoleError):
    """There is nothing to act on."""

    def __init__(self, what: str, why: str = "", fix: str = "") -> None:
        super().__init__(what, why, fix, Exit.NOTHING)
