"""A small HTTP server that answers `/metrics` as oddly as a test wants it, byte for byte."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

Answer = bytes | Sequence[bytes] | Callable[[socket.socket], None]
"""A whole answer; its pieces, sent one after another with a pause; or what to do with the connection."""
PAUSE_S = 0.05


def reply(body: str | bytes, *, status: str = "200 OK", head: Sequence[str] = (), length: bool = True) -> bytes:
    """An HTTP answer whose connection is closed after it."""
    raw = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", "content-type: text/plain; charset=utf-8", "connection: close", *head]
    if length:
        lines.append(f"content-length: {len(raw)}")
    return "\r\n".join([*lines, "", ""]).encode() + raw


def chunked(body: str, pieces: int) -> list[bytes]:
    """The same body in chunks, each a send of its own."""
    raw = body.encode()
    size = len(raw) // pieces + 1
    parts = [raw[i : i + size] for i in range(0, len(raw), size)]
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n"
    return [head, *(f"{len(part):x}\r\n".encode() + part + b"\r\n" for part in parts), b"0\r\n\r\n"]


class OddServer:
    """Answers `/metrics` with `pages`, one after another, the last one again and again; the rest like a vLLM."""

    def __init__(self) -> None:
        self.pages: list[Answer] = []
        self.asked: list[str] = []
        self.key: str | None = None
        """Without it `/v1` and `/metrics` answer 401."""
        self.silent = False
        """Take connections and never answer, but for `/metrics`."""
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._closing = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def close(self) -> None:
        """Answer nobody any more."""
        self._closing.set()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def wait(self, seconds: float) -> bool:
        """Pause within an answer; whether the server is closing."""
        return self._closing.wait(seconds)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            raw = b""
            while b"\r\n\r\n" not in raw:
                piece = connection.recv(65536)
                if not piece:
                    return
                raw += piece
            path = raw.split(b" ")[1].decode()
            self.asked.append(path)
            if self.silent and path != "/metrics":
                self._closing.wait(30)
            elif self.key and path in ("/v1/models", "/metrics") and f"Bearer {self.key}".encode() not in raw:
                connection.sendall(reply("", status="401 Unauthorized"))
            else:
                self._answer(connection, path)

    def _answer(self, connection: socket.socket, path: str) -> None:
        if path == "/v1/models":
            connection.sendall(reply('{"data": [{"id": "tiny", "owned_by": "vllm"}]}'))
        elif path == "/version":
            connection.sendall(reply('{"version": "0.32.0"}'))
        elif path == "/health":
            connection.sendall(reply(""))
        elif path != "/metrics" or not self.pages:
            connection.sendall(reply("", status="404 Not Found"))
        else:
            answer = self.pages.pop(0) if len(self.pages) > 1 else self.pages[0]
            if callable(answer):
                answer(connection)
                return
            for piece in [answer] if isinstance(answer, bytes) else answer:
                connection.sendall(piece)
                if not isinstance(answer, bytes):
                    self.wait(PAUSE_S)


@contextmanager
def odd_server() -> Iterator[OddServer]:
    """The server, closed at the end."""
    server = OddServer()
    try:
        yield server
    finally:
        server.close()
