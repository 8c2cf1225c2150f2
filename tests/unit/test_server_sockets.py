"""Who listens where."""

from __future__ import annotations

import errno
import os
import socket

import pytest

from console.server.sockets import answering, bind_problem, hold_of, listeners, owner_of, reachable, url_of


def _listen(host: str = "127.0.0.1", port: int = 0) -> socket.socket:
    server = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((host, port))
    server.listen()
    return server


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "0.0.0.0", "::"])
def test_a_listener_and_its_owner_are_seen(host: str) -> None:
    try:
        server = _listen(host)
    except OSError:
        pytest.skip("this machine has no IPv6")
    with server:
        port = server.getsockname()[1]
        problem = bind_problem(host, port)
        assert problem is not None
        assert problem.errno == errno.EADDRINUSE
        found = answering(host, port)
        assert [one.address for one in found] == [host]
        hold = hold_of(found, [os.getpid()])
        assert hold is not None
        assert hold.pid == os.getpid()
        assert hold.still()
        assert hold_of(found, [os.getppid()]) is None
        owner = owner_of(port)
        assert owner is not None
        assert owner[0] == os.getpid()
    assert not hold.still()
    assert bind_problem(host, port) is None
    assert listeners(port) == []
    assert owner_of(port) is None


def test_the_exact_address_wins_over_the_wildcard() -> None:
    with _listen() as exact:
        port = exact.getsockname()[1]
        assert [one.address for one in answering("127.0.0.1", port)] == ["127.0.0.1"]
        with _listen("127.0.0.2", port):
            assert len(listeners(port)) == 2
            assert [one.address for one in answering("127.0.0.1", port)] == ["127.0.0.1"]
            assert answering("127.0.0.3", port) == []


def test_connections_in_time_wait_are_no_obstacle() -> None:
    with _listen() as server:
        port = server.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port))
        served, _ = server.accept()
        served.close()
        client.close()
    assert bind_problem("127.0.0.1", port) is None


def test_an_address_of_another_machine_is_no_port_in_use() -> None:
    problem = bind_problem("192.0.2.1", 8000)
    assert problem is not None
    assert problem.errno != errno.EADDRINUSE
    assert bind_problem("no such host", 8000) is not None


def test_urls_name_a_host_that_can_be_reached() -> None:
    assert url_of("0.0.0.0", 1) == "http://127.0.0.1:1"
    assert url_of("::", 1) == "http://[::1]:1"
    assert url_of("localhost", 1) == "http://localhost:1"
    assert reachable("") == "127.0.0.1"
