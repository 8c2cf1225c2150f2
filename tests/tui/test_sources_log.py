"""The log as the console reads it: folded, bounded, without secrets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from console.paths import Paths
from console.server.status import State
from console.tui.messages import LogSeen
from tests.tui.fakes import READY, STARTING, FakeServer, House, settled, shows, sources


def test_the_log_comes_folded_and_without_secrets(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("key hunter22\nloading: 10%|#\rloading: 100%|##########\ndone\n")
    found = sources(FakeServer(replace(READY, log=str(log))))
    assert found.log() == LogSeen(str(log), ("key •••", "loading: 100%|##########", "done"))
    assert found.log() is None
    with log.open("a") as file:
        file.write("more\n")
    seen = found.log()
    assert isinstance(seen, LogSeen)
    assert seen.lines[-1] == "more"


def test_a_flood_is_skipped_to_its_end(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("first\n")
    found = sources(FakeServer(replace(READY, log=str(log))))
    found.log()
    with log.open("a") as file:
        file.writelines(f"line {i} {'x' * 100}\n" for i in range(20_000))
    seen = found.log()
    assert isinstance(seen, LogSeen)
    assert seen.lines[-1].startswith("line 19999 ")
    assert len(seen.lines) <= 2000


def test_a_log_that_grows_by_nothing_but_our_own_looks_is_not_news(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("ready\n")
    found = sources(FakeServer(replace(READY, log=str(log))))
    found.log()
    with log.open("a") as file:
        file.write('(APIServer pid=1) INFO:     127.0.0.1:5 - "GET /metrics HTTP/1.1" 200 OK\n')
    assert found.log() is None
    with log.open("a") as file:
        file.write("said\n")
    assert found.log() == LogSeen(str(log), ("ready", "said"))


def test_another_log_replaces_the_first(tmp_path: Path) -> None:
    first, second = tmp_path / "1.log", tmp_path / "2.log"
    first.write_text("one\n")
    second.write_text("two\n")
    server = FakeServer(replace(READY, log=str(first)))
    found = sources(server)
    found.log()
    server.now = replace(READY, log=str(second))
    found.status()
    assert found.log() == LogSeen(str(second), ("two",))


async def test_during_a_start_no_log_is_said_to_have_never_been() -> None:
    async with House(FakeServer(STARTING, slow_start=True)).app().run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        text = await shows(pilot, "nothing written yet")
        assert "no server has run yet" not in text


def test_a_log_that_an_idle_server_filled_with_our_own_looks_is_looked_through_for_what_it_says(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    look = 'INFO:     127.0.0.1:1 - "GET /metrics HTTP/1.1" 200 OK\n'
    said = "".join(f"line {i}\n" for i in range(300))
    log.write_text(said + look * (400_000 // len(look)))
    found = sources(FakeServer(replace(READY, log=str(log))))
    seen = found.log()
    assert isinstance(seen, LogSeen)
    assert seen.lines == tuple(said.splitlines())
    with log.open("a") as file:
        file.write("more\n")
    seen = found.log()
    assert isinstance(seen, LogSeen)
    assert seen.lines[-1] == "more"


def test_a_long_log_does_not_begin_in_the_middle_of_a_line(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("".join(f"{i:06d} and the rest of this line\n" for i in range(20_000)))
    seen = sources(FakeServer(replace(READY, log=str(log)))).log()
    assert isinstance(seen, LogSeen)
    assert all(len(line) == len(seen.lines[-1]) for line in seen.lines)


async def test_where_no_log_is_known_nothing_wrong_is_said_of_it() -> None:
    elsewhere = replace(READY, state=State.FOREIGN, preset=None, log=None)
    async with House(FakeServer(elsewhere)).app().run_test(size=(80, 24)) as pilot:
        text = await shows(pilot, "not started here: no log")
        assert "no server has run yet" not in text


def test_what_a_run_asks_its_arm_is_left_out_of_its_log() -> None:
    paths = Paths.from_env()
    folder = paths.run("20261129-120000-mtp")
    folder.mkdir(parents=True)
    asks = 'INFO:     127.0.0.1:1 - "POST /tokenize HTTP/1.1" 200 OK\n'
    (folder / "boot-1.log").write_text("up\n" + asks * 3000)
    server = FakeServer(replace(READY, log=str(folder / "boot-1.log")))
    assert sources(server).log() == LogSeen(server.now.log, ("up",))
