"""The cards' memory around a start and a stop: what is waited for, what stays and why."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from console.gpu.sample import GpuProcess, GpuReport, GpuSample, GpuSource
from console.presets import Preset
from console.server import cards
from console.server.cards import Before, Wait, look, on_the_cards, read_before, too_little, wait_released, write_before
from console.server.holders import Holders
from console.server.status import Diagnosis, ServerStatus, State

GIB = 1024**3
TOTAL = 16 * GIB
OURS = 424242
"""A pid of a process that has ended: above what this kernel gives out by default, or free anyway."""


def card(used: float, *processes: tuple[int, float], index: int = 0, listed: bool = True) -> GpuSample:
    return GpuSample(
        index=index,
        uuid=f"GPU-{index}",
        vram_used_bytes=round(used * GIB),
        vram_total_bytes=TOTAL,
        vram_reserved_bytes=0,
        processes=tuple(GpuProcess(pid, round(size * GIB)) for pid, size in processes) if listed else None,
    )


class Script:
    """Cards that are as the test says, look by look; the last look stays."""

    def __init__(self, looks: Iterable[GpuReport]) -> None:
        self.looks = list(looks)
        self.closed = 0

    def read(self) -> GpuReport:
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]

    def close(self) -> None:
        self.closed += 1


def opened(*reports: tuple[GpuSample, ...]) -> Callable[[], GpuSource]:
    script = Script([GpuReport(0.0, report) for report in reports])
    return lambda: script


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cards, "_EVERY_S", 0.001)
    monkeypatch.setattr(cards, "_LAG_S", 0.05)


def wait(*pids: int, free: float | None = 15.0, share: float | None = None) -> Wait:
    before = () if free is None else (Before("GPU-0", round(free * GIB)),)
    return Wait(frozenset(pids), before, share)


def test_it_waits_until_no_process_of_ours_is_listed_and_the_memory_is_back() -> None:
    told: list[str] = []
    source = opened((card(15, (OURS, 14)),), (card(15, (OURS, 14)),), (card(9),), (card(1),))
    found = wait_released(source, wait(OURS), told.append)
    assert (found.left, found.notes) == ((), ())
    assert told == ["waiting for the cards' memory"]


def test_free_at_once_is_said_to_nobody() -> None:
    told: list[str] = []
    assert wait_released(opened((card(1),)), wait(OURS), told.append).left == ()
    assert told == []


def test_a_process_that_the_driver_still_counts_is_reported_with_its_size() -> None:
    found = wait_released(opened((card(15, (OURS, 14)),)), wait(OURS), limit_s=0.01)
    ((pid, why),) = found.left
    assert pid == OURS
    assert "it has ended, but the driver still counts 14.00 GiB on card 0" in why


def test_a_living_process_that_holds_memory_is_named() -> None:
    found = wait_released(opened((card(15, (os.getpid(), 14)),)), wait(os.getpid()), limit_s=0.01)
    assert "holds 14.00 GiB on card 0" in found.left[0][1]


def test_memory_that_somebody_else_took_is_a_note_and_nothing_of_ours() -> None:
    found = wait_released(opened((card(5, (os.getpid(), 4.5)),)), wait(OURS))
    assert found.left == ()
    (note,) = found.notes
    assert "card 0 has 11.00 GiB free" in note
    assert f"(pid {os.getpid()}) 4.50 GiB" in note


def test_what_the_next_start_wants_is_enough() -> None:
    """A desktop that grew by a gigabyte is no reason to wait when 0.8 of the card is wanted."""
    assert wait_released(opened((card(2),)), wait(OURS, share=0.8)).notes == ()
    assert wait_released(opened((card(4),)), wait(OURS, share=0.8)).notes != ()


def test_without_a_process_list_only_what_was_free_before_counts() -> None:
    slack = (card(1.25, listed=False),)
    assert wait_released(opened((card(15, listed=False),), slack), wait(OURS, share=0.5)).notes == ()
    missing = wait_released(opened((card(3, listed=False),)), wait(OURS, share=0.5))
    assert "no process is listed for it" in missing.notes[0]


def test_nothing_is_waited_for_that_is_not_known() -> None:
    assert wait_released(opened((card(15),)), wait(OURS, free=None)) == cards.Released()
    assert wait_released(opened(()), wait(OURS)) == cards.Released()
    lost = replace(card(15, (OURS, 14)), problem="it fell off the bus")
    assert wait_released(opened((lost,)), wait(OURS)) == cards.Released()


def test_a_driver_that_hangs_does_not_hang_a_stop() -> None:
    held = threading.Event()

    class Hanging:
        def read(self) -> GpuReport:
            held.wait(30)
            return GpuReport(0.0)

        def close(self) -> None:
            """Nothing."""

    assert look(Hanging, 0.05) is None
    held.set()


def test_what_was_free_is_kept_for_that_life_only(tmp_path: Path) -> None:
    path = tmp_path / "cards.json"
    write_before(path, "a", GpuReport(0.0, (card(1), card(2, index=1))), "too little")
    free, short = read_before(path, "a")
    assert [(one.key, one.free // GIB) for one in free] == [("GPU-0", 15), ("GPU-1", 14)]
    assert short == "too little"
    assert read_before(path, "b") == ((), None)
    path.write_text("{")
    assert read_before(path, "a") == ((), None)


def preset(**args: object) -> Preset:
    return Preset(name="p", model="m", args={key.replace("_", "-"): value for key, value in args.items()})


def test_too_little_memory_is_told_before_the_start_with_who_holds_it() -> None:
    report = GpuReport(0.0, (card(0.5), card(5, (os.getpid(), 4.5), index=1)))
    short = too_little(preset(tensor_parallel_size=2), report)
    assert short is not None
    assert short.startswith("card 1 has 11.00 GiB free, 14.40 GiB are wanted; held by ")
    assert f"(pid {os.getpid()})" in short
    assert too_little(preset(), report) is None, "one rank runs on card 0"
    assert too_little(preset(tensor_parallel_size=2, gpu_memory_utilization=0.6), report) is None
    assert too_little(preset(tensor_parallel_size=2, kv_cache_memory_bytes=1), report) is None


def test_a_card_that_the_server_does_not_see_is_not_asked_for_memory() -> None:
    hidden = replace(card(15), visible=False)
    assert too_little(preset(), GpuReport(0.0, (hidden, card(0.5, index=1)))) is None


def test_holders_are_the_largest_first_and_not_ours() -> None:
    told = on_the_cards(GpuReport(0.0, (card(9, (1, 2), (os.getpid(), 6), (OURS, 1)),)), frozenset({OURS}))
    assert told.startswith("card 0: 7.00 GiB free, held by ")
    assert told.index(f"pid {os.getpid()}") < told.index("pid 1)")
    assert str(OURS) not in told


@pytest.mark.parametrize(("cause", "asked"), [("vram-busy", True), ("oom", True), ("bad-flag", False)])
def test_a_diagnosis_about_memory_tells_who_holds_it(cause: str, asked: bool) -> None:
    status = ServerStatus(State.FAILED, diagnosis=Diagnosis(cause, "what", "why", "fix"))
    found = Holders(opened((card(5, (os.getpid(), 4)),))).told(status)
    assert found.diagnosis is not None
    assert ("Now: card 0: 11.00 GiB free, held by" in found.diagnosis.why) is asked


def test_holders_are_looked_at_now_and_then() -> None:
    seconds = [100.0]
    script = Script([GpuReport(0.0, (card(used),)) for used in (5, 6, 7)])
    holders = Holders(lambda: script, lambda: seconds[0])
    status = ServerStatus(State.FAILED, diagnosis=Diagnosis("oom", "what", "why.", "fix"))
    whys = []
    for step in (1.0, 1.0, 30.0):
        found = holders.told(status).diagnosis
        assert found is not None
        whys.append(found.why)
        seconds[0] += step
    assert whys[0] == whys[1] == "why. Now: card 0: 11.00 GiB free."
    seconds[0] += 30
    assert holders.told(status).diagnosis != found
