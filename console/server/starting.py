"""A server that starts: its phase, how far it is, and what its silence means."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property

from console.paths import Paths
from console.presets import Preset
from console.server.cards import cards_file, read_before
from console.server.download import Download, DownloadWatch
from console.server.fingerprint import fingerprint
from console.server.phase import LogWatch
from console.server.progress import Moment, estimate
from console.server.ready import send_canary
from console.server.sockets import owner_of
from console.server.starts import Start, cache_kind, offsets, past_starts, usual
from console.server.startup import StartupReader
from console.server.state import ServerRecord
from console.server.status import Phase, ServerStatus, State

FIRST_REQUEST = "first request"
"""What a starting server is doing while its canary is under way."""
_MAY_DOWNLOAD = frozenset({Phase.DOWNLOAD, Phase.START, Phase.LOAD})


class Starting:
    """Watches one start. `preset` is as resolved, if that is known."""

    def __init__(self, paths: Paths, record: ServerRecord, watch: LogWatch, preset: Preset | None) -> None:
        self._paths = paths
        self._record = record
        self._watch = watch
        self._preset = preset
        self._download = DownloadWatch(preset) if preset else None

    def status(self, known: ServerStatus, ours_listen: bool | None, probe: bool) -> ServerStatus:
        """The start now; has the first request sent when that is due.

        Args:
            known: what is known of this life beside its state.
            ours_listen: whether our tree owns the socket; `None` while nobody listens there.
            probe: whether the request may be sent.
        """
        reader = self._watch.start()
        status = replace(known, state=State.STARTING, version=reader.facts.version, model=reader.facts.model)
        if ours_listen:
            if probe:
                send_canary(self._paths)
            return self._timed(replace(status, phase=Phase.WARM_UP, detail=FIRST_REQUEST), reader, None)
        status = replace(status, note=status.note or (self._thief() if ours_listen is False else self._short))
        # The log says "ready" when the port opens; we say it when the first request was answered.
        phase = Phase.WARM_UP if reader.phase is Phase.READY else reader.phase
        download = self._download.now() if self._download and phase in _MAY_DOWNLOAD else None
        if download:
            status = replace(status, phase=Phase.DOWNLOAD, detail=download.text)
        else:
            status = replace(status, phase=phase, detail=reader.detail)
        return self._timed(self._listened(status), reader, download)

    def _thief(self) -> str:
        owner = owner_of(self._record.port or 0)
        who = f"{owner[1]} (pid {owner[0]})" if owner else "somebody else"
        return f"port {self._record.port} was taken by {who} meanwhile"

    @cached_property
    def _short(self) -> str | None:
        """That the cards had too little memory when the start began."""
        return read_before(cards_file(self._paths.state), self._record.life)[1]

    def _listened(self, status: ServerStatus) -> ServerStatus:
        """What the silence means; beyond what is slow, the diagnosis of a start that is stuck. Nothing is ended."""
        silence = self._watch.silence()
        trouble = self._watch.cause_of_trouble() if silence and status.phase is not Phase.DOWNLOAD else None
        return replace(status, silent_s=self._watch.silent_s(), silence=silence, diagnosis=trouble)

    def _timed(self, status: ServerStatus, reader: StartupReader, download: Download | None) -> ServerStatus:
        if status.uptime_s is None or status.phase is None or self._preset is None:
            return status
        kind = cache_kind(reader.facts)
        past = usual(self._past, fingerprint(self._preset), kind, known=kind is not None)
        now = datetime.now(UTC)
        begun = offsets(reader.entered, now - timedelta(seconds=status.uptime_s), now)
        share = reader.share if status.phase is reader.phase else None
        moment = Moment(status.phase, status.uptime_s, begun, share, download.eta_s if download else None)
        found = estimate(moment, past)
        if found is None:
            return replace(status, eta_s=None)
        return replace(status, progress=round(found.progress, 3), eta_s=round(found.eta_s, 1))

    @cached_property
    def _past(self) -> tuple[Start, ...]:
        return past_starts(self._paths, self._preset.name) if self._preset else ()
