"""Records the server's long-run series by the minute, console open or not. `python -P -m console.server.recorder STATE`

A child of the keeper that never disturbs it: it only asks, and ends with it. Kept small: the standard library's HTTP,
and none of what only screens need.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from console.errors import ConsoleError
from console.files import read_text
from console.gpu.sample import GpuReport, GpuSample, GpuSource
from console.gpu.source import open_source
from console.metrics import vllm
from console.metrics.exposition import parse
from console.metrics.span import Span, of_several_tokens, restarted
from console.metrics.vllm import Counters
from console.metrics.window import prompt_split
from console.server.minutes import MINUTE_S, Boot, CardMinute, Minute, Store, history_path
from console.server.models import by_stand_in
from console.server.plain_endpoint import PlainEndpoint
from console.server.sockets import url_of
from console.server.state import SCHEMA, ServerRecord, read_json, read_server, recorder_path, write_json

LOOK_EVERY_S = 15.0
START_EVERY_S = 2.0
_FORGET_EVERY = 240
"""Minutes between two looks at the bound."""
_PROOF_S = 120.0
"""So long the first request of a console is waited for, which must not count; a server nobody looks at has none."""
_LINK_REST_S = 5.0
"""Counting every byte over the links takes more time than everything else here."""
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG


@dataclass(slots=True)
class _CardSum:
    """A card's looks of the minute under way."""

    peak: int | None = None
    tx: list[float] = field(default_factory=list)
    rx: list[float] = field(default_factory=list)
    watts: list[float] = field(default_factory=list)
    hottest: int | None = None

    def add(self, card: GpuSample) -> None:
        self.peak = _larger(self.peak, card.vram_used_bytes)
        self.hottest = _larger(self.hottest, card.temp_c)
        for kept, value in (
            (self.tx, card.pcie_tx_bytes_per_s),
            (self.rx, card.pcie_rx_bytes_per_s),
            (self.watts, card.power_w),
        ):
            if value is not None:
                kept.append(value)


def _larger(old: Any, new: Any) -> Any:
    return old if new is None else new if old is None else max(old, new)


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


class Recorder:
    """Turns looks into minutes.

    Args:
        boot: who is recorded.
        store: where to.
    """

    def __init__(self, boot: Boot, store: Store) -> None:
        self.boot = boot
        self._store = store
        self._old: Counters | None = None
        self._new: Counters | None = None
        self._minute: int | None = None
        self._cards: dict[int, _CardSum] = {}
        self._kv: float | None = None
        self._running: int | None = None
        self._written = 0

    @property
    def problem(self) -> str | None:
        """Why minutes get lost now."""
        return self._store.problem

    @property
    def continues(self) -> bool:
        """Whether a recorder before this one has written minutes of this life."""
        return self._store.knows(self.boot.life)

    def base(self, page: Counters) -> None:
        """Count from this page on."""
        self._old = page

    def see(self, page: Counters | None, report: GpuReport | None, wall: float) -> None:
        """Take a look at unix time `wall`; a minute that has ended is written."""
        minute = int(wall) // MINUTE_S * MINUTE_S
        if self._minute is not None and minute != self._minute:
            self.close()
        self._minute = minute
        for card in report.cards if report else ():
            if card.problem is None:
                self._cards.setdefault(card.index, _CardSum()).add(card)
        if page is None:
            return
        if self._old is not None and restarted(self._new or self._old, page):
            # What the former process did in this minute is kept; the new one is counted from here.
            self.close()
            self._old = page
        self._old = self._old or page
        self._new = page
        self._kv, self._running = _larger(self._kv, page.kv_used), _larger(self._running, page.running)

    def close(self) -> None:
        """Write the minute under way; what nobody answered for is no row."""
        if self._minute is not None and self._old is not None and self._new is not None and self._new is not self._old:
            row = _minute(Span(self._old, self._new), self._minute, self.boot.life, self._kv, self._running)
            cards = [_card(self._minute, self.boot.life, index, one) for index, one in sorted(self._cards.items())]
            self._store.keep(self.boot, row, cards)
            self._old = self._new
            self._written += 1
            if self._written % _FORGET_EVERY == 1:
                self._store.forget()
        self._cards, self._kv, self._running = {}, None, None


def _minute(span: Span, at: int, life: str, kv: float | None, running: int | None) -> Minute:
    assert span.old is not None
    ttft, itl = span.histogram("ttft"), span.histogram("itl")
    tpot = of_several_tokens(span.histogram("tpot"), span.histogram("request_generation"))
    cached, computed = prompt_split(span)
    return Minute(
        at=at,
        life=life,
        seconds=span.new.at - span.old.at,
        requests=span.count("requests_finished"),
        ttft_n=int(ttft.count) if ttft else None,
        ttft_s=ttft.sum if ttft else None,
        tpot_n=int(tpot.count) if tpot else None,
        tpot_s=tpot.sum if tpot else None,
        itl_n=int(itl.count) if itl else None,
        itl_s=itl.sum if itl else None,
        prompt_tokens=span.count("prompt_tokens"),
        cached_tokens=cached,
        computed_tokens=computed,
        generation_tokens=span.count("generation_tokens"),
        prefix_queries=span.count("prefix_queries") if span.new.facts.prefix_caching is not False else None,
        prefix_hits=span.count("prefix_hits") if span.new.facts.prefix_caching is not False else None,
        drafts=span.count("spec_drafts"),
        draft_tokens=span.count("spec_draft_tokens"),
        accepted_tokens=span.count("spec_accepted_tokens"),
        preemptions=span.count("preemptions"),
        kv_used_max=kv,
        running_max=running,
    )


def _card(at: int, life: str, index: int, looks: _CardSum) -> CardMinute:
    return CardMinute(at, life, index, looks.peak, _mean(looks.tx), _mean(looks.rx), _mean(looks.watts), looks.hottest)


class Watch:
    """Looks at one server until told to stop."""

    def __init__(self, state: Path, record: ServerRecord, key: str | None, clock: Callable[[], float]) -> None:
        raw = record.preset or {}
        self._state = state
        self._record = record
        self._clock = clock
        self._endpoint = PlainEndpoint(url_of(record.host or "", record.port or 0), key)
        simulated = bool(raw.get("simulated"))
        # The processes are of no interest here: only sizes and rates are kept.
        self._cards: GpuSource = open_source(self._endpoint if simulated else None, frozenset, rest_s=_LINK_REST_S)
        boot = Boot(record.life, raw.get("name"), None, None, simulated, _unix(record.started, clock()))
        self._recorder = Recorder(boot, Store(history_path(state)))
        self._answers_since: float | None = None
        self._told: str | None = None
        self._proved = False

    @property
    def pause_s(self) -> float:
        """Seconds to the next look: soon while the server is not ready yet, so that the first minutes are whole."""
        return LOOK_EVERY_S if self._proved else START_EVERY_S

    def look(self) -> None:
        """One look; nothing that server or driver do ends the recording."""
        page = self._page()
        if page is not None and self._may_record(page):
            self._recorder.see(page, self._cards.read(), self._clock())
            self._tell(self._recorder.problem)

    def close(self) -> None:
        """Write what there is of the minute under way."""
        self._recorder.close()
        self._cards.close()

    def _tell(self, problem: str | None) -> None:
        """Say that minutes get lost, once; and no more when they do not."""
        if problem == self._told:
            return
        self._told, path = problem, recorder_path(self._state / "server.json")
        with suppress(OSError):
            if problem is None:
                path.unlink(missing_ok=True)
            else:
                note = f"the history cannot be written ({problem}): minutes get lost, the server goes on"
                write_json(path, {"schema": SCHEMA, "life": self._record.life, "note": note})

    def _page(self) -> Counters | None:
        try:
            reply = self._endpoint.get("/metrics", deadline=5.0)
            return vllm.read(parse(reply.text), time.monotonic()) if reply.status == 200 else None
        except ConsoleError:
            return None

    def _may_record(self, page: Counters) -> bool:
        """Not before the console's own first request is over: it takes seconds and is none of the user's."""
        if self._proved:
            return True
        self._answers_since = self._answers_since or time.monotonic()
        canary, _ = read_json(self._state / "canary.json")
        proved = canary is not None and canary.get("life") == self._record.life
        if not proved and time.monotonic() - self._answers_since < _PROOF_S:
            return False
        self._proved = True
        told = canary if proved and canary else {}
        old, version = self._recorder.boot, told.get("version")
        simulated = old.simulated or by_stand_in(version)
        self._recorder.boot = Boot(old.life, old.preset, version, told.get("model"), simulated, old.started)
        # A recorder that died before this one has written minutes: what it counted must not be counted again.
        self._recorder.base(self._baseline(page) if proved and not self._recorder.continues else page)
        return True

    def _baseline(self, page: Counters) -> Counters:
        """The page right after the first request, else this one."""
        try:
            path = self._state / "baseline.prom"
            age = max(0.0, time.time() - path.stat().st_mtime)
            if age > _PROOF_S:
                # It was written a moment ago: the clock was set meanwhile, and nobody knows since when the page counts.
                return page
            return vllm.read(parse(read_text(path)), time.monotonic() - age)
        except (OSError, UnicodeDecodeError, ConsoleError):
            return page


def _unix(utc: str, otherwise: float) -> int:
    try:
        return int(datetime.fromisoformat(utc).timestamp())
    except ValueError:
        return int(otherwise)


def _end_with(parent: int) -> bool:
    """Have the kernel end us with the keeper, however that ends; `False` when it is gone already."""
    ctypes.CDLL(None, use_errno=True).prctl(_DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0)
    return os.getppid() == parent


def main(argv: list[str]) -> int:
    """Record until SIGTERM."""
    state, parent = Path(argv[0]), os.getppid()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    record, _ = read_server(state / "server.json")
    if record is None or record.keeper.pid != parent or not _end_with(parent):
        return 1
    watch = Watch(state, record, os.environ.get("VLLM_API_KEY"), time.time)
    # Threads that measure the link inherit the blocked signal, so it comes here.
    while signal.sigtimedwait({signal.SIGTERM}, watch.pause_s) is None and os.getppid() == parent:
        watch.look()
    watch.look()
    watch.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
