"""The whole of a stop: the processes, the port, the cards' memory; then nothing stands in the way of the next start."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace

from console.paths import Paths
from console.presets import Preset
from console.server import shapes
from console.server.cards import OpenCards, Released, Wait, cards_file, read_before, wait_released, wanted_share
from console.server.locks import held
from console.server.process import identify
from console.server.sockets import bind_problem, owner_of
from console.server.state import ServerRecord, read_stop, stop_path, write
from console.server.stop import StopReport, stop_life
from console.server.strangers import sign

_PORT_S = 10.0
Tell = Callable[[str], None]


def halt(
    paths: Paths, record: ServerRecord, open_cards: OpenCards, *, reason: str, tell: Tell, coming: Preset | None = None
) -> StopReport:
    """Stop a life until no process of it is left, its port is free and the cards have their memory back.

    Args:
        paths: whose state.
        record: the life.
        open_cards: where to look at the cards.
        reason: what goes on record as who asked.
        tell: hears what is being done.
        coming: the preset that is started next; else the same one is thought of.
    """
    begun = time.monotonic()
    ours = frozenset(who.pid for who in record.kin.find(search=True))
    report = stop_life(record, paths.server_record, paths.exit_record, reason=reason, on_event=tell)
    # The keeper's lock is free now; held until the machine is ready for the next start, so that none begins too early.
    with _locked(paths):
        problem = None if report.left else _port_problem(record, tell)
        released = _released(paths, record, open_cards, ours, coming, tell)
        _done(paths, record)
    left = [*report.left, *([(0, problem)] if problem else []), *released.left]
    notes = (*report.notes, *released.notes)
    return replace(report, seconds=time.monotonic() - begun, left=tuple(dict(left).items()), notes=notes)


@contextmanager
def _locked(paths: Paths) -> Iterator[None]:
    """Hold the lock, where that can be done: what cannot be locked is stopped all the same."""
    with ExitStack() as stack:
        with suppress(OSError):
            lock = stack.enter_context(held(paths.server_lock, patience_s=0))
            if lock is not None:
                sign(lock)
        yield


def _port_problem(record: ServerRecord, tell: Tell) -> str | None:
    """Wait until the port is free; why it is not. Somebody else who took it at once is no remnant of ours."""
    host, port = record.host or "", record.port or 0
    end, told = time.monotonic() + _PORT_S, False
    while port and bind_problem(host, port) is not None and owner_of(port) is None:
        if time.monotonic() > end:
            return f"port {port} is still not free, and nobody is seen to hold it"
        if not told:
            told = True
            tell(f"waiting for port {port}")
        time.sleep(0.1)
    return None


def _released(
    paths: Paths, record: ServerRecord, open_cards: OpenCards, ours: frozenset[int], coming: Preset | None, tell: Tell
) -> Released:
    raw = record.preset or {}
    if raw.get("simulated"):
        return Released()
    preset = coming
    if preset is None and raw:
        with suppress(*shapes.WRONG):
            preset = Preset.from_json(raw)
    before, _ = read_before(cards_file(paths.state), record.life)
    wait = Wait(ours, before, wanted_share(preset) if preset else None)
    return wait_released(open_cards, wait, tell)


def _done(paths: Paths, record: ServerRecord) -> None:
    """The asker lives on, but does not stop anything any more."""
    path = stop_path(paths.server_record)
    request, _ = read_stop(path)
    if request and request.life == record.life and request.asker == identify(os.getpid()):
        with suppress(OSError):
            write(path, replace(request, asker=None))
