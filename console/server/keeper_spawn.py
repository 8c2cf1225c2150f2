"""Starts a keeper and waits until its child runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from console.errors import BusyError, ConsoleError
from console.files import parse_json
from console.server.locks import held
from console.server.process import KEEP_ENVIRON, MARKER
from console.server.rotation import LIMIT_BYTES
from console.server.state import SCHEMA, now_utc, recorder_path, spec_path, stop_path, write_json

_PATIENCE_S = 30.0
"""A machine that swaps may take this long to start an interpreter."""


@dataclass(frozen=True, slots=True)
class KeeperSpec:
    """What a keeper is told; no secrets, for it stays on disk."""

    argv: tuple[str, ...]
    """The child's command; the first word is an absolute path."""
    log: Path
    record: Path
    """Where the keeper writes the identities; other state files of this life stand beside it."""
    exit: Path
    """Where the keeper writes how the child ended."""
    lock: Path | None = None
    """Held from before the start until nothing of this life is left."""
    subreaper: bool = True
    """Whether everything that descends from the child is ours, even what leaves its session."""
    grace_s: float = 30.0
    """Seconds between SIGTERM and SIGKILL."""
    on_death: tuple[str, ...] | None = None
    """Run once in the keeper's place when the child died instead of ending; the first word is an absolute path."""
    on_crash: tuple[str, ...] | None = None
    """Run in the keeper's place when the child ended and nobody had asked, with the lock and the child's environment
    as two more words, the numbers of descriptors: it decides whether the child is started again."""
    restarts: int = 0
    """How many crashes in a row this life is started after."""
    recorder: tuple[str, ...] | None = None
    """Run beside the child while it lives, started again three times at most; the first word is an absolute path."""
    log_limit: int = LIMIT_BYTES
    """Bytes beyond which the log is copied aside and cut."""
    preset: Mapping[str, Any] | None = None
    host: str | None = None
    port: int | None = None
    life: str = field(default_factory=lambda: uuid.uuid4().hex)


@dataclass(frozen=True, slots=True)
class Spawned:
    """A keeper and its child."""

    keeper: int
    child: int


def spawn_keeper(spec: KeeperSpec, env: Mapping[str, str]) -> Spawned:
    """Start a keeper with this child in this environment; returns once the child runs.

    Raises:
        BusyError: somebody holds the lock.
        ConsoleError: the child could not be started.
    """
    if spec.lock is None:
        return _spawn(spec, env, None)
    with held(spec.lock) as lock:
        if lock is None:
            raise BusyError("something else is being started or runs already", f"{spec.lock} is held")
        return _spawn(spec, env, lock)


def spawn_holding(spec: KeeperSpec, env: Mapping[str, str], lock: int) -> Spawned:
    """The same for a caller that took the lock itself; the keeper inherits it."""
    return _spawn(spec, env, lock)


def _spawn(spec: KeeperSpec, env: Mapping[str, str], lock: int | None) -> Spawned:
    path = spec_path(spec.record)
    # What an earlier life left must not be taken for this one's.
    for stale in (spec.record, spec.exit, stop_path(spec.record), recorder_path(spec.record)):
        stale.unlink(missing_ok=True)
    told = {name: str(value) if isinstance(value, Path) else value for name, value in asdict(spec).items()}
    write_json(path, {"schema": SCHEMA, **told, "lock_fd": lock, "started": now_utc()})
    return _heard(spec, *_run(path, spec, child_env(env, spec.life), lock))


def child_env(env: Mapping[str, str], life: str) -> dict[str, str]:
    """The child's environment with the marker of its life."""
    return {**env, MARKER: life, KEEP_ENVIRON: "1"}


def _run(path: Path, spec: KeeperSpec, env: Mapping[str, str], lock: int | None) -> tuple[str, str]:
    """Start the process; what it reports, and what went wrong in starting it."""
    command = keeper_command(path)
    log = os.open(spec.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        # The child's environment goes through a pipe: it may hold keys, and what it does to Python is the child's.
        done = subprocess.run(
            command,
            input=json.dumps(env),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**os.environ, MARKER: spec.life},
            pass_fds=() if lock is None else (lock,),
            start_new_session=True,
            timeout=_PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "", f"the keeper said nothing for {_PATIENCE_S:.0f} s"
    except OSError as error:
        return "", str(error)
    finally:
        os.close(log)
    return done.stdout, f"the keeper ended with code {done.returncode}"


def keeper_command(spec: Path) -> list[str]:
    """The keeper's command line."""
    return [sys.executable, "-P", "-m", "console.server.keeper", str(spec)]


def _heard(spec: KeeperSpec, report: str, problem: str) -> Spawned:
    try:
        news = parse_json(report)
        return Spawned(int(news["keeper"]), int(news["child"]))
    except ValueError:
        why = problem
    except KeyError:
        why = str(news.get("error", problem))
    raise ConsoleError(
        f"{spec.argv[0]} could not be started", why, f"try the command by hand; the log is {spec.log}"
    ) from None
