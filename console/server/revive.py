"""What a keeper becomes when its server ended unasked: it starts it again, with patience and a limit, or lets it be.

`python -P -m console.server.revive STATE_DIR LOCK_FD ENVIRONMENT_FD`

It has the keeper's pid and holds the server's lock, so no other start comes between; a signal to end calls it off. When
the time has come it becomes a keeper again, with a life of its own: a new log, a new proof of being ready.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from console.paths import Paths
from console.presets import Preset
from console.server import shapes
from console.server.cards import (
    Wait,
    cards_file,
    look,
    own_cards,
    read_before,
    too_little,
    wait_released,
    wanted_share,
    write_before,
)
from console.server.ended import Ended
from console.server.fingerprint import file_name
from console.server.keeper_spawn import child_env, keeper_command
from console.server.lives import keep_end
from console.server.log import new_log, secret_values
from console.server.phase import LogWatch
from console.server.process import MARKER, Identity, identify
from console.server.ready import read_canary
from console.server.revival import Decision, Revival, decide, read_revival, recent, write_revival
from console.server.sockets import bind_problem
from console.server.state import ServerRecord, now_utc, read_exit, read_json, read_server, spec_path, write_json
from console.server.status import Diagnosis

_PORT_S = 30.0


def main(words: list[str]) -> int:
    """Decide, wait, and become a keeper again; returns only when the server is not started again."""
    paths = replace(Paths.from_env(), state=Path(words[0]))
    lock, environment = int(words[1]), int(words[2])
    record, _ = read_server(paths.server_record)
    me = identify(os.getpid())
    if record is None or me is None or record.keeper != me:
        return 1
    env = json.loads(os.pread(environment, os.fstat(environment).st_size, 0))
    crash = _crash(paths, record, secret_values(env, (record.preset or {}).get("secrets") or ()))
    if crash is None:
        return 0
    times = _times(paths)
    decision = _decision(paths, record, times)
    if decision.delay_s is None:
        write_revival(paths, _revival(record, me, decision, crash, times, None))
        return 0
    at = time.monotonic() + decision.delay_s
    write_revival(paths, _revival(record, me, decision, crash, times, at))
    time.sleep(decision.delay_s)
    preset = _preset(record)
    _wait_for_the_machine(paths, record, preset)
    times = (*times, now_utc())
    write_revival(paths, _revival(record, me, decision, crash, times, at))
    _become_keeper(paths, record, preset, decision.attempt, lock, env)
    return 0


def _crash(paths: Paths, record: ServerRecord, secrets: frozenset[str]) -> Diagnosis | None:
    """Why it ended; `None` when it ended in order, told so by somebody who did not ask its keeper."""
    end, _ = read_exit(paths.exit_record)
    if end is None or end.life != record.life or end.asked:
        return None
    watch = LogWatch(Path(record.log), lambda: secrets)
    if end.code == 0 and watch.cause_of_death(0) is None:
        return None
    return Ended(paths, record, watch).cause(end)


def _decision(paths: Paths, record: ServerRecord, times: tuple[str, ...]) -> Decision:
    canary = read_canary(paths, record.life)
    now = datetime.now(UTC)
    served_s = (now - datetime.fromisoformat(record.started)).total_seconds()
    was_ready = canary is not None and canary.ok
    return decide(record.restarts, was_ready=was_ready, served_s=served_s, times=times, now=now)


def _times(paths: Paths) -> tuple[str, ...]:
    past = read_revival(paths)
    return recent(past.times, datetime.now(UTC)) if past else ()


def _revival(
    record: ServerRecord, me: Identity, decision: Decision, crash: Diagnosis, times: tuple[str, ...], at: float | None
) -> Revival:
    name = str((record.preset or {}).get("name"))
    why = decision.why or f"{crash.cause}, start {decision.attempt}"
    return Revival(record.life, me, name, decision.attempt, at, why, crash, times)


def _preset(record: ServerRecord) -> Preset | None:
    try:
        return Preset.from_json(record.preset) if record.preset else None
    except shapes.WRONG:
        return None


def _wait_for_the_machine(paths: Paths, record: ServerRecord, preset: Preset | None) -> None:
    """The port and the cards' memory, for a while; what does not come free makes the start say so."""
    end = time.monotonic() + _PORT_S
    while bind_problem(record.host or "", record.port or 0) is not None and time.monotonic() < end:
        time.sleep(0.2)
    if preset and not preset.simulated:
        before, _ = read_before(cards_file(paths.state), record.life)
        wait_released(own_cards, Wait(frozenset(), before, wanted_share(preset)))


def _become_keeper(
    paths: Paths, record: ServerRecord, preset: Preset | None, attempt: int, lock: int, env: dict[str, str]
) -> None:
    """The same command again, as a new life."""
    path = spec_path(paths.server_record)
    spec, _ = read_json(path)
    if spec is None:
        return
    keep_end(paths)
    life = uuid.uuid4().hex
    log = new_log(paths, file_name(str((record.preset or {}).get("name"))))
    told = {**spec, "life": life, "log": str(log), "started": now_utc(), "restarts": attempt, "lock_fd": lock}
    write_json(path, told)
    if preset and not preset.simulated and (report := look(own_cards)) is not None and report.cards:
        write_before(cards_file(paths.state), life, report, too_little(preset, report))
    _follow(paths, life)
    handle = os.memfd_create("environment")
    os.write(handle, json.dumps(child_env(env, life)).encode())
    os.lseek(handle, 0, os.SEEK_SET)
    os.dup2(handle, 0)
    errors = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(errors, 2)
    os.set_inheritable(lock, True)
    command = keeper_command(path)
    os.execve(command[0], command, {**os.environ, MARKER: life})


def _follow(paths: Paths, life: str) -> None:
    """Somebody has to see it ready, or put it down when it does not become so: no console need be open."""
    env = {name: value for name, value in os.environ.items() if name != MARKER}
    subprocess.Popen(
        [sys.executable, "-P", "-m", "console.server.follow", str(paths.state), life],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=env,
        start_new_session=True,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
