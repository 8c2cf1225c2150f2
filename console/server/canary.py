"""The one request that shows that a started server really answers. `python -P -m console.server.canary STATE_DIR`"""

import os
import sys

if __name__ == "__main__" and os.fork():
    # Whoever started us goes on at once; the rest happens in a process that is nobody's child.
    os._exit(0)

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from console.endpoint import Endpoint, EndpointError
from console.paths import Paths
from console.presets import Preset
from console.server.baseline import keep_baseline
from console.server.fingerprint import fingerprint
from console.server.life import Server
from console.server.locks import held
from console.server.models import listed_models
from console.server.process import Identity, alive, read_stat, uptime_s
from console.server.ready import Canary, canary_lock, read_canary, write_canary
from console.server.room import is_full
from console.server.starts import Start, cache_kind, durations, keep_start, offsets
from console.server.state import ServerRecord, now_utc
from console.server.status import Phase
from console.server.worked import keep_worked

_DEADLINE_S = 300.0
"""For the request: kernels warm up for up to 20 s here, and a busy machine takes its time."""
_LOOK_EVERY_S = 0.1
_PROMPT = "1 2 3"
_TITLE = "VLLM::"


class Problem(NamedTuple):
    """What went wrong: a stable word and a sentence."""

    cause: str
    why: str


def main(state: str) -> int:
    """Send the canary of the server that is recorded there, unless it was sent."""
    paths = replace(Paths.from_env(), state=Path(state))
    with held(canary_lock(paths), patience_s=0) as lock:
        if lock is None:
            return 0
        server = Server(paths)
        record, endpoint = server.record(), server.endpoint()
        if record is None or endpoint is None or not alive(record.child) or read_canary(paths, record.life):
            return 0
        if is_full(paths.state):
            # The answer could not be kept, and whoever looks next would ask again.
            return 0
        preset = server.preset()
        canary = ask(endpoint, record, preset.served if preset else None)
        if canary.ok:
            keep_baseline(paths, endpoint)
            canary = replace(canary, engine=_engine(record))
        now = server.record()
        if now and now.life == record.life:
            write_canary(paths, canary)
            if canary.ok and preset:
                remember(paths, record, preset, server)
    return 0


def _engine(record: ServerRecord) -> tuple[tuple[Identity, str], ...]:
    """The engine's processes by the titles that vLLM gives them; none where a version gives none."""
    stats = ((who, read_stat(who.pid)) for who in record.kin.find())
    return tuple((who, stat.name) for who, stat in stats if stat and stat.name.startswith(_TITLE))


def remember(paths: Paths, record: ServerRecord, preset: Preset, server: Server) -> None:
    """Keep what this start took, and that its preset works; an arm of a run is neither history nor a way back."""
    if Path(record.log).is_relative_to(paths.runs) or record.child is None:
        return
    keep_worked(paths, preset)
    total_s = uptime_s(record.child)
    start = server.start_log()
    if total_s is None or start is None:
        return
    now = datetime.now(UTC)
    begun = offsets(start.entered, now - timedelta(seconds=total_s), now)
    phases = durations(begun, total_s)
    if start.facts.download_seconds:
        phases[Phase.LOAD] = max(0.0, phases.get(Phase.LOAD, 0.0) - start.facts.download_seconds)
        total_s = sum(phases.values())
    kept = Start(now_utc(), fingerprint(preset), start.facts.version, cache_kind(start.facts), total_s, phases)
    keep_start(paths, preset.name, kept)


def ask(endpoint: Endpoint, record: ServerRecord, served: str | None) -> Canary:
    """Wait until the server is healthy and lists the model, then have it write one token."""
    begun = time.monotonic()
    model = version = None
    try:
        _wait_healthy(endpoint, record)
        version = _version(endpoint)
        model = _listed(endpoint, served)
        begun = time.monotonic()
        problem = _one_token(endpoint, model) if model else Problem("bad-value", f"it does not list the model {served}")
    except EndpointError as error:
        problem = Problem("engine-stalled" if error.kind == "timeout" else "engine-crashed", error.why)
    cause, why = problem or (None, None)
    return Canary(record.life, problem is None, why, cause, model, version, time.monotonic() - begun)


def _wait_healthy(endpoint: Endpoint, record: ServerRecord) -> None:
    while True:
        try:
            if endpoint.get("/health").status == 200:
                return
        except EndpointError:
            pass
        if not alive(record.child):
            raise EndpointError("refused", endpoint.url, "the server ended before it was healthy")
        time.sleep(_LOOK_EVERY_S)


def _version(endpoint: Endpoint) -> str | None:
    try:
        answer = endpoint.get_json("/version")
    except EndpointError:
        return None
    value = answer.get("version") if isinstance(answer, dict) else None
    return value if isinstance(value, str) else None


def _listed(endpoint: Endpoint, served: str | None) -> str | None:
    """The model as listed: the one that was asked for, or the first when nothing is known of it."""
    names = listed_models(endpoint.get_json("/v1/models", deadline=10.0))
    if served is None:
        return names[0] if names else None
    return served if served in names else None


def _one_token(endpoint: Endpoint, model: str) -> Problem | None:
    """What went wrong with the one token."""
    body: dict[str, Any] = {"model": model, "max_tokens": 1, "temperature": 0}
    status, answer = endpoint.post_json("/v1/completions", {**body, "prompt": _PROMPT}, deadline=_DEADLINE_S)
    if status in (404, 405):
        chat = {**body, "messages": [{"role": "user", "content": _PROMPT}]}
        status, answer = endpoint.post_json("/v1/chat/completions", chat, deadline=_DEADLINE_S)
    if status == 200 and isinstance(answer, dict) and answer.get("choices"):
        return None
    # An engine that is dead answers 500 or 503; anything else is a server that does not want this request.
    cause = "engine-crashed" if status >= 500 else "unknown"
    return Problem(cause, f"the first request was answered with HTTP {status}: {_message(answer)}")


def _message(answer: Any) -> str:
    error = answer.get("error", answer) if isinstance(answer, dict) else answer
    text = error.get("message") if isinstance(error, dict) else error
    return str(text)[:300] if text else "no explanation"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
