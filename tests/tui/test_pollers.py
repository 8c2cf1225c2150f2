"""Looks at sources never overlap, rest while the console is suspended, and survive what they raise."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import pytest
from textual.message import Message

from console.server.status import ServerStatus
from console.tui.messages import LogSeen, ReadingSeen, StatusSeen
from console.tui.pollers import Poller, in_thread


async def until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "never came true"
        await asyncio.sleep(0.005)


class Source:
    """Counts looks, and how many were going on at the same time."""

    def __init__(self) -> None:
        self.looks = 0
        self.at_once = 0
        self.most_at_once = 0
        self.error: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()

    def look(self) -> Message | None:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        self.gate.wait(5)
        self.looks += 1
        self.at_once -= 1
        if self.error:
            raise self.error
        return ReadingSeen(None)


@pytest.fixture
def source() -> Source:
    return Source()


async def test_it_looks_again_and_again_and_never_twice_at_once(source: Source) -> None:
    seen: list[Message] = []
    poller = Poller("x", lambda: 0.0, source.look)
    task = asyncio.create_task(poller.run(seen.append, lambda *_: None))
    await until(lambda: source.looks > 20)
    poller.poke()
    poller.poke()
    await until(lambda: len(seen) > 30)
    task.cancel()
    assert source.most_at_once == 1


async def test_a_source_that_hangs_holds_up_nobody_else(source: Source) -> None:
    hanging, other = Source(), source
    hanging.gate.clear()
    pollers = [Poller("x", lambda: 0.0, each.look) for each in (hanging, other)]
    tasks = [asyncio.create_task(poller.run(lambda _: None, lambda *_: None)) for poller in pollers]
    await until(lambda: other.looks > 20)
    assert hanging.looks == 0
    for task in tasks:
        task.cancel()
    hanging.gate.set()


async def test_paused_it_does_not_look_and_resumed_it_looks_at_once(source: Source) -> None:
    poller = Poller("x", lambda: 3600.0, source.look)
    task = asyncio.create_task(poller.run(lambda _: None, lambda *_: None))
    await until(lambda: source.looks == 1)
    poller.pause()
    poller.poke()
    await asyncio.sleep(0.05)
    assert source.looks == 1
    poller.resume()
    await until(lambda: source.looks == 2)
    task.cancel()


async def test_a_poke_does_not_wait_for_the_period(source: Source) -> None:
    poller = Poller("x", lambda: 3600.0, source.look)
    task = asyncio.create_task(poller.run(lambda _: None, lambda *_: None))
    await until(lambda: source.looks == 1)
    await asyncio.sleep(0)
    poller.poke()
    await until(lambda: source.looks == 2)
    task.cancel()


async def test_what_a_look_raises_is_told_and_the_next_look_comes(source: Source) -> None:
    told: list[str] = []
    source.error = OSError("no such card")
    poller = Poller("cards", lambda: 0.0, source.look)
    task = asyncio.create_task(poller.run(lambda _: None, lambda name, error: told.append(f"{name}: {error}")))
    await until(lambda: len(told) >= 2)
    source.error = None
    looks = source.looks
    await until(lambda: source.looks > looks + 2)
    assert told[0] == "cards: no such card"
    task.cancel()


async def test_all_looks_of_a_poller_are_on_one_thread_that_ends_with_it() -> None:
    threads: list[threading.Thread] = []

    def look() -> Message | None:
        threads.append(threading.current_thread())
        return None

    task = asyncio.create_task(Poller("x", lambda: 0.0, look).run(lambda _: None, lambda *_: None))
    await until(lambda: len(threads) > 10)
    task.cancel()
    (thread,) = set(threads)
    await until(lambda: not thread.is_alive())


async def test_a_cancelled_wait_leaves_its_thread_alone() -> None:
    gate = threading.Event()
    task = asyncio.create_task(in_thread(lambda: gate.wait(5)))
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gate.set()


def test_only_the_newest_look_of_a_kind_matters() -> None:
    assert StatusSeen(ServerStatus()).can_replace(StatusSeen(ServerStatus()))
    assert not StatusSeen(ServerStatus()).can_replace(LogSeen(None, ()))
