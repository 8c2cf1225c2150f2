"""A look at the cards that cannot hang: with a card that dies the driver's calls may never return."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future

from console.gpu.sample import GpuReport, GpuSource


def read_within(
    open_cards: Callable[[], GpuSource], read: Callable[[GpuSource], GpuReport], within_s: float
) -> GpuReport | None:
    """Open the cards, read them and let go of them; `None` when that takes longer than `within_s` seconds.

    What goes wrong in time is raised here.
    """
    found: Future[GpuReport] = Future()

    def look() -> None:
        try:
            source = open_cards()
            try:
                report = read(source)
            finally:
                source.close()
            found.set_result(report)
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            found.set_exception(error)

    # A daemon: a look that hangs in the driver must not keep this process from ending.
    threading.Thread(target=look, daemon=True, name="cards-look").start()
    try:
        return found.result(within_s)
    except TimeoutError:
        return None


class PatientReader:
    """One open source, looked at again and again; a look that hangs takes a thread of its own with it and no more.

    Args:
        open_cards: opens the source at the first look.
        within_s: how long a look is waited for.
    """

    def __init__(self, open_cards: Callable[[], GpuSource], within_s: float) -> None:
        self._open = open_cards
        self._within_s = within_s
        self._source: GpuSource | None = None
        self._under_way: Future[GpuReport] | None = None

    def read(self) -> GpuReport | None:
        """Look once; `None` where the driver does not answer in time, or still owes the answer before.

        What goes wrong in time is raised here.
        """
        if self._under_way is not None and not self._under_way.done():
            return None
        found = self._under_way = Future()
        self._in_a_thread(lambda: self._look(found))
        try:
            return found.result(self._within_s)
        except TimeoutError:
            return None

    def _look(self, found: Future[GpuReport]) -> None:
        try:
            if self._source is None:
                self._source = self._open()
            found.set_result(self._source.read())
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            found.set_exception(error)

    def close(self) -> None:
        """Let go of the driver, unless a look hangs in it."""
        source, self._source = self._source, None
        if source is not None and self._under_way is not None and self._under_way.done():
            self._in_a_thread(source.close).join(self._within_s)

    @staticmethod
    def _in_a_thread(job: Callable[[], object]) -> threading.Thread:
        thread = threading.Thread(target=job, daemon=True, name="cards-look")
        thread.start()
        return thread
