"""The simulated cards as their route tells them, and sentences where it does not."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from console.endpoint import Endpoint, free_port
from console.gpu.sample import GpuProcess
from console.gpu.source import open_source

OURS = frozenset({7})


class Route(BaseHTTPRequestHandler):
    answer: object = None

    def do_GET(self) -> None:
        body = json.dumps(type(self).answer).encode()
        self.send_response(200 if self.path == "/sim/gpus" else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with HTTPServer(("127.0.0.1", 0), Route) as serving:
        thread = threading.Thread(target=serving.serve_forever, args=(0.02,))
        thread.start()
        found = Endpoint(f"http://127.0.0.1:{serving.server_port}")
        yield found
        found.close()
        serving.shutdown()
        thread.join()


def test_cards_as_told(endpoint: Endpoint) -> None:
    Route.answer = {
        "cards": [
            {
                "index": 5,
                "name": "SIMULATED",
                "vram_used_bytes": 1,
                "util": 0.5,
                "pcie_source": "counters",
                "throttle": ["power cap"],
                "processes": [{"pid": 7, "vram_bytes": 3}, {"pid": 8, "vram_bytes": None}],
                "a field of tomorrow": 1,
            },
            {"temp_c": "warm", "processes": None},
        ]
    }
    first, second = open_source(endpoint, lambda: OURS).read().cards
    assert (first.index, first.source, first.name, first.vram_used_bytes, first.util) == (0, "sim", "SIMULATED", 1, 0.5)
    assert (first.pcie_source, first.throttle, first.temp_c) == ("counters", ("power cap",), None)
    assert first.processes == (GpuProcess(7, 3, True), GpuProcess(8, None, False))
    assert (second.index, second.temp_c, second.processes) == (1, None, None)


@pytest.mark.parametrize("answer", [None, [], "text", {"cards": 3}, {"cards": [3]}])
def test_another_answer_is_a_sentence(endpoint: Endpoint, answer: object) -> None:
    Route.answer = answer
    report = open_source(endpoint, lambda: OURS).read()
    assert report.cards == ()
    assert report.problem is not None


def test_nobody_there_is_a_sentence() -> None:
    source = open_source(Endpoint(f"http://127.0.0.1:{free_port()}"), lambda: OURS)
    report = source.read()
    source.close()
    assert report.cards == ()
    assert report.problem is not None
    assert "start a preset" in report.problem
