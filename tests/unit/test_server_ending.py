"""The order of an ending, with the signals written down instead of sent."""

from __future__ import annotations

import signal

import pytest

from console.server.ending import ORPHAN_GRACE_S, TERM_EVERY_S, Ending
from console.server.process import Identity

LEADER, WORKER = Identity(1, 1, "b"), Identity(2, 1, "b")


class Family:
    """Processes that die when the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *living: Identity) -> None:
        self.living = list(living)
        self.heard: list[tuple[int, int]] = []
        monkeypatch.setattr("console.server.ending.send", self._hear)

    def _hear(self, who: Identity, number: int) -> bool:
        self.heard.append((who.pid, number))
        return True

    def take(self) -> list[tuple[int, int]]:
        """What was sent since the last call; every SIGTERM comes with a SIGCONT, for those that are held."""
        heard, self.heard = self.heard, []
        ends = [pid for pid, number in heard if number == signal.SIGTERM]
        assert ends == [pid for pid, number in heard if number == signal.SIGCONT]
        return [(pid, number) for pid, number in heard if number != signal.SIGCONT]


def test_the_leader_hears_it_first_then_all_then_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    family = Family(monkeypatch, LEADER, WORKER)
    told: list[str] = []
    ending = Ending(lambda: family.living, LEADER, 5.0, 100.0, told.append)
    assert not ending.step(100.0)
    assert family.take() == [(1, signal.SIGTERM)]
    assert not ending.step(100.1)
    assert family.take() == []
    ending.step(100.0 + TERM_EVERY_S)
    assert family.take() == [(1, signal.SIGTERM), (2, signal.SIGTERM)]
    assert told == ["asked to end (SIGTERM)", "asked again (SIGTERM to 2)"]
    ending.step(105.0)
    assert family.take() == [(1, signal.SIGKILL), (2, signal.SIGKILL)]
    ending.step(105.1)
    assert family.take() == []
    ending.step(105.6)
    assert len(family.take()) == 2
    assert ending.escalated
    family.living.clear()
    assert ending.step(106.0)
    assert len(told) == 3


def test_a_recorder_that_hangs_in_the_driver_holds_up_no_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    family = Family(monkeypatch, LEADER, WORKER)
    monkeypatch.setattr("console.server.ending.is_recorder", lambda pid: pid == WORKER.pid)
    ending = Ending(lambda: family.living, LEADER, 30.0, 0.0)
    ending.step(0.0)
    family.living.remove(LEADER)
    family.take()
    ending.step(TERM_EVERY_S)
    assert family.take() == [(2, signal.SIGTERM)]
    ending.step(2 * TERM_EVERY_S)
    assert [number for _, number in family.heard if number != signal.SIGCONT] == [signal.SIGKILL]
    assert not ending.escalated, "the server itself ended in order"


def test_orphans_get_a_short_grace_from_the_moment_their_leader_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    family = Family(monkeypatch, LEADER, WORKER)
    ending = Ending(lambda: family.living, LEADER, 60.0, 0.0)
    ending.step(0.0)
    family.living.remove(LEADER)
    ending.step(1.0)
    ending.step(1.0 + ORPHAN_GRACE_S - 0.1)
    assert signal.SIGKILL not in {number for _, number in family.take()}
    ending.step(1.0 + ORPHAN_GRACE_S)
    assert family.take() == [(2, signal.SIGKILL)]


def test_an_orderly_end_needs_one_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    family = Family(monkeypatch, LEADER, WORKER)
    ending = Ending(lambda: family.living, LEADER, 30.0, 0.0)
    ending.step(0.0)
    family.living.clear()
    assert ending.step(0.1)
    assert family.take() == [(1, signal.SIGTERM)]
    assert not ending.escalated
    assert ending.left == ()
