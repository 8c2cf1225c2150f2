"""What stands on the screen of a server that is gone is marked as doubtful at once, all of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from textual.pilot import Pilot

from console.endpoint import EndpointError
from console.gpu.sample import GpuReport
from console.server.status import ServerStatus, State
from console.tui.app import ConsoleApp
from console.tui.messages import CardsSeen, ReadingLost, ReadingSeen, StatusSeen
from console.tui.sources import Sources
from tests.tui.fakes import BUSY, CARDS, FAILED, READY, FakeServer, House, settled, shows, until

REFUSED = ReadingLost(EndpointError("refused", "http://127.0.0.1:8000", "connection refused"), 0.5)
BETWEEN = ServerStatus(State.STARTING, url="http://127.0.0.1:8001")
"""Between two boots of an A/B run."""


async def busy(pilot: Pilot[Any]) -> ConsoleApp:
    """A demo with figures; from here on nothing is looked at."""
    app = await settled(pilot)
    await shows(pilot, "● ready", "61 °C")
    app.workers.cancel_all()
    await pilot.pause()
    app.dashboard.post_message(ReadingSeen(BUSY))
    await until(pilot, lambda: app.situation.requests == 3)
    return app


def olds(app: ConsoleApp) -> dict[str, bool]:
    """What is marked as old."""
    *cards, reading = app.dashboard.forms
    return {"header": app.dashboard._header.old, "cards": cards[0].old, "reading": reading.old}


async def test_a_port_that_takes_no_connection_makes_the_whole_screen_doubtful_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with House(FakeServer(READY), demo=True).app().run_test(size=(80, 24)) as pilot:
        app = await busy(pilot)
        poked: list[bool] = []
        monkeypatch.setattr(app._rhythm, "poke", lambda: poked.append(True))
        for _ in range(2):
            app.dashboard.post_message(REFUSED)
        await until(pilot, lambda: olds(app) == {"header": True, "cards": True, "reading": True})
        assert poked == [True]
        # A look that still finds it alive does not make it any surer.
        app.dashboard.post_message(StatusSeen(READY))
        await pilot.pause()
        assert olds(app)["header"]
        app.dashboard.post_message(StatusSeen(FAILED))
        await until(pilot, lambda: not olds(app)["header"])


async def test_a_slow_answer_makes_only_its_figures_doubtful() -> None:
    async with House(FakeServer(READY), demo=True).app().run_test(size=(80, 24)) as pilot:
        app = await busy(pilot)
        app.dashboard.post_message(ReadingLost(EndpointError("timeout", "http://x", "no answer"), 0.5))
        await until(pilot, lambda: olds(app)["reading"])
        assert olds(app) == {"header": False, "cards": False, "reading": True}


@pytest.mark.parametrize("demo", [True, False])
async def test_simulated_cards_are_greyed_as_soon_as_their_server_is_gone(demo: bool) -> None:
    async with House(FakeServer(READY, after_start=BETWEEN), demo=demo).app().run_test(size=(80, 24)) as pilot:
        app = await busy(pilot)
        # The last look at the cards of the server that was just killed is still to be painted.
        app.dashboard.post_message(CardsSeen(CARDS))
        app.dashboard.post_message(StatusSeen(BETWEEN))
        await shows(pilot, "no server")
        app.dashboard.paint()
        assert olds(app)["cards"] is demo
        app.dashboard.post_message(CardsSeen(CARDS))
        await until(pilot, lambda: not olds(app)["cards"])


def test_simulated_cards_that_do_not_answer_are_not_told_to_be_started() -> None:
    house = House(FakeServer(READY), cards=GpuReport(0.0, problem="none"), demo=True)
    found = Sources(house.services())
    found.status()
    seen = found.cards()
    assert isinstance(seen, CardsSeen)
    assert "it does not answer" in (seen.report.problem or "")
    house.server.now = replace(READY, state=State.STOPPED, pid=None, url=None)
    found.status()
    seen = found.cards()
    assert isinstance(seen, CardsSeen)
    assert "start a preset" in (seen.report.problem or "")
