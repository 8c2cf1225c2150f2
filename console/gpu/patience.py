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
