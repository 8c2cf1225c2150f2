"""Printed figures: what is off, absent or only bounded, and that nothing outgrows its place."""

from __future__ import annotations

import pytest

from console.gpu.sample import GpuSample
from console.metrics.reading import Distribution, LastRequests, Mtp, PrefixCache, Reading
from console.server.status import Phase, ServerStatus, State
from console.tui import drawings, figures
from console.tui.widgets.drawing import Drawing, Place, widest
from tests.tui.fakes import BUSY, CARDS, GIB

LONG = Distribution(1_234_567, 1234.5, None, None, None, (160.0, 640.0), (0.025, 2.5), (640.0, None))
EXTREME = Reading(
    window_s=99.0,
    running=1000,
    waiting=99_999,
    kv_used=1.0,
    preemptions=12_345,
    ttft_s=LONG,
    itl_s=LONG,
    tpot_s=LONG,
    e2e_s=LONG,
    queue_s=LONG,
    prompt_tokens_per_s=99_999.0,
    prefill_tokens_per_s=99_999.0,
    generation_tokens_per_s=99_999.0,
    prefix_cache=PrefixCache(True, 1.0, 1.0, 123_456_789, 123_456_789, 12_800),
    mtp=Mtp(1.0, 10.25, (1.0, 1.0, 1.0, 1.0), 123_456_789),
    last=(LastRequests(3599.0, 99, 1234.5, 123_456_789, 123_456_789, 123_456_789),) * 3,
)
FULL_CARD = GpuSample(
    index=15,
    vram_used_bytes=143 * GIB,
    vram_total_bytes=143 * GIB,
    pcie_tx_bytes_per_s=999.9e6,
    pcie_rx_bytes_per_s=999.9e9,
    pcie_gen=5,
    pcie_width=16,
    util=1.0,
    temp_c=105,
    power_w=1000.0,
    power_limit_w=1000.0,
)


def shown(values: object) -> dict[str, tuple[str, str]]:
    return {value.name: (value.text, value.tone) for value in values}  # type: ignore[attr-defined]


@pytest.mark.parametrize("group", ["HEADER", "CARDS_RULE", "CARD", "LOST_CARD", "READING"])
def test_a_drawing_is_as_wide_as_the_terminal_it_is_for(group: str) -> None:
    widths = [drawing.width for drawing in getattr(drawings, group)]
    assert all(width <= most for width, most in zip(widths, (60, 80, 120, 176), strict=False))
    assert widths == sorted(set(widths))


@pytest.mark.parametrize("drawing", drawings.READING[1:], ids=["80", "120"])
def test_no_figure_is_cut_however_long(drawing: Drawing) -> None:
    for value in figures.reading(EXTREME):
        if place := drawing.places.get(value.name):
            assert value.text in place.fit(value.text), value


@pytest.mark.parametrize("drawing", drawings.CARD, ids=["60", "80", "120", "176"])
def test_no_figure_of_a_card_is_cut(drawing: Drawing) -> None:
    bar = drawing.places["bar"].width if "bar" in drawing.places else 0
    for value in figures.card(FULL_CARD, bar=bar, wide=drawing.width > 80):
        if place := drawing.places.get(value.name):
            assert value.text in place.fit(value.text), value


@pytest.mark.parametrize("drawing", drawings.HEADER[1:], ids=["80", "120"])
@pytest.mark.parametrize(
    "status",
    [
        ServerStatus(State.STARTING, Phase.GRAPH_CAPTURE, preset="qwen3.8-27b-nvfp4-122k-single", uptime_s=624.0),
        ServerStatus(
            State.READY,
            preset="qwen3.8-27b-nvfp4-122k-single",
            uptime_s=11 * 86_400,
            url="http://127.0.0.1:55519",
            version="0.32.0+sim",
        ),
        ServerStatus(State.STALLED, preset="x", uptime_s=86_399.0),
    ],
)
def test_the_header_is_never_cut(drawing: Drawing, status: ServerStatus) -> None:
    for value in figures.header(status, simulated=True):
        if place := drawing.places.get(value.name):
            assert value.text in place.fit(value.text), value


def test_every_figure_has_a_place_in_the_wide_drawing() -> None:
    names = {value.name for value in figures.reading(BUSY)}
    assert names == set(drawings.READING[-1].places)
    assert all(set(drawing.places) <= names for drawing in drawings.READING)


def test_prefix_caching_off_is_off_and_not_zero() -> None:
    values = shown(figures.reading(Reading(window_s=30.0, prefix_cache=PrefixCache(enabled=False))))
    assert values["hit"] == ("off", "dim")
    assert values["life"] == ("off", "dim")


def test_mtp_is_off_only_when_that_is_known() -> None:
    assert shown(figures.reading(Reading(window_s=30.0)))["acc"] == ("off", "dim")
    assert shown(figures.reading(Reading()))["acc"] == ("n/a", "dim")


def test_an_empty_window_is_not_available_and_never_zero() -> None:
    values = shown(figures.reading(Reading()))
    for name in ("hit", "life", "cached", "t_m", "t_p50", "g_m", "run", "kv", "out", "pref"):
        assert values[name][0] == "n/a", name
    assert values["t_n"][0] == "0"
    assert values["win"][0] == ""


@pytest.mark.parametrize(
    ("value", "bounds", "text"),
    [
        (0.0279, (0.025, 0.05), "~27.9 ms"),
        (None, (0.25, 0.5), "250-500 ms"),
        (None, (0.0, 0.3), "<300 ms"),
        (None, (640.0, None), ">640.0 s"),
        (None, (0.025, 2.5), "0.025-2.50 s"),
        (None, None, "n/a"),
    ],
)
def test_a_quantile_says_what_is_known(
    value: float | None, bounds: tuple[float, float | None] | None, text: str
) -> None:
    assert figures.quantile(value, bounds) == text


def test_ages_and_uptimes_do_not_tick_by_the_second() -> None:
    assert figures.coarse(3) == "<5 s"
    assert figures.coarse(19.9) == figures.coarse(15.0) == "15 s"
    assert figures.coarse(119) == figures.coarse(61) == "1 min"
    assert figures.coarse(None) == "n/a"


def test_a_state_is_a_sign_and_a_word() -> None:
    signs = {figures.SYMBOLS[state] for state in State}
    assert len(signs) == len(State)
    for state in State:
        text = figures.state_text(ServerStatus(state), None)
        assert text.startswith(figures.SYMBOLS[state])
        assert state.value in text


def test_cards_are_named_once_when_they_are_equal() -> None:
    assert figures.cards_title(CARDS) == "2x RTX 5060 Ti"


def test_what_a_card_does_not_say_is_not_available() -> None:
    values = shown(figures.card(GpuSample(index=0), bar=5, wide=False))
    assert values["bar"][0] == "·····"
    for name in ("vram", "tx", "rx", "link", "util", "temp", "watt"):
        assert values[name][0] == "n/a"


def test_a_place_pads_and_cuts_to_its_width() -> None:
    assert Place(0, 0, 5, left=True, ruled=False).fit("ab") == "ab   "
    assert Place(0, 0, 5, left=False, ruled=False).fit("abcdef") == "abcd…"
    assert Place(0, 0, 6, left=True, ruled=True).fit("ab") == " ab ──"
    assert Place(0, 0, 3, left=True, ruled=True).fit("") == "───"


def test_of_several_drawings_the_widest_that_fits_is_taken() -> None:
    small, narrow, wide = drawings.READING
    assert widest(drawings.READING, 119) is narrow
    assert widest(drawings.READING, 120) is wide
    assert widest(drawings.READING, 79) is small
    assert widest(drawings.READING, 40) is small


def test_a_server_elsewhere_has_its_address_in_the_header() -> None:
    seen = ServerStatus(State.FOREIGN, url="http://box:8000", model="qwen", version="0.32.0")
    values = shown(figures.header(seen, simulated=False, watched="http://box:8000"))
    assert values["preset"] == ("box:8000", "strong")
    assert values["where"][0] == "qwen · vLLM 0.32.0"


def test_a_server_elsewhere_that_does_not_answer_is_unreachable_and_not_stopped() -> None:
    seen = ServerStatus(State.STOPPED, url="http://box:8000", note="refused")
    values = shown(figures.header(seen, simulated=False, watched="http://box:8000"))
    assert values["state"] == ("✖ unreachable", "bad")
    values = shown(figures.header(ServerStatus(), simulated=False, watched="http://box:8000"))
    assert values["state"][0] == "asking …"


def test_a_name_drawn_twice_is_an_error() -> None:
    with pytest.raises(ValueError, match="drawn twice"):
        Drawing.of("{a } {a }")


def test_what_does_not_fit_loses_whole_words() -> None:
    place = Place(0, 0, 12, left=True, ruled=False)
    assert place.fit("✖ failed · engine-crashed") == "✖ failed    "
    assert place.fit("a-very-long-name") == "a-very-long…"
