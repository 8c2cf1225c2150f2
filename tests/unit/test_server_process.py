"""Identity and kinship of processes, on real processes and on tables made by hand."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.server.process import (
    MARKER,
    Identity,
    Kin,
    Stat,
    alive,
    boot_id,
    descendants,
    environ,
    identify,
    marked,
    read_stat,
    send,
    snapshot,
    uptime_s,
)

_SLEEP = "import time; time.sleep(600)"


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process in a session of its own that carries a marker."""
    process = subprocess.Popen(
        [sys.executable, "-c", _SLEEP], env={**os.environ, MARKER: "life-1"}, start_new_session=True
    )
    try:
        # While the kernel sets a new program up its environment reads as empty.
        end = time.monotonic() + 30
        while not environ(process.pid) and time.monotonic() < end:
            time.sleep(0.01)
        yield process
    finally:
        process.kill()
        process.wait()


def _identity(process: subprocess.Popen[bytes]) -> Identity:
    who = identify(process.pid)
    assert who is not None
    return who


def test_we_are_who_we_are() -> None:
    me = identify(os.getpid())
    assert me is not None
    assert me == (os.getpid(), me.start, boot_id())
    assert alive(me)
    assert not alive(None)
    assert os.getpid() in snapshot()
    assert (uptime_s(me) or 0) > 0


def test_a_name_with_brackets_and_blanks_does_not_shift_the_fields(tmp_path: Path) -> None:
    odd = tmp_path / "a) R 1 (b"
    odd.symlink_to(sys.executable)
    process = subprocess.Popen([odd, "-S", "-E", "-c", _SLEEP], stderr=subprocess.DEVNULL)
    try:
        stat = read_stat(process.pid)
        assert stat is not None
        assert stat.parent == os.getpid()
        assert stat.group == os.getpgid(process.pid)
    finally:
        process.kill()
        process.wait()


def test_a_zombie_does_not_live(sleeper: subprocess.Popen[bytes]) -> None:
    who = _identity(sleeper)
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert read_stat(sleeper.pid) is None
    assert not alive(who)
    assert not send(who, signal.SIGTERM)
    assert uptime_s(who) is None


def test_only_the_very_process_is_signalled(sleeper: subprocess.Popen[bytes]) -> None:
    who = _identity(sleeper)
    assert not send(Identity(who.pid, who.start + 1, who.boot), signal.SIGKILL)
    assert not send(Identity(who.pid, who.start, "another boot"), signal.SIGKILL)
    assert sleeper.poll() is None
    assert send(who, signal.SIGKILL)
    assert sleeper.wait() == -signal.SIGKILL


def test_the_check_holds_without_pidfds(sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_pid: int, _flags: int = 0) -> int:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(os, "pidfd_open", refuse)
    who = _identity(sleeper)
    assert not send(Identity(who.pid, who.start + 1, who.boot), signal.SIGKILL)
    assert sleeper.poll() is None
    assert send(who, signal.SIGKILL)
    assert sleeper.wait() == -signal.SIGKILL


def test_a_marker_is_found_whole(sleeper: subprocess.Popen[bytes]) -> None:
    assert marked("life-1", [sleeper.pid, os.getpid()]) == {sleeper.pid}
    assert marked("life", [sleeper.pid]) == set()
    assert (environ(sleeper.pid) or {})[MARKER] == "life-1"
    assert environ(2**22) is None


def _stat(pid: int, parent: int, group: int = 0, session: int = 0) -> Stat:
    return Stat(pid, "x", "S", parent, group or pid, session or pid, 100 + pid)


def test_descendants_are_those_of_living_roots() -> None:
    table = {stat.pid: stat for stat in (_stat(2, 1), _stat(3, 2), _stat(4, 3), _stat(5, 1))}
    assert descendants([2], table) == {2, 3, 4}
    assert descendants([9], table) == set()


class _Table:
    """A machine with these processes only."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *stats: Stat) -> None:
        monkeypatch.setattr("console.server.process.snapshot", lambda: {stat.pid: stat for stat in stats})


def _who(pid: int) -> Identity:
    return Identity(pid, 100 + pid, boot_id())


KIN = Kin("none", keeper=_who(10), child=_who(11))


def _found(kin: Kin = KIN) -> set[int]:
    return {who.pid for who in kin.find()}


def test_a_living_keepers_kin_is_its_session_and_its_descendants(monkeypatch: pytest.MonkeyPatch) -> None:
    orphan, daemon = _stat(13, 1, 13, 10), _stat(14, 10, 14, 14)
    _Table(monkeypatch, _stat(10, 1), _stat(11, 10, 11, 10), _stat(12, 11, 11, 10), orphan, daemon, _stat(20, 1))
    assert _found() == {11, 12, 13, 14}
    assert _found(Kin("none", KIN.keeper, KIN.child, whole=False)) == {11, 12, 13}


def test_a_lost_keepers_kin_is_group_within_session(monkeypatch: pytest.MonkeyPatch) -> None:
    _Table(monkeypatch, _stat(12, 1, 11, 10), _stat(13, 1, 13, 10), _stat(15, 1, 11, 15))
    assert _found() == {12}


def test_a_stranger_under_our_numbers_proves_that_ours_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    other_keeper, other_child = (Stat(pid, "x", "S", 1, pid, pid, 999) for pid in (10, 11))
    _Table(monkeypatch, other_keeper, Stat(12, "x", "S", 10, 11, 10, 999))
    assert _found() == set()
    _Table(monkeypatch, other_child, Stat(12, "x", "S", 11, 11, 10, 999))
    assert _found() == set()
    _Table(monkeypatch, Stat(12, "x", "S", 1, 11, 10, 50))
    assert _found() == set(), "older than the keeper"


def test_another_boot_has_no_kin_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    _Table(monkeypatch, _stat(10, 1), _stat(11, 10, 11, 10))
    past = Identity(10, 110, "another boot")
    assert _found(Kin("none", past, past)) == set()
