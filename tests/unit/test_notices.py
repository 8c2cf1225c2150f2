"""Rules over looks: each rises at its threshold, has one event an episode, and ends at a lower threshold."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from console.metrics.reading import Distribution, LastRequests, Mtp, Reading
from console.notices import Look, Rings, Severity, errors_in, once
from console.server.facts import StartupFacts
from console.server.status import ServerStatus, State
from tests.unit.log_cases import read_log
from tests.unit.notice_days import MIB, QUIET, READY, Day, cards, drafting, hitting


@pytest.fixture
def day() -> Day:
    return Day()


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
    # What is left of it after a collapse is another matter than text that drafts badly.
    day(1, reading=drafting(0.3))
    assert "temperature" in day.last[0].why
    assert "32,768" not in day.last[0].why
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


def test_a_collapse_between_pauses_is_one_event_until_it_is_over(day: Day) -> None:
    day(60, reading=drafting(0.78))
    for _ in range(5):
        assert day(20, reading=drafting(0.0)) == {"acceptance-collapsed"}
        assert day(120, reading=replace(QUIET, mtp=Mtp())) == set()
        assert day(5, reading=None) == set()
    assert len(day.events) == 1
    day(90, reading=drafting(0.78))
    day(5, reading=drafting(0.0))
    assert [notice.episode for notice in day.events] == [1, 2]


def test_a_console_that_comes_after_the_collapse_sees_it(day: Day) -> None:
    life = Reading(mtp=Mtp(acceptance_rate=0.6, drafts=90_000))
    assert day(5, reading=drafting(0.0), lifetime=life) == {"acceptance-collapsed"}
    assert "60.0 % over the life" in day.last[0].what


def test_nobody_is_told_to_restart_what_is_not_ours() -> None:
    foreign = ServerStatus(State.FOREIGN, url="http://127.0.0.1:8000")
    life = Reading(mtp=Mtp(acceptance_rate=0.8, drafts=5000))
    notices = once(Look(5.0, foreign, None, replace(drafting(0.0), refused_requests=1), life))
    assert [notice.id for notice in notices] == ["acceptance-collapsed", "clients-refused"]
    for notice in notices:
        assert "qwen-console restart" not in notice.fix
        assert "qwen-console logs" not in notice.fix


def test_what_a_late_console_has_not_seen_it_does_not_claim(day: Day) -> None:
    life = Reading(mtp=Mtp(acceptance_rate=0.15, drafts=90_000))
    assert day(5, reading=drafting(0.1), lifetime=life) == {"acceptance-poor"}
    assert day.last[0].what == (
        "MTP acceptance is 15.0 % over the life of the server, and in no window seen here above 10.0 %"
    )
    (notice,) = once(Look(5.0, READY, None, QUIET, life))
    assert notice.what == "MTP acceptance is 15.0 % over the life of the server"


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


def test_a_new_conversation_is_no_alarm_and_one_that_goes_on_missing_is(day: Day) -> None:
    day(60, reading=hitting(0.9))

    def missing(n: int) -> Reading:
        last = tuple(LastRequests(9.0, 1, 4.0, 50_000, 0, 50_000) for _ in range(n))
        return hitting(0.0, ttft_s=Distribution(n=1, mean=4.0), last=(*last, LastRequests(99.0, 1, 0.2, 9, 8, 1)))

    assert day(3, reading=missing(1)) == {"prefix-hit-rate-fell"}
    assert day.last[0].severity.value == "info"
    assert "new conversation" in day.last[0].why
    assert "one request" in day.last[0].why
    assert day(3, reading=missing(3)) == {"prefix-hit-rate-fell"}
    assert day.last[0].severity.value == "warn"
    assert "probe layout" in day.last[0].fix
    assert len(day.events) == 1


def test_a_foreign_server_that_began_anew_is_not_measured_against_its_former_life(day: Day) -> None:
    foreign = ServerStatus(State.FOREIGN, url="http://127.0.0.1:8000")
    day(60, reading=hitting(0.9), status=foreign)
    day(1, reading=Reading(), status=foreign)
    assert day(5, reading=hitting(0.1), status=foreign) == set()


def test_what_an_ab_run_asks_is_no_finding(day: Day) -> None:
    day(60, reading=hitting(0.9))
    asked = hitting(0.0, refused_requests=2, ttft_s=Distribution(n=9, mean=1.0))
    assert day(5, reading=asked, measured=True) == set()
    assert day(1, reading=asked) == {"prefix-hit-rate-fell", "clients-refused"}


def test_pressure_and_preemptions(day: Day) -> None:
    full = replace(QUIET, kv_used=0.93, waiting=2, preemptions=4)
    assert day(1, reading=full) == {"kv-pressure", "preemptions"}
    assert day(1, reading=replace(full, kv_used=0.88, preemptions=0)) == {"kv-pressure"}
    # A queue that is empty for a moment is no end.
    assert day(9, reading=replace(full, waiting=0, preemptions=0)) == {"kv-pressure"}
    assert "2 requests wait" in day.last[0].what
    assert day(9, reading=replace(full, waiting=0, preemptions=0)) == set()
    assert day(1, reading=replace(full, preemptions=0)) == {"kv-pressure"}
    assert day(1, reading=replace(full, kv_used=0.80, preemptions=0)) == set()
    assert day(1, reading=replace(full, kv_used=0.88, preemptions=0)) == set()


def test_a_queue_that_grows_not_one_that_is_there(day: Day) -> None:
    assert day(60, reading=replace(QUIET, running=2, waiting=5)) == set()
    assert day(20, reading=replace(QUIET, running=2, waiting=9)) == {"queue-grows"}
    assert day.last[0].what == "9 requests wait, 5 did 30 s ago"
    assert "faster" in day.last[0].why
    # It shrinks: still a queue, but no more growing one.
    assert day(40, reading=replace(QUIET, running=2, waiting=4)) == {"queue-grows"}
    assert "does not grow" in day.last[0].why
    assert day(1, reading=replace(QUIET, running=2, waiting=1)) == set()


def test_a_stall_is_minutes_without_any_movement_and_no_long_prefill(day: Day) -> None:
    running = replace(QUIET, running=1)
    # A prefill of five minutes: no token comes out, but KV use rises.
    for step in range(320):
        assert day(1, reading=replace(running, kv_used=0.1 + step / 1000)) == set()
    assert day(299, reading=running) == set()
    assert day(3, reading=running) == {"engine-stalled"}
    # Where the KV use is not told, nobody knows whether a long prompt is being read.
    assert day(320, reading=replace(running, kv_used=None)) == set()
    assert day(1, status=replace(READY, state=State.STALLED, note="health says 503"), reading=None) == {
        "engine-stalled"
    }


def test_refused_clients_and_errors_in_the_log(day: Day) -> None:
    assert day(1, reading=replace(QUIET, refused_requests=3)) == {"clients-refused"}
    assert day(1, reading=QUIET, log_errors=2, log_error="ERROR something") == {"log-errors"}
    assert day(50, reading=QUIET) == {"log-errors"}
    assert day(20, reading=QUIET) == set()


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
