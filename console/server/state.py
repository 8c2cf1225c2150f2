"""State on disk: who the server is, that somebody asked it to stop, how it ended.

Written by atomic replace, readable by the owner only. Reading never fails: a file that is torn, of another schema or
wrong in its shape is `None` and a note. Imports what the keeper may import.
"""

from __future__ import annotations

import _thread
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from console import files
from console.server import shapes
from console.server.process import Identity, Kin

SCHEMA = 1
T = TypeVar("T")


def now_utc() -> str:
    """The wall clock as state files have it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@dataclass(frozen=True, slots=True)
class ServerRecord:
    """One life of a server (or of a lab run: then without preset and address)."""

    life: str
    """Names this life; the value of the marker variable."""
    keeper: Identity
    child: Identity | None
    """`None` until the keeper has started it."""
    argv: tuple[str, ...]
    log: str
    started: str
    """UTC."""
    grace_s: float = 30.0
    whole: bool = True
    preset: Mapping[str, Any] | None = None
    """As resolved, the values of secrets left out."""
    host: str | None = None
    port: int | None = None
    restarts: int = 0
    """How many crashes in a row this life was started after."""

    @property
    def kin(self) -> Kin:
        """How to find the processes of this life."""
        return Kin(self.life, self.keeper, self.child, self.whole)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> ServerRecord:
        """The inverse of `write`.

        Raises:
            KeyError, TypeError, ValueError: it is none; a server's has an address.
        """
        address = shapes.optional if raw["preset"] is None else _needed
        return cls(
            life=shapes.word(raw["life"]),
            keeper=identity_from(raw["keeper"]),
            child=shapes.optional(identity_from, raw["child"]),
            argv=tuple(map(shapes.text, raw["argv"])),
            log=shapes.word(raw["log"]),
            started=shapes.stamp(raw["started"]),
            grace_s=shapes.number(raw["grace_s"]),
            whole=bool(raw["whole"]),
            preset=shapes.preset(raw["preset"]),
            host=address(shapes.host, raw["host"]),
            port=address(shapes.port, raw["port"]),
            restarts=shapes.whole(raw.get("restarts", 0)),
        )


@dataclass(frozen=True, slots=True)
class ExitRecord:
    """How a life ended, as its keeper saw it."""

    life: str
    code: int | None
    """Exit code; `None` when a signal ended it."""
    signal: int | None
    at: str
    """UTC."""
    asked: bool
    """Whether it ended because somebody asked."""
    asked_by: str | None = None
    """Who asked: the reason given, or the process that signalled the keeper."""
    escalated: bool = False
    """Whether SIGKILL was needed."""

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> ExitRecord:
        """The inverse of `write`."""
        return cls(
            life=shapes.word(raw["life"]),
            code=shapes.optional(shapes.whole, raw["code"]),
            signal=shapes.optional(shapes.whole, raw["signal"]),
            at=shapes.text(raw["at"]),
            asked=bool(raw["asked"]),
            asked_by=shapes.optional(shapes.text, raw["asked_by"]),
            escalated=bool(raw["escalated"]),
        )


@dataclass(frozen=True, slots=True)
class StopRequest:
    """Somebody asked a life to end; written before the keeper is signalled, and again by the keeper."""

    life: str
    by: str
    """Why, in a word or two: `down`, `ready-timeout` …"""
    asker: Identity | None
    at: str
    """UTC."""
    taken: bool = False
    """Whether the keeper has begun: until then the request dies with the asker."""

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> StopRequest:
        """The inverse of `write`."""
        return cls(
            life=shapes.word(raw["life"]),
            by=shapes.text(raw["by"]),
            asker=shapes.optional(identity_from, raw["asker"]),
            at=shapes.text(raw["at"]),
            taken=bool(raw["taken"]),
        )


def _needed(shape: Callable[[Any], T], raw: Any) -> T | None:
    return shape(raw)


def identity_from(raw: Any) -> Identity:
    """An identity as JSON keeps it.

    Raises:
        TypeError, ValueError: it is none.
    """
    pid, start, boot = raw
    # A signal to 0 or less would go to a whole group, or to everybody.
    if shapes.whole(pid) < 1:
        raise ValueError
    return Identity(pid, shapes.whole(start), shapes.text(boot))


def write(path: Path, record: ServerRecord | ExitRecord | StopRequest) -> None:
    """Replace the file by this record.

    Raises:
        OSError: the disk does not take it.
    """
    write_json(path, {"schema": SCHEMA, **asdict(record)})


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Replace a file atomically; 0600, on the disk before it appears.

    Raises:
        OSError: the disk does not take it.
    """
    write_text(path, json.dumps(value, indent=1))


def write_text(path: Path, text: str, *, sync: bool = True) -> None:
    """Replace a file atomically; 0600, and on the disk before it appears unless `sync` says that it may be lost.

    Raises:
        OSError: the disk does not take it.
    """
    fresh = path.with_name(f".{path.name}.{os.getpid()}.{_thread.get_ident()}")
    try:
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(text)
            if sync:
                file.flush()
                os.fsync(handle)
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise


def read_json(path: Path) -> tuple[Mapping[str, Any] | None, str | None]:
    """A state file's content, or `None` with a note when it is there but no use."""
    try:
        raw = files.read_json(path)
    except FileNotFoundError:
        return None, None
    except (OSError, ValueError) as error:
        return None, f"{path.name} cannot be read and is ignored ({type(error).__name__})"
    if not isinstance(raw, dict):
        return None, f"{path.name} is torn and is ignored"
    if raw.get("schema") != SCHEMA:
        return None, f"{path.name} was written by another version (schema {raw.get('schema')}) and is ignored"
    return raw, None


def _read(path: Path, build: Callable[[Mapping[str, Any]], T]) -> tuple[T | None, str | None]:
    raw, note = read_json(path)
    if raw is None:
        return None, note
    try:
        return build(raw), None
    except shapes.WRONG:
        return None, f"{path.name} lacks what it should hold and is ignored"


def read_server(path: Path) -> tuple[ServerRecord | None, str | None]:
    """The record of a life, and a note when the file is no use."""
    return _read(path, ServerRecord.from_json)


def read_exit(path: Path) -> tuple[ExitRecord | None, str | None]:
    """How the last life ended, and a note when the file is no use."""
    return _read(path, ExitRecord.from_json)


def read_stop(path: Path) -> tuple[StopRequest | None, str | None]:
    """The last request to stop, and a note when the file is no use."""
    return _read(path, StopRequest.from_json)


def stop_path(record: Path) -> Path:
    """The request to stop the life whose record stands at `record`."""
    return record.with_name("stop.json")


def recorder_path(record: Path) -> Path:
    """What became of the recorder of the life recorded at `record`, where something did."""
    return record.with_name("recorder.json")


def spec_path(record: Path) -> Path:
    """What the keeper of the life recorded at `record` was told."""
    return record.with_name("keeper.json")
