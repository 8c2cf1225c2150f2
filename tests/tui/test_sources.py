"""One look at each source: what it makes of the real readers below it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from console.endpoint import EndpointError, Reply
from console.gpu.sample import GpuReport
from console.paths import Paths
from console.server.run_lock import hold_run_lock
from console.server.status import ServerStatus, State
from console.tui.app import ConsoleApp
from console.tui.messages import CardsSeen, LogSeen, NoticesSeen, ReadingLost, ReadingSeen, RunSeen
from console.tui.runs import Runs
from console.tui.sources import Sources
from tests.tui.fakes import READY, STARTING, FakeServer, House, screen_text, settled, shows, until
from tests.unit.lab_runs import make_run, whole_run

PAGES = Path(__file__).parents[1] / "data" / "metrics"


@dataclass
class FakeEndpoint:
    """Answers `/metrics` with one page after another; the last one stays."""

    pages: list[str]
    url: str = "http://127.0.0.1:8000"
    error: EndpointError | None = None
    asked: list[str] = field(default_factory=list)

    def get(self, path: str, **_: object) -> Reply:
        self.asked.append(path)
        if self.error:
            raise self.error
        return Reply(200, self.pages.pop(0) if len(self.pages) > 1 else self.pages[0])


def sources(server: FakeServer, **changes: Any) -> Sources:
    services = replace(House(server).services(), paths=Paths.from_env(), **changes)
    found = Sources(services)
    found.status()
    return found


def real_pages() -> list[str]:
    return [(PAGES / f"vllm-0.32-prefix-{i}.txt").read_text() for i in (0, 1)]


def test_metrics_become_a_reading_over_the_window() -> None:
    server = FakeServer(READY, endpoint_now=FakeEndpoint(real_pages()))
    look = sources(server).reading
    look()
    seen = look()
    assert isinstance(seen, ReadingSeen)
    assert seen.reading is not None
    assert seen.reading.ttft_s.n == 12
    assert seen.reading.prefix_cache.enabled is True


def test_metrics_that_do_not_answer_leave_old_figures_with_their_age() -> None:
    endpoint = FakeEndpoint(real_pages())
    found = sources(FakeServer(READY, endpoint_now=endpoint))
    found.reading()
    endpoint.error = EndpointError("timeout", "http://x/metrics", "no answer within 2 s")
    seen = found.reading()
    assert isinstance(seen, ReadingLost)
    assert seen.age_s is not None
    assert seen.error.why == "no answer within 2 s"


def test_html_instead_of_metrics_is_said_and_is_no_crash() -> None:
    seen = sources(FakeServer(READY, endpoint_now=FakeEndpoint(["<html>hello</html>"]))).reading()
    assert isinstance(seen, ReadingLost)
    assert seen.age_s is None


def test_without_a_server_there_is_nothing_to_read_and_that_is_said_once() -> None:
    server = FakeServer(READY, endpoint_now=FakeEndpoint(real_pages()))
    found = sources(server)
    found.reading()
    server.now = ServerStatus()
    found.status()
    assert found.reading() == ReadingSeen(None)
    assert found.reading() is None


def test_a_new_server_starts_a_new_window() -> None:
    server = FakeServer(READY, endpoint_now=FakeEndpoint(real_pages()))
    found = sources(server)
    found.reading()
    server.now = replace(READY, pid=999)
    found.status()
    seen = found.reading()
    assert isinstance(seen, ReadingSeen)
    assert seen.reading is not None
    assert seen.reading.window_s is None


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


def test_the_newest_run_is_shown_once_and_again_when_it_grows() -> None:
    found = sources(FakeServer())
    assert found.runs.look() is None
    made = whole_run("mtp")
    seen = found.runs.look()
    assert isinstance(seen, RunSeen)
    assert seen.run is not None
    assert (seen.run.id, seen.run.state, seen.live) == (made.folder.name, "done", False)
    assert found.runs.look() is None
    with made.journal() as journal:
        journal.add("warning", text="late")
    assert isinstance(found.runs.look(), RunSeen)


def test_a_run_that_lives_is_live() -> None:
    made = make_run("mtp")
    found = sources(FakeServer())
    with hold_run_lock(made.paths, made.folder.name):
        seen = found.runs.look()
        assert isinstance(seen, RunSeen)
        assert seen.live
        assert seen.run is not None
        assert seen.run.state == "running"
    seen = found.runs.look()
    assert isinstance(seen, RunSeen)
    assert not seen.live


def test_a_folder_without_a_plan_is_no_run() -> None:
    paths = Paths.from_env()
    paths.make()
    (paths.runs / "99999999-junk").mkdir()
    assert sources(FakeServer()).runs.look() is None


def test_a_demo_has_cards_only_with_its_server() -> None:
    server = FakeServer()
    found = sources(server, demo=True)
    seen = found.cards()
    assert isinstance(seen, CardsSeen)
    assert "start a preset" in (seen.report.problem or "")
    server.now = READY
    found.status()
    seen = found.cards()
    assert isinstance(seen, CardsSeen)
    assert len(seen.report.cards) == 2


def test_cards_are_opened_once_and_closed_at_the_end() -> None:
    opened: list[str] = []

    class Card:
        def read(self) -> GpuReport:
            return GpuReport(0.0)

        def close(self) -> None:
            opened.append("closed")

    def open_gpus() -> Card:
        opened.append("opened")
        return Card()

    found = sources(FakeServer(), open_gpus=open_gpus)
    found.cards()
    found.cards()
    found.close()
    assert opened == ["opened", "closed"]


def test_what_a_silent_driver_told_before_is_no_figure_of_now(monkeypatch: pytest.MonkeyPatch) -> None:
    found = sources(FakeServer(READY))
    found.cards()
    seen = found.notices()
    assert isinstance(seen, NoticesSeen)
    assert seen.look.cards is not None
    monkeypatch.setattr("console.tui.sources.OLD_S", -1.0)
    seen = found.notices()
    assert isinstance(seen, NoticesSeen)
    assert seen.look.cards is None


def test_a_server_that_starts_is_not_read() -> None:
    endpoint = FakeEndpoint(real_pages())
    found = sources(FakeServer(replace(READY, state=State.STARTING), endpoint_now=endpoint))
    found.reading()
    assert endpoint.asked == []


@pytest.mark.parametrize(("status", "says"), [(STARTING, "it is starting"), (ServerStatus(), "start a preset")])
def test_cards_of_a_demo_that_are_not_there_yet_say_what_they_wait_for(status: ServerStatus, says: str) -> None:
    server = FakeServer(replace(status, pid=None))
    found = Sources(House(server, demo=True).services())
    found.status()
    seen = found.cards()
    assert isinstance(seen, CardsSeen)
    assert says in (seen.report.problem or "")


async def test_during_a_start_no_log_is_said_to_have_never_been() -> None:
    async with House(FakeServer(STARTING, slow_start=True)).app().run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        text = await shows(pilot, "nothing written yet")
        assert "no server has run yet" not in text


@pytest.mark.parametrize("told", [True, False])
async def test_that_a_run_has_ended_meanwhile_is_told_once(told: bool) -> None:
    made = whole_run("mtp")
    if not told:
        (made.paths.state / "run-shown").write_text(made.folder.name)
    services = replace(House(FakeServer(READY)).services(), paths=made.paths)
    async with ConsoleApp(services).run_test(size=(120, 40)) as pilot:
        screen = await shows(pilot, "✓ adopt on ")
        assert ("has ended: adopt; v shows it" in screen) == told
        assert (made.paths.state / "run-shown").read_text().strip() == made.folder.name
        await pilot.press("v", "v")
        await until(pilot, lambda: "has ended: adopt" not in screen_text(pilot.app))


def test_a_run_whose_process_is_still_coming_has_not_ended_and_its_end_is_news_later() -> None:
    made = whole_run("mtp")
    runs, journal = Runs(made.paths), made.folder / "journal.jsonl"
    told = journal.read_bytes()
    journal.unlink()
    for _ in range(2):
        coming = runs.look()
        assert isinstance(coming, RunSeen)
        assert coming.run is not None
        assert (coming.run.state, coming.live, coming.news) == ("running", False, False)
    with hold_run_lock(made.paths, made.folder.name):
        journal.write_bytes(told)
        begun = runs.look()
        assert isinstance(begun, RunSeen)
        assert (begun.live, begun.news) == (True, False)
    ended = runs.look()
    assert isinstance(ended, RunSeen)
    assert (ended.live, ended.news) == (False, True)
    with hold_run_lock(made.paths, made.folder.name):
        runs.look()
    again = runs.look()
    assert isinstance(again, RunSeen)
    assert again.news, "it was gone on with, and has ended once more"


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
