"""One look at everything: the server, the cards and the reading, at one moment or over a window."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import Any

from console.cli.house import House
from console.cli.under_way import UnderWay, run_under_way
from console.endpoint import Endpoint
from console.errors import ConsoleError
from console.gpu.patience import read_within
from console.gpu.sample import GpuReport
from console.gpu.source import read_settled
from console.metrics.feed import WINDOW_S, Feed, kept_page
from console.metrics.reading import LastRequests, Reading
from console.metrics.span import restarted
from console.metrics.vllm import Counters
from console.metrics.window import lifetime, reading
from console.notices import Look, Notice, once
from console.server.chain import Link, chain
from console.server.facts import StartupFacts
from console.server.foreign import foreign_status
from console.server.lives import unix
from console.server.status import ServerStatus, State

_SCRAPE_EVERY_S = 1.0
_CARDS_S = 4.0
_HANGS = (
    f"The NVIDIA driver has not answered for {_CARDS_S:.0f} s: a card may be dying; `sudo dmesg | grep -i xid` may "
    "tell which, and a reboot is the usual end of it."
)
_BEGAN_ANEW = ConsoleError(
    "the server began anew within the window: there are no figures of it",
    "a counter fell, or its start is another one; what two lives counted makes no sense together",
    "measure again",
)
SERVING = (State.READY, State.STALLED, State.FOREIGN, State.STARTING)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything `status` tells."""

    server: ServerStatus
    gpus: GpuReport
    reading: Reading
    lifetime: Reading | None
    chain: tuple[Link, ...]
    notices: tuple[Notice, ...] = ()
    problem: ConsoleError | None = None
    """Why there is no reading although a server should have one."""
    asked: str | None = None
    """The address that was named instead of this console's own server."""
    started: float | None = None
    """Unix time at which this console's own server, or its last one, was started."""
    run: UnderWay | None = None
    """The A/B run that owns the server."""

    @property
    def unreachable(self) -> bool:
        """Whether nothing answers at the address that was named."""
        return self.asked is not None and self.server.state is State.STOPPED

    def to_json(self) -> dict[str, Any]:
        """The contract of `status --json`; absent knowledge is null."""
        server = asdict(self.server)
        server["ours"] = list(self.server.ours)
        whole = asdict(self.reading)
        if self.problem is not None:
            whole["problem"] = {"what": self.problem.what, "why": self.problem.why, "fix": self.problem.fix}
        return {
            "schema": 1,
            "server": server,
            "run": asdict(self.run) if self.run else None,
            "gpus": [asdict(card) for card in self.gpus.cards],
            "gpus_problem": self.gpus.problem,
            "gpus_system": {
                "driver": self.gpus.driver,
                "cuda": self.gpus.cuda,
                "pairs": [asdict(pair) for pair in self.gpus.pairs],
                "note": self.gpus.note,
            },
            "reading": whole,
            "lifetime": asdict(self.lifetime) if self.lifetime else {},
            "chain": [asdict(link) for link in self.chain],
            "notices": [
                {"id": n.id, "severity": n.severity, "what": n.what, "why": n.why, "fix": n.fix} for n in self.notices
            ],
        }


def look(
    house: House, *, url: str | None = None, window_s: float | None = None, say: Callable[[str], None] = lambda _: None
) -> Snapshot:
    """One look: server, cards and `/metrics` in parallel, each with a deadline of its own.

    Args:
        house: whose server.
        url: a server elsewhere instead.
        window_s: measure over so many seconds from now.
        say: told when the window begins.
    """
    endpoint = house.elsewhere(url) if url else house.server.watched()
    with ThreadPoolExecutor(max_workers=3) as pool:
        gpus = pool.submit(_cards, house, endpoint)
        pages = pool.submit(_scrapes, endpoint, window_s, say)
        server = foreign_status(endpoint) if url and endpoint else house.server.status()
        page = pages.result()
        report = gpus.result()
    foreign = bool(url) or server.state is State.FOREIGN
    base = None if foreign else kept_page(house.server.baseline())
    counters = page.counters
    serving = server.state in SERVING and bool(counters)
    facts = StartupFacts() if foreign else house.server.facts()
    now = _reading(page, window_s, base) if serving else Reading()
    life = lifetime(counters[-1], base) if serving else None
    # A server elsewhere: the cards here are not its cards.
    cards = None if url else report
    if url and house.demo and server.state is State.STOPPED:
        report = GpuReport(report.at, problem=f"nothing answers at {url}, and a demo has no cards but its servers'")
    run = None if url else run_under_way(house.paths)
    measured = not foreign and run is not None
    seen = Look(time.monotonic(), server, cards, now if serving else None, life, facts, measured=measured)
    return Snapshot(
        server=server,
        gpus=report,
        reading=now,
        lifetime=life,
        chain=_chain(house, counters[-1] if counters else None, cards, foreign=foreign),
        notices=once(seen),
        problem=page.problem if server.state in (State.READY, State.STALLED, State.FOREIGN) else None,
        asked=url,
        started=None if foreign else _started(house),
        run=run,
    )


def _started(house: House) -> float | None:
    record = house.server.record()
    return unix(record.started) or None if record else None


def _chain(house: House, page: Counters | None, cards: GpuReport | None, *, foreign: bool) -> tuple[Link, ...]:
    """What really runs; of a server that is not ours no log tells it."""
    return chain(StartupFacts(), page) if foreign else house.server.chain(page, cards)


def _reading(page: _Pages, window_s: float | None, base: Counters | None) -> Reading:
    old = page.counters[0] if window_s and len(page.counters) > 1 else None
    return replace(reading(old, page.counters[-1], base), last=page.last)


def _cards(house: House, endpoint: Endpoint | None) -> GpuReport:
    """The cards, or that the driver does not answer: with a card that dies its calls may never return."""
    report = read_within(lambda: house.gpus(endpoint if house.demo else None), read_settled, _CARDS_S)
    return report or GpuReport(time.monotonic(), problem=_HANGS)


@dataclass(frozen=True, slots=True)
class _Pages:
    counters: tuple[Counters, ...] = ()
    last: tuple[LastRequests, ...] = ()
    problem: ConsoleError | None = None


def _scrapes(endpoint: Endpoint | None, window_s: float | None, say: Callable[[str], None]) -> _Pages:
    """One page, or with a window its first and last, and a page a second between them for the last requests."""
    if endpoint is None:
        return _Pages()
    feed, found, problem = Feed(endpoint, window_s or WINDOW_S), list[Counters](), None
    try:
        found.append(feed.scrape())
        feed.keep(found[0])
        begun = found[0].at
        if window_s:
            say(f"measuring for {window_s:g} s")
        while window_s and (left := begun + window_s - time.monotonic()) > 0:
            time.sleep(min(left, _SCRAPE_EVERY_S))
            new = feed.scrape()
            problem = _BEGAN_ANEW if restarted(found[-1], new) else problem
            # After that no window: only the newest page, for its gauges.
            found[0 if problem else 1 :] = [new]
            feed.keep(new)
    except ConsoleError as error:
        return _Pages(tuple(found), feed.reading().last, error)
    return _Pages(tuple(found), feed.reading().last, problem)
