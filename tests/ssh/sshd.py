"""A real sshd on loopback: own host key, login by key, own port; and a wire to it that can be cut."""

from __future__ import annotations

import getpass
import os
import shlex
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from console.endpoint import free_port

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
_PRIVSEP = Path("/run/sshd")
_DEADLINE_S = 30.0

_CONFIG = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
PidFile none
UsePAM no
StrictModes no
AuthorizedKeysFile {folder}/authorized
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
PrintMotd no
PrintLastLog no
ClientAliveInterval 1
ClientAliveCountMax 2
"""


class Wire:
    """A TCP relay between a client and sshd: it can be cut, or swallow everything without a word."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._door = socket.create_server(("127.0.0.1", 0))
        self._door.settimeout(0.1)
        self._pairs: list[socket.socket] = []
        self._over = threading.Event()
        self._silent = threading.Event()
        self._thread = threading.Thread(target=self._accept, name="wire")
        self._pumps: list[threading.Thread] = []
        self._thread.start()

    @property
    def port(self) -> int:
        """Where the client connects."""
        return int(self._door.getsockname()[1])

    def cut(self) -> None:
        """Both ends see the connection closed."""
        for end in self._pairs:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def swallow(self) -> None:
        """Nothing passes any more, and nobody is told: a laptop that was closed."""
        self._silent.set()

    def close(self) -> None:
        """End the relay."""
        self._over.set()
        self.cut()
        for thread in (self._thread, *self._pumps):
            thread.join(_DEADLINE_S)
        for end in self._pairs:
            end.close()
        self._door.close()

    def _accept(self) -> None:
        while not self._over.is_set():
            try:
                client, _ = self._door.accept()
            except TimeoutError:
                continue
            server = socket.create_connection(("127.0.0.1", self._target))
            self._pairs += [client, server]
            for source, sink in ((client, server), (server, client)):
                source.settimeout(0.1)
                pump = threading.Thread(target=self._pump, args=(source, sink), name="wire-pump")
                self._pumps.append(pump)
                pump.start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        while not self._over.is_set():
            try:
                data = source.recv(65536)
            except TimeoutError:
                continue
            except OSError:
                break
            if not data:
                break
            if self._silent.is_set():
                continue
            try:
                sink.sendall(data)
            except OSError:
                break
        with suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)


@dataclass
class Sshd:
    """A running server."""

    folder: Path
    port: int
    env: dict[str, str]
    """What a remote command finds in its environment."""
    wires: list[Wire] = field(default_factory=list)

    def wire(self) -> Wire:
        """A new line to it."""
        wire = Wire(self.port)
        self.wires.append(wire)
        return wire

    def words(self, *command: str, wire: Wire | None = None, tty: bool = False, before: str = "") -> list[str]:
        """The client's command line for a remote command.

        Args:
            command: the remote words.
            wire: the line to take.
            tty: with a pseudo-terminal at the other end.
            before: shell words in front, such as a trap.
        """
        port = wire.port if wire else self.port
        env = shlex.join(["env", *(f"{name}={value}" for name, value in self.env.items())])
        return [
            "ssh",
            *("-F", "/dev/null", "-i", str(self.folder / "client"), "-p", str(port)),
            *("-o", "StrictHostKeyChecking=no", "-o", f"UserKnownHostsFile={self.folder}/known"),
            *("-o", "BatchMode=yes", "-o", "LogLevel=ERROR", "-o", "IdentitiesOnly=yes"),
            "-tt" if tty else "-T",
            f"{getpass.getuser()}@127.0.0.1",
            f"{before}exec {env} {shlex.join(command)}",
        ]

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """A remote command without a terminal, to its end."""
        return subprocess.run(
            self.words(*command), capture_output=True, text=True, timeout=300, check=False, stdin=subprocess.DEVNULL
        )


@contextmanager
def sshd(folder: Path, env: Mapping[str, str]) -> Iterator[Sshd]:
    """Start one; it is ended with the block, and its sessions with it."""
    assert SSHD
    if os.getuid() == 0:
        # What a package's start script makes: without it sshd does not start as root.
        _PRIVSEP.mkdir(mode=0o755, exist_ok=True)
    for name in ("host", "client"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    (folder / "authorized").write_text((folder / "client.pub").read_text())
    port = free_port()
    (folder / "config").write_text(_CONFIG.format(port=port, folder=folder))
    log = (folder / "sshd.log").open("w")
    process = subprocess.Popen([SSHD, "-D", "-e", "-f", str(folder / "config")], stderr=log, stdin=subprocess.DEVNULL)
    found = Sshd(folder, port, dict(env))
    try:
        _wait(found, process)
        yield found
    finally:
        for wire in found.wires:
            wire.close()
        process.terminate()
        process.wait(_DEADLINE_S)
        log.close()


def _wait(found: Sshd, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + _DEADLINE_S
    while True:
        done = found.run("true")
        if done.returncode == 0:
            return
        log = (found.folder / "sshd.log").read_text()
        assert process.poll() is None, log
        assert time.monotonic() < end, f"{done.stderr}\n{log}"
        time.sleep(0.1)
