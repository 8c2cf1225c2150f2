"""`logs`: the server's log, on into the next life while it is followed.

The looks of our own consoles and what an A/B run asks its own arm are left out.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from console.cli.house import House
from console.cli.voice import say, show
from console.errors import ConsoleError, Exit, NothingError
from console.server.access import folder_in_the_way, in_the_way
from console.server.log import follow, is_background, redact, tail
from console.server.run_lock import arm_of, run_is_live
from console.server.status import ServerStatus, State
from console.units import uncoloured

_FOLLOW_EVERY_S = 0.25
_LOOK_EVERY_S = 1.0
_GRACE_S = 3.0
"""A restart, or the next boot of a run, has begun by then."""
_EVERY_LINE = 10**9


def logs(args: argparse.Namespace) -> int:
    """The last lines on stdout; `-f` goes on until the server has ended and nothing starts it again."""
    house = House.of(args)
    record = house.server.record()
    if record is None or not os.path.exists(record.log):  # noqa: PTH110 - of a closed folder it is no error
        if problem := folder_in_the_way(house.paths.state) or (in_the_way(Path(record.log)) if record else None):
            raise ConsoleError("whether there is a log cannot be told", *problem)
        raise NothingError("there is no log", "no server was started here yet", "start one: `qwen-console up PRESET`")
    view = _View(house, Path(record.log), whole=args.all)
    view.last(args.lines)
    return view.follow() if args.follow else Exit.OK


class _View:
    """One reader's place in the log."""

    def __init__(self, house: House, path: Path, *, whole: bool) -> None:
        self._house = house
        self._path = path
        self._offset = path.stat().st_size
        self._whole = whole
        self._said: set[str] = set()

    def _shown(self, lines: Iterable[str]) -> Iterator[str]:
        """Without what nobody's client caused, unless all was asked for."""
        run_id = arm_of(self._house.paths, str(self._path))
        for line in lines:
            if self._whole or not is_background(line, of_run=run_id is not None):
                yield line
            elif run_id is not None and run_id not in self._said:
                self._said.add(run_id)
                say(f"what the A/B run {run_id} asks its arm is left out; `qwen-console logs --all` shows it")

    def last(self, n: int) -> None:
        """The last `n` lines that are shown."""
        if self._whole:
            self._print(tail(self._path, n))
        else:
            self._print(list(self._shown(tail(self._path, _EVERY_LINE)))[-n:] if n > 0 else [])

    def follow(self) -> int:
        """What comes, in this life and the next ones."""
        looked, ended = 0.0, None
        while True:
            self._more()
            sys.stdout.flush()
            now = time.monotonic()
            if now - looked >= _LOOK_EVERY_S:
                looked = now
                self._go_on()
                over = self._over()
                ended = (ended or now) if over else None
                if over and ended is not None and now - ended >= _GRACE_S:
                    self._more()
                    say(f"the log ends here: {self._told(over)}; `qwen-console up` starts a server")
                    return Exit.OK
            time.sleep(_FOLLOW_EVERY_S)

    def _go_on(self) -> None:
        """Into the log of a later life."""
        record = self._house.server.record()
        if record is None or Path(record.log) == self._path or not Path(record.log).exists():
            return
        self._more()
        self._path, self._offset = Path(record.log), 0
        say(f"a server was started again; its log is {self._path}")

    def _over(self) -> ServerStatus | None:
        """How the server has ended, where nothing is about to start it again."""
        status = self._house.server.status(probe=False)
        ended = status.state in (State.STOPPED, State.FAILED) and status.pid is None
        return status if ended and not run_is_live(self._house.paths) else None

    def _more(self) -> None:
        while True:
            lines, offset = follow(self._path, self._offset)
            if offset == self._offset:
                return
            self._offset = offset
            self._print(lines)

    def _print(self, lines: Iterable[str]) -> None:
        secrets = self._house.server.secrets()
        for line in self._shown(lines):
            show([uncoloured(redact(line, secrets))])

    def _told(self, status: ServerStatus) -> str:
        record = self._house.server.record()
        name = (record.preset or {}).get("name", "the server") if record else "the server"
        return f"{name} failed ({status.diagnosis.what})" if status.diagnosis else f"{name} was stopped"
