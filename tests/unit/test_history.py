"""Minutes: what a recorder makes of its looks, what the file holds, and what a torn one costs."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from console.endpoint import EndpointError
from console.gpu.sample import GpuReport, GpuSample
from console.metrics.vllm import Counters, Histogram
from console.paths import Paths
from console.server.history import read_history, totals, with_ends
from console.server.lives import NOT_STARTED, RUNS, STOPPED, LifeEnd, keep_refused, lives_file, seen_lives
from console.server.minutes import Boot, Minute, Store, history_path
from console.server.plain_endpoint import PlainEndpoint
from console.server.process import identify
from console.server.recorder import Recorder, Watch
from console.server.state import ServerRecord, recorder_path
from console.server.status import Diagnosis
from tests.contract.odd_server import Answer, OddServer, chunked, odd_server, reply
from tests.unit.metrics_pages import counters, page, with_value

BOOT = Boot("abc", "preset", "0.32.0", "model", False, 1000)
START = 60_000.0


def mtp(which: int, at: float) -> Counters:
    return counters(page("mtp", which), at)


def card(used: int, tx: float | None) -> GpuReport:
    found = GpuSample(0, vram_used_bytes=used, pcie_tx_bytes_per_s=tx, power_w=100.0, temp_c=60)
    return GpuReport(0.0, (found, GpuSample(1, problem="lost")))


def test_a_minute_is_the_difference_of_two_pages(tmp_path: Path) -> None:
    store = Store(tmp_path / "h.db")
    recorder = Recorder(BOOT, store)
    recorder.base(mtp(0, 0.0))
    recorder.see(mtp(0, 15.0), card(10, 5.0), START)
    recorder.see(mtp(1, 30.0), card(30, 7.0), START + 15)
    recorder.see(mtp(1, 60.0), card(20, None), START + 61)
    store.close()
    (boot,) = read_history(tmp_path / "h.db", 0).boots
    assert boot.boot == BOOT
    assert (boot.first, boot.last, boot.totals.minutes) == (60_000, 60_000, 1)
    (row,) = boot.rows
    assert (row.seconds, row.requests, row.ttft_n, row.generation_tokens) == (30.0, 12, 12, 576)
    assert row.drafts is not None
    assert row.draft_tokens == 2 * row.drafts
    assert boot.totals.acceptance_rate == pytest.approx(0.88, abs=0.01)
    assert boot.totals.prefix_hit_rate is None, "prefix caching is off, which is not 0 %"
    (one,) = boot.cards
    assert (one.card, one.vram_peak_bytes, one.pcie_tx_bytes_per_s, one.temp_max_c) == (0, 30, 6.0, 60)


def test_what_nobody_answered_for_is_no_row(tmp_path: Path) -> None:
    store = Store(tmp_path / "h.db")
    recorder = Recorder(BOOT, store)
    for minute in range(3):
        recorder.see(None, card(10, 5.0), START + 60 * minute)
    store.close()
    assert read_history(tmp_path / "h.db", 0).boots == ()


def test_a_server_that_began_anew_is_counted_from_its_start(tmp_path: Path) -> None:
    store = Store(tmp_path / "h.db")
    recorder = Recorder(BOOT, store)
    recorder.see(mtp(1, 0.0), None, START)
    recorder.see(replace(mtp(0, 30.0), process_started=9e9), None, START + 30)
    recorder.see(replace(mtp(1, 60.0), process_started=9e9), None, START + 60)
    recorder.close()
    store.close()
    (boot,) = read_history(tmp_path / "h.db", 0).boots
    assert sum(row.requests or 0 for row in boot.rows) == 12


def test_a_restart_within_a_minute_keeps_what_came_before(tmp_path: Path) -> None:
    store = Store(tmp_path / "h.db")
    recorder = Recorder(BOOT, store)
    recorder.base(mtp(0, 0.0))
    recorder.see(mtp(1, 10.0), card(10, 5.0), START)
    recorder.see(replace(mtp(0, 20.0), process_started=9e9), card(30, 7.0), START + 10)
    recorder.see(replace(mtp(1, 30.0), process_started=9e9), card(20, 9.0), START + 20)
    recorder.close()
    store.close()
    (boot,) = read_history(tmp_path / "h.db", 0).boots
    (row,) = boot.rows
    assert (row.requests, row.generation_tokens, row.seconds) == (24, 1152, 20.0)
    assert boot.totals.ttft_s == pytest.approx(0.556476, abs=1e-6)
    assert boot.cards[0].vram_peak_bytes == 30


def test_a_clock_that_is_set_back_overwrites_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path / "h.db")
    recorder = Recorder(BOOT, store)
    recorder.base(mtp(0, 0.0))
    recorder.see(mtp(1, 30.0), card(10, 4.0), START)
    recorder.see(mtp(1, 60.0), card(10, 4.0), START + 61)
    # An hour of work later in truth, the same minute by the clock.
    later = replace(mtp(1, 90.0), requests_finished=20, generation_tokens=1000)
    recorder.see(later, card(50, 8.0), START + 5)
    recorder.close()
    store.close()
    (boot,) = read_history(tmp_path / "h.db", 0).boots
    first = next(row for row in boot.rows if row.at == START)
    assert boot.totals.requests == 12 + 7
    assert first.requests == 12 + 7
    assert [card.vram_peak_bytes for card in boot.card_rows if card.at == START] == [50]


def a_watch(state: Path, server: OddServer, wall: list[float]) -> Watch:
    who = identify(os.getpid())
    assert who is not None
    host, port = server.url.removeprefix("http://").split(":")
    preset = {"name": "preset", "simulated": True}
    record = ServerRecord(
        "abc", who, None, (), "", "2026-01-01T00:00:00+00:00", preset=preset, host=host, port=int(port)
    )
    return Watch(state, record, None, lambda: wall[0])


def test_a_recorder_that_starts_again_counts_nothing_twice(tmp_path: Path) -> None:
    (tmp_path / "canary.json").write_text('{"schema": 1, "life": "abc", "version": "0.32.0", "model": "tiny"}')
    (tmp_path / "baseline.prom").write_text(page("mtp", 0))
    wall = [START]
    with odd_server() as server:
        server.pages = [reply(page("mtp", 1))]
        first = a_watch(tmp_path, server, wall)
        first.look()
        wall[0] += 60
        first.look()
        # It is killed here; the next one finds its minutes.
        second = a_watch(tmp_path, server, wall)
        second.look()
        wall[0] += 60
        second.look()
        second.close()
    (boot,) = read_history(history_path(tmp_path), 0).boots
    assert (boot.totals.requests, boot.totals.generation_tokens) == (12, 576)
    assert boot.boot.started == 1_767_225_600


def test_a_clock_that_was_set_after_the_first_request_makes_no_year_of_a_minute(tmp_path: Path) -> None:
    (tmp_path / "canary.json").write_text('{"schema": 1, "life": "abc"}')
    (tmp_path / "baseline.prom").write_text(page("mtp", 0))
    os.utime(tmp_path / "baseline.prom", (1.0, 1.0))
    wall = [START]
    with odd_server() as server:
        server.pages = [reply(page("mtp", 1))]
        watch = a_watch(tmp_path, server, wall)
        watch.look()
        wall[0] += 60
        watch.look()
        watch.close()
    (boot,) = read_history(history_path(tmp_path), 0).boots
    assert boot.covered_s < 60
    assert boot.totals.requests == 0


def test_minutes_that_get_lost_are_told_and_no_more_when_they_do_not(tmp_path: Path) -> None:
    (tmp_path / "canary.json").write_text('{"schema": 1, "life": "abc"}')
    (tmp_path / "history.db").mkdir()
    note = recorder_path(tmp_path / "server.json")
    wall = [START]
    with odd_server() as server:
        server.pages = [reply(page("mtp", 0)), reply(page("mtp", 1))]
        watch = a_watch(tmp_path, server, wall)
        watch.look()
        assert not note.exists()
        for _ in range(2):
            wall[0] += 60
            watch.look()
        assert "cannot be written" in note.read_text()
        (tmp_path / "history.db").rmdir()
        wall[0] += 60
        watch.look()
        watch.close()
    assert not note.exists()


def test_a_moment_of_two_seconds_is_no_best_minute() -> None:
    rows = (
        Minute(0, "abc", 60.0, generation_tokens=600),
        Minute(60, "abc", 1.0, generation_tokens=400),
        Minute(120, "abc", 0.0, generation_tokens=0),
    )
    assert totals(rows).generation_tokens_per_s == 10.0
    assert totals(rows[1:]).generation_tokens_per_s is None


def test_answers_of_one_token_do_not_lower_the_time_per_token(tmp_path: Path) -> None:
    store = Store(tmp_path / "h.db")
    recorder = Recorder(BOOT, store)
    old, new = mtp(0, 0.0), mtp(1, 9.0)
    assert new.tpot is not None
    assert new.request_generation is not None
    # Three more answers of one token: vLLM counts each as 0 s.
    singles = replace(
        new,
        tpot=Histogram(tuple((b, n + 3) for b, n in new.tpot.buckets), new.tpot.count + 3, new.tpot.sum),
        request_generation=Histogram(
            tuple((b, n + 3) for b, n in new.request_generation.buckets),
            new.request_generation.count + 3,
            new.request_generation.sum + 3,
        ),
    )
    recorder.base(old)
    recorder.see(singles, None, START)
    recorder.close()
    store.close()
    (boot,) = read_history(tmp_path / "h.db", 0).boots
    assert boot.totals.tpot_s == pytest.approx(0.019214, abs=1e-6)
    assert boot.rows[0].tpot_n == 12


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (reply("x" * 1000)[:-500], "missing"),
        ([reply("x" * 1000)[:-900], *[b"x"] * 900], "in time"),
        (reply("x" * 9_000_000), "larger"),
        (b"".join(chunked("x" * 1000, 4)[:-2]), ""),
    ],
)
def test_the_recorders_door_takes_whole_answers_only_and_in_time(answer: Answer, why: str) -> None:
    with odd_server() as server:
        server.pages = [answer]
        with pytest.raises(EndpointError) as caught:
            PlainEndpoint(server.url).get("/metrics", deadline=0.3)
    assert why in caught.value.why


def test_hits_that_only_other_series_tell(tmp_path: Path) -> None:
    store = Store(tmp_path / "h.db")
    row = Minute(0, "abc", 60.0, prefix_queries=100, prefix_hits=0, cached_tokens=80, computed_tokens=20)
    store.keep(BOOT, row, [])
    store.close()
    (boot,) = read_history(tmp_path / "h.db", 0).boots
    assert boot.totals.prefix_hit_rate == pytest.approx(0.8)


def test_the_hit_rate_of_a_boot_is_that_of_the_tokens_beside_it() -> None:
    rows = (Minute(0, "abc", 60.0, prefix_queries=200, prefix_hits=150, cached_tokens=60, computed_tokens=40),)
    assert totals(rows).prefix_hit_rate == pytest.approx(0.6)


def test_a_life_lasts_what_was_seen_of_it_and_not_the_minutes_it_touched(tmp_path: Path) -> None:
    store = Store(tmp_path / "h.db")
    short, long = (Boot(life, "p", None, None, False, int(START) + 57) for life in ("short", "long"))
    store.keep(short, Minute(int(START), "short", 1.0, requests=1), [])
    store.keep(long, Minute(int(START), "long", 2.0, requests=1), [])
    store.keep(long, Minute(int(START) + 60, "long", 58.0, requests=1), [])
    store.close()
    lives = {boot.boot.life: boot for boot in read_history(tmp_path / "h.db", 0).boots}
    assert (lives["short"].covered_s, lives["short"].until) == (1.0, START + 58)
    assert (lives["long"].covered_s, lives["long"].until) == (60.0, START + 118)


def test_nothing_recorded_is_a_sentence(tmp_path: Path) -> None:
    assert "up" in (read_history(tmp_path / "h.db", 0).problem or "")


def test_a_counter_that_is_absent_stays_unknown(tmp_path: Path) -> None:
    store = Store(tmp_path / "h.db")
    recorder = Recorder(BOOT, store)
    name = "vllm:generation_tokens_total"
    old = counters(with_value(page("prefix", 0), name, "NaN"), 0.0)
    recorder.base(old)
    recorder.see(counters(with_value(page("prefix", 1), name, "NaN"), 9.0), None, START)
    recorder.close()
    store.close()
    (boot,) = read_history(tmp_path / "h.db", 0).boots
    assert (boot.totals.generation_tokens, boot.totals.generation_tokens_per_s) == (None, None)
    assert boot.totals.prefix_hit_rate == pytest.approx(0.793704, abs=1e-6)


def test_lives_stand_in_the_order_of_their_starts_with_their_ends(tmp_path: Path) -> None:
    store = Store(tmp_path / "h.db")
    # The one that began later ended earlier, as its rows are written.
    for life, started, at in (("late", 2000, 2040), ("early", 1000, 2100), ("early", 1000, 1020)):
        store.keep(replace(BOOT, life=life, started=started), Minute(at, life, 60.0, requests=1), [])
    store.close()
    found = read_history(tmp_path / "h.db", 0)
    assert [boot.boot.life for boot in found.boots] == ["late", "early"]
    lives = (
        LifeEnd("early", "preset", False, 1000.0, 2160.0, STOPPED, "by down"),
        LifeEnd(None, "preset", False, 1500.0, 1500.0, NOT_STARTED, "port 8000 is in use", "port-in-use"),
        LifeEnd("old", "preset", False, 10.0, 20.0, STOPPED),
        LifeEnd("now", "preset", False, 3000.0, None, RUNS),
    )
    whole = with_ends(found, lives, 500.0)
    told = [(boot.boot.started, boot.end.text if boot.end else None) for boot in whole.boots]
    assert told == [
        (2000, None),
        (1500, "failed to start: port 8000 is in use (port-in-use)"),
        (1000, "stopped: by down"),
    ]


def test_what_no_look_saw_of_an_end_is_said(tmp_path: Path) -> None:
    store = Store(tmp_path / "h.db")
    store.keep(BOOT, Minute(60_000, "abc", 20.0, requests=0), [])
    store.close()
    found = read_history(tmp_path / "h.db", 0)
    for at, said in ((60_034.0, "what it did in its last 14 s is not counted"), (60_021.0, "")):
        end = LifeEnd("abc", "preset", False, 60_000.0, at, "killed", "the server was killed")
        (boot,) = with_ends(found, [end], 0.0).boots
        assert boot.uncounted == said


def test_a_torn_line_of_the_lives_hides_no_other() -> None:
    paths = Paths.from_env()
    paths.make()
    told = Diagnosis("port-in-use", "port 8000 is in use by somebody else", "", "")
    keep_refused(paths, "p", told, simulated=False)
    with lives_file(paths).open("a") as file:
        file.write('{"schema": 1, "life": "x"}\nno JSON\n[]\n{"schema": 9}\n')
    keep_refused(paths, "q", told, simulated=False)
    assert [one.preset for one in seen_lives(paths)] == ["p", "q"]
