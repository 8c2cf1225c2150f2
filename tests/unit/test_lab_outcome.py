"""After a request that failed: a death is a result of the arm, a stop by somebody else is not."""

from __future__ import annotations

from typing import cast

import pytest

from console.lab.outcome import ArmCrashed, BootVoid, look_for_death
from console.server.life import Server
from console.server.status import Diagnosis, ServerStatus, State


class Ended:
    """A server that has ended."""

    def __init__(self, status: ServerStatus) -> None:
        self._status = status

    def status(self) -> ServerStatus:
        return self._status


DIED = Diagnosis("engine-crashed", "The engine crashed.", "", "")


@pytest.mark.parametrize("status", [ServerStatus(State.FAILED, diagnosis=DIED), ServerStatus(State.FAILED)])
def test_a_server_that_failed_is_the_arms_crash(status: ServerStatus) -> None:
    with pytest.raises(ArmCrashed):
        look_for_death(cast(Server, Ended(status)), "cut")


def test_a_server_that_somebody_stopped_is_no_fault_of_its_arm() -> None:
    with pytest.raises(BootVoid, match="stopped, in order and not by this run"):
        look_for_death(cast(Server, Ended(ServerStatus(State.STOPPED))), "cut")
