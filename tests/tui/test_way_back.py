"""What `b` goes back to, and that it is not looked for at every look at the server."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import pytest

from console.presets import Preset
from console.server.failure import Failure, write_failure
from console.server.life import Server
from console.server.status import ServerStatus, State
from console.server.worked import keep_worked
from console.tui.way_back import WayBack
from tests.tui.fakes import DIAGNOSIS, FAILED, PRESETS, READY, STARTING, FakeServer

FIRST, SECOND, _ = PRESETS


@dataclass
class Asked(FakeServer):
    """Counts how often it is asked."""

    asked: int = 0

    def worked(self, besides: Preset | None = None) -> Preset | None:
        self.asked += 1
        return super().worked(besides)


def look(way: WayBack, server: FakeServer) -> Preset | None:
    return way.look(cast(Server, server), server.now)


@pytest.mark.parametrize("now", [READY, STARTING, FAILED, ServerStatus(), replace(READY, state=State.STALLED)])
def test_there_is_a_way_back_whatever_the_server_does(now: ServerStatus) -> None:
    assert look(WayBack(), FakeServer(now, worked_last=SECOND)) is SECOND


def test_a_start_that_was_refused_leads_not_back_to_itself() -> None:
    server = FakeServer(FAILED, worked_last=FIRST)
    server.paths.make()
    write_failure(server.paths, Failure(None, FIRST.name, DIAGNOSIS))
    assert look(WayBack(), server) is None


def test_a_preset_that_was_ready_with_other_settings_is_a_way_back_from_itself() -> None:
    assert look(WayBack(), FakeServer(FAILED, worked_last=FIRST)) is FIRST


def test_the_server_of_somebody_else_has_no_way_back() -> None:
    assert look(WayBack(), FakeServer(ServerStatus(State.FOREIGN), worked_last=SECOND)) is None


def test_it_is_looked_for_again_when_another_preset_became_ready_or_the_server_another() -> None:
    way, server = WayBack(), Asked(READY, worked_last=SECOND)
    server.paths.make()
    for _ in range(3):
        look(way, server)
    assert server.asked == 1
    keep_worked(server.paths, FIRST)
    look(way, server)
    assert server.asked == 2
    server.now = ServerStatus()
    for _ in range(3):
        look(way, server)
    assert server.asked == 3
