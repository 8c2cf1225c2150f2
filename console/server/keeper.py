"""The small process that owns one child: a server, or a lab run. `python -P -m console.server.keeper SPEC.json`

It has a session of its own, holds the lock for the child's life, gives the child its log, waits without polling,
records how the child ended and leaves nothing of it behind. SIGTERM to the keeper is the request to stop: a signal
through a pidfd needs no socket, no disk and no protocol, and an administrator's `kill` does the same.

Standard library only, besides the record and process modules that import nothing else; everything is imported at the
start, so that an upgrade of the console under a running server changes nothing.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from console.server.ending import LOOK_EVERY_S, ORPHAN_GRACE_S, Ending
from console.server.process import Identity, Kin, identify, read_stat
from console.server.recording import RESET, Recording
from console.server.rotation import rotate
from console.server.state import (
    ExitRecord,
    ServerRecord,
    StopRequest,
    now_utc,
    read_stop,
    spec_path,
    stop_path,
    write,
)

_ROTATE_EVERY_S = 20.0
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
_WATCHED = frozenset({signal.SIGCHLD, signal.SIGTERM, signal.SIGINT})


class Keeper:
    """One child from its start to the end of the last process it left."""

    def __init__(self, spec: dict[str, Any], env: dict[str, str]) -> None:
        self._spec = spec
        self._env = env
        self._record = Path(spec["record"])
        self._me = _self()
        self._child: Identity | None = None
        self._status: int | None = None
        self._asked = False
        self._asked_by: str | None = None
        self._ending: Ending | None = None
        self._recording = Recording(spec, env)

    def start(self) -> int:
        """Start the child; its pid.

        Raises:
            OSError: it cannot be started; nothing of it is on record then.
        """
        self._settle()
        # Recorded before there is a child: whoever kills us in between leaves something that can be found.
        self._write_record()
        try:
            pid = self._spawn()
        except OSError:
            for trace in (self._record, spec_path(self._record)):
                trace.unlink(missing_ok=True)
            raise
        self._child = identify(pid) or Identity(pid, 0, self._me.boot)
        self._write_record()
        self._recording.start()
        return pid

    def keep(self) -> None:
        """Stay until nothing of the child is left."""
        while not self._over():
            self._wait()
        if self._ending and self._ending.escalated:
            self._write_exit()

    def _settle(self) -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
        if self._spec["subreaper"]:
            ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0)

    def _spawn(self) -> int:
        """The child in its own group: stdin empty, stdout and stderr straight into the log."""
        argv, log = self._spec["argv"], self._spec["log"]
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        return os.posix_spawn(
            argv[0],
            argv,
            self._env,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, log, flags, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setpgroup=0,
            setsigmask=(),
            setsigdef=RESET,
        )

    def _write_record(self) -> None:
        spec = self._spec
        record = ServerRecord(
            life=spec["life"],
            keeper=self._me,
            child=self._child,
            argv=tuple(spec["argv"]),
            log=spec["log"],
            started=spec["started"],
            grace_s=spec["grace_s"],
            whole=spec["subreaper"],
            preset=spec["preset"],
            host=spec["host"],
            port=spec["port"],
            restarts=spec["restarts"],
        )
        # A full disk must not cost the child its keeper: the console finds the life by the spec and the marker too.
        with suppress(OSError):
            write(self._record, record)

    def _over(self) -> bool:
        self._reap()
        if self._status is not None and self._ending is None:
            self._begin(ORPHAN_GRACE_S)
        return self._ending is not None and self._ending.step(time.monotonic()) and self._status is not None

    def _wait(self) -> None:
        """Sleep until a child ends or somebody asks; during an ending, until the next look."""
        told = signal.sigtimedwait(_WATCHED, LOOK_EVERY_S if self._ending else _ROTATE_EVERY_S)
        if told is not None and told.si_signo != signal.SIGCHLD:
            self._ask(told.si_pid)
        elif self._ending is None:
            rotate(self._spec["log"], self._spec["log_limit"])

    def _ask(self, asker: int) -> None:
        if self._asked or self._status is not None:
            return
        self._asked = True
        request, _ = read_stop(stop_path(self._record))
        if request is None or request.life != self._spec["life"]:
            stat = read_stat(asker)
            by = f"signal from {stat.name} (pid {asker})" if stat else f"signal from pid {asker}"
            request = StopRequest(self._spec["life"], by, None, now_utc())
        self._asked_by = request.by
        taken = StopRequest(request.life, request.by, request.asker, request.at, taken=True)
        with suppress(OSError):
            write(stop_path(self._record), taken)
        self._begin(self._spec["grace_s"])

    def _begin(self, grace_s: float) -> None:
        kin = Kin(self._spec["life"], self._me, self._child, whole=self._spec["subreaper"])
        self._recording.end()
        leader = self._child if self._status is None else None
        self._ending = Ending(kin.find, leader, grace_s, time.monotonic())

    def _reap(self) -> None:
        """Collect the dead: the child, and orphans that came to the subreaper."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._recording.reaped(pid, status, again=self._ending is None and self._status is None)
            if self._child and pid == self._child.pid:
                self._status = os.waitstatus_to_exitcode(status)
                self._write_exit()

    def _write_exit(self) -> None:
        status = self._status or 0
        record = ExitRecord(
            life=self._spec["life"],
            code=status if status >= 0 else None,
            signal=-status if status < 0 else None,
            at=now_utc(),
            asked=self._asked,
            asked_by=self._asked_by,
            escalated=self._ending.escalated if self._ending else False,
        )
        with suppress(OSError):
            write(Path(self._spec["exit"]), record)

    @property
    def died(self) -> bool:
        """Whether the child died instead of ending: a failure nobody asked for, or killed before it could end."""
        return bool(self._status) and (not self._asked or (self._status or 0) < 0)

    @property
    def unasked(self) -> bool:
        """Whether the child ended though nobody had asked: a server whose engine crashed ends with code 0."""
        return not self._asked


def _self() -> Identity:
    me = identify(os.getpid())
    if me is None:
        raise RuntimeError("/proc is not mounted")
    return me


def _report(news: dict[str, Any]) -> None:
    """Tell whoever started us, who may be gone; then let go of the pipe."""
    with suppress(OSError):
        os.write(1, json.dumps(news).encode() + b"\n")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)


def main() -> int:
    """Read the spec and the child's environment (stdin), leave the starter's session, keep."""
    spec = json.loads(Path(sys.argv[1]).read_text())
    env = json.loads(sys.stdin.buffer.read())
    # The starter waits for this first process only: the keeper is nobody's child and leaves no zombie in a console.
    if os.fork():
        os._exit(0)
    os.setsid()
    lock: int | None = spec["lock_fd"]
    if lock is not None:
        os.set_inheritable(lock, False)
    keeper = Keeper(spec, env)
    try:
        child = keeper.start()
    except OSError as error:
        _release(lock)
        _report({"error": error.strerror or str(error)})
        return 1
    _report({"keeper": os.getpid(), "child": child})
    keeper.keep()
    if keeper.unasked and spec["on_crash"] and lock is not None:
        _hand_over(spec["on_crash"], lock, env)
    _release(lock)
    if keeper.died and spec["on_death"]:
        _become(spec["on_death"])
    return 0


def _hand_over(command: list[str], lock: int, env: dict[str, str]) -> None:
    """Become the process that may start the child again: it goes on holding the lock, and gets the environment."""
    memory = os.memfd_create("environment")
    os.write(memory, json.dumps(env).encode())
    for handle in (lock, memory):
        os.set_inheritable(handle, True)
    _become([*command, str(lock), str(memory)])


def _become(command: list[str]) -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _WATCHED)
    os.execve(command[0], command, os.environ)


def _release(lock: int | None) -> None:
    if lock is not None:
        os.close(lock)


if __name__ == "__main__":
    sys.exit(main())
