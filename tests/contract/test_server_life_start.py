"""Starting: what is refused, who wins, when a server is ready, and what a failed start says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from threading import Barrier, Thread

import pytest

from console.endpoint import free_port
from console.errors import BusyError, ConsoleError, Exit, UsageError
from console.server.run_lock import hold_run_lock, run_is_live
from console.server.start import PortInUse
from console.server.status import Phase, ServerStatus, State
from tests.contract.life_house import House, open_house, stranger, until


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    with open_house(tmp_path, monkeypatch) as opened:
        yield opened


def test_a_server_starts_gets_ready_and_stops(house: House) -> None:
    preset = house.preset()
    house.server.start(preset)
    seen = list(house.server.follow_start())
    ready = seen[-1]
    assert [one.state for one in seen][-1] is State.READY
    assert {one.state for one in seen[:-1]} == {State.STARTING}
    assert ready.phase is Phase.READY
    assert (ready.preset, ready.model, ready.version) == ("small", "m", "1.2.3")
    assert ready.pid == house.child.pid
    assert ready.pid in ready.ours
    assert ready.url == f"http://127.0.0.1:{preset.server.port}"
    assert ready.uptime_s is not None
    assert "vllm:num_requests_running" in (house.server.baseline() or "")
    report = house.server.stop()
    assert (report.left, report.escalated) == ((), False)
    assert house.server.status().state is State.STOPPED
    house.must_be_empty()


def test_the_canary_is_sent_once_whoever_looks(house: House) -> None:
    house.server.start(house.preset())
    others = [house.another() for _ in range(3)]
    threads = [Thread(target=lambda one=one: list(one.follow_start())) for one in others]
    for thread in threads:
        thread.start()
    last = list(house.server.follow_start())[-1]
    for thread in threads:
        thread.join()
    assert last.state is State.READY
    assert house.requests.read_text().count("request") == 1
    house.server.stop()


def test_a_look_without_a_follower_gets_a_started_server_ready(house: House) -> None:
    house.server.start(house.preset())
    until(lambda: house.another().status().state is State.READY, "ready")
    house.server.stop()


def test_another_console_finds_the_server(house: House) -> None:
    house.up()
    other = house.another()
    preset = other.preset()
    assert other.status().state is State.READY
    assert preset is not None
    assert preset.name == "small"
    with pytest.raises(BusyError) as caught:
        other.start(house.preset())
    assert caught.value.exit_code is Exit.BUSY
    assert "small is up" in caught.value.what
    assert "qwen-console down" in caught.value.fix
    other.stop()


def test_of_two_starts_at_once_exactly_one_wins(house: House) -> None:
    consoles, together = [house.another() for _ in range(4)], Barrier(4)
    lost: list[BusyError] = []

    def start(index: int) -> None:
        together.wait()
        try:
            consoles[index].start(house.preset())
        except BusyError as error:
            lost.append(error)

    threads = [Thread(target=start, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lost) == 3
    assert list(house.server.follow_start())[-1].state is State.READY
    house.server.stop()


def test_a_port_in_use_is_told_with_its_owner_and_never_called_ready(house: House) -> None:
    before = time.time() - 0.001
    with stranger() as port:
        with pytest.raises(PortInUse) as caught:
            house.server.start(house.preset(port=port))
        status = house.server.status()
    assert caught.value.cause == "port-in-use"
    assert f"pid {os.getpid()}" in caught.value.why
    assert str(port) in caught.value.what
    assert status.state is State.FAILED
    assert status.diagnosis is not None
    assert status.diagnosis.cause == "port-in-use"
    assert before <= datetime.fromisoformat(status.failed_at or "").timestamp() <= time.time()
    house.up()
    house.server.stop()
    assert house.server.status().state is State.STOPPED


def test_a_port_stolen_after_the_check_fails_the_start(house: House) -> None:
    port = free_port()
    house.server.start(house.preset("late", port=port))
    seen: list[ServerStatus] = []
    with stranger(port):
        seen += [house.server.status() for _ in range(3)]
        house.go.touch()
        seen += house.server.follow_start()
        told = house.server.status().diagnosis
    assert told is not None
    assert State.READY not in {one.state for one in seen}
    assert f"pid {os.getpid()}" in (seen[0].note or "")
    assert seen[-1].state is State.FAILED
    assert seen[-1].diagnosis is not None
    assert seen[-1].diagnosis.cause == "port-in-use"
    assert f"(pid {os.getpid()}) listens on port {port}" in told.why
    assert not house.requests.exists(), "a stranger was sent our canary"


def test_a_server_that_never_gets_ready_is_stopped_and_stays_explained(house: House) -> None:
    house.server.start(house.preset("never-listens", timeout_s=1.0))
    last = list(house.server.follow_start())[-1]
    assert last.state is State.FAILED
    assert last.diagnosis is not None
    assert last.diagnosis.phase is Phase.START
    assert house.another().status().diagnosis == last.diagnosis
    assert Path(last.log or "").read_text().startswith("small engine starts")
    house.must_be_empty()


def test_an_engine_that_dies_of_the_first_request_fails_the_start(house: House) -> None:
    house.server.start(house.preset("crash-at-first workers"))
    last = list(house.server.follow_start())[-1]
    assert last.state is State.FAILED
    assert last.diagnosis is not None
    assert last.diagnosis.cause == "engine-crashed"
    house.must_be_empty()


def test_a_server_without_our_model_is_not_ready(house: House) -> None:
    house.server.start(house.preset("other-model"))
    last = list(house.server.follow_start())[-1]
    assert last.state is State.FAILED
    assert last.diagnosis is not None
    assert last.diagnosis.cause == "bad-value"
    house.must_be_empty()


def test_an_early_death_is_told_with_its_code(house: House) -> None:
    house.server.start(house.preset("exit-3"))
    last = list(house.server.follow_start())[-1]
    assert last.state is State.FAILED
    assert last.diagnosis is not None
    assert last.failed_at is not None
    assert "3" in last.diagnosis.what + last.diagnosis.why


@pytest.mark.parametrize("word", ["docker", "/usr/bin/podman"])
def test_containers_are_refused_with_a_sentence(house: House, word: str) -> None:
    with pytest.raises(UsageError, match="cannot be the command"):
        house.server.start(replace(house.preset(), command=(word, "run", "vllm")))


def test_a_missing_command_names_where_it_was_looked_for(house: House) -> None:
    with pytest.raises(ConsoleError) as caught:
        house.server.start(replace(house.preset(), command=("no-such-vllm", "serve")))
    assert "no-such-vllm" in caught.value.what
    assert str(Path(sys.executable).parent) in caught.value.why
    assert "command:" in caught.value.fix


def test_a_command_that_cannot_run_is_an_error_and_leaves_nothing(house: House) -> None:
    broken = house.folder / "broken"
    broken.write_bytes(b"\x7fELF no program")
    broken.chmod(0o700)
    with pytest.raises(ConsoleError, match="could not be started"):
        house.server.start(replace(house.preset(), command=(str(broken),)))
    assert house.server.status().state is State.STOPPED
    house.up()
    house.server.stop()


def test_a_live_run_refuses_everybody_but_itself(house: House) -> None:
    with hold_run_lock(house.paths, "r1"):
        assert run_is_live(house.paths) == "r1"
        with pytest.raises(BusyError) as caught:
            house.server.start(house.preset())
        assert "qwen-console ab stop" in caught.value.fix
        with pytest.raises(BusyError), hold_run_lock(house.paths, "r2"):
            pass
        house.server.start(house.preset(), for_run="r1")
        with pytest.raises(BusyError):
            house.server.stop()
        assert house.server.stop(for_run="r1").left == ()
        house.server.start(house.preset(), for_run="r1")
    assert run_is_live(house.paths) is None
    house.server.stop()


def test_the_key_reaches_requests_and_never_the_disk(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    preset = house.preset()
    secret = "sk-very-secret"
    house.server.start(replace(preset, env={**preset.env, "VLLM_API_KEY": secret}, secrets=frozenset({"VLLM_API_KEY"})))
    monkeypatch.delenv("VLLM_API_KEY", raising=False)
    other = house.another()
    endpoint, found = other.endpoint(), other.preset()
    assert endpoint is not None
    assert endpoint.key == secret
    assert found is not None
    assert found.api_key == secret
    assert secret in other.secrets()
    assert list(house.server.follow_start())[-1].state is State.READY
    house.server.stop()
    for file in house.paths.state.rglob("*"):
        if file.is_file():
            assert secret.encode() not in file.read_bytes()
            assert file.stat().st_mode & 0o077 == 0
    assert house.paths.state.stat().st_mode & 0o077 == 0


_STARTER = """
import json, sys
from console.paths import Paths
from console.presets import Preset
from console.server.life import Server
server = Server(Paths.from_env())
server.start(Preset.from_json(json.loads(sys.argv[1])))
list(server.follow_start())
"""


@pytest.mark.parametrize("moment", ["server.lock", "keeper.json", "server.json", "canary.lock"])
def test_a_console_killed_over_its_start_leaves_a_whole_server_or_none(house: House, moment: str) -> None:
    preset = json.dumps(house.preset("workers", grace_s=0.5).to_json())
    console = subprocess.Popen([sys.executable, "-P", "-c", _STARTER, preset])
    try:
        until((house.paths.state / moment).exists, moment)
    finally:
        console.send_signal(signal.SIGKILL)
        console.wait()
    until(lambda: house.server.status().state in (State.READY, State.STOPPED), "an end")
    if house.server.status().state is State.STOPPED:
        assert moment in ("server.lock", "keeper.json")
        house.must_be_empty()
        house.up("workers", grace_s=0.5)
    house.server.stop()
