"""The only workers that touch sources: one loop a source, never overlapping, asleep while the console is suspended."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import TypeVar

from textual.message import Message

from console.errors import ConsoleError

T = TypeVar("T")
_NAME = "console-look"


def in_a_line(error: BaseException) -> str:
    """What went wrong with a look."""
    if isinstance(error, ConsoleError):
        return f"{error.what} ({error.why})" if error.why else error.what
    return f"{type(error).__name__}: {error}"


async def in_thread(job: Callable[[], T]) -> T:
    """Run a blocking job in a thread of its own and wait for it.

    A daemon thread, not the loop's pool: leaving the console must not wait for a source that hangs, and a pool of few
    threads must not let one hanging source starve the others.
    """
    run, done = _told(job)
    threading.Thread(target=run, daemon=True, name=_NAME).start()
    return await done


def _told(job: Callable[[], T]) -> tuple[Callable[[], None], asyncio.Future[T]]:
    """What a thread is to do, and the future that learns how it went."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(set_outcome: Callable[[], None]) -> None:
        if not done.done():
            set_outcome()

    def body() -> None:
        try:
            result = job()
        except BaseException as error:  # noqa: BLE001 - handed to whoever awaits
            outcome = error
            tell = lambda: done.set_exception(outcome)  # noqa: E731
        else:
            tell = lambda: done.set_result(result)  # noqa: E731
        # The loop is closed when the console has been left meanwhile: nobody waits any more.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, tell)

    return body, done


class Onlooker:
    """A thread of its own for looks that come again and again: starting one a look takes as much as many a look."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    async def look(self, job: Callable[[], T]) -> T:
        """As `in_thread`; one look at a time."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, daemon=True, name=_NAME)
            self._thread.start()
        run, done = _told(job)
        self._jobs.put(run)
        return await done

    def end(self) -> None:
        """After the look that goes on, if one does: nobody waits for it."""
        self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()


class Poller:
    """Looks at one source again and again; the next look is armed when the last one has ended.

    Args:
        name: the worker's group.
        period_s: seconds between the end of a look and the next one.
        look: blocks as long as the source takes; a message, or `None` when there is nothing new.
    """

    def __init__(self, name: str, period_s: Callable[[], float], look: Callable[[], Message | None]) -> None:
        self.name = name
        self._period_s = period_s
        self._look = look
        self._awake = asyncio.Event()
        self._awake.set()
        self._poked = asyncio.Event()

    def pause(self) -> None:
        """Sleep until `resume`."""
        self._awake.clear()

    def resume(self) -> None:
        """Go on, at once."""
        self._awake.set()
        self._poked.set()

    def poke(self) -> None:
        """Do not wait for the period: something has changed."""
        self._poked.set()

    async def run(self, post: Callable[[Message], object], failed: Callable[[str, BaseException], object]) -> None:
        """Look until cancelled; what a look raises is told and does not end the loop."""
        onlooker = Onlooker()
        try:
            while True:
                await self._awake.wait()
                self._poked.clear()
                await self._look_once(onlooker, post, failed)
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._period_s()):
                        await self._poked.wait()
        finally:
            onlooker.end()

    async def _look_once(
        self,
        onlooker: Onlooker,
        post: Callable[[Message], object],
        failed: Callable[[str, BaseException], object],
    ) -> None:
        try:
            message = await onlooker.look(self._look)
        except Exception as error:  # noqa: BLE001 - the worker's edge: told to the user, and the poll goes on
            failed(self.name, error)
        else:
            if message is not None:
                post(message)
