"""A deadline holds over a whole request, whatever the server drips, and of whichever part of its answer."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from console.endpoint import Endpoint, EndpointError
from console.server.plain_endpoint import PlainEndpoint
from console.timely import Deadline

DEADLINE_S = 0.5
DRIP_S = 0.1
HEAD = b"HTTP/1.1 200 OK\r\nx-padding: " + b"a" * 400 + b"\r\ncontent-length: 90\r\n\r\n"
BODY = b"{" + b" " * 88 + b"}"


@contextmanager
def dripping(at_once: bytes, dripped: bytes) -> Iterator[str]:
    """A server that sends the first bytes at once and the others one by one; yields its address."""
    door, closing = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = door.accept()
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

    def answer(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.recv(65536)
            connection.sendall(at_once)
            for byte in dripped:
                if closing.wait(DRIP_S):
                    return
                connection.sendall(bytes([byte]))

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{door.getsockname()[1]}"
    finally:
        closing.set()
        door.shutdown(socket.SHUT_RDWR)
        thread.join()
        door.close()


@pytest.mark.parametrize("kind", [Endpoint, PlainEndpoint])
@pytest.mark.parametrize(
    ("at_once", "dripped"),
    [(b"", HEAD + BODY), (HEAD[:20], HEAD[20:] + BODY), (HEAD + BODY[:1], BODY[1:])],
    ids=["all of it", "the head", "the body"],
)
def test_an_answer_that_drips_is_given_up_in_time(kind: type[Endpoint], at_once: bytes, dripped: bytes) -> None:
    """Without a bound the answer would be whole after 9 s and more, and no error."""
    with dripping(at_once, dripped) as url:
        endpoint = kind(url)
        try:
            with pytest.raises(EndpointError) as caught:
                endpoint.get("/", deadline=DEADLINE_S)
        finally:
            endpoint.close()
    assert caught.value.kind == "timeout"


def test_a_deadline_is_of_one_thread_and_one_request() -> None:
    deadline = Deadline()
    assert deadline.left() is None
    assert deadline.left(3.0) == 3.0
    deadline.end = time.monotonic() - 1
    assert 0 < (deadline.left(3.0) or 0) < 0.1
    found: list[float | None] = []
    other = threading.Thread(target=lambda: found.append(deadline.left(3.0)))
    other.start()
    other.join()
    assert found == [3.0]


def test_a_connection_that_was_kept_has_the_next_requests_deadline() -> None:
    """Two requests on one connection: the second one drips."""
    door = socket.create_server(("127.0.0.1", 0))
    closing = threading.Event()

    def serve() -> None:
        connection, _ = door.accept()
        with connection, suppress(OSError):
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
            connection.recv(65536)
            for byte in HEAD:
                if closing.wait(DRIP_S):
                    return
                connection.sendall(bytes([byte]))

    thread = threading.Thread(target=serve)
    thread.start()
    endpoint = Endpoint(f"http://127.0.0.1:{door.getsockname()[1]}")
    try:
        assert endpoint.get("/", deadline=30).status == 200
        with pytest.raises(EndpointError, match="did not answer"):
            endpoint.get("/", deadline=DEADLINE_S)
    finally:
        closing.set()
        endpoint.close()
        thread.join()
        door.close()


@pytest.mark.parametrize(
    ("name", "proxy"), [("ALL_PROXY", "socks5://127.0.0.1:1"), ("HTTP_PROXY", "http://[::1"), ("ALL_PROXY", "zzz://x")]
)
def test_a_proxy_that_cannot_be_used_is_a_sentence(name: str, proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, proxy)
    with pytest.raises(EndpointError, match=r"192\.0\.2\.1") as caught:
        Endpoint("http://192.0.2.1:8000").get("/metrics")
    assert caught.value.kind == "proxy"
    assert "NO_PROXY" in caught.value.fix
