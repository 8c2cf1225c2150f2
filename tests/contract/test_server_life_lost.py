"""What can be lost: the keeper, the record, both; the server is found all the same, and stopped whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.errors import BusyError
from console.server.keeper_spawn import KeeperSpec, spawn_keeper
from console.server.process import alive, identify, send
from console.server.state import read_exit, read_server
from console.server.status import State
from console.server.stop import stop_life, wait_gone
from tests.contract.life_house import DEADLINE_S, House, open_house, until


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    with open_house(tmp_path, monkeypatch) as opened:
        yield opened


def _lose_keeper(house: House) -> None:
    keeper = house.record.keeper
    assert send(keeper, signal.SIGKILL)
    assert wait_gone(keeper, time.monotonic() + DEADLINE_S)


def test_a_server_without_its_keeper_goes_on_and_stops_whole(house: House) -> None:
    house.up("workers daemon", grace_s=0.5)
    _lose_keeper(house)
    status = house.another().status()
    assert status.state is State.READY
    assert "keeper was lost" in (status.note or "")
    assert len(status.ours) == 4, "leader, two workers, and the daemon by its marker"
    with pytest.raises(BusyError, match="keeper was lost"):
        house.another().start(house.preset())
    report = house.another().stop()
    assert "recorded identity" in report.how
    assert report.left == ()
    house.must_be_empty()
    assert house.server.status().state is State.STOPPED
    house.up()
    house.server.stop()


def test_workers_of_a_dead_leader_without_a_keeper_are_found_and_ended(house: House) -> None:
    house.up("workers daemon", grace_s=0.5)
    _lose_keeper(house)
    send(house.child, signal.SIGKILL)
    until(lambda: house.server.status().state is State.FAILED, "failed")
    status = house.server.status()
    assert len(status.ours) == 3
    assert "qwen-console down" in (status.note or "")
    with pytest.raises(BusyError):
        house.server.start(house.preset())
    assert house.server.stop().left == ()
    house.must_be_empty()


def test_a_keeper_lost_in_the_middle_of_a_stop(house: House) -> None:
    house.up("deaf workers", grace_s=1.0)
    keeper = house.record.keeper
    send(keeper, signal.SIGTERM)
    until(lambda: house.server.status().state is State.STOPPING, "stopping")
    send(keeper, signal.SIGKILL)
    assert house.another().stop().left == ()
    house.must_be_empty()


def test_a_server_that_ends_without_a_keeper_is_not_called_stopped(house: House) -> None:
    house.up()
    _lose_keeper(house)
    send(house.child, signal.SIGKILL)
    until(lambda: house.server.status().state is State.FAILED, "failed")
    # For a moment its own processes are still ending.
    until(lambda: "not on record" in (house.server.status().note or ""), "the note")
    house.up()
    house.server.stop()


@pytest.mark.parametrize("torn", ["", "{", '{"schema": 99}', '{"schema": 1, "life": 7}', "[]", "\x00\xff"])
def test_a_torn_record_means_stopped_with_a_note(house: House, torn: str) -> None:
    house.paths.server_record.write_text(torn)
    house.paths.exit_record.write_text(torn)
    house.paths.canary.write_text(torn)
    status = house.server.status()
    assert status.state is State.STOPPED
    assert "server.json" in (status.note or "")
    house.up()
    house.server.stop()


@pytest.mark.parametrize("torn", [None, "{", '{"schema": 99}'])
@pytest.mark.parametrize("keeper_lost", [False, True])
def test_a_living_server_with_a_torn_record_is_found_by_its_marker(
    house: House, torn: str | None, keeper_lost: bool
) -> None:
    ready = house.up("workers", grace_s=0.5)
    if keeper_lost:
        _lose_keeper(house)
    if torn is None:
        house.paths.server_record.unlink()
    else:
        house.paths.server_record.write_text(torn)
    other = house.another()
    status = other.status()
    assert (status.state, status.pid) == (State.READY, ready.pid)
    if torn is not None:
        assert "found by its marker" in (status.note or "") or keeper_lost
    with pytest.raises(BusyError):
        other.start(house.preset())
    assert other.stop().left == ()
    house.must_be_empty()


def _spec(house: House, code: str, **more: object) -> KeeperSpec:
    folder = house.folder / "run"
    folder.mkdir(exist_ok=True)
    return KeeperSpec(
        argv=(sys.executable, "-c", code),
        log=folder / "out.log",
        record=folder / "server.json",
        exit=folder / "exit.json",
        **more,  # type: ignore[arg-type]
    )


def _env(house: House) -> dict[str, str]:
    return {"FOLDER": str(house.folder)}


@pytest.mark.parametrize(
    ("code", "calls"),
    [("raise SystemExit(3)", True), ("import os; os.kill(os.getpid(), 9)", True), ("raise SystemExit(0)", False)],
)
def test_on_death_runs_once_when_the_child_died(house: House, code: str, calls: bool) -> None:
    trace = house.folder / "trace"
    after = (sys.executable, "-c", f"open({str(trace)!r}, 'a').write('x')")
    spec = _spec(house, code, on_death=after)
    spawned = spawn_keeper(spec, _env(house))
    keeper = identify(spawned.keeper)
    if keeper:
        wait_gone(keeper, time.monotonic() + DEADLINE_S)
    assert (trace.read_text() if trace.exists() else "") == ("x" if calls else "")


def test_the_keeper_cuts_a_log_that_grows_too_long(house: House) -> None:
    code = "import time; print('first line'); print('x' * 5000, flush=True); time.sleep(600)"
    spec = _spec(house, code, log_limit=1000)
    spawn_keeper(spec, _env(house))
    until(lambda: spec.log.stat().st_size > 5000 or Path(f"{spec.log}.1").exists(), "the log")
    record, _ = read_server(spec.record)
    assert record is not None
    # Any child of a subreaper that ends wakes it; else it looks by itself, seconds apart.
    send(record.keeper, signal.SIGCHLD)
    until(lambda: spec.log.stat().st_size == 0, "the cut")
    assert Path(f"{spec.log}.1").read_text().startswith("first line")
    stop_life(record, spec.record, spec.exit, reason="test")


def test_on_death_does_not_run_after_an_asked_end(house: House) -> None:
    trace = house.folder / "trace"
    code = (
        "import signal, sys, time, pathlib, os\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))\n"
        f"pathlib.Path({str(house.go)!r}).touch()\n"
        "time.sleep(600)"
    )
    spec = _spec(house, code, on_death=(sys.executable, "-c", f"open({str(trace)!r}, 'a').write('x')"))
    spawn_keeper(spec, _env(house))
    until(house.go.exists, "the child")
    record, _ = read_server(spec.record)
    assert record is not None
    stop_life(record, spec.record, spec.exit, reason="ab stop")
    end, _ = read_exit(spec.exit)
    assert end is not None
    assert (end.code, end.asked, end.asked_by) == (5, True, "ab stop")
    assert not trace.exists()


def test_a_lab_that_dies_takes_no_server_with_it(house: House) -> None:
    """The lab's keeper ends the lab's own processes, and leaves alone what has a keeper of its own."""
    preset = house.preset("workers", grace_s=0.5)
    lab = (
        "import json, subprocess, sys, time\n"
        "from console.paths import Paths\n"
        "from console.presets import Preset\n"
        "from console.server.life import Server\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"Server(Paths.from_env()).start(Preset.from_json({preset.to_json()!r}))\n"
        "time.sleep(600)\n"
    )
    spec = _spec(house, lab, subreaper=False)
    spawn_keeper(spec, dict(os.environ))
    until(lambda: house.server.record() is not None, "the server")
    assert list(house.server.follow_start())[-1].state is State.READY
    record, _ = read_server(spec.record)
    assert record is not None
    assert len(record.kin.find(search=True)) == 2
    assert record.child is not None
    send(record.child, signal.SIGKILL)
    assert wait_gone(record.keeper, time.monotonic() + DEADLINE_S)
    assert house.server.status().state is State.READY
    assert alive(house.record.keeper)
    house.server.stop()


def test_the_keeper_is_small_and_knows_nothing_of_the_console(house: House) -> None:
    house.up()
    status = Path(f"/proc/{house.record.keeper.pid}/status").read_text()
    resident = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    assert resident < 15_000, f"{resident} kB"
    house.server.stop()
    code = "import sys, console.server.keeper; print(*sorted(n for n in sys.modules if not n.startswith('_')))"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    ours = {name for name in done.stdout.split() if name.split(".")[0] == "console"}
    known = set(sys.stdlib_module_names) | {"console", "sitecustomize", "usercustomize"}
    assert ours <= {
        f"console.server.{name}" for name in ("ending", "keeper", "process", "recording", "rotation", "shapes", "state")
    } | {
        "console",
        "console.address",
        "console.files",
        "console.server",
    }
    assert not {name for name in done.stdout.split() if name.split(".")[0] not in known and "distutils" not in name}
