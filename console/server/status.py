"""What the console knows of the server at one moment."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """The server's state; derived from identity, exit record and probes, never stored."""

    STOPPED = "stopped"
    STARTING = "starting"
    READY = "ready"
    STOPPING = "stopping"
    FAILED = "failed"
    STALLED = "stalled"
    FOREIGN = "foreign"


class Phase(StrEnum):
    """Where in its life a server is; the words scripts rely on."""

    DOWNLOAD = "download"
    START = "start"
    LOAD = "load"
    COMPILE = "compile"
    KV_CACHE = "kv cache"
    GRAPH_CAPTURE = "graph capture"
    WARM_UP = "warm-up"
    READY = "ready"
    STOPPING = "stopping"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why a server is dead, failing or stuck, in the user's words."""

    cause: str
    """A stable code: kv-too-small, vram-busy, oom, port-in-use, bad-flag, model-missing, engine-crashed, unknown …"""
    what: str
    why: str
    fix: str
    evidence: tuple[str, ...] = ()
    """The log lines that prove it, redacted."""
    phase: Phase | None = None


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """One look at the server."""

    state: State = State.STOPPED
    phase: Phase | None = None
    preset: str | None = None
    pid: int | None = None
    url: str | None = None
    model: str | None = None
    uptime_s: float | None = None
    version: str | None = None
    diagnosis: Diagnosis | None = None
    log: str | None = None
    simulated: bool = False
    note: str | None = None
    """Something to know beside the state: a torn state file, a lost keeper, an unanswered probe."""
    detail: str | None = None
    """What the phase is doing, when the log says: `weights 62 %`, `graphs 40 %`."""
    ours: tuple[int, ...] = ()
    """Pids of the server's process tree."""
    progress: float | None = None
    """How far a start is, 0..1, by what this preset's starts usually take; `None` where none is known."""
    eta_s: float | None = None
    """Seconds until the server should be ready."""
    silent_s: float | None = None
    """Seconds for which a starting server has printed nothing."""
    silence: str | None = None
    """What that silence means where the start stands; `None` while it is short."""
    prefill_s: float | None = None
    """Seconds for which a prompt has been read without a token, by rising KV use; `None` when none is."""
    proved: bool | None = None
    """Whether a prompt of nearly the whole context was answered with these settings; `None`: not tried."""
    restarts: int = 0
    """Crashes in a row that this server was started after (`server: {restart: on-crash}`)."""
    restart_in_s: float | None = None
    """Seconds until a crashed server is started again."""
    failed_at: str | None = None
    """UTC: when a server that failed came to its end."""
    unrecorded: Diagnosis | None = None
    """Why what it does is not kept by the minute; `None` when it is, or was not to be."""
