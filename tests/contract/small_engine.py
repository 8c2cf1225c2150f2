"""A few lines that behave like a server in the ways that matter to its life; run as a program by the tests.

`python small_engine.py MODEL --host H --port P …`; the environment variable SMALL_ENGINE holds its manners, as words:
    workers         two children in its group, deaf to SIGTERM, that a dead leader leaves behind
    daemon          a grandchild in a session of its own, orphaned at once
    deaf            SIGTERM is ignored for ever
    lose-one        the first SIGTERM is lost
    never-listens   it stays in its start
    late            it waits for the file SMALL_ENGINE_GO before it takes its port
    crash-at-first  the first request is answered with an error, and the process dies of it
    refuse-first    the first request is answered with an error, and the process lives on
    other-model     it lists another model
    exit-3          it ends at once with code 3
    engine          a child with the title of vLLM's engine; the server goes on answering without it
    busy            its metrics tell of a running request, with the figures that stand in SMALL_ENGINE_FIGURES
    sick            its health is 503 once the file SMALL_ENGINE_GO is there
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_DEAF_CHILD = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
MANNERS = frozenset(os.environ.get("SMALL_ENGINE", "").split())


class Handler(BaseHTTPRequestHandler):
    """The routes that readiness asks for."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Health, models, version, metrics."""
        if self.path == "/health":
            self._answer(503 if "sick" in MANNERS and _told_to_go() else 200, "")
        elif self.path == "/v1/models":
            self._answer(200, {"data": [{"id": "other" if "other-model" in MANNERS else sys.argv[1]}]})
        elif self.path == "/version":
            self._answer(200, {"version": "1.2.3"})
        elif self.path == "/metrics":
            self._answer(200, _page())
        else:
            self._answer(404, {"error": {"message": "no such route"}})

    def do_POST(self) -> None:
        """One completion."""
        self.rfile.read(int(self.headers.get("content-length", 0)))
        with open(f"{os.environ['SMALL_ENGINE_COUNT']}", "a") as file:  # noqa: PTH123
            file.write("request\n")
        if "crash-at-first" in MANNERS:
            print("EngineDeadError: EngineCore encountered an issue.", flush=True)
            self._answer(500, {"error": {"message": "EngineCore encountered an issue."}})
            threading.Timer(0.2, os._exit, (1,)).start()
        elif "refuse-first" in MANNERS:
            self._answer(500, {"error": {"message": "no"}})
        else:
            self._answer(200, {"choices": [{"text": " 4"}]})

    def log_message(self, *_args: Any) -> None:
        """Nothing."""

    def _answer(self, status: int, body: Any) -> None:
        raw = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)


def _told_to_go() -> bool:
    return os.path.exists(os.environ["SMALL_ENGINE_GO"])  # noqa: PTH110


def _page() -> str:
    """The metrics: idle, or as the file of figures says (generated tokens and KV use)."""
    tokens, kv, running = "0", "0", "0"
    if "busy" in MANNERS:
        with open(os.environ["SMALL_ENGINE_FIGURES"]) as file:  # noqa: PTH123
            (tokens, kv), running = file.read().split(), "1"
    labels = '{engine="0",model_name="m"}'
    return (
        f"vllm:num_requests_running{labels} {running}\nvllm:num_requests_waiting{labels} 0\n"
        f"vllm:generation_tokens_total{labels} {tokens}\nvllm:prompt_tokens_total{labels} 7\n"
        f"vllm:kv_cache_usage_perc{labels} {kv}\n"
    )


def _be_engine() -> None:
    """A child that is called what vLLM calls its engine."""
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(15, b"VLLM::EngineCore", 0, 0, 0)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        time.sleep(600)
        os._exit(0)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def _hear_terms() -> None:
    told = [0]

    def end(_number: int, _frame: object) -> None:
        told[0] += 1
        if "lose-one" not in MANNERS or told[0] > 1:
            os._exit(0)

    signal.signal(signal.SIGTERM, signal.SIG_IGN if "deaf" in MANNERS else end)


def main() -> None:
    """Be a server."""
    print("small engine starts", flush=True)
    if "exit-3" in MANNERS:
        sys.exit(3)
    _hear_terms()
    if "workers" in MANNERS:
        for _ in range(2):
            subprocess.Popen([sys.executable, "-c", _DEAF_CHILD])
    if "daemon" in MANNERS and os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
    if "never-listens" in MANNERS:
        print("waiting", flush=True)
        time.sleep(600)
    if "engine" in MANNERS:
        _be_engine()
    while "late" in MANNERS and not _told_to_go():
        time.sleep(0.02)
    port = int(sys.argv[sys.argv.index("--port") + 1])
    ThreadingHTTPServer.allow_reuse_port = False
    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    main()
