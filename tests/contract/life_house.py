"""What the tests of the server's life share: a console's folders, presets of small engines, and an honest end."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from console.endpoint import free_port
from console.paths import Paths
from console.presets import Preset, ServerOptions
from console.server.life import Server
from console.server.process import Identity, identify, read_stat, send, snapshot
from console.server.state import ServerRecord
from console.server.status import ServerStatus, State

ENGINE = Path(__file__).with_name("small_engine.py")
DEADLINE_S = 60.0
"""Generous: what takes longer than this hangs."""


def until(condition: Callable[[], object], what: str = "the condition") -> None:
    """Wait for a condition."""
    end = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < end, f"{what} never came true"
        time.sleep(0.02)


class House:
    """One console's folders and everything that was started from them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.paths = Paths.from_env()
        self.paths.make()
        self.server = Server(self.paths)
        self.requests = folder / "requests"
        self.go = folder / "go"
        self.extra: list[Server] = []

    def figures(self, tokens: int, kv: float) -> None:
        """What the metrics of a busy engine say from now on."""
        (self.folder / "figures.new").write_text(f"{tokens} {kv}")
        (self.folder / "figures.new").replace(self.folder / "figures")

    def preset(
        self,
        manners: str = "",
        *,
        port: int = 0,
        grace_s: float = 3.0,
        timeout_s: float = 60.0,
        restart: str = "never",
    ) -> Preset:
        """A small engine with these manners."""
        return Preset(
            name="small",
            model="m",
            command=(sys.executable, str(ENGINE)),
            env={"SMALL_ENGINE": manners},
            server=ServerOptions(
                port=port or free_port(), ready_timeout=timeout_s, stop_grace=grace_s, restart=restart
            ),
        )

    def up(self, manners: str = "", *, grace_s: float = 3.0) -> ServerStatus:
        """A server that is ready."""
        self.server.start(self.preset(manners, grace_s=grace_s))
        last = list(self.server.follow_start())[-1]
        assert last.state is State.READY, last
        return last

    def another(self) -> Server:
        """A second console on the same folders."""
        server = Server(self.paths)
        self.extra.append(server)
        return server

    @property
    def record(self) -> ServerRecord:
        """The life on record."""
        record = self.server.record()
        assert record is not None
        return record

    @property
    def child(self) -> Identity:
        """The server's process."""
        child = self.record.child
        assert child is not None
        return child

    def alive(self) -> list[Identity]:
        """Everything that was started from here and lives."""
        needle = str(self.folder).encode()
        found = []
        for pid in snapshot():
            try:
                started_here = needle in Path(f"/proc/{pid}/environ").read_bytes()
            except OSError:
                continue
            who = identify(pid) if started_here and pid != os.getpid() else None
            if who:
                found.append(who)
        return found

    def must_be_empty(self) -> None:
        """Nothing that was started from here lives; the canary's process may take a moment to end."""
        end = time.monotonic() + 10
        while (left := self.alive()) and time.monotonic() < end:
            time.sleep(0.05)
        assert not left, f"left behind: {[read_stat(who.pid) for who in left]}"

    def close(self) -> None:
        """Nothing may be left; what is, is ended all the same."""
        for server in (self.server, *self.extra):
            server.close()
        try:
            self.must_be_empty()
        finally:
            for who in self.alive():
                send(who, signal.SIGKILL)


@contextmanager
def open_house(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    """A house whose every process is known by its environment."""
    monkeypatch.setenv("SMALL_ENGINE_COUNT", str(folder / "requests"))
    monkeypatch.setenv("SMALL_ENGINE_GO", str(folder / "go"))
    monkeypatch.setenv("SMALL_ENGINE_FIGURES", str(folder / "figures"))
    house = House(folder)
    try:
        yield house
    finally:
        house.close()


class _Yes(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_args: object) -> None:
        """Nothing."""


@contextmanager
def stranger(port: int = 0) -> Iterator[int]:
    """Somebody else's HTTP server, which answers 200 to everything; yields its port."""
    server = ThreadingHTTPServer(("127.0.0.1", port), _Yes)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
