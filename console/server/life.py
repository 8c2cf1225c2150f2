"""The life of the server: start it, find it again, watch it, stop it whole."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from console.endpoint import Endpoint
from console.files import read_text
from console.paths import Paths
from console.presets import Preset
from console.server.cards import OpenCards, own_cards
from console.server.chain import Link, chain
from console.server.derive import Observer
from console.server.facts import StartupFacts
from console.server.failure import Failure, read_failure, write_failure
from console.server.following import Following
from console.server.foreign import ForeignWatch
from console.server.found import known_life, leftovers
from console.server.halt import halt
from console.server.holders import Holders
from console.server.lives import keep_refused
from console.server.locks import is_held
from console.server.process import alive
from console.server.proof import proof_link, read_proof
from console.server.ready import read_canary
from console.server.room import closed_note, make_state
from console.server.run_lock import left_note, refuse_during_a_run
from console.server.start import PortInUse, launch
from console.server.startup import StartupReader
from console.server.state import ServerRecord, read_stop, stop_path
from console.server.status import Diagnosis, Phase, ServerStatus, State
from console.server.stop import StopReport
from console.server.strangers import nothing_to_stop, stranger
from console.server.stray import NOTE, Strays
from console.server.worked import at_hand, read_worked

if TYPE_CHECKING:
    from console.gpu.sample import GpuReport
    from console.metrics.vllm import Counters
    from console.server.drain import Drained

_MOMENT_S = 2.0
_PATIENCE_S = 10.0
"""For a start under way to say whom it started."""
_UNNAMED = ServerStatus(State.STARTING, Phase.START)
"""One of which nothing else is known yet."""


class Server:
    """The one server of this console; a thin view on what is on disk and in /proc, safe to build any time.

    Args:
        paths: whose state.
        open_cards: where to look at the cards; this machine's own without one.
        presets: the known presets, on whose ports servers that are not ours are looked for.
    """

    def __init__(
        self,
        paths: Paths,
        *,
        open_cards: OpenCards | None = None,
        presets: Callable[[], Iterable[Preset]] = tuple,
    ) -> None:
        self.paths = paths
        self._open_cards = open_cards or own_cards
        self._foreign = ForeignWatch(presets)
        self._holders = Holders(self._open_cards)
        self._strays = Strays(paths.server_record)
        self._observer: Observer | None = None
        self._seen: tuple[float, frozenset[int]] = (-math.inf, frozenset())

    def record(self) -> ServerRecord | None:
        """The last life on record, running or not."""
        return self._known()[0]

    def preset(self) -> Preset | None:
        """The preset of that life as resolved, with secrets from the server's environment."""
        observer = self._observe(self.record())
        return observer.preset if observer else None

    def worked(self, besides: Preset | None = None) -> Preset | None:
        """The last preset that was ready and is not `besides` (else: not that of the last life), with its secrets."""
        return read_worked(self.paths, self.running_preset(), besides or at_hand(self.paths, self.preset()))

    def running_preset(self) -> Preset | None:
        """The preset of the server that lives now, with its secrets; `None` when none does."""
        record = self.record()
        return self.preset() if record and alive(record.child) else None

    def endpoint(self) -> Endpoint | None:
        """Where the living server of ours answers."""
        record = self.record()
        observer = self._observe(record)
        return observer.endpoint if observer and record and alive(record.child) else None

    def watched(self) -> Endpoint | None:
        """Where figures can be read: our server, else one on a preset's port that is not ours. May ask for a second."""
        return self.endpoint() or (None if is_held(self.paths.server_lock) else self._foreign.endpoint())

    def card_env(self) -> Mapping[str, str]:
        """What tells CUDA which cards it sees: the living server's environment, else this console's own."""
        observer = self._observe(self.record())
        return observer.card_env if observer else os.environ

    def secrets(self) -> frozenset[str]:
        """Values that no log view and no report may show."""
        observer = self._observe(self.record())
        return observer.secrets if observer else frozenset()

    def facts(self) -> StartupFacts:
        """What the log of that life told about the server that really runs."""
        start = self.start_log()
        return start.facts if start else StartupFacts()

    def start_log(self) -> StartupReader | None:
        """The start of that life as its log tells it."""
        observer = self._observe(self.record())
        return observer.start_log if observer else None

    def trouble(self) -> Diagnosis | None:
        """What the log of the living server says went wrong."""
        observer = self._observe(self.record())
        return observer.trouble() if observer else None

    def chain(self, counters: Counters | None, cards: GpuReport | None = None) -> tuple[Link, ...]:
        """What really runs, link by link, and whether it was proved with a long prompt."""
        preset, record = self.preset(), self.record()
        canary = read_canary(self.paths, record.life) if record else None
        proof = read_proof(self.paths, preset) if preset else None
        links = chain(self.facts(), counters, cards)
        return (*links, proof_link(proof, canary.version if canary else None)) if preset else links

    def leftovers(self) -> tuple[int, ...]:
        """Pids of what the last life left although its keeper is gone."""
        record = self.record()
        if record is None or alive(record.keeper):
            return ()
        return tuple(who.pid for who in leftovers(record, self.paths.exit_record))

    def baseline(self) -> str | None:
        """The `/metrics` page right after the canary of that life."""
        record = self.record()
        if record is None or read_canary(self.paths, record.life) is None:
            return None
        try:
            return read_text(self.paths.baseline)
        except (OSError, ValueError):
            return None

    def status(self, *, probe: bool = True) -> ServerStatus:
        """One look; with `probe` it asks the server, and has the canary sent when that is due.

        Where no server of ours lives, one that answers on a preset's port is told as foreign.
        """
        record, note = self._known()
        observer = self._observe(record)
        status = observer.status(probe=probe) if observer else ServerStatus()
        if status.state in (State.STOPPED, State.FAILED) and status.pid is None:
            status = self._without_life(status, record)
        if status.state is State.STOPPED and probe:
            status = self._foreign.status() or status
        if status.state is State.FAILED and probe:
            status = self._holders.told(status)
        self._seen = (time.monotonic(), frozenset(status.ours))
        left = left_note(self.paths, record.log) if record and status.pid is not None else None
        told = [text for text in (closed_note(self.paths.state), note, status.note, left) if text]
        return replace(status, note="; ".join(told) or None)

    def ours(self) -> frozenset[int]:
        """Pids of the server's processes, as of the last look if that was a moment ago."""
        at, known = self._seen
        return known if time.monotonic() - at < _MOMENT_S else frozenset(self.status(probe=False).ours)

    def _without_life(self, status: ServerStatus, record: ServerRecord | None) -> ServerStatus:
        if is_held(self.paths.server_lock):
            request, _ = read_stop(stop_path(self.paths.server_record))
            if request and record and request.life == record.life and alive(request.asker):
                detail = "waiting for its port and the cards' memory"
                return replace(status, state=State.STOPPING, phase=Phase.STOPPING, detail=detail, diagnosis=None)
            locked = stranger(self.paths)
            return replace(status, note=f"{locked.what}: {locked.fix}") if locked else _UNNAMED
        failure = read_failure(self.paths)
        if failure and failure.life is None and not status.ours:
            return ServerStatus(State.FAILED, preset=failure.preset, diagnosis=failure.diagnosis, failed_at=failure.at)
        return status

    def start(
        self, preset: Preset, *, log: Path | None = None, for_run: str | None = None, recorded: bool = True
    ) -> None:
        """Start this preset's server; returns once its process runs, which is long before it is ready.

        Args:
            preset: what to run; port 0 takes a free one.
            log: the log file, when it is not to stand among the others.
            for_run: the id of the run that asks; anybody else is refused while a run is live.
            recorded: whether its figures go into the history; the boots of a run have a journal of their own.

        Raises:
            BusyError: a server of ours lives or is being started or stopped, or a run is live.
            ConsoleError: it cannot be started: no such command, the port taken …
        """
        make_state(self.paths)
        refuse_during_a_run(self.paths, for_run)
        try:
            launch(self.paths, preset, log, self._open_cards, recorded=recorded)
        except PortInUse as error:
            write_failure(self.paths, Failure(None, preset.name, error.diagnosis))
            keep_refused(self.paths, preset.name, error.diagnosis, simulated=preset.simulated)
            raise

    def follow_start(self, timeout_s: float | None = None, for_run: str | None = None) -> Iterator[ServerStatus]:
        """The status at every change until the server is ready, failed or stopped.

        A server that is not ready after `timeout_s` seconds (default: its preset's `ready-timeout`) without the time
        of downloads is stopped; the last status says why.
        """
        return Following(self, timeout_s, for_run).changes()

    def drain(self, limit_s: float, tell: Callable[[str], None] = lambda _text: None) -> Drained | None:
        """Wait until the server has answered what it was asked; `None` when there is none that could be asked."""
        from console.server.drain import drain

        endpoint = self.endpoint()
        return None if endpoint is None else drain(endpoint, limit_s, tell)

    def stop(
        self,
        *,
        on_event: Callable[[str], None] | None = None,
        reason: str = "down",
        coming: Preset | None = None,
        for_run: str | None = None,
    ) -> StopReport:
        """Stop the server whole: no process of it is left, its port is free and the cards have their memory back.

        Args:
            on_event: hears what is being done, in words.
            reason: what goes on record as who asked.
            coming: the preset that is started next, whose memory is waited for.
            for_run: the id of the run that asks; anybody else is refused while a run is live.

        Returns:
            What stays, with its reason, where the stop is not whole.

        Raises:
            NothingError: there is no server of ours.
            BusyError: nor can there be, a stranger holds the lock; or a run is live.
        """
        refuse_during_a_run(self.paths, for_run)
        record = self._stoppable()
        if record is None:
            raise nothing_to_stop(self.paths, self._foreign.status())
        tell = on_event or (lambda _text: None)
        return halt(self.paths, record, self._open_cards, reason=reason, tell=tell, coming=coming)

    def _stoppable(self) -> ServerRecord | None:
        """Who is to be stopped; a start under way is waited for until it says whom it started."""
        end = time.monotonic() + _PATIENCE_S
        while True:
            record = self.record()
            if record and (alive(record.keeper) or alive(record.child)):
                return record
            if record and leftovers(record, self.paths.exit_record):
                return record
            if not is_held(self.paths.server_lock) or time.monotonic() > end or stranger(self.paths):
                return None
            time.sleep(0.05)

    def _known(self) -> tuple[ServerRecord | None, str | None]:
        record, note = known_life(self.paths.server_record)
        if record and (alive(record.keeper) or alive(record.child)):
            return record, note
        stray = self._strays.find(record)
        return (stray, NOTE) if stray else (record, note)

    def _observe(self, record: ServerRecord | None) -> Observer | None:
        if record is None:
            return None
        if self._observer is None or self._observer.record != record:
            self.close()
            self._observer = Observer(self.paths, record)
        return self._observer

    def close(self) -> None:
        """Drop the kept connections; the next use opens new ones."""
        self._foreign.close()
        if self._observer is not None:
            self._observer.close()
            self._observer = None
