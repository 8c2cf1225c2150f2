"""The command-line contract, through real processes on the stand-in engine."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from console.endpoint import free_port
from tests.console_process import Console, wait_until, write_preset

DEFAULT = "qwen3.8-27b-nvfp4-100k"
SIM = f"[{sys.executable}, -P, -m, console.sim]"


@pytest.fixture
def demo(own_folders: Path) -> Iterator[Console]:
    console = Console({"XDG_STATE_HOME": str(own_folders / "state"), "QWEN_CONSOLE_SIM_START_S": "1"}, demo=True)
    yield console
    console.end()
    assert console.processes() == []


@pytest.fixture
def console(own_folders: Path, tmp_path: Path) -> Iterator[Console]:
    """Not a demo: a preset folder of one's own whose command is the stand-in."""
    env = {
        "XDG_STATE_HOME": str(own_folders / "state"),
        "QWEN_CONSOLE_PRESETS": str(tmp_path / "presets"),
        "QWEN_CONSOLE_SIM_START_S": "1",
    }
    found = Console(env)
    yield found
    found.end()


class Always200(BaseHTTPRequestHandler):
    """Somebody else's server, which says yes to everything."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<html><body>fine</body></html>")

    def log_message(self, format: str, *args: object) -> None:  # noqa: ARG002
        return


@pytest.fixture
def stranger() -> Iterator[int]:
    """The port of a foreign HTTP server that answers 200 on every path."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Always200)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()
    thread.join()


def test_version_help_and_wrong_words(demo: Console) -> None:
    assert demo("--version").out.startswith("qwen-console ")
    assert "exit codes" in demo("--help").out
    assert "fix:" in demo("statsu", code=2).err
    assert "fix:" in demo("up", "--sett", "a=b", code=2).err


def test_presets_lists_the_good_and_the_broken(console: Console, tmp_path: Path) -> None:
    write_preset(tmp_path / "presets", "bad", "model: m\nargs:\n  max-model-length: 3\n")
    result = console("presets")
    assert DEFAULT in result.out
    assert "max-model-len" in result.err
    listed = console("presets", "--json").json
    assert {preset["name"] for preset in listed["presets"]} >= {DEFAULT, "tiny-cpu"}
    assert listed["problems"][0]["name"] == "bad"
    assert ":3: args.max-model-length" in listed["problems"][0]["what"]


def test_a_broken_preset_is_said_with_its_remedy(console: Console, tmp_path: Path) -> None:
    write_preset(tmp_path / "presets", "bad", "model: m\nargz: {}\n")
    error = console("up", "bad", code=2).err
    assert "bad.yaml:2: argz" in error
    assert "did you mean `args`?" in error
    assert "did you mean `bad`?" in console("show", "baad", code=2).err


def test_show_prints_the_exact_command(console: Console) -> None:
    out = console("show", DEFAULT, "--set", "max-num-seqs=4").out
    assert "--max-num-seqs 4" in out
    whole = console("show", DEFAULT, "--json").json
    assert whole["argv"][:3] == ["vllm", "serve", "unsloth/Qwen3.8-27B-NVFP4"]


def test_one_life_from_up_to_down(demo: Console) -> None:
    up = demo("up")
    assert up.out.startswith("http://127.0.0.1:")
    assert "SIMULATED" in up.err
    assert "ready in" in up.err
    again = demo("up", DEFAULT)
    assert again.out == up.out
    assert "ready already" in again.err
    other = demo("up", "qwen3.8-27b-nvfp4-throughput", code=4).err
    assert DEFAULT in other
    whole = demo.status()
    assert whole["schema"] == 1
    server = whole["server"]
    assert (server["state"], server["phase"], server["preset"]) == ("ready", "ready", DEFAULT)
    assert server["model"] == "qwen3.8-27b"
    assert server["version"] == "0.32.0+sim"
    assert len(whole["gpus"]) == 2
    assert whole["gpus_problem"] is None
    assert whole["reading"]["window_s"] is None
    assert whole["reading"]["generation_tokens_per_s"] is None
    assert whole["reading"]["running"] == 0
    assert whole["reading"]["prefix_cache"]["enabled"] is True
    assert whole["reading"]["mtp"] is None
    assert "Application startup complete" in demo("logs", "-n", "400").out
    assert "stopped" in demo("down").err
    assert demo.state == "stopped"
    assert demo.processes() == []
    assert demo("down", code=3).err


def test_nothing_to_act_on(demo: Console) -> None:
    assert "fix:" in demo("down", code=3).err
    assert "fix:" in demo("restart", code=3).err
    assert "fix:" in demo("logs", code=3).err
    assert "fix:" in demo("ab", "show", code=3).err
    assert "fix:" in demo("ab", "stop", code=3).err
    whole = demo.status()
    assert whole["server"]["state"] == "stopped"
    assert whole["gpus"] == []
    assert whole["gpus_problem"]


def test_restart_takes_another_preset(demo: Console) -> None:
    demo("up")
    demo("restart", "qwen3.8-27b-nvfp4-100k-mtp")
    whole = demo.status()
    assert whole["server"]["preset"] == "qwen3.8-27b-nvfp4-100k-mtp"
    assert whole["reading"]["mtp"] == {
        "acceptance_rate": None,
        "mean_acceptance_length": None,
        "per_position": None,
        "drafts": 0,
    }
    demo("down")


def test_a_console_killed_while_it_starts_a_server_loses_nothing(demo: Console) -> None:
    demo.env["QWEN_CONSOLE_SIM_START_S"] = "3"
    up = demo.start("up")
    wait_until(lambda: demo.state == "starting")
    up.send_signal(signal.SIGKILL)
    up.communicate()
    wait_until(lambda: demo.state == "ready")
    demo("down")
    assert demo.processes() == []


def test_interrupting_up_leaves_the_server(demo: Console) -> None:
    demo.env["QWEN_CONSOLE_SIM_START_S"] = "3"
    up = demo.start("up")
    wait_until(lambda: demo.state == "starting")
    up.send_signal(signal.SIGINT)
    out, _ = up.communicate(timeout=20)
    assert up.returncode == 130
    assert "`qwen-console --demo down`" in out
    wait_until(lambda: demo.state == "ready")
    demo("down")


def test_a_strangers_port_is_never_called_ready(console: Console, tmp_path: Path, stranger: int) -> None:
    write_preset(tmp_path / "presets", "p", f"model: m\ncommand: {SIM}\nserver: {{port: {stranger}}}\n")
    result = console("up", "p", code=1)
    assert "port-in-use" in result.err
    assert "fix:" in result.err
    server = console.status()["server"]
    assert server["state"] != "ready"
    assert server["diagnosis"]["cause"] == "port-in-use"
    assert console.processes() == []


def test_metrics_that_are_html_are_a_sentence(console: Console, stranger: int) -> None:
    result = console("status", "--url", f"http://127.0.0.1:{stranger}")
    assert "why:" in result.out
    whole = console.status("--url", f"http://127.0.0.1:{stranger}")
    assert whole["reading"]["running"] is None
    assert whole["reading"]["problem"]["what"]


def test_a_key_is_sent_and_never_shown(console: Console, tmp_path: Path) -> None:
    port = free_port()
    write_preset(tmp_path / "presets", "p", f"model: m\nserved-name: m\ncommand: {SIM}\nserver: {{port: {port}}}\n")
    console.env |= {
        "VLLM_API_KEY": "sesame-open",
        "HTTP_PROXY": "http://127.0.0.1:9",
        "http_proxy": "http://127.0.0.1:9",
    }
    console("up", "p")
    del console.env["VLLM_API_KEY"]
    whole = console.status("--window", "1")
    assert whole["server"]["state"] == "ready"
    assert whole["reading"]["window_s"] == pytest.approx(1, abs=0.5)
    state = Path(console.env["XDG_STATE_HOME"])
    kept = [file.read_text(errors="replace") for file in state.rglob("*") if file.is_file()]
    assert "sesame-open" not in "".join(kept)
    console("down")


def test_a_failed_start_tells_its_cause(console: Console, tmp_path: Path) -> None:
    write_preset(
        tmp_path / "presets",
        "p",
        f"model: m\ncommand: {SIM}\nenv: {{QWEN_CONSOLE_SIM_FAULT: oom}}\nserver: {{port: {free_port()}}}\n",
    )
    error = console("up", "p", code=1).err
    assert "cause: oom" in error
    assert "gpu-memory-utilization" in error
    assert console.status()["server"]["diagnosis"]["cause"] == "oom"
    assert console.processes() == []


def test_diagnose_reads_any_file(console: Console, tmp_path: Path) -> None:
    log = tmp_path / "some.log"
    log.write_text("vllm: error: unrecognized arguments: --nonsense-flag 3\n")
    found = console("diagnose", str(log), "--json").json
    assert found["cause"] == "bad-flag"
    assert "--nonsense-flag" in json.dumps(found)
    assert "fix:" in console("diagnose", str(tmp_path / "none.log"), code=2).err


def test_what_the_system_refuses_is_a_sentence(demo: Console, tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        words, pipe = demo.words("presets"), subprocess.PIPE
        done = subprocess.run(words, env=demo.environment(), stdout=full, stderr=pipe, text=True, check=False)
    assert done.returncode == 1
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr
    (tmp_path / "file").touch()
    demo.env["XDG_STATE_HOME"] = str(tmp_path / "file")
    error = demo("up", code=1).err
    assert "is a file, not a folder" in error
    assert "fix:" in error


def test_a_terminal_that_cannot_show_the_console_is_refused(demo: Console) -> None:
    demo.env["TERM"] = "dumb"
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(sys.executable, demo.words(), demo.environment())
    said = b""
    with suppress(OSError):
        while chunk := os.read(fd, 4096):
            said += chunk
    os.close(fd)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 2
    assert b"TERM=xterm-256color" in said
