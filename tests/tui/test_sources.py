"""One look at each source: what it makes of the real readers below it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from console.endpoint import EndpointError, Reply
from console.gpu.sample import GpuReport
from console.paths import Paths
from console.server.run_lock import hold_run_lock
from console.server.status import ServerStatus, State
from console.tui.app import ConsoleApp
from console.tui.messages import CardsSeen, NoticesSeen, ReadingLost, ReadingSeen, RunSeen
from console.tui.runs import Runs
from console.tui.sources import Sources
from tests.tui.fakes import READY, STARTING, FakeServer, House, screen_text, shows, sources, until
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
