"""A server that was ready: whether it still is, or only looks like it."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from console.endpoint import Endpoint
from console.errors import ConsoleError
from console.paths import Paths
from console.presets import Preset
from console.server.phase import LogWatch
from console.server.process import alive
from console.server.proof import Proof, read_proof
from console.server.pulse import beat, stall_limit_s
from console.server.ready import HEALTH_DEADLINE_S, Canary, health
from console.server.state import ServerRecord
from console.server.status import Diagnosis, Phase, ServerStatus, State

if TYPE_CHECKING:
    from console.metrics.vllm import Counters

_PULSE_EVERY_S = 5.0
"""A stall lasts minutes; one page a second is read by whoever shows its figures."""


class Serving:
    """Watches a server that answered its first request."""

    def __init__(
        self, paths: Paths, record: ServerRecord, watch: LogWatch, endpoint: Endpoint, preset: Preset | None
    ) -> None:
        self._paths = paths
        self._record = record
        self._watch = watch
        self._endpoint = endpoint
        self._preset = preset
        self._pulse_at = -math.inf
        self._still: Diagnosis | None = None
        self._prefill_s: float | None = None

    def status(self, known: ServerStatus, canary: Canary, ours_listen: bool | None, probe: bool) -> ServerStatus:
        """Ready, or stalled and why.

        Args:
            known: what is known of this life beside its state.
            canary: the first request and what was seen when it was answered.
            ours_listen: whether our tree owns the socket.
            probe: whether the server may be asked.
        """
        proof = self._proof
        status = replace(known, state=State.READY, phase=Phase.READY, proved=proof.ok if proof else None)
        if gone := _engine_gone(canary):
            return self._stalled(status, f"{gone}, and its front end still answers", "engine-crashed")
        if not ours_listen:
            return self._stalled(status, "the process lives, but nothing of it listens on its port any more")
        if not probe:
            return status
        answer = health(self._endpoint)
        if answer == 503:
            return self._stalled(status, "/health answers 503: the engine behind it is dead", "engine-crashed")
        if self._watch.is_blocked() and (trouble := self._watch.cause_of_trouble()):
            return replace(status, state=State.STALLED, diagnosis=trouble)
        self._feel_pulse()
        if self._still:
            return replace(status, state=State.STALLED, diagnosis=self._still)
        if answer != 200:
            said = "did not answer at once" if answer is None else f"answered {answer}"
            status = replace(status, note=status.note or f"/health {said}")
        return replace(status, prefill_s=self._prefill_s)

    @property
    def _proof(self) -> Proof | None:
        return read_proof(self._paths, self._preset) if self._preset else None

    def _stalled(self, status: ServerStatus, why: str, cause: str = "engine-stalled") -> ServerStatus:
        found = self._watch.cause_of_trouble()
        diagnosis = found or Diagnosis(
            cause=cause,
            what="the server answers no requests any more",
            why=why,
            fix="`qwen-console restart`; the log tells what came before",
            phase=Phase.READY,
        )
        # Where the log explains it, what was seen from outside still stands beside it.
        note = status.note or (why if found else None)
        return replace(status, state=State.STALLED, diagnosis=diagnosis, note=note)

    def _feel_pulse(self) -> None:
        """See every few seconds whether a busy engine moves; one page that does not come changes nothing."""
        now = time.monotonic()
        if now - self._pulse_at < _PULSE_EVERY_S:
            return
        self._pulse_at = now
        counters = self._page()
        if counters is None:
            return
        seen = beat(self._paths.state / "pulse.json", self._record.life, counters)
        self._prefill_s = round(seen.prefill_s, 1) if seen.prefill_s >= _PULSE_EVERY_S else None
        limit_s = self._limit_s(counters)
        self._still = _standing_still(seen.still_s, limit_s, counters) if seen.still_s > limit_s else None

    def _page(self) -> Counters | None:
        # Imported here: the first frame of the console must not wait for them.
        from console.metrics.exposition import parse
        from console.metrics.vllm import read

        try:
            reply = self._endpoint.get("/metrics", deadline=HEALTH_DEADLINE_S)
            return read(parse(reply.text), time.monotonic()) if reply.status == 200 else None
        except ConsoleError:
            return None

    def _limit_s(self, counters: Counters) -> float:
        proof = self._proof
        proved_s = proof.seconds if proof and proof.ok else None
        return stall_limit_s(self._max_model_len, proved_s, counters)

    @cached_property
    def _max_model_len(self) -> int | None:
        configured = self._preset.max_model_len if self._preset else None
        return configured or self._watch.start().facts.max_model_len


def _engine_gone(canary: Canary) -> str | None:
    """Which process of the engine, of those that were there when it was ready, has gone."""
    gone = [name for who, name in canary.engine if not alive(who)]
    return f"{gone[0]} has ended" if gone else None


def _standing_still(still_s: float, limit_s: float, counters: Counters) -> Diagnosis:
    requests = (counters.running or 0) + (counters.waiting or 0)
    return Diagnosis(
        cause="engine-stalled",
        what=f"the engine stands still: requests in flight: {requests}, and nothing has moved for {still_s:.0f} s",
        why=f"no token counter and no KV use has moved; the longest prefill expected of this preset is {limit_s:.0f} s",
        fix="`qwen-console restart`; if it comes back: NCCL_P2P_DISABLE=1, --disable-custom-all-reduce, "
        "--no-async-scheduling",
        phase=Phase.READY,
    )
