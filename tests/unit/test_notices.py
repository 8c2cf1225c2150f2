"""Rules over looks: each rises at its threshold, has one event an episode, and ends at a lower threshold."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest

from console.gpu.sample import GpuProcess, GpuReport, GpuSample
from console.metrics.reading import Distribution, Mtp, PrefixCache, Reading
from console.notices import Look, Notice, Rings, Severity, Watcher, errors_in, once
from console.server.facts import StartupFacts
from console.server.status import ServerStatus, State
from tests.unit.log_cases import read_log

MIB = 1024**2
READY = ServerStatus(State.READY, pid=10, url="http://127.0.0.1:8000")
QUIET = Reading(window_s=30.0, running=0, waiting=0, kv_used=0.1, preemptions=0, generation_tokens_per_s=0.0)
CARD = GpuSample(
    0,
    vram_used_bytes=15_000 * MIB,
    vram_total_bytes=16_311 * MIB,
    vram_free_bytes=800 * MIB,
    pcie_gen=5,
    pcie_gen_max=5,
    pcie_width=8,
    pcie_width_max=8,
    pcie_replays=0,
    util=0.9,
    throttle=(),
    processes=(GpuProcess(10, 14_000 * MIB, True),),
)


class Day:
    """A watcher fed once a second."""

    def __init__(self) -> None:
        self.watcher = Watcher()
        self.at = 1000.0
        self.events: list[Notice] = []

    def __call__(self, seconds: int = 1, **seen: Any) -> set[str]:
        """So many looks at the same thing; the ids that stand after the last one."""
        notices: tuple[Notice, ...] = ()
        for _ in range(seconds):
            self.at += 1
            notices = self.watcher.see(Look(self.at, **({"status": READY} | seen)))
            self.events += self.watcher.begun
        self.last = notices
        return {notice.id for notice in notices}


@pytest.fixture
def day() -> Day:
    return Day()


def drafting(rate: float, drafts: int = 100) -> Reading:
    return replace(QUIET, mtp=Mtp(acceptance_rate=rate, drafts=drafts))


def hitting(rate: float, **more: Any) -> Reading:
    cache = PrefixCache(True, rate, cached_tokens=int(50_000 * rate), computed_tokens=int(50_000 * (1 - rate)))
    found = replace(QUIET, ttft_s=Distribution(n=5, mean=0.2), prefix_cache=replace(cache, block_tokens=1600))
    return replace(found, **more)


def cards(**changes: Any) -> GpuReport:
    return GpuReport(0.0, (replace(CARD, **changes),))


def test_nothing_is_said_of_a_server_in_order(day: Day) -> None:
    assert day(400, reading=QUIET, cards=cards()) == set()
    assert day.events == []


def test_acceptance_that_collapses_is_one_event_with_what_it_was(day: Day) -> None:
    day(60, reading=drafting(0.78))
    assert day(30, reading=drafting(0.0)) == {"acceptance-collapsed"}
    (event,) = day.events
    assert event.severity is Severity.BAD
    assert "fell to 0.0 %" in event.what
    assert "it was 78.0 % before" in event.what
    assert "32,768" in event.why
    # Half recovered is not recovered.
    assert day(5, reading=drafting(0.5)) == {"acceptance-collapsed"}
    assert day(5, reading=drafting(0.7)) == set()
    # Back within a minute is the same episode; after it, another.
    assert day(5, reading=drafting(0.1)) == {"acceptance-collapsed"}
    assert len(day.events) == 1
    day(90, reading=drafting(0.78))
    day(2, reading=drafting(0.1))
    assert [notice.episode for notice in day.events] == [1, 2]


def test_a_window_without_drafts_says_nothing_of_acceptance(day: Day) -> None:
    day(60, reading=drafting(0.78))
    assert day(30, reading=drafting(0.0, drafts=3)) == set()
    assert day(30, reading=replace(QUIET, mtp=Mtp())) == set()


def test_acceptance_that_never_rose(day: Day) -> None:
    assert day(30, reading=drafting(0.08, drafts=150)) == set()
    life = Reading(mtp=Mtp(acceptance_rate=0.08, drafts=900))
    assert day(2, reading=drafting(0.08), lifetime=life) == {"acceptance-poor"}
    assert "8.0 %" in day.last[0].what


@pytest.mark.parametrize(
    ("reading", "facts", "words"),
    [
        (hitting(0.05, kv_used=0.95), None, "evicted"),
        (hitting(0.0, ttft_s=Distribution(n=1, mean=9.0)), StartupFacts(mamba_mode="align"), "first repeat"),
        (hitting(0.05), None, "probe layout"),
        (
            hitting(0.0, ttft_s=Distribution(n=100, mean=0.1)),
            None,
            "shorter than one cache block",
        ),
    ],
)
def test_a_hit_rate_that_fell_names_its_likeliest_cause(
    day: Day, reading: Reading, facts: StartupFacts | None, words: str
) -> None:
    day(60, reading=hitting(0.9))
    assert day(3, reading=reading, facts=facts) == {"prefix-hit-rate-fell"}
    (notice,) = day.last
    assert words in notice.why + notice.fix
    assert "it was 90.0 % before" in notice.what


def test_pressure_and_preemptions(day: Day) -> None:
    full = replace(QUIET, kv_used=0.93, waiting=2, preemptions=4)
    assert day(1, reading=full) == {"kv-pressure", "preemptions"}
    assert day(1, reading=replace(full, kv_used=0.88, preemptions=0)) == {"kv-pressure"}
    assert day(1, reading=replace(full, kv_used=0.80, preemptions=0)) == set()
    assert day(1, reading=replace(full, kv_used=0.88, preemptions=0)) == set()


def test_a_queue_that_grows_not_one_that_is_there(day: Day) -> None:
    assert day(60, reading=replace(QUIET, running=2, waiting=5)) == set()
    assert day(20, reading=replace(QUIET, running=2, waiting=9)) == {"queue-grows"}
    assert day(1, reading=replace(QUIET, running=2, waiting=1)) == set()


def test_a_stall_is_minutes_without_any_movement_and_no_long_prefill(day: Day) -> None:
    running = replace(QUIET, running=1)
    # A prefill of five minutes: no token comes out, but KV use rises.
    for step in range(320):
        assert day(1, reading=replace(running, kv_used=0.1 + step / 1000)) == set()
    assert day(299, reading=running) == set()
    assert day(3, reading=running) == {"engine-stalled"}
    assert day(1, status=replace(READY, state=State.STALLED, note="health says 503"), reading=None) == {
        "engine-stalled"
    }


def test_refused_clients_and_errors_in_the_log(day: Day) -> None:
    assert day(1, reading=replace(QUIET, refused_requests=3)) == {"clients-refused"}
    assert day(1, reading=QUIET, log_errors=2, log_error="ERROR something") == {"log-errors"}
    assert day(50, reading=QUIET) == {"log-errors"}
    assert day(20, reading=QUIET) == set()


def test_a_thin_margin_and_whose_fault_a_desktop_is(day: Day) -> None:
    assert day(1, cards=cards(vram_free_bytes=150 * MIB, display=True)) == {"vram-margin:0"}
    assert "150 MiB" in day.last[0].what
    assert "desktop" in day.last[0].why
    assert day(1, cards=cards(vram_free_bytes=300 * MIB)) == {"vram-margin:0"}
    assert day(1, cards=cards(vram_free_bytes=400 * MIB)) == set()
    assert day(1, cards=cards(vram_free_bytes=100 * MIB), status=ServerStatus()) == set()
    assert day(1, cards=cards(vram_free_bytes=100 * MIB, visible=False)) == set()


def test_somebody_elses_process(day: Day) -> None:
    ours = GpuProcess(10, 14_000 * MIB, True)
    other = GpuProcess(2**22 + 1, 900 * MIB)
    assert day(1, cards=cards(processes=(ours, other))) == {"foreign-process:0"}
    assert "900 MiB" in day.last[0].what
    assert day(1, cards=cards(processes=(ours, replace(other, vram_bytes=20 * MIB)))) == set()
    assert day(1, cards=cards(processes=None)) == set()
    # Before our own processes are known everything would look foreign.
    assert day(1, cards=cards(processes=(replace(ours, ours=False),))) == set()


def test_heat_counts_after_a_moment_and_the_power_cap_never(day: Day) -> None:
    assert day(60, cards=cards(throttle=("power cap",))) == set()
    assert day(3, cards=cards(throttle=("hw thermal",))) == set()
    assert day(4, cards=cards(throttle=("hw thermal",))) == {"throttled:0"}
    assert day(1, cards=cards()) == set()


def test_a_link_is_narrow_under_load_only(day: Day) -> None:
    assert day(60, cards=cards(pcie_gen=1, util=0.02)) == set()
    assert day(12, cards=cards(pcie_gen=5, pcie_width=4)) == {"link-narrow:0"}
    assert "x4" in day.last[0].what
    assert day(1, cards=cards(pcie_width=4, util=0.01)) == set()


def test_replays_that_rise(day: Day) -> None:
    assert day(30, cards=cards(pcie_replays=500)) == set()
    assert day(5, cards=cards(pcie_replays=515)) == {"pcie-replays:0"}
    assert "15 PCIe packets" in day.last[0].what
    assert day(70, cards=cards(pcie_replays=515)) == set()


def test_a_lost_card_and_a_lost_driver(day: Day) -> None:
    day(1, cards=cards())
    assert day(1, cards=GpuReport(0.0, (replace(CARD, problem="off the bus"),))) == {"card-lost:0"}
    assert day(1, cards=GpuReport(0.0, problem="no driver")) == {"cards-unreadable"}


def test_another_server_starts_with_a_clean_slate(day: Day) -> None:
    day(60, reading=drafting(0.78))
    other = replace(READY, pid=11)
    assert day(30, reading=drafting(0.3), status=other) == set()


def test_the_worst_stands_first_and_equal_knowledge_is_equal(day: Day) -> None:
    seen = {"cards": cards(vram_free_bytes=100 * MIB), "reading": replace(QUIET, refused_requests=1)}
    day(1, **seen)
    first = day.last
    day(1, **seen)
    assert day.last == first
    assert [notice.severity for notice in first] == [Severity.WARN, Severity.INFO]


@pytest.mark.parametrize(
    "look",
    [
        Look(1.0),
        Look(1.0, READY, cards(), Reading(), Reading(), StartupFacts()),
        Look(1.0, READY, None, None),
    ],
)
def test_one_look_needs_no_history(look: Look) -> None:
    assert once(look) == ()


def test_one_look_measures_against_the_life_of_the_server() -> None:
    life = Reading(mtp=Mtp(acceptance_rate=0.8, drafts=5000))
    (notice,) = once(Look(5.0, READY, None, drafting(0.1), life))
    assert notice.id == "acceptance-collapsed"


def test_error_lines_are_counted_once_a_run() -> None:
    count, last = errors_in(read_log("real/mtp-prefix-crash.log"))
    assert count > 0
    assert last is not None
    assert "ERROR" in last
    assert errors_in(["INFO 11-29 no ERROR here", "an error in words"]) == (0, None)
    lines = ["(EngineCore pid=3) ERROR 11-29 13:17:52 [core.py:1] a", "(EngineCore pid=3) ERROR 11-29 13:17:52 b", "x"]
    assert errors_in([*lines, "ERROR:    Exception in ASGI application"])[0] == 2


def test_rings_keep_gaps_where_a_source_is_silent() -> None:
    rings = Rings()
    rings.see(Look(1.0, READY, cards(), drafting(0.7)))
    rings.see(Look(2.0, READY, None, None))
    assert rings["acceptance_rate"].values(2) == [0.7, None]
    assert rings["card 0 util"].values(2) == [0.9, None]
    assert rings["kv_used"].values(2) == [0.1, None]


def test_memory_is_flat_over_a_day(day: Day) -> None:
    day(1000, reading=drafting(0.78), cards=cards())
    before = sys.getallocatedblocks()
    day(6000, reading=drafting(0.78), cards=cards())
    assert sys.getallocatedblocks() - before < 500
