"""`down --drain`, `restart`, `doctor`, servers that are not ours, and the cards at a stop: through real processes."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from console.endpoint import free_port
from tests.console_process import Console, wait_until, write_preset
from tests.contract.nvml import rig
from tests.contract.sim_process import ready, stand_in

SIM = f"[{sys.executable}, -P, -m, console.sim]"
GIB = 1024**3


class House:
    """A console with presets of its own, whose command is the stand-in."""

    def __init__(self, folder: Path, state: Path) -> None:
        self.presets = folder / "presets"
        env = {"XDG_STATE_HOME": str(state), "QWEN_CONSOLE_PRESETS": str(self.presets)}
        self.console = Console(env | {"QWEN_CONSOLE_SIM_START_S": "0.5"})

    def preset(self, name: str, *, port: int | None = None, env: str = "", server: str = "") -> str:
        """A preset file; its name."""
        text = (
            f"model: acme/tiny\nserved-name: tiny\ncommand: {SIM}\nargs: {{max-model-len: 8192, max-num-seqs: 4}}\n"
            f"env: {{{env}}}\nserver: {{port: {free_port() if port is None else port}, stop-grace: 5{server}}}\n"
        )
        write_preset(self.presets, name, text)
        return name


@contextmanager
def lived_in(folder: Path, state: Path) -> Iterator[House]:
    """A house that nothing may be left running in."""
    found = House(folder, state)
    yield found
    left = found.console.processes()
    found.console.end()
    assert left == [], f"left running: {left}"


@pytest.fixture
def house(tmp_path: Path, own_folders: Path) -> Iterator[House]:
    with lived_in(tmp_path, own_folders / "state") as found:
        yield found


def ask(url: str, tokens: int) -> Any:
    """One completion; returns when it is whole."""
    body = {"model": "tiny", "prompt": "count", "max_tokens": tokens, "ignore_eos": True}
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(f"{url}/v1/completions", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def running(console: Console) -> int:
    return int(console.status()["reading"]["running"] or 0)


def test_draining_waits_for_running_requests_shows_them_and_can_be_broken_off(house: House) -> None:
    url = house.console("up", house.preset("p")).out.strip()
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(ask, url, 150)
        wait_until(lambda: running(house.console) == 1)
        down = house.console.start("down", "--drain", "60")
        assert down.stdout is not None
        assert "draining: 1 running, 0 waiting" in down.stdout.readline()
        down.send_signal(signal.SIGINT)
        assert "not stopped" in down.communicate(timeout=30)[0]
        assert down.returncode == 130
        again = house.console("down", "--drain", "60")
        assert answer.result()["usage"]["completion_tokens"] == 150
    assert "no request is in flight" in again.err
    assert house.console.state == "stopped"


def test_a_drain_has_an_end_and_says_what_it_cuts_off(house: House) -> None:
    url = house.console("up", house.preset("p")).out.strip()
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(ask, url, 7000)
        wait_until(lambda: running(house.console) == 1)
        down = house.console("down", "--drain", "0.5")
        assert answer.exception() is not None
    assert "still in flight after" in down.err
    assert ": 1; they are cut off" in down.err


def test_a_switch_that_fails_says_how_to_go_back_and_back_is_what_ran(house: House) -> None:
    house.preset("good")
    house.preset("bad", env="QWEN_CONSOLE_SIM_FAULT: oom")
    house.console("up", "good", "--set", "max-num-seqs=3")
    failed = house.console("restart", "bad", code=1).err
    assert "cause: oom" in failed
    assert "go back: `qwen-console restart --back` starts good again" in failed
    assert house.console.status()["server"]["diagnosis"]["cause"] == "oom"
    back = house.console("restart", "--back")
    server = house.console.status()["server"]
    assert (server["state"], server["preset"], server["url"]) == ("ready", "good", back.out.strip())
    record = json.loads(next(Path(house.console.env["XDG_STATE_HOME"]).rglob("server.json")).read_text())
    assert record["preset"]["args"]["max-num-seqs"] == 3, "as it was then, with its --set"
    house.console("down")


def test_back_is_what_was_ready_before_after_a_crash_and_after_a_restart(house: House) -> None:
    house.preset("first")
    house.preset("second")
    house.console("up", "first")
    house.console("restart", "second")
    os.kill(house.console.status()["server"]["pid"], signal.SIGKILL)
    wait_until(lambda: house.console.state == "failed")
    house.console("restart", "second")
    house.console("restart")
    house.console("restart", "--back")
    assert house.console.status()["server"]["preset"] == "first"
    house.console("restart", "--back")
    assert house.console.status()["server"]["preset"] == "second"
    house.console("down")


def test_a_restart_says_what_the_file_says_otherwise_and_takes_it_by_name(house: House) -> None:
    house.preset("good")
    house.console("up", "good", "--set", "max-num-seqs=2")
    change = "max-num-seqs: 2 → 4"
    assert change in house.console("up", "good").err
    for other in (f"server.port={free_port()}", "max-num-seqs=3"):
        assert "the server good is up" in house.console("up", "good", "--set", other, code=4).err
    kept = house.console("restart")
    assert change in kept.err
    assert "`qwen-console restart good` starts it as the file says" in kept.err
    plan = house.console("ab", "aa", "--dry-run").out
    assert f"the file of good is measured, and its server was started otherwise: {change}" in plan
    assert change in house.console("restart").err
    assert change not in house.console("restart", "good").err
    assert "otherwise" not in house.console("restart").err
    house.console("down")


def test_a_stand_in_is_said_to_be_one_outside_of_a_demo_too(house: House) -> None:
    assert "starting p SIMULATED" in house.console("up", house.preset("p")).err
    assert house.console.status()["server"]["simulated"] is True
    assert "SIMULATED" in house.console("status").out
    listed = house.console("presets", "--json").json["presets"]
    assert [one["name"] for one in listed if one["simulated"]] == ["p"]
    house.console("down")


def test_a_switch_to_a_command_that_is_not_there_stops_nothing(house: House) -> None:
    house.preset("good")
    write_preset(house.presets, "gone", "model: m\ncommand: [no-such-vllm, serve]\n")
    house.console("up", "good")
    pid = house.console.status()["server"]["pid"]
    assert "no-such-vllm" in house.console("restart", "gone", code=1).err
    assert house.console.status()["server"]["pid"] == pid
    house.console("down")


def test_a_switch_to_a_port_that_somebody_holds_stops_nothing(house: House) -> None:
    house.preset("good")
    house.console("up", "good")
    pid = house.console.status()["server"]["pid"]
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        house.preset("taken", port=stranger.getsockname()[1])
        for words in (("restart", "taken"), ("restart", "taken", "--no-wait")):
            refused = house.console(*words, code=1).err
            assert "taken cannot start, and nothing was stopped: port" in refused
            assert f"(pid {os.getpid()})" in refused
    assert house.console.status()["server"]["pid"] == pid
    house.console("restart", "good")
    house.console("down")


def test_up_does_not_take_the_server_of_another_start_for_its_own(house: House) -> None:
    house.preset("first", env="QWEN_CONSOLE_SIM_START_S: '6'")
    house.preset("second")
    first = house.console.start("up", "first")
    wait_until(lambda: house.console.status()["server"]["phase"] in ("load", "compile"))
    second = house.console("restart", "second")
    out, _ = first.communicate(timeout=30)
    assert first.returncode == 1
    assert "did not become ready: it was stopped meanwhile" in out
    assert second.out.strip() not in out
    house.console("down")


def test_back_without_a_past_is_nothing_to_act_on(house: House) -> None:
    house.preset("good")
    assert "fix:" in house.console("restart", "--back", code=3).err


def test_a_server_that_is_not_ours_is_watched_and_never_touched(house: House, tmp_path: Path) -> None:
    port = free_port()
    house.preset("p", port=port)
    with stand_in(tmp_path, port=port) as stand:
        ready(stand)
        server = house.console.status()["server"]
        assert (server["state"], server["pid"], server["ours"]) == ("foreign", None, [])
        assert f"pid {stand.process.pid}" in server["note"]
        assert server["model"] == "q"
        assert house.console.status()["reading"]["running"] == 0
        assert "not ours to stop" in house.console("down", code=3).err
        assert "port-in-use" in house.console("up", "p", code=1).err
        assert stand.process.poll() is None
        page = urllib.request.urlopen(f"{stand.url}/metrics").read().decode()
        served = [line for line in page.splitlines() if line.startswith("vllm:request_success_total")]
        assert {line.rpartition(" ")[2] for line in served} <= {"0.0", "0"}, "it was sent a request"
    # What was refused stays told until the next start.
    assert house.console.status()["server"]["diagnosis"]["cause"] == "port-in-use"


def test_the_doctor_tells_all_and_exits_with_1_where_something_is_bad(house: House, tmp_path: Path) -> None:
    port = free_port()
    house.preset("p", port=port)
    write_preset(house.presets, "gone", "model: m\ncommand: [no-such-vllm, serve]\nserver: {port: 1}\n")
    told = house.console("doctor", "--json", code=1).json
    checks = {check["check"]: check for check in told["checks"]}
    assert {"console", "driver", "nvcc", "/dev/shm", "memlock", "disk: models", "logout", f"port {port}"} <= set(checks)
    assert all(check["verdict"] in ("ok", "look", "bad", "unknown") for check in checks.values())
    assert all(check["fix"] for check in checks.values() if check["verdict"] == "bad")
    assert checks["vllm: no-such-vllm"]["verdict"] == "bad"
    assert checks[f"port {port}"] | {"value": "free"} == checks[f"port {port}"]
    assert sum(told["count"].values()) == len(told["checks"])
    with stand_in(tmp_path, port=port) as stand:
        ready(stand)
        text = house.console("doctor", code=1).out
    assert re.search(rf"a vLLM server that is not ours: python\S* \(pid {stand.process.pid}\)", text)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rig.build(tmp_path_factory.mktemp("nvml"))


class Cards:
    """Two cards under the real `nvidia-ml-py`, with the memory that the test says."""

    def __init__(self, console: Console, library: Path, scenario: Path) -> None:
        console.env |= {"NVML_SCENARIO": str(scenario), "LD_LIBRARY_PATH": str(library)}
        self._path = scenario
        self.hold()

    def hold(self, pid: int | None = None, size: float = 0.0) -> None:
        """The first card by its bus: so many GiB for that process, nothing for anybody without one."""
        scenario = rig.two_cards()
        for index in (0, 1):
            scenario |= {f"{index}.graphics": "", f"{index}.compute": "", f"{index}.memory.used": GIB // 2}
        if pid is not None:
            scenario |= {"1.compute": f"{pid}:{round(size * GIB)}", "1.memory.used": round((size + 0.5) * GIB)}
        rig.write(self._path, scenario)


def test_a_stop_waits_until_the_cards_have_their_memory_back(house: House, library: Path, tmp_path: Path) -> None:
    cards = Cards(house.console, library, tmp_path / "scenario")
    house.console("up", house.preset("p"))
    pid = house.console.status()["server"]["pid"]
    cards.hold(pid, 14)
    down = subprocess.Popen(
        house.console.words("down"), env=house.console.environment(), stderr=subprocess.PIPE, text=True
    )
    assert down.stderr is not None
    said = ""
    while "waiting for the cards' memory" not in said:
        said += down.stderr.readline()
    server = house.console.status()["server"]
    assert (server["state"], server["phase"]) == ("stopping", "stopping")
    assert "is being stopped" in house.console("up", "p", code=4).err
    cards.hold()
    assert down.wait(30) == 0
    down.stderr.close()
    assert house.console.state == "stopped"


def test_memory_that_somebody_took_meanwhile_is_told(house: House, library: Path, tmp_path: Path) -> None:
    cards = Cards(house.console, library, tmp_path / "scenario")
    other = subprocess.Popen(["sleep", "600"])
    try:
        house.console("up", house.preset("p"))
        cards.hold(other.pid, 6)
        down = house.console("down")
        assert f"sleep (pid {other.pid}) 6.00 GiB" in down.err
        again = house.console("up", "p")
        assert "note: card 0 has 9.06 GiB free, 14.34 GiB are wanted" in again.err
        assert f"held by sleep (pid {other.pid})" in again.err
        house.console("down")
    finally:
        other.kill()
        other.wait()


def link(console: Console) -> Any:
    """The link of the chain that tells of the proof."""
    (found,) = [one for one in console.status()["chain"] if one["link"] == "long prompt"]
    return found


def test_proving_sends_one_prompt_of_the_whole_context_and_keeps_what_it_took(house: House) -> None:
    name = house.preset("p", env="QWEN_CONSOLE_SIM_SPEED: 20")
    house.console("up", name)
    assert (link(house.console)["verdict"], house.console.status()["server"]["proved"]) == ("unknown", None)
    proved = house.console("up", name, "--prove")
    assert "8,176 tokens" in proved.err
    assert link(house.console)["verdict"] == "ok"
    whole = house.console.status()
    assert whole["server"]["proved"] is True
    assert whole["lifetime"]["ttft_s"]["n"] == 0, "our own request stands in no figure"
    house.console("restart")
    assert house.console.status()["server"]["proved"] is True
    house.console("down")
    house.console("up", name, "--set", "max-num-seqs=2")
    assert house.console.status()["server"]["proved"] is None
    house.console("down")


def test_settings_that_start_and_die_of_a_long_prompt_are_found_out(house: House) -> None:
    name = house.preset("p", env="QWEN_CONSOLE_SIM_FAULT: oom-at-first-prefill")
    error = house.console("up", name, "--prove", code=1).err
    assert "ready in" in error
    assert "a prompt of 8,176 tokens was not answered" in error
    assert "cause: oom" in error
    assert "--max-num-batched-tokens" in error
    assert house.console.status()["server"]["diagnosis"]["cause"] == "oom"
    assert link(house.console)["verdict"] == "look"
