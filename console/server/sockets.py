"""Who listens where: the bind test before a start, and the proof that it is our own process tree that answers."""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from console.server.process import read_stat, snapshot

_LISTEN = "0A"
_ANY = ("0.0.0.0", "::", "")


@dataclass(frozen=True, slots=True)
class Listener:
    """One listening TCP socket."""

    address: str
    port: int
    inode: str


def reachable(host: str) -> str:
    """The host under which a server that binds `host` is reached from this machine."""
    if host in ("0.0.0.0", ""):
        return "127.0.0.1"
    return "::1" if host == "::" else host


def url_of(host: str, port: int) -> str:
    """The base URL of a server that binds `host:port`."""
    name = reachable(host)
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def bind_problem(host: str, port: int) -> OSError | None:
    """Why a server could not listen there now.

    SO_REUSEADDR, as servers set it: the connections a former server left in TIME_WAIT are no obstacle.
    """
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror as error:
        return error
    family, kind, protocol, _, address = found[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
            probe.listen(1)
        except OSError as error:
            return error
    return None


def listeners(port: int) -> list[Listener]:
    """Every socket of this machine that listens on this port."""
    found = []
    sign = f":{port:04X} "
    for table in ("tcp", "tcp6"):
        try:
            text = Path(f"/proc/net/{table}").read_text()
        except OSError:
            continue
        # Of a machine's thousands of lines only those that name the port are taken apart.
        for line in text.splitlines()[1:] if sign in text else ():
            if sign not in line:
                continue
            fields = line.split()
            address, _, number = fields[1].rpartition(":")
            if fields[3] == _LISTEN and int(number, 16) == port:
                found.append(Listener(_address(address), port, fields[9]))
    return found


def answering(host: str, port: int) -> list[Listener]:
    """Those that a connection to `host:port` reaches: the exact address wins over the wildcard."""
    every = listeners(port)
    try:
        names = {str(info[4][0]) for info in socket.getaddrinfo(reachable(host), port, type=socket.SOCK_STREAM)}
    except socket.gaierror:
        names = set()
    exact = [one for one in every if one.address in names]
    return exact or [one for one in every if one.address in _ANY]


@dataclass(frozen=True, slots=True)
class Hold:
    """A process that holds a listening socket."""

    pid: int
    handle: str
    """Its entry under /proc."""
    link: str
    """What the entry points at: a socket's inode, not used twice while the socket is open."""

    def still(self) -> bool:
        """Whether it holds that very socket; much cheaper than to look for it among all of the machine's."""
        return _link(self.handle) == self.link


def hold_of(sockets: Iterable[Listener], pids: Iterable[int]) -> Hold | None:
    """Which of these processes holds one of these sockets, and how."""
    wanted = {f"socket:[{one.inode}]" for one in sockets}
    if not wanted:
        return None
    for pid in pids:
        folder = f"/proc/{pid}/fd"
        try:
            names = os.listdir(folder)  # noqa: PTH208 - hundreds of descriptors, a Path for each is waste
        except OSError:
            continue
        for name in names:
            if (link := _link(f"{folder}/{name}")) in wanted:
                return Hold(pid, f"{folder}/{name}", link)
    return None


def owner_of(port: int) -> tuple[int, str] | None:
    """Pid and name of the process that listens there, where /proc tells (other users' processes stay unknown)."""
    hold = hold_of(listeners(port), snapshot())
    stat = read_stat(hold.pid) if hold else None
    return (stat.pid, stat.name) if stat else None


def _link(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115
    except OSError:
        return ""


def _address(text: str) -> str:
    """/proc writes addresses as hexadecimal words in the machine's byte order."""
    raw = b"".join(struct.pack("=I", int(text[i : i + 8], 16)) for i in range(0, len(text), 8))
    address = ipaddress.ip_address(raw)
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)
