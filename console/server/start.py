"""What has to be right before a keeper is started: the command, the port, and that nothing of ours runs."""

from __future__ import annotations

import errno
import sys
from pathlib import Path

from console.endpoint import free_port
from console.errors import BusyError, ConsoleError, UsageError
from console.paths import Paths
from console.presets import Preset, argv, child_env
from console.presets.buckets import measured
from console.presets.command import READY_TIMEOUT_VARIABLE
from console.presets.installed import command_file
from console.server.cards import OpenCards, cards_file, look, too_little, write_before
from console.server.failure import failure_path
from console.server.found import known_life, leftovers
from console.server.keeper_spawn import KeeperSpec, spawn_holding
from console.server.lives import keep_end
from console.server.locks import held
from console.server.log import new_log
from console.server.process import alive
from console.server.ready import canary_lock
from console.server.revival import read_revival, revival_path
from console.server.sockets import bind_problem, owner_of, url_of
from console.server.state import ServerRecord, read_stop, stop_path
from console.server.status import Diagnosis, Phase
from console.server.strangers import sign, stranger
from console.server.stray import NOTE, find_stray
from console.server.weights import weights_of

_RECORDER = "console.server.recorder"
_CONTAINERS = frozenset({"docker", "podman", "nerdctl", "docker-compose"})


ON_CRASH = "on-crash"
_CARDS_S = 3.0
_DOWNLOAD_S = 86_400.0


class PortInUse(ConsoleError):
    """Somebody else listens where the server should."""

    def __init__(self, diagnosis: Diagnosis) -> None:
        super().__init__(diagnosis.what, diagnosis.why, diagnosis.fix)
        self.diagnosis = diagnosis
        self.cause = diagnosis.cause


def command_path(preset: Preset) -> str:
    """The absolute path of the command's first word: as given, else from PATH, else beside our interpreter.

    Raises:
        UsageError: a container's command, or a variable of the preset is not set.
        ConsoleError: there is no such command.
    """
    preset.see_whole()
    for word in preset.command:
        if Path(word).name in _CONTAINERS:
            raise UsageError(
                f"preset {preset.name}: {Path(word).name} cannot be the command",
                "the processes in a container are not ours to see, to prove ready, or to stop whole",
                "install vLLM beside the console and set `command: [vllm, serve]`",
            )
    name = preset.command[0]
    found = command_file(preset)
    if found is None:
        where = "at that path" if "/" in name else f"on PATH, or in {Path(sys.executable).parent}"
        raise ConsoleError(
            f"preset {preset.name}: there is no command {name}",
            f"no executable file {name} {where}",
            "install vLLM in this environment (`pip install vllm`), or set `command:` in the preset to its full path",
        )
    return str(found)


def check_port(host: str, port: int) -> None:
    """See that a server can listen there.

    Raises:
        PortInUse: it cannot, and who is in the way as far as /proc tells.
        ConsoleError: the address is none of this machine.
    """
    problem = bind_problem(host, port)
    if problem is None:
        return
    if problem.errno != errno.EADDRINUSE:
        raise ConsoleError(
            f"a server cannot listen on {host}:{port}",
            problem.strerror or str(problem),
            "set `server: {host: …, port: …}` to an address of this machine and a port above 1023",
        )
    raise PortInUse(port_diagnosis(port, f"bind {host}:{port}: {problem.strerror}"))


def port_diagnosis(port: int, evidence: str) -> Diagnosis:
    """`port-in-use`, with the owner as far as /proc tells."""
    owner = owner_of(port)
    who = f"{owner[1]} (pid {owner[0]})" if owner else "another user's process"
    return Diagnosis(
        cause="port-in-use",
        what=f"port {port} is in use by somebody else",
        why=f"{who} listens on port {port}; it is not a server of this console",
        fix="end that process, or choose another port: `server: {port: 0}` in the preset takes a free one, and so does "
        "`qwen-console up PRESET --set server.port=0`",
        evidence=(evidence,),
        phase=Phase.START,
    )


def launch(paths: Paths, preset: Preset, log: Path | None, open_cards: OpenCards, *, recorded: bool = True) -> None:
    """Check all that, note what is free on the cards, then start the keeper under the lock.

    Args:
        paths: whose server.
        preset: what to run.
        log: the log file, when it is not to stand among the others.
        open_cards: where to look at the cards.
        recorded: whether its figures go into the history; those of an A/B run have a journal of their own.

    Raises:
        BusyError: a server of ours lives, or is being started.
        ConsoleError: it cannot be started.
    """
    command = command_path(preset)
    with held(paths.server_lock) as lock:
        if lock is None:
            raise busy(paths)
        sign(lock)
        _refuse_leftovers(paths)
        if preset.server.port == 0:
            preset = preset.with_port(free_port(preset.server.host))
        check_port(preset.server.host, preset.server.port)
        keep_end(paths)
        for stale in (paths.canary, paths.baseline, failure_path(paths), canary_lock(paths), revival_path(paths)):
            stale.unlink(missing_ok=True)
        spec = KeeperSpec(
            argv=(command, *argv(measured(preset))[1:]),
            log=log or new_log(paths, preset.name),
            record=paths.server_record,
            exit=paths.exit_record,
            lock=paths.server_lock,
            grace_s=preset.server.stop_grace,
            recorder=(sys.executable, "-P", "-m", _RECORDER, str(paths.state)) if recorded else None,
            preset=preset.to_json(),
            host=preset.server.host,
            port=preset.server.port,
            on_crash=revive_command(paths) if preset.server.restart == ON_CRASH else None,
        )
        _note_cards(paths, preset, spec.life, open_cards)
        spawn_holding(spec, _environment(preset), lock)


def _note_cards(paths: Paths, preset: Preset, life: str, open_cards: OpenCards) -> None:
    """What is free before the start: what a stop has to give back."""
    report = None if preset.simulated else look(open_cards, _CARDS_S)
    path = cards_file(paths.state)
    if report is None or not report.cards:
        path.unlink(missing_ok=True)
    else:
        write_before(path, life, report, too_little(preset, report))


def _environment(preset: Preset) -> dict[str, str]:
    """The server's environment. The time of a download does not count for `ready-timeout`, but vLLM would count it."""
    env = child_env(preset)
    files = weights_of(preset)
    if READY_TIMEOUT_VARIABLE not in preset.env and not files.local and not files.whole:
        env[READY_TIMEOUT_VARIABLE] = f"{preset.server.ready_timeout + _DOWNLOAD_S:.0f}"
    return env


def revive_command(paths: Paths) -> tuple[str, ...]:
    """What a keeper becomes when its server crashed and is to be started again."""
    return (sys.executable, "-P", "-m", "console.server.revive", str(paths.state))


def busy(paths: Paths) -> BusyError:
    """What a start says when the lock is held."""
    record, _ = known_life(paths.server_record)
    revival = read_revival(paths)
    if record and revival and revival.life == record.life and revival.pending:
        return BusyError(
            f"the server {revival.preset} crashed and is about to be started again",
            revival.why,
            "`qwen-console status` shows when; `qwen-console down` calls it off",
        )
    if record is None or record.preset is None:
        return _being_started(paths, record)
    name, url = record.preset["name"], url_of(record.host or "", record.port or 0)
    request, _ = read_stop(stop_path(paths.server_record))
    if request and request.life == record.life and (request.taken or alive(request.asker)):
        return BusyError(f"the server {name} is being stopped", f"asked by: {request.by}", "try again when it is gone")
    if not alive(record.keeper) and not alive(record.child):
        # Of the life before; whoever holds the lock has not got so far as to put its own on record.
        return _being_started(paths, record)
    return BusyError(
        f"the server {name} is up on {url}",
        "one server at a time: another would take its memory",
        "switch with `qwen-console restart PRESET`, or stop it: `qwen-console down`",
    )


def _being_started(paths: Paths, known: ServerRecord | None) -> BusyError:
    """The lock is held, and by nobody who is on record."""
    return (
        _stray_in_the_way(paths, known)
        or stranger(paths)
        or BusyError("a server is being started by another console", "", "`qwen-console status` shows it")
    )


def _stray_in_the_way(paths: Paths, known: ServerRecord | None) -> BusyError | None:
    """What is said of a living server that the state files do not tell of."""
    stray = find_stray(paths.server_record, known)
    if stray is None or stray.child is None:
        return None
    where = f" on {url_of(stray.host or '', stray.port)}" if stray.port else ""
    return BusyError(f"a server of this console still runs{where} (pid {stray.child.pid})", NOTE, "`qwen-console down`")


def _refuse_leftovers(paths: Paths) -> None:
    """With the lock free, something of the last life may live on all the same: its keeper was killed."""
    record, _ = known_life(paths.server_record)
    if (record is None or not (alive(record.keeper) or alive(record.child))) and (
        stray := _stray_in_the_way(paths, record)
    ):
        raise stray
    left = leftovers(record, paths.exit_record) if record else ()
    if left:
        raise BusyError(
            "a server of this console still runs, its keeper was lost",
            f"{len(left)} processes are left, the first is pid {left[0].pid}",
            "stop it whole: `qwen-console down`",
        )
