"""Faults of processes: something dies, or is told to end, while a server runs or starts."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.console_process import wait_until
from tests.engine import truth
from tests.engine.fault_bench import PLAIN, Bench, last_line
from tests.ssh.sshd import sshd
from tests.tui.terminal import terminal

_TRIES = 3
_LONG = 3000
"""Tokens of an answer that is not over soon."""


def console_killed(bench: Bench) -> str:
    """The console's own processes die; the server has a keeper."""
    bench.running()
    follower = bench.console.start("logs", "-f")
    os.killpg(follower.pid, signal.SIGKILL)
    follower.communicate()
    return f"the next console finds it: {bench.seen()}"


def keeper_killed(bench: Bench) -> str:
    """The server goes on; the next console says so and still stops it whole."""
    bench.running()
    bench.keeper().kill()
    wait_until(lambda: "keeper was lost" in (bench.server()["note"] or ""))
    seen = bench.seen()
    down = bench.console("down", timeout=120)
    return f"{seen}; `down`: {last_line(down.err, of='stopped')}"


def api_server_killed(bench: Bench) -> str:
    """The leader dies, which leaves the engine and its workers alone."""
    bench.kill("api")
    return bench.until("failed")


def engine_core_killed(bench: Bench) -> str:
    """HTTP answers for a moment without an engine."""
    bench.kill("VLLM::EngineCor")
    first = bench.until("stalled", "failed")
    return f"{first}; then {bench.until('failed')}"


def worker_killed(bench: Bench) -> str:
    """One rank of two."""
    bench.kill("VLLM::Worker_TP1")
    return bench.until("failed")


def engine_hangs(bench: Bench) -> str:
    """EngineCore is halted in the middle of an answer: everything lives, HTTP answers, and nothing moves."""
    server = bench.running()
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(truth.ask, server["url"], truth.prompt(50, 3), _LONG)
        wait_until(lambda: bench.console.status()["reading"]["running"] == 1, timeout=60)
        for pid in bench.pids("VLLM::EngineCor"):
            os.kill(pid, signal.SIGSTOP)
        begun = time.monotonic()
        wait_until(lambda: bench.server()["state"] == "stalled", timeout=300)
        seen = f"after {time.monotonic() - begun:.0f} s: {bench.seen()}"
        down = bench.console("down", timeout=120)
        answer.exception(timeout=60)
    return f"{seen}; `down`: {last_line(down.err, of='stopped')}"


def stop_under_load(bench: Bench) -> str:
    """`down` while two answers are being written."""
    url = bench.running()["url"]
    with ThreadPoolExecutor(2) as pool:
        answers = [pool.submit(truth.ask, url, truth.prompt(200, seed), _LONG) for seed in (1, 2)]
        wait_until(lambda: bench.console.status()["reading"]["running"] == 2, timeout=60)
        down = bench.console("down", timeout=120)
        cut = sum(answer.exception() is not None or answer.result().tokens < _LONG for answer in answers)
    return f"{cut} streams cut; {last_line(down.err, of='stopped')}; {bench.seen()}"


def _starting(part: float, bench: Bench) -> tuple[subprocess.Popen[str], str]:
    """A start at that part of its way, and its phase; one that was quicker than any before it is made again."""
    for _ in range(_TRIES):
        up = bench.begin()
        bench.at(part)
        server = bench.server()
        if server["state"] == "starting":
            return up, str(server["phase"])
        up.communicate(timeout=60)
        bench.start_s = min(bench.start_s or math.inf, part * float(server["uptime_s"]))
    raise AssertionError(f"it was ready before {part:.0%} of its usual start, {_TRIES} times")


def sigterm_in_start(part: float, bench: Bench) -> str:
    """Somebody's `kill` of the server itself while it starts: lost, heard, or half heard, as vLLM likes."""
    up, _ = _starting(part, bench)
    os.kill(int(bench.server()["pid"]), signal.SIGTERM)
    out = up.communicate(timeout=400)[0]
    sees = (
        f"`up` exits {up.returncode}: {last_line(out)}" if up.returncode else "the signal was lost: ready all the same"
    )
    bench.console("down", code=None, timeout=120)
    return sees


def stop_in_start(part: float, bench: Bench) -> str:
    """`down` from another terminal."""
    up, phase = _starting(part, bench)
    down = bench.console("down", timeout=120)
    up.communicate(timeout=60)
    return f"in phase {phase}: {last_line(down.err, of='stopped')}; `up` exits {up.returncode}; {bench.seen()}"


def line_lost_in_down(bench: Bench) -> str:
    """`down` over SSH, and the line is cut in the middle of it."""
    bench.running()
    folder = bench.folder / f"ssh-{time.monotonic_ns()}"
    folder.mkdir()
    env = {name: os.environ[name] for name in ("PATH", "HOME")} | bench.console.env | _python_path()
    with sshd(folder, env) as server:
        wire = server.wire()
        words = server.words(*bench.console.words("down"), wire=wire, tty=True)
        with terminal("-c", "import os, sys; os.execvp(sys.argv[1], sys.argv[1:])", *words) as client:
            client.shows("asked")
            wire.cut()
        seen = bench.until("stopped")
    return f"the stop goes on without its console: {seen}"


def _python_path() -> dict[str, str]:
    return {"PYTHONPATH": str(Path(__file__).parents[2])}


def _begin_run(bench: Bench) -> str:
    """A run whose first arm is starting; its id."""
    words = ("ab", "mtp", "--preset", PLAIN, "--rounds", "2", "--size", "small", "--no-wait")
    bench.preset()
    bench.console(*words)
    bench.boots += 1
    (run, *_) = bench.console("ab", "list", "--json").json["runs"]
    wait_until(lambda: bench.server()["state"] == "starting", timeout=60)
    return str(run["id"])


def lab_killed(bench: Bench) -> str:
    """The lab's process dies in the middle of an arm; nothing ran before the run."""
    bench.stopped()
    run = _begin_run(bench)
    bench.keeper("console.lab").kill()
    wait_until(lambda: bench.console("ab", "show", run, "--json").json["state"] == "interrupted", timeout=120)
    return f"the run is {bench.console('ab', 'show', run, '--json').json['state']}, its arm stopped; {bench.seen()}"


def keeper_of_the_lab_killed(bench: Bench) -> str:
    """The run goes on without the keeper of its lab, and ends when it is told to."""
    bench.stopped()
    run = _begin_run(bench)
    record = json.loads((bench.state / "runs" / run / "lab.json").read_text())
    os.kill(record["keeper"][0], signal.SIGKILL)
    state = bench.console("ab", "show", run, "--json").json["state"]
    bench.console("ab", "stop", timeout=200)
    return f"the run is {state}; `ab stop`: {bench.console('ab', 'show', run, '--json').json['state']}; {bench.seen()}"
