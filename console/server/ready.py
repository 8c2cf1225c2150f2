"""When a server is ready: our own tree listens, it is healthy, lists the model, and answered one request.

The request (the canary) is sent once a server life, by a small process of its own: it takes up to 20 s on a fresh
engine, and whoever sees the port first may be a `status` that has to answer at once, or a console about to be killed.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from console.endpoint import Endpoint, EndpointError
from console.paths import Paths
from console.server import shapes
from console.server.locks import is_held
from console.server.process import Identity
from console.server.state import SCHEMA, identity_from, read_json, write_json

HEALTH_DEADLINE_S = 0.2
"""`status` has to be quick; one slow answer is a note, not a state."""


@dataclass(frozen=True, slots=True)
class Canary:
    """What came of the one request."""

    life: str
    ok: bool
    why: str | None
    """What went wrong."""
    cause: str | None
    """The same as a stable word of a diagnosis."""
    model: str | None
    """The model as the server lists it."""
    version: str | None
    seconds: float
    """What the first request took."""
    engine: tuple[tuple[Identity, str], ...] = ()
    """The engine's own processes when it was answered, with their titles: none of them ends while the server serves."""


def canary_lock(paths: Paths) -> Path:
    """Held by the process that sends the canary."""
    return paths.canary.with_name("canary.lock")


def read_canary(paths: Paths, life: str) -> Canary | None:
    """The canary of this life, once it has been answered."""
    raw, _ = read_json(paths.canary)
    if raw is None or raw.get("life") != life:
        return None
    return _canary(raw)


def _canary(raw: Mapping[str, Any]) -> Canary | None:
    try:
        return Canary(
            life=raw["life"],
            ok=bool(raw["ok"]),
            why=shapes.optional(shapes.text, raw["why"]),
            cause=shapes.optional(shapes.text, raw["cause"]),
            model=shapes.optional(shapes.text, raw["model"]),
            version=shapes.optional(shapes.text, raw["version"]),
            seconds=shapes.number(raw["seconds"]),
            engine=tuple((identity_from(who), str(name)) for who, name in raw.get("engine", ())),
        )
    except shapes.WRONG:
        return None


def write_canary(paths: Paths, canary: Canary) -> None:
    """Put the answer on record.

    Raises:
        OSError: the disk does not take it.
    """
    fields = {name: getattr(canary, name) for name in Canary.__slots__}
    write_json(paths.canary, {"schema": SCHEMA, **fields})


def send_canary(paths: Paths) -> None:
    """Have the canary sent, unless that is under way; returns at once."""
    if is_held(canary_lock(paths)):
        return
    # It detaches itself at once, so this is the life of one bare interpreter.
    subprocess.run(
        [sys.executable, "-P", "-m", "console.server.canary", str(paths.state)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        check=False,
    )


def health(endpoint: Endpoint) -> int | None:
    """The HTTP status of `/health`; `None` when it did not answer in time."""
    try:
        return endpoint.get("/health", deadline=HEALTH_DEADLINE_S).status
    except EndpointError:
        return None
