"""The recorded history as lines: each boot with its totals, and how its figures went over its minutes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from console import units
from console.tui.sparks import spark
from console.tui.stories import wrapped
from console.tui.widgets.lines import Line, line

if TYPE_CHECKING:
    from console.server.history import BootHistory, History
    from console.server.minutes import Minute

_LABEL, _CELLS = 12, 40


def history_lines(found: History, width: int) -> list[Line]:
    """The newest boot first; above them what a reader would miss."""
    from console.server.history import LEFT_OUT

    left_out = wrapped(LEFT_OUT, width, "dim")
    for text in (found.note, found.problem):
        left_out = [*(wrapped(text, width, "dim") if text else ()), *left_out]
    if not found.boots and found.problem:
        return left_out
    if not found.boots:
        return [line("nothing was recorded in this time", "dim"), *left_out]
    lines: list[Line] = [*left_out, ()]
    for boot in found.boots:
        lines += [*_boot(boot, width), ()]
    return lines[:-1]


def _local(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%a %d %b %H:%M")


def _boot(found: BootHistory, width: int) -> Iterator[Line]:
    from console.server.history import RUNNING
    from console.server.lives import RUNS

    boot, total = found.boot, found.totals
    span = units.duration(found.covered_s)
    name = boot.preset or units.NA
    badge = " SIMULATED" if boot.simulated else ""
    yield ((f"{_local(found.first)}  ", "strong"), (name, "title"), (badge, "badge"), (f"  {span}", "dim"))
    if found.end is not None:
        yield from wrapped(RUNNING if found.end.text == RUNS else found.end.text, width, "")
    if not found.rows:
        return
    if found.uncounted:
        yield from wrapped(found.uncounted, width, "dim")
    yield from wrapped(
        f"requests ended {units.count(total.requests)} · tokens generated {units.count(total.generation_tokens)} · "
        f"prompt tokens {units.count(total.cached_tokens)} cached, {units.count(total.computed_tokens)} computed · "
        f"preempted {units.count(total.preemptions)} · KV seen up to {units.percent(total.kv_used_max)} · "
        f"vLLM {boot.version or units.NA}",
        width,
        "dim",
    )
    for label, whole, values in _figures(found):
        if any(value is not None for value in values):
            cells = min(_CELLS, max(8, width - _LABEL - 14))
            yield ((f"{label:<{_LABEL}}", "dim"), (f"{whole:>12}  ", ""), (spark(values, cells), "good"))
    for card in found.cards:
        rates = f"TX {units.rate(card.pcie_tx_bytes_per_s)} RX {units.rate(card.pcie_rx_bytes_per_s)}"
        text = (
            f"VRAM peak {units.gib(card.vram_peak_bytes)} · {units.number(card.temp_max_c, 0, ' °C')} · PCIe, best "
            f"minutes' means, of a few looks each: {rates}"
        )
        for i, row in enumerate(wrapped(text, width - _LABEL)):
            yield ((f"{'' if i else f'card {card.card}':<{_LABEL}}", "dim"), *row)


def _figures(found: BootHistory) -> Iterator[tuple[str, str, list[float | None]]]:
    """What, over the whole boot, and by the minute."""
    total, rows = found.totals, found.rows
    yield "TTFT", units.seconds(total.ttft_s), _each(rows, lambda m: m.ttft_mean_s)
    yield "hit rate", units.percent(total.prefix_hit_rate), _each(rows, lambda m: m.hit_rate)
    yield "TPOT", units.seconds(total.tpot_s), _each(rows, lambda m: m.tpot_mean_s)
    best = units.per_second(total.generation_tokens_per_s)
    # The highest mean of a minute: what a moment reached is not kept.
    yield "best minute", best, _each(rows, lambda m: m.generation_tokens_per_s)
    yield "acceptance", units.percent(total.acceptance_rate), _each(rows, lambda m: m.acceptance_rate)


def _each(rows: Sequence[Minute], figure: Callable[[Minute], float | None]) -> list[float | None]:
    """One value a minute, a gap where the server was not recorded."""
    if not rows:
        return []
    known = {row.at // 60: figure(row) for row in rows}
    return [known.get(at) for at in range(rows[0].at // 60, rows[-1].at // 60 + 1)]
