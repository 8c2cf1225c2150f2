"""Faults of the ground: the port, the model, a flag, the disk, the state on it, and a second console."""

from __future__ import annotations

import json
import subprocess
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.console_process import wait_until, write_preset
from tests.engine import truth
from tests.engine.fault_bench import PLAIN, Bench, last_line

_TMPFS = "size=24m,mode=700"


class _Yes(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_args: object) -> None:
        """Nothing."""


def port_stolen(bench: Bench) -> str:
    """Somebody takes the port after our check and before vLLM binds it, and answers 200 to everything."""
    bench.stopped()
    name = bench.preset()
    bench.boots += 1
    bench.console("up", name, "--no-wait")
    port = int(str(bench.server()["url"]).rpartition(":")[2])
    thief = ThreadingHTTPServer(("127.0.0.1", port), _Yes)
    thread = threading.Thread(target=thief.serve_forever)
    thread.start()
    try:
        up = bench.console("up", name, code=1, timeout=400)
    finally:
        thief.shutdown()
        thread.join()
        thief.server_close()
    return last_line(up.err)


def model_missing(bench: Bench) -> str:
    """A path that is not there."""
    bench.stopped()
    bench.boots += 1
    return last_line(bench.console("up", bench.preset("gone", model="/models/none"), code=1, timeout=120).err)


def bad_flag(bench: Bench) -> str:
    """A flag that no vLLM has."""
    bench.stopped()
    bench.preset()
    folder = Path(bench.console.env["QWEN_CONSOLE_PRESETS"])
    bench.boots += 1
    write_preset(folder, "wrong", f"extends: {PLAIN}\nargs: {{zzz-nonsense: 3}}\n")
    return last_line(bench.console("up", "wrong", code=1, timeout=120).err)


def crash_at_first_request(bench: Bench) -> str:
    """MTP with prefix caching on this CPU build."""
    bench.stopped()
    name = bench.preset("mtp", prefix=True)
    drafts = "speculative-config={method: mtp, num_speculative_tokens: 2}"
    bench.boots += 1
    return last_line(bench.console("up", name, "--set", drafts, code=1, timeout=400).err)


def disk_full(bench: Bench) -> str:
    """A small disk for state and log: full before the start, and full while the server runs."""
    bench.stopped()
    small = bench.folder / "small"
    small.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", _TMPFS, "tmpfs", str(small)], check=True)
    usual = bench.console.env["XDG_STATE_HOME"]
    bench.console.env["XDG_STATE_HOME"] = str(small)
    try:
        _fill(small)
        refused = last_line(bench.console("up", bench.preset(), code=1).err)
        (small / "ballast").unlink()
        url = bench.up().out.strip()
        _fill(small)
        truth.ask(url, truth.prompt(50, 1), 16)
        full = bench.seen()
        down = bench.console("down", timeout=120)
        wait_until(lambda: not bench.console.processes(), timeout=60)
        return f"at a start: {refused}; later the server goes on: {full}; `down`: {last_line(down.err, of='stopped')}"
    finally:
        bench.console.end()
        bench.console.env["XDG_STATE_HOME"] = usual
        subprocess.run(["umount", str(small)], check=False)


def _fill(folder: Path) -> None:
    with suppress(OSError), (folder / "ballast").open("ab", buffering=0) as ballast:
        while ballast.write(b"x" * 4096):
            pass


def state_torn(bench: Bench) -> str:
    """A state file that is half written: the server is found by the marker that its processes carry."""
    bench.running()
    (bench.state / "server.json").write_text('{"schema": 1, "life": "')
    seen = bench.seen()
    down = bench.console("down", timeout=120)
    return f"{seen}; `down`: {last_line(down.err, of='stopped')}"


def pid_reused(bench: Bench) -> str:
    """The record names pids that belong to somebody else by now."""
    bench.stopped()
    innocent = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        path = bench.state / "server.json"
        record = json.loads(path.read_text())
        for who in ("keeper", "child"):
            record[who] = [innocent.pid, 12345, record[who][2]]
        path.write_text(json.dumps(record))
        seen = bench.seen()
        down = bench.console("down", code=3)
        alive = innocent.poll() is None
    finally:
        innocent.kill()
        innocent.wait()
    return f"{seen}; `down`: {last_line(down.err)}; the innocent process {'lives' if alive else 'WAS KILLED'}"


def two_consoles(bench: Bench) -> str:
    """Two consoles start two presets in the same moment."""
    bench.stopped()
    names = (bench.preset(), bench.preset("other"))
    ups = [bench.console.start("up", name) for name in names]
    ends = [(up, up.communicate(timeout=400)[0]) for up in ups]
    bench.boots += 1
    codes = sorted(up.returncode for up, _ in ends)
    refused = next(last_line(out) for up, out in ends if up.returncode == 4)
    return f"exit codes {codes[0]} and {codes[1]}; the other is told: {refused}"
