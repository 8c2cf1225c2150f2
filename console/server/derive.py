"""The state of one life, derived from identities, exit record and probes; nothing of it is stored."""

from __future__ import annotations

import math
import os
import time
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from console.endpoint import Endpoint
from console.paths import Paths
from console.presets import Preset
from console.presets.model import KEY_VARIABLE
from console.server.facts import StartupFacts
from console.server.failure import read_failure
from console.server.found import leftovers
from console.server.log import redact
from console.server.phase import LogWatch
from console.server.process import Identity, alive, boot_id, environ, uptime_s
from console.server.ready import Canary, health, read_canary, send_canary
from console.server.sockets import Hold, answering, hold_of, owner_of, url_of
from console.server.state import ExitRecord, ServerRecord, read_exit, read_stop, stop_path
from console.server.status import Diagnosis, Phase, ServerStatus, State

READY_TIMEOUT = "ready-timeout"
"""Who asked, when a server was stopped because it did not get ready."""
FIRST_REQUEST = "first request"
"""What a starting server is doing while its canary is under way."""
_SECRETS = frozenset({KEY_VARIABLE, "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"})
_FAMILY_S = 5.0
_LOST = "its keeper was lost (killed?): the server goes on, `qwen-console down` still stops it whole"


class Observer:
    """Watches one life of the server."""

    def __init__(self, paths: Paths, record: ServerRecord) -> None:
        self.record = record
        self._paths = paths
        self._seen: tuple[float, tuple[Identity, ...]] = (-math.inf, ())
        self._hold: Hold | None = None
        self._watch = LogWatch(Path(record.log))

    @cached_property
    def _environ(self) -> dict[str, str]:
        child = self.record.child
        return (environ(child.pid) if child and alive(child) else None) or dict(os.environ)

    @cached_property
    def preset(self) -> Preset | None:
        """As resolved at the start, secrets from the server's own environment."""
        raw = self.record.preset
        try:
            return Preset.from_json(raw, self._environ) if raw else None
        except (KeyError, TypeError, ValueError, AttributeError):
            return None

    @cached_property
    def endpoint(self) -> Endpoint:
        """Where the server answers, with the key it was started with."""
        flag = self.preset.args.get("api-key") if self.preset else None
        key = (flag[0] if isinstance(flag, list) and flag else flag) or self._environ.get(KEY_VARIABLE)
        return Endpoint(url_of(self.record.host or "", self.record.port or 0), str(key) if key else None)

    @property
    def secrets(self) -> frozenset[str]:
        """Values that must not be shown."""
        names = _SECRETS | (self.preset.secrets if self.preset else frozenset())
        values = {self._environ.get(name, "") for name in names} | {self.endpoint.key or ""}
        return frozenset(values - {""})

    def status(self, *, probe: bool = True) -> ServerStatus:
        """One look."""
        record = self.record
        keeper_lives = alive(record.keeper)
        if record.child is not None and alive(record.child):
            return self._living(record.child, keeper_lives, probe)
        if keeper_lives:
            # Between the keeper's start and the child's, or while the keeper sweeps what a dead child left.
            begun = record.child is not None
            state, phase = (State.STOPPING, Phase.STOPPING) if begun else (State.STARTING, Phase.START)
            return replace(self._known(), state=state, phase=phase, ours=self._pids(search=False))
        return self._dead()

    def close(self) -> None:
        """Drop the kept connections."""
        if "endpoint" in self.__dict__:
            self.endpoint.close()

    @property
    def facts(self) -> StartupFacts:
        """What the log told so far."""
        return self._watch.start().facts

    def trouble(self) -> Diagnosis | None:
        """What the log of the living server says went wrong."""
        return self._redacted(self._watch.cause_of_trouble())

    def _known(self) -> ServerStatus:
        record = self.record
        raw = record.preset or {}
        return ServerStatus(
            preset=raw.get("name"),
            url=url_of(record.host or "", record.port or 0),
            log=record.log,
            simulated=bool(raw.get("simulated")),
        )

    def _pids(self, *, search: bool) -> tuple[int, ...]:
        return tuple(who.pid for who in self.record.kin.find(search=search))

    def _family(self, keeper_lives: bool) -> tuple[int, ...]:
        """The living processes; all of /proc is looked through every few seconds only, and while they change."""
        at, known = self._seen
        now = time.monotonic()
        if now - at > _FAMILY_S or not all(alive(who) for who in known):
            known = tuple(self.record.kin.find(search=not keeper_lives))
            settled = read_canary(self._paths, self.record.life) is not None
            self._seen = (now if settled else -math.inf, known)
        return tuple(who.pid for who in known)

    def _living(self, child: Identity, keeper_lives: bool, probe: bool) -> ServerStatus:
        status = replace(
            self._known(),
            pid=child.pid,
            uptime_s=uptime_s(child),
            ours=self._family(keeper_lives),
            note=None if keeper_lives else _LOST,
        )
        if self._is_stopping(keeper_lives):
            return replace(status, state=State.STOPPING, phase=Phase.STOPPING)
        ours_listen = self._listens(status.ours)
        canary = read_canary(self._paths, self.record.life)
        if canary is None:
            return self._starting(status, ours_listen, probe)
        status = replace(status, model=canary.model, version=canary.version)
        if not canary.ok:
            return replace(status, state=State.FAILED, diagnosis=self._refused(canary, self.trouble()))
        return self._serving(status, ours_listen, probe)

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

    def _starting(self, status: ServerStatus, ours_listen: bool | None, probe: bool) -> ServerStatus:
        start = self._watch.start()
        status = replace(status, state=State.STARTING, version=start.facts.version, model=start.facts.model)
        if ours_listen:
            if probe:
                send_canary(self._paths)
            return replace(status, phase=Phase.WARM_UP, detail=FIRST_REQUEST)
        if ours_listen is False:
            owner = owner_of(self.record.port or 0)
            who = f"{owner[1]} (pid {owner[0]})" if owner else "somebody else"
            status = replace(status, note=status.note or f"port {self.record.port} was taken by {who} meanwhile")
        # The log says "ready" when the port opens; we say it when the first request was answered.
        phase = Phase.WARM_UP if start.phase is Phase.READY else start.phase
        return replace(status, phase=phase, detail=start.detail)

    def _serving(self, status: ServerStatus, ours_listen: bool | None, probe: bool) -> ServerStatus:
        status = replace(status, state=State.READY, phase=Phase.READY)
        if not ours_listen:
            why = "the process lives, but nothing of it listens on its port any more"
            return replace(status, state=State.STALLED, diagnosis=self._stalled(why), note=status.note or why)
        answer = health(self.endpoint) if probe else 200
        if answer == 200:
            return status
        if answer == 503:
            why = "/health answers 503: the engine behind it is dead"
            return replace(status, state=State.STALLED, diagnosis=self._stalled(why), note=status.note or why)
        said = "did not answer at once" if answer is None else f"answered {answer}"
        return replace(status, note=status.note or f"/health {said}")

    def _stalled(self, why: str) -> Diagnosis:
        return self.trouble() or Diagnosis(
            cause="engine-stalled",
            what="the server answers no requests any more",
            why=why,
            fix="`qwen-console restart`; the log tells what came before",
            phase=Phase.READY,
        )

    def _refused(self, canary: Canary, found: Diagnosis | None) -> Diagnosis:
        """Why the first request failed: the log knows best, if it knows."""
        if found and found.cause != "unknown":
            return found
        return Diagnosis(
            cause=canary.cause or "unknown",
            what="the server started, but its first request failed",
            why=canary.why or "",
            fix="`qwen-console logs -n 100` shows what the engine said",
            evidence=found.evidence if found else (),
            phase=Phase.WARM_UP,
        )

    def _dead(self) -> ServerStatus:
        record, status = self.record, self._known()
        end, note = read_exit(self._paths.exit_record)
        if end is not None and end.life != record.life:
            end = None
        left = tuple(who.pid for who in leftovers(record, self._paths.exit_record))
        if left:
            note = f"{len(left)} processes of this server are left: `qwen-console down` ends them"
            return replace(status, state=State.FAILED, ours=left, note=note, diagnosis=self._cause(end))
        failure = read_failure(self._paths)
        if failure and failure.life == record.life and (end is None or end.asked):
            return replace(status, state=State.FAILED, diagnosis=failure.diagnosis, note=note)
        if end is None and record.keeper.boot != boot_id():
            return replace(status, preset=None, url=None, note="the machine was restarted while the server ran")
        if self._ended_well(end):
            return replace(status, preset=None, url=None, note=note)
        if end is None:
            note = "its keeper was lost: how the server ended is not on record"
        return replace(status, state=State.FAILED, diagnosis=self._cause(end), note=note)

    def _ended_well(self, end: ExitRecord | None) -> bool:
        """Asked to, or of its own accord after it had been ready; a start that came to nothing is a failure."""
        if self.record.child is None:
            return True
        if end is None:
            return False
        canary = read_canary(self._paths, self.record.life)
        return end.asked or (end.code == 0 and canary is not None and canary.ok)

    def _cause(self, end: ExitRecord | None) -> Diagnosis:
        code = (end.code if end.signal is None else -end.signal) if end else None
        found = self._redacted(self._watch.cause_of_death(code))
        canary = read_canary(self._paths, self.record.life)
        if canary and not canary.ok:
            return self._refused(canary, found)
        return found or _unexplained(end, self._watch.start().phase)

    def _redacted(self, diagnosis: Diagnosis | None) -> Diagnosis | None:
        if diagnosis is None:
            return None
        secrets = self.secrets
        return replace(
            diagnosis,
            what=redact(diagnosis.what, secrets),
            why=redact(diagnosis.why, secrets),
            evidence=tuple(redact(line, secrets) for line in diagnosis.evidence),
        )


def _unexplained(end: ExitRecord | None, phase: Phase | None) -> Diagnosis:
    if end is None:
        why = "how it ended is not on record, and its log does not say"
    elif end.signal is not None:
        why = f"signal {end.signal} ended it, sent by none of ours; its log does not say why"
    else:
        why = f"it ended with code {end.code}; its log does not say why"
    fix = "`qwen-console logs -n 100` shows its last lines; `journalctl -k` tells when the kernel ran out of memory"
    return Diagnosis(cause="unknown", what="the server ended by itself", why=why, fix=fix, phase=phase)
