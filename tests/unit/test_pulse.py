"""What moves while an engine works, and for how long it may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.metrics.vllm import Counters, Histogram
from console.server.pulse import beat, stall_limit_s


def page(tokens: int = 5, kv: float = 0.2, running: int = 1, waiting: int = 0) -> Counters:
    return Counters(at=0.0, running=running, waiting=waiting, kv_used=kv, prompt_tokens=9, generation_tokens=tokens)


class Watch:
    """One life's pulse, at the seconds that the test names."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "pulse.json"

    def at(self, second: float, counters: Counters, life: str = "a") -> tuple[float, float]:
        found = beat(self.path, life, counters, lambda: second)
        return found.still_s, found.prefill_s


@pytest.fixture
def watch(tmp_path: Path) -> Watch:
    return Watch(tmp_path)


def test_stillness_is_counted_from_the_last_move(watch: Watch) -> None:
    assert watch.at(0, page()) == (0, 0)
    assert watch.at(50, page()) == (50, 0)
    assert watch.at(60, page(tokens=6)) == (0, 0)
    assert watch.at(200, page(tokens=6)) == (140, 0)


def test_rising_kv_use_is_a_prefill(watch: Watch) -> None:
    watch.at(0, page(kv=0.2))
    assert watch.at(60, page(kv=0.3)) == (0, 60)
    assert watch.at(120, page(kv=0.4)) == (0, 120)
    assert watch.at(125, page(tokens=6, kv=0.4)) == (0, 0)


def test_an_idle_engine_is_forgotten(watch: Watch) -> None:
    watch.at(0, page())
    assert watch.at(500, page(running=0)) == (0, 0)
    assert not watch.path.exists()
    assert watch.at(900, page()) == (0, 0)


def test_another_life_and_a_torn_file_begin_anew(watch: Watch) -> None:
    watch.at(0, page())
    assert watch.at(300, page(), life="b") == (0, 0)
    for torn in ("", "{", '{"schema": 1, "life": "b"}', '{"schema": 1, "life": "b", "moves": 7}'):
        watch.path.write_text(torn)
        assert watch.at(600, page(), life="b") == (0, 0)


def test_a_clock_that_went_back_begins_anew(watch: Watch) -> None:
    watch.at(1000, page())
    assert watch.at(10, page()) == (0, 0)


def test_what_waits_counts_as_busy(watch: Watch) -> None:
    watch.at(0, page(running=0, waiting=2))
    assert watch.at(90, page(running=0, waiting=2)) == (90, 0)


def prefills(*counts: tuple[float, float]) -> Counters:
    return Counters(at=0.0, prefill=Histogram(counts, counts[-1][1], 0.0))


@pytest.mark.parametrize(
    ("length", "proved", "counters", "limit"),
    [
        (None, None, page(), 120.0),
        (32_768, None, page(), 120.0),
        (102_400, None, page(), 102_400 / 300),
        (102_400, 125.0, page(), 187.5),
        (8_192, 3.0, page(), 60.0),
        (8_192, 3.0, prefills((10.0, 4.0), (160.0, 5.0), (float("inf"), 5.0)), 240.0),
        (8_192, None, prefills((10.0, 4.0), (160.0, 4.0), (float("inf"), 4.0)), 120.0),
    ],
)
def test_the_limit_is_longer_than_the_longest_prefill(
    length: int | None, proved: float | None, counters: Counters, limit: float
) -> None:
    assert stall_limit_s(length, proved, counters) == pytest.approx(limit)
