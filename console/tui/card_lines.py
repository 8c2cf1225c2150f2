"""The whole of each card as lines: memory, link, clocks, heat, who uses it; and what the cards have in common. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from console import units
from console.tui.figures import coarse
from console.tui.preset_lines import cut
from console.tui.silences import OLD_S
from console.tui.stories import wrapped
from console.tui.widgets.lines import Line, line

if TYPE_CHECKING:
    from console.gpu.sample import GpuReport, GpuSample

_LABEL = 10
_COMMAND_ROWS = 2
_XID = "`sudo dmesg | grep -i xid` may tell why."
_PCIE = {"counters": "exact, from byte counters", "sample": "one 20 ms sample a second"}


@dataclass(frozen=True, slots=True)
class WholeCards:
    """The cards and the commands of the processes on them."""

    report: GpuReport | None
    commands: Mapping[int, str]
    elsewhere: bool = False
    """The watched server is on another machine."""
    age_s: float = 0.0
    """Seconds since that look."""


def card_lines(found: WholeCards, width: int) -> list[Line]:
    """Card by card, then how they reach each other."""
    report = found.report
    if report is None:
        return [line("not looked at yet", "dim")]
    lines: list[Line] = []
    if found.elsewhere:
        lines += [
            *wrapped("These are the cards of this machine; the watched server may have others.", width, "warn"),
            (),
        ]
    if found.age_s > OLD_S:
        told = f"The graphics driver does not answer: all of this is {coarse(found.age_s)} old. {_XID}"
        lines += [*wrapped(told, width, "bad"), ()]
    if report.problem:
        lines += [*wrapped(report.problem, width, "bad"), ()]
    for card in report.cards:
        lines += [*_card(card, found.commands, width), ()]
    return [*lines, *_together(report, width)]


def _row(label: str, text: str, width: int, tone: str = "") -> list[Line]:
    rows = wrapped(text, width - _LABEL, tone)
    return [((f"{label if i == 0 else '':<{_LABEL}}", "dim"), *row) for i, row in enumerate(rows)]


def _card(card: GpuSample, commands: Mapping[int, str], width: int) -> Iterator[Line]:
    yield ((f"card {card.index}  ", "title"), (card.name or "", "strong"), (f"  {card.uuid or ''}", "dim"))
    if card.problem:
        yield from _row("", card.problem, width, "bad")
        return
    if card.visible is False:
        yield from _row("", "outside CUDA_VISIBLE_DEVICES: the server does not see it", width, "warn")
    if card.note:
        yield from _row("", card.note, width, "dim")
    yield from _row("VRAM", _memory(card), width)
    yield from _row("PCIe", _link(card), width)
    source = f" ({_PCIE[card.pcie_source]})" if card.pcie_source in _PCIE else ""
    traffic = f"TX {units.rate(card.pcie_tx_bytes_per_s)} · RX {units.rate(card.pcie_rx_bytes_per_s)}{source}"
    yield from _row("", traffic, width)
    yield from _row("load", _load(card), width)
    power = f"{units.number(card.power_w, 0)} of {units.number(card.power_limit_w, 0, ' W')}"
    yield from _row("power", f"{power} · {units.number(card.temp_c, 0, ' °C')}", width)
    yield from _row("clocks", _throttle(card), width, "warn" if card.throttle else "")
    yield from _row("settings", _settings(card), width)
    yield from _processes(card, commands, width)


def _memory(card: GpuSample) -> str:
    return (
        f"{units.gib(card.vram_used_bytes)} used · {units.gib(card.vram_reserved_bytes)} reserved · "
        f"{units.gib(card.margin_bytes)} free · {units.gib(card.vram_total_bytes)} in all"
    )


def _link(card: GpuSample) -> str:
    def speed(gen: int | None, lanes: int | None) -> str:
        return f"gen{units.number(gen, 0)} x{units.number(lanes, 0)}"

    now, most = speed(card.pcie_gen, card.pcie_width), speed(card.pcie_gen_max, card.pcie_width_max)
    return f"{now} now, {most} at most · {units.count(card.pcie_replays)} packets sent again"


def _load(card: GpuSample) -> str:
    return (
        f"{units.percent(card.util, 0)} busy · memory {units.percent(card.mem_util, 0)} busy · "
        f"SM {units.number(card.sm_clock_mhz, 0, ' MHz')} · memory {units.number(card.mem_clock_mhz, 0, ' MHz')}"
    )


def _throttle(card: GpuSample) -> str:
    if card.throttle is None:
        return units.NA
    return f"throttled: {', '.join(card.throttle)}" if card.throttle else "not throttled"


def _settings(card: GpuSample) -> str:
    words = {True: "on", False: "off", None: units.NA}
    display = {True: "attached", False: "none", None: units.NA}[card.display]
    numa = units.NA if card.numa_node is None else str(card.numa_node)
    return f"persistence mode {words[card.persistence]} · display {display} · NUMA node {numa}"


def _processes(card: GpuSample, commands: Mapping[int, str], width: int) -> Iterator[Line]:
    if card.processes is None:
        yield from _row("processes", units.NA, width)
        return
    if not card.processes:
        yield from _row("processes", "none", width, "dim")
    for i, process in enumerate(sorted(card.processes, key=lambda p: -(p.vram_bytes or 0))):
        whose = "ours" if process.ours else "others'"
        yield (
            (f"{'processes' if i == 0 else '':<{_LABEL}}", "dim"),
            (f"{units.gib(process.vram_bytes):>10}  ", ""),
            (f"{whose:<8}", "good" if process.ours else "warn"),
            (f"pid {process.pid}", ""),
        )
        command = wrapped(commands.get(process.pid, ""), width - _LABEL - 12, "dim")
        yield from (((" " * (_LABEL + 12), ""), *row) for row in cut(command, _COMMAND_ROWS))


def _together(report: GpuReport, width: int) -> Iterator[Line]:
    driver = " · ".join(
        word
        for word in (report.driver and f"driver {report.driver}", report.cuda and f"CUDA up to {report.cuda}")
        if word
    )
    if driver:
        yield from _row("system", driver, width)
    for pair in report.pairs:
        p2p = {True: "yes", False: f"no ({pair.p2p_status})", None: units.NA}[pair.p2p]
        link = {True: " · NVLink", False: " · no NVLink", None: ""}[pair.nvlink]
        path = f" · {pair.path}" if pair.path else ""
        yield from _row(f"{pair.a} to {pair.b}", f"P2P {p2p}{path}{link}", width)
    if report.note:
        yield from _row("", report.note, width, "dim")
