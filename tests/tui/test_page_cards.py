"""The whole of each card, on its page."""

from __future__ import annotations

from dataclasses import replace

from console.tui.card_lines import WholeCards, card_lines
from tests.tui.fakes import (
    READY,
    WHOLE,
    FakeServer,
    House,
    settled,
    shows,
    sizes,
    texts,
)


@sizes
async def test_g_shows_the_whole_of_a_card(size: tuple[int, int]) -> None:
    house = House(FakeServer(READY), cards=WHOLE)
    async with house.app().run_test(size=size) as pilot:
        await settled(pilot)
        await shows(pilot, "✖ GPU is lost")
        await pilot.press("g")
        text = await shows(
            pilot, "GPU-1", "gen5 x8 at most", "exact, from byte counters", "pid 4711", "ours", "others'"
        )
        assert {len(row) for row in text.split("\n")} == {size[0]}
        await pilot.press("end")
        await shows(pilot, "driver 575.51 · CUDA up to 13.0", "P2P no (chipset not supported) · PHB · no NVLink")


def test_clocks_that_nothing_holds_down_are_not_throttled() -> None:
    free = replace(WHOLE, cards=(replace(WHOLE.cards[0], throttle=()),))
    assert "clocks    not throttled" in texts(card_lines(WholeCards(free, {}), 78))
    assert "clocks    throttled: power cap" in texts(card_lines(WholeCards(WHOLE, {}), 78))


def test_cards_of_another_machine_are_named_so() -> None:
    assert "the watched server" in texts(card_lines(WholeCards(WHOLE, {}, elsewhere=True), 78))[0]
    assert texts(card_lines(WholeCards(None, {}), 78)) == ["not looked at yet"]


def test_a_command_of_a_process_is_wrapped_not_cut_at_the_edge() -> None:
    command = (
        "/opt/vllm/bin/python -P -m vllm.entrypoints.cli.main serve unsloth/Qwen3.8-27B-NVFP4 " + "--a-flag 1 " * 30
    )
    rows = texts(card_lines(WholeCards(WHOLE, {4711: command}), 78))
    at = next(i for i, row in enumerate(rows) if row.endswith("pid 4711"))
    assert rows[at + 1].split() == ["/opt/vllm/bin/python", "-P", "-m", "vllm.entrypoints.cli.main"]
    assert rows[at + 2].endswith("…")
    assert max(map(len, rows)) <= 78
