"""Servers that are not ours: known by what they speak, watched, and never taken for ours."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from console.endpoint import Endpoint, free_port
from console.presets import Preset
from console.server.foreign import ForeignWatch, foreign_status, speaks_vllm
from console.server.life import Server
from console.server.state import ServerRecord
from console.server.status import State
from tests.contract.life_house import House, open_house, stranger, until


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    with open_house(tmp_path, monkeypatch) as opened:
        yield opened


@contextmanager
def speaking(port: int, pages: dict[str, str], asked: list[str] | None = None) -> Iterator[str]:
    """Somebody's server with these pages; its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if asked is not None:
                asked.append(self.path)
            page = pages.get(self.path)
            self.send_response(404 if page is None else 200)
            self.send_header("content-length", str(len(page or "")))
            self.end_headers()
            self.wfile.write((page or "").encode())

        def log_message(self, *_args: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


VLLM = '{"data": [{"id": "m", "owned_by": "vllm"}]}'
LLAMA = '{"data": [{"id": "m", "owned_by": "llamacpp"}]}'
GUARDED = 'vllm:num_requests_running{engine="0"} 0.0\n'


@pytest.mark.parametrize(
    ("pages", "speaks"),
    [
        ({"/v1/models": VLLM}, True),
        ({"/metrics": GUARDED}, True),
        ({"/v1/models": LLAMA, "/metrics": "llamacpp:requests_processing 0\n"}, False),
        ({"/v1/models": "<html>", "/metrics": "<html>"}, False),
        ({"/v1/models": '{"data": 7}'}, False),
        ({}, False),
    ],
    ids=["models", "metrics-behind-a-key", "llama", "html", "odd", "nothing"],
)
def test_vllm_is_known_by_its_models_or_its_metrics(pages: dict[str, str], speaks: bool) -> None:
    with speaking(free_port(), pages) as url:
        endpoint = Endpoint(url)
        assert speaks_vllm(endpoint) is speaks
        endpoint.close()


def test_it_is_found_on_a_presets_port_and_gone_when_it_is(house: House) -> None:
    preset = house.preset()
    server = Server(house.paths, presets=lambda: [preset])
    assert server.status().state is State.STOPPED
    with speaking(preset.server.port, {"/v1/models": VLLM, "/metrics": GUARDED}) as url:
        until(lambda: server.status().state is State.FOREIGN)
        status = server.status()
        assert (status.state, status.url, status.model, status.pid) == (State.FOREIGN, url, "m", None)
        watched = server.watched()
        assert watched is not None
        assert watched.url == url
        assert server.endpoint() is None
    assert server.status().state is State.STOPPED
    assert server.watched() is None
    server.close()


def test_what_is_not_vllm_is_asked_once_in_a_while(house: House) -> None:
    preset, asked, now = house.preset(), list[str](), [0.0]
    watch = ForeignWatch(lambda: [preset], lambda: now[0])
    with speaking(preset.server.port, {}, asked):
        assert [watch.endpoint() for _ in range(5)] == [None] * 5
        first = len(asked)
        now[0] += 31
        watch.endpoint()
        assert (first, len(asked)) == (2, 4)


def test_where_nobody_listens_it_is_not_looked_every_second(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, now = list[int](), [0.0]

    def nobody(_host: str, port: int) -> list[object]:
        looks.append(port)
        return []

    monkeypatch.setattr("console.server.foreign.answering", nobody)
    watch = ForeignWatch(lambda: [Preset("p", "m")], lambda: now[0])
    for tenth in range(50):
        now[0] = tenth / 10
        assert watch.endpoint() is None
    assert len(looks) == 3


def test_what_has_ended_is_not_searched_for_for_ever(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """An idle console looks every second, for days; what is gone does not come back."""
    house.up()
    house.server.stop()
    looks = list[str]()

    def nothing(record: ServerRecord, _path: Path) -> tuple[object, ...]:
        looks.append(record.life)
        return ()

    monkeypatch.setattr("console.server.ended.leftovers", nothing)
    assert {house.server.status(probe=False).state for _ in range(20)} == {State.STOPPED}
    assert len(looks) <= 3


def test_the_cards_ask_for_our_processes_and_no_new_look_is_made(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    ready = house.up()
    seen = house.server.status()
    monkeypatch.setattr(house.server, "status", lambda **_words: pytest.fail("a second look at all of /proc"))
    assert house.server.ours() == frozenset(seen.ours) >= {ready.pid}
    monkeypatch.undo()
    house.server.stop()
    assert house.another().ours() == frozenset()


def test_ours_is_never_called_foreign(house: House) -> None:
    ready = house.up()
    server = Server(house.paths, presets=lambda: [house.preset(port=house.record.port or 0)])
    assert server.status().state is State.READY
    watched = server.watched()
    assert watched is not None
    assert watched.url == ready.url
    server.close()
    house.server.stop()


def test_a_foreign_server_is_watched_and_a_missing_one_is_told() -> None:
    with stranger() as port:
        endpoint = Endpoint(f"http://127.0.0.1:{port}")
        status = foreign_status(endpoint)
        endpoint.close()
    assert status.state is State.FOREIGN
    assert status.model is None
    gone = foreign_status(endpoint)
    endpoint.close()
    assert gone.state is State.STOPPED
    assert gone.note
