"""The state of one life, derived from identities, exit record and probes; nothing of it is stored."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from console.endpoint import Endpoint
from console.paths import Paths
from console.presets import Preset
from console.presets.installed import stands_in
from console.presets.model import KEY_VARIABLE
from console.presets.secrecy import arg_secrets
from console.server import shapes
from console.server.ended import Ended, refused
from console.server.keeping_secrets import recorded
from console.server.log import secret_values
from console.server.models import by_stand_in
from console.server.phase import LogWatch
from console.server.process import Identity, alive, environ, is_recorder, uptime_s
from console.server.ready import read_canary
from console.server.revival import Revival, read_revival
from console.server.room import full_note, is_full
from console.server.serving import Serving
from console.server.sockets import Hold, answering, hold_of, url_of
from console.server.starting import Starting
from console.server.startup import StartupReader
from console.server.state import ServerRecord, read_stop, stop_path
from console.server.status import Diagnosis, Phase, ServerStatus, State
from console.server.unrecorded import unrecorded

_FAMILY_S = 5.0
_LOST = "its keeper was lost (killed?): the server goes on, `qwen-console down` still stops it whole"


class Observer:
    """Watches one life of the server."""

    def __init__(self, paths: Paths, record: ServerRecord) -> None:
        self.record = record
        self._paths = paths
        self._seen: tuple[float, tuple[Identity, ...]] = (-math.inf, ())
        self._hold: Hold | None = None
        self._watch = LogWatch(Path(record.log), lambda: self.secrets)

    @cached_property
    def _environ(self) -> dict[str, str]:
        child = self.record.child
        return (environ(child.pid) if child and alive(child) else None) or dict(os.environ)

    @cached_property
    def preset(self) -> Preset | None:
        """As resolved at the start, secrets from the server's own environment."""
        raw = self.record.preset
        try:
            return recorded(raw, self._environ) if raw else None
        except shapes.WRONG:
            return None

    @cached_property
    def endpoint(self) -> Endpoint:
        """Where the server answers, with the key it was started with."""
        flag = self.preset.args.get("api-key") if self.preset else None
        key = (flag[0] if isinstance(flag, list) and flag else flag) or self._environ.get(KEY_VARIABLE)
        return Endpoint(url_of(self.record.host or "", self.record.port or 0), str(key) if key else None)

    @property
    def card_env(self) -> Mapping[str, str]:
        """The environment by which the server sees its cards; this console's own when there is no server."""
        return self._environ if alive(self.record.child) else os.environ

    @property
    def secrets(self) -> frozenset[str]:
        """Values that must not be shown."""
        names = self.preset.secrets if self.preset else ()
        key = frozenset({self.endpoint.key} if self.endpoint.key else ())
        return secret_values(self._environ, names) | key | arg_secrets(self.preset.args if self.preset else {})

    def status(self, *, probe: bool = True) -> ServerStatus:
        """One look."""
        record = self.record
        keeper_lives = alive(record.keeper)
        if record.child is not None and alive(record.child):
            return self._living(record.child, keeper_lives, probe)
        if keeper_lives:
            revival = read_revival(self._paths)
            if revival and revival.life == record.life and revival.by == record.keeper and revival.pending:
                return self._reviving(revival)
            # Between the keeper's start and the child's, or while the keeper sweeps what a dead child left.
            begun = record.child is not None
            state, phase = (State.STOPPING, Phase.STOPPING) if begun else (State.STARTING, Phase.START)
            return replace(self._known(), state=state, phase=phase, ours=self._pids(search=False))
        return self._given_up(self._ended.status(self._known()))

    def _reviving(self, revival: Revival) -> ServerStatus:
        """It crashed, and its keeper's successor waits to start it again."""
        left = max(0.0, (revival.at or 0.0) - time.monotonic())
        return replace(
            self._known(),
            state=State.STARTING,
            phase=Phase.START,
            detail=f"again after a crash ({revival.why})",
            diagnosis=revival.diagnosis,
            restarts=revival.attempt,
            restart_in_s=round(left, 1),
        )

    def _full(self) -> str | None:
        return full_note(self._paths.state) if is_full(self._paths.state) else None

    def _revived(self) -> str | None:
        """That this server was started after a crash."""
        count = self.record.restarts
        if not count:
            return None
        revival = read_revival(self._paths)
        what = revival.diagnosis.what if revival and revival.diagnosis else "it crashed"
        return f"started again after a crash, {count} in a row: {what}"

    def _given_up(self, status: ServerStatus) -> ServerStatus:
        revival = read_revival(self._paths)
        if status.state is not State.FAILED or revival is None or revival.life != self.record.life:
            return status
        if revival.at is None:
            return replace(status, note=f"not started again: {revival.why}")
        return replace(status, note="it was to be started again after its crash; that was called off")

    def close(self) -> None:
        """Drop the kept connections."""
        if "endpoint" in self.__dict__:
            self.endpoint.close()

    @property
    def start_log(self) -> StartupReader:
        """The start as far as its log tells."""
        return self._watch.start()

    def trouble(self) -> Diagnosis | None:
        """What the log of the living server says went wrong."""
        return self._watch.cause_of_trouble()

    @cached_property
    def _starting(self) -> Starting:
        return Starting(self._paths, self.record, self._watch, self.preset)

    @cached_property
    def _ended(self) -> Ended:
        return Ended(self._paths, self.record, self._watch)

    @cached_property
    def _serving(self) -> Serving:
        return Serving(self._paths, self.record, self._watch, self.endpoint, self.preset)

    def _known(self) -> ServerStatus:
        record = self.record
        raw = record.preset or {}
        return ServerStatus(
            preset=raw.get("name"),
            url=url_of(record.host or "", record.port or 0),
            log=record.log,
            simulated=bool(raw.get("simulated")) or stands_in(raw.get("command") or ()),
            restarts=record.restarts,
        )

    def _pids(self, *, search: bool) -> tuple[int, ...]:
        return tuple(who.pid for who in self.record.kin.find(search=search) if not is_recorder(who.pid))

    def _family(self, keeper_lives: bool) -> tuple[int, ...]:
        """The living processes; all of /proc is looked through every few seconds only, and while they change."""
        at, known = self._seen
        now = time.monotonic()
        if now - at > _FAMILY_S or not all(alive(who) for who in known):
            known = tuple(who for who in self.record.kin.find(search=not keeper_lives) if not is_recorder(who.pid))
            settled = read_canary(self._paths, self.record.life) is not None
            self._seen = (now if settled else -math.inf, known)
        return tuple(who.pid for who in known)

    def _living(self, child: Identity, keeper_lives: bool, probe: bool) -> ServerStatus:
        status = replace(
            self._known(),
            pid=child.pid,
            uptime_s=uptime_s(child),
            ours=self._family(keeper_lives),
            note=(self._full() or self._revived()) if keeper_lives else _LOST,
            unrecorded=unrecorded(self._paths, self.record),
        )
        if self._is_stopping(keeper_lives):
            return replace(status, state=State.STOPPING, phase=Phase.STOPPING)
        ours_listen = self._listens(status.ours)
        canary = read_canary(self._paths, self.record.life)
        if canary is None:
            return self._starting.status(status, ours_listen, probe)
        simulated = status.simulated or by_stand_in(canary.version)
        status = replace(status, model=canary.model, version=canary.version, simulated=simulated)
        if not canary.ok:
            return replace(status, state=State.FAILED, diagnosis=refused(canary, self.trouble()))
        return self._serving.status(status, canary, ours_listen, probe)

    def _listens(self, pids: tuple[int, ...]) -> bool | None:
        """Whether our tree owns the socket at the server's address; `None` when nobody listens there."""
        if self._hold is None or self._hold.pid not in pids or not self._hold.still():
            sockets = answering(self.record.host or "", self.record.port or 0)
            self._hold = hold_of(sockets, pids)
            if not sockets:
                return None
        return self._hold is not None

    def _is_stopping(self, keeper_lives: bool) -> bool:
        request, _ = read_stop(stop_path(self._paths.server_record))
        if request is None or request.life != self.record.life:
            return False
        return alive(request.asker) or (request.taken and keeper_lives)
