"""The history on disk: one row a minute and boot, one a minute and card; SQLite in WAL mode, bounded.

A file that is torn or of another version is moved aside and a new one begun: history never blocks anything.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from console.files import refuse_odd
from console.metrics.window import ratio

VERSION = 1
MINUTE_S = 60
KEPT_MINUTES = 100_000
"""Of running servers, about ten weeks; with two cards some 30 MB."""
_BUSY_S = 2.0


@dataclass(frozen=True, slots=True)
class Boot:
    """One life of a server."""

    life: str
    preset: str | None
    version: str | None
    model: str | None
    simulated: bool
    started: int
    """Unix second."""


@dataclass(frozen=True, slots=True)
class Minute:
    """What a server did in a minute: sums and counts, so that every span has exact means; `None` is unknown."""

    at: int
    """Unix second at which it began."""
    life: str
    seconds: float
    """Covered by the two scrapes it comes from."""
    requests: int | None = None
    """That ended."""
    ttft_n: int | None = None
    ttft_s: float | None = None
    tpot_n: int | None = None
    tpot_s: float | None = None
    itl_n: int | None = None
    itl_s: float | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    computed_tokens: int | None = None
    generation_tokens: int | None = None
    prefix_queries: int | None = None
    prefix_hits: int | None = None
    drafts: int | None = None
    draft_tokens: int | None = None
    accepted_tokens: int | None = None
    preemptions: int | None = None
    kv_used_max: float | None = None
    running_max: int | None = None

    @property
    def ttft_mean_s(self) -> float | None:
        """Time to first token, mean of the minute; as the next ones `None` where nothing was counted."""
        return ratio(self.ttft_s, self.ttft_n)

    @property
    def itl_mean_s(self) -> float | None:
        """Inter-token latency."""
        return ratio(self.itl_s, self.itl_n)

    @property
    def tpot_mean_s(self) -> float | None:
        """Time per output token."""
        return ratio(self.tpot_s, self.tpot_n)

    @property
    def hit_rate(self) -> float | None:
        """Part of the prompt tokens that came from the prefix cache, 0..1."""
        if self.cached_tokens is None or self.computed_tokens is None:
            return None
        return ratio(self.cached_tokens, self.cached_tokens + self.computed_tokens)

    @property
    def acceptance_rate(self) -> float | None:
        """Part of the draft tokens that were accepted, 0..1."""
        return ratio(self.accepted_tokens, self.draft_tokens)

    @property
    def generation_tokens_per_s(self) -> float | None:
        """Output of all streams."""
        return ratio(self.generation_tokens, self.seconds)


@dataclass(frozen=True, slots=True)
class CardMinute:
    """What a card did in that minute; bytes, bytes a second, watts, degrees Celsius."""

    at: int
    life: str
    card: int
    vram_peak_bytes: int | None = None
    pcie_tx_bytes_per_s: float | None = None
    """Mean of the looks, each of a moment."""
    pcie_rx_bytes_per_s: float | None = None
    power_w: float | None = None
    temp_max_c: int | None = None


Row = TypeVar("Row", Minute, CardMinute)

_TABLES: Mapping[str, tuple[type, str]] = {
    "boots": (Boot, "life"),
    "minutes": (Minute, "at, life"),
    "cards": (CardMinute, "at, life, card"),
}


def history_path(state: Path) -> Path:
    """The history of a state folder."""
    return state / "history.db"


class Store:
    """The history, open for writing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db: sqlite3.Connection | None = None
        self.problem: str | None = None
        """Why the last minute could not be written."""

    def keep(self, boot: Boot, minute: Minute, cards: Iterable[CardMinute]) -> bool:
        """Write one minute; `False` where the disk does not take it, which costs that minute and no more."""
        try:
            db = self._open()
            with db:
                _put(db, "boots", boot)
                _put(db, "minutes", _with(minute, _there(db, minute)))
                for card in cards:
                    _put(db, "cards", _with(card, _there(db, card)))
        except (sqlite3.Error, OSError, OverflowError) as error:
            self.close()
            self.problem = str(error)
            if _is_torn(error):
                move_aside(self._path)
            return False
        self.problem = None
        return True

    def knows(self, life: str) -> bool:
        """Whether there are minutes of this life already."""
        try:
            return self._open().execute("SELECT 1 FROM boots WHERE life = ?", (life,)).fetchone() is not None
        except (sqlite3.Error, OSError):
            self.close()
            return False

    def forget(self) -> None:
        """Drop what is older than the newest `KEPT_MINUTES` minutes."""
        with suppress(sqlite3.Error, OSError):
            db = self._open()
            row = db.execute("SELECT at FROM minutes ORDER BY at DESC LIMIT 1 OFFSET ?", (KEPT_MINUTES,)).fetchone()
            if row is None:
                return
            with db:
                db.execute("DELETE FROM minutes WHERE at <= ?", row)
                db.execute("DELETE FROM cards WHERE at <= ?", row)
                db.execute("DELETE FROM boots WHERE life NOT IN (SELECT DISTINCT life FROM minutes)")

    def close(self) -> None:
        """Let go of the file."""
        if self._db is not None:
            with suppress(sqlite3.Error):
                self._db.close()
            self._db = None

    def _open(self) -> sqlite3.Connection:
        if self._db is None:
            try:
                self._db = _connect(self._path)
            except sqlite3.DatabaseError as error:
                if not _is_torn(error):
                    raise
                move_aside(self._path)
                self._db = _connect(self._path)
        return self._db


class _OtherVersionError(sqlite3.DatabaseError):
    """Written by another version of the console."""


def _is_torn(error: Exception) -> bool:
    """Whether the file itself is no use; a full disk or a busy file is another matter."""
    if isinstance(error, sqlite3.OperationalError):
        # Of a file that could be opened for writing these say that its tables or its header are not as we write them.
        return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_READONLY)
    return isinstance(error, sqlite3.DatabaseError)


def _connect(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o600))
    refuse_odd(path)
    db = sqlite3.connect(path, timeout=_BUSY_S)
    try:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")
        found = db.execute("PRAGMA user_version").fetchone()[0]
        if found not in (0, VERSION):
            raise _OtherVersionError(f"schema {found}")
        with db:
            for name, (kind, key) in _TABLES.items():
                columns = ", ".join(field.name for field in fields(kind))
                db.execute(f"CREATE TABLE IF NOT EXISTS {name} ({columns}, PRIMARY KEY ({key})) WITHOUT ROWID")
            db.execute(f"PRAGMA user_version={VERSION}")
    except BaseException:
        db.close()
        raise
    return db


def _there(db: sqlite3.Connection, row: Row) -> Row | None:
    """What the file has of that minute already: a clock that was set back comes by twice, a recorder starts again."""
    kind = type(row)
    table, key = next((name, key.split(", ")) for name, (known, key) in _TABLES.items() if known is kind)
    columns = ", ".join(field.name for field in fields(kind))
    where = " AND ".join(f"{name} = ?" for name in key)
    found = db.execute(f"SELECT {columns} FROM {table} WHERE {where}", [getattr(row, name) for name in key]).fetchone()
    return None if found is None else kind(*found)


def _with(row: Row, there: Row | None) -> Row:
    """Both parts of a minute as one: counts and sums add up, peaks stay peaks, means of looks are averaged."""
    if there is None:
        return row
    parts: dict[str, list[float]] = {
        field.name: [value for one in (there, row) if (value := getattr(one, field.name)) is not None]
        for field in fields(row)
        if field.name not in ("at", "life", "card")
    }
    joined: dict[str, Any] = {name: _joined(name, values) for name, values in parts.items() if values}
    return replace(row, **joined)


def _joined(name: str, values: Sequence[float]) -> float:
    if "max" in name or "peak" in name:
        return max(values)
    return sum(values) / len(values) if name.endswith(("_per_s", "power_w")) else sum(values)


def _put(db: sqlite3.Connection, table: str, row: Boot | Minute | CardMinute) -> None:
    names = [field.name for field in fields(row)]
    marks = ", ".join("?" * len(names))
    db.execute(f"INSERT OR REPLACE INTO {table} ({', '.join(names)}) VALUES ({marks})", astuple(row))


def move_aside(path: Path) -> None:
    """Make room for a new history; the last torn one is kept for whoever wants to mend it."""
    for name in ("", "-wal", "-shm"):
        part = path.with_name(path.name + name)
        with suppress(OSError):
            part.replace(part.with_name(f"{path.name}.torn{name}"))
