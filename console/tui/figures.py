"""What is known, as printed text: every value of every form, with its tone. Pure; equal knowledge is equal text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from console import units
from console.gpu.sample import GpuReport, GpuSample
from console.metrics.reading import Distribution, LastRequests, Mtp, PrefixCache, Reading
from console.server.status import ServerStatus, State
from console.tui.shortened import middle

SYMBOLS = {
    State.STOPPED: "○",
    State.STARTING: "◐",
    State.READY: "●",
    State.STOPPING: "◌",
    State.FAILED: "✖",
    State.STALLED: "▲",
    State.FOREIGN: "◇",
}
_STATE_TONES = {
    State.READY: "good",
    State.STARTING: "strong",
    State.STOPPING: "warn",
    State.FAILED: "bad",
    State.STALLED: "bad",
}
_LATENCIES = {"t": "ttft_s", "q": "queue_s", "g": "itl_s", "o": "tpot_s", "e": "e2e_s"}
_LASTS = 3
_GIB = 1024**3
_HOT_C = 85
_ARM = " · arm "
_LEAST_NAME = 9
_FULL = 0.98


class Shown(NamedTuple):
    """One value as it is printed."""

    name: str
    text: str
    tone: str = ""


def coarse(seconds: float | None) -> str:
    """A span that need not tick: steps of 5 s, then minutes, then hours. Every tick is bytes on the line."""
    if seconds is None:
        return units.NA
    if seconds < 60:
        return f"{int(seconds // 5 * 5)} s" if seconds >= 5 else "<5 s"
    return f"{int(seconds // 60)} min" if seconds < 3600 else units.duration(seconds)


def elapsed(seconds: float) -> str:
    """How long something has been going on: `8 s`, `2m05s`; the figure beside it is an estimate in the same unit."""
    return f"{int(seconds)} s" if seconds < 60 else units.duration(seconds)


def header(
    status: ServerStatus, *, simulated: bool, watched: str | None = None, arm: str | None = None, room: int = 0
) -> Iterator[Shown]:
    """The line on top: preset, state as symbol and word, where it answers, and whether all of it is simulated.

    Of a server that is not ours there is no preset: its address stands there.

    Args:
        status: the server.
        simulated: whether any figure on the screen is.
        watched: the address of a server elsewhere.
        arm: which arm of an A/B run the server is; `None` where it is the preset itself.
        room: cells for the preset and its arm.
    """
    address = watched or (status.url if status.state is State.FOREIGN else None)
    name = address.partition("://")[2] if address else status.preset
    if name and arm:
        name = f"{middle(name, max(_LEAST_NAME, room - len(arm) - len(_ARM)))}{_ARM}{arm}"
    yield Shown("preset", name or "no server", "strong" if name else "dim")
    if watched and status.state is State.STOPPED:
        # Before the first look there is no address in the status, and nothing has failed yet.
        yield Shown("state", "✖ unreachable" if status.url else "asking …", "bad" if status.url else "dim")
    else:
        yield Shown("state", state_text(status, status.uptime_s), _STATE_TONES.get(status.state, ""))
    where = [
        status.model if address else status.url.removeprefix("http://") if status.url else "",
        status.version and f"vLLM {status.version}",
    ]
    yield Shown("where", " · ".join(word for word in where if word), "dim")
    yield Shown("badge", "SIMULATED" if simulated else "", "badge")


def state_text(status: ServerStatus, elapsed_s: float | None) -> str:
    """The state in a few words, the phase and time of a start, the coarse uptime of a server that runs."""
    words = [f"{SYMBOLS[status.state]} {status.state.value}"]
    if status.restart_in_s is not None:
        words = [f"{SYMBOLS[status.state]} starts again in {elapsed(status.restart_in_s)}"]
    elif status.state is State.STARTING:
        words = [f"{SYMBOLS[status.state]} {status.phase.value if status.phase else 'starting'}"]
        words += [elapsed(elapsed_s)] if elapsed_s is not None else []
    elif status.state is State.FAILED and status.diagnosis:
        words.append(status.diagnosis.cause)
    elif status.state is State.READY and status.prefill_s is not None:
        words.append(f"prefill {coarse(status.prefill_s)}")
    elif status.state in (State.READY, State.STALLED) and status.uptime_s is not None:
        words.append(f"up {'<1 min' if status.uptime_s < 60 else coarse(status.uptime_s)}")
    return " · ".join(words)


def cards_title(report: GpuReport) -> str:
    """Which cards these are."""
    names = [_short(card.name) for card in report.cards if card.name]
    if not names:
        return "cards"
    return f"{len(names)}x {names[0]}" if len(set(names)) == 1 and len(names) > 1 else " · ".join(names)


def _short(name: str | None) -> str:
    return (name or "").removeprefix("NVIDIA ").removeprefix("GeForce ").removesuffix(" (simulated)")


def card(sample: GpuSample, *, bar: int, wide: bool) -> Iterator[Shown]:
    """One card's row; `bar` is the width of its VRAM bar in cells."""
    yield Shown("i", str(sample.index), "strong")
    yield Shown("lost", f"✖ {sample.problem}" if sample.problem else "", "bad")
    used, total = sample.vram_used_bytes, sample.vram_total_bytes
    full = used / total if used is not None and total else None
    yield Shown("bar", _bar(full, bar), "warn" if full is not None and full > _FULL else "good")
    digits = 2 if (total or 0) < 100 * _GIB else 1
    both = (
        units.NA
        if used is None
        else "/".join(f"{size / _GIB:.{digits}f}" for size in (used, total) if size is not None)
    )
    yield Shown("vram", both)
    yield Shown("tx", units.rate(sample.pcie_tx_bytes_per_s))
    yield Shown("rx", units.rate(sample.pcie_rx_bytes_per_s))
    yield Shown("link", _link(sample))
    yield Shown("util", units.percent(sample.util, 0))
    hot = sample.temp_c is not None and sample.temp_c >= _HOT_C
    yield Shown("temp", units.number(sample.temp_c, 0, " °C"), "warn" if hot else "")
    limit = f"/{sample.power_limit_w:.0f}" if wide and sample.power_limit_w and sample.power_w is not None else ""
    watts = units.NA if sample.power_w is None else f"{sample.power_w:.0f}{limit} W"
    yield Shown("watt", watts, "warn" if sample.throttle else "")


def _link(sample: GpuSample) -> str:
    if sample.pcie_gen is None and sample.pcie_width is None:
        return units.NA
    gen = "?" if sample.pcie_gen is None else sample.pcie_gen
    width = "?" if sample.pcie_width is None else sample.pcie_width
    return f"gen{gen} x{width}"


def _bar(full: float | None, cells: int) -> str:
    if full is None:
        return "·" * cells
    whole = min(cells, round(full * cells))
    return "█" * whole + "░" * (cells - whole)


def reading(now: Reading) -> Iterator[Shown]:
    """Every figure of the window."""
    yield Shown("win", "" if now.window_s is None else f"{now.window_s:.0f} s")
    yield from _prefix(now.prefix_cache)
    for key, field in _LATENCIES.items():
        yield from _latency(key, getattr(now, field))
    yield Shown("run", units.count(now.running), "strong" if now.running else "")
    yield Shown("wai", units.count(now.waiting), "warn" if now.waiting else "")
    yield Shown("kv", units.percent(now.kv_used), "warn" if (now.kv_used or 0) > _FULL else "")
    yield Shown("pre", units.count(now.preemptions), "warn" if now.preemptions else "")
    for i in range(_LASTS):
        yield from _last(i, now.last[i] if i < len(now.last) else None)
    yield Shown("out", units.per_second(now.generation_tokens_per_s))
    yield Shown("pref", units.per_second(now.prefill_tokens_per_s))
    yield from _mtp(now.mtp, known=now.window_s is not None)


def _prefix(cache: PrefixCache) -> Iterator[Shown]:
    off = cache.enabled is False
    yield Shown("hit", "off" if off else units.percent(cache.hit_rate), "dim" if off else "strong")
    yield Shown("life", "off" if off else units.percent(cache.hit_rate_lifetime), "dim" if off else "")
    yield Shown("cached", units.count(cache.cached_tokens))
    yield Shown("fresh", units.count(cache.computed_tokens))
    yield Shown("block", units.count(cache.block_tokens))


def _latency(key: str, value: Distribution) -> Iterator[Shown]:
    yield Shown(f"{key}_m", units.seconds(value.mean), "strong" if key == "t" and value.mean is not None else "")
    yield Shown(f"{key}_p50", quantile(value.p50, value.p50_bounds))
    yield Shown(f"{key}_p90", quantile(value.p90, value.p90_bounds))
    yield Shown(f"{key}_p99", quantile(value.p99, value.p99_bounds))
    yield Shown(f"{key}_n", units.count(value.n), "dim")


def quantile(value: float | None, bounds: tuple[float, float | None] | None) -> str:
    """A quantile: `~73.0 ms` within a narrow bucket, else the bucket."""
    if value is not None:
        return units.seconds(value) if bounds is None else f"~{units.seconds(value)}"
    return units.NA if bounds is None else units.bounds(*bounds)


def _last(i: int, last: LastRequests | None) -> Iterator[Shown]:
    if last is None:
        for name in (f"age{i}", f"lttft{i}", f"lprompt{i}", f"lhit{i}", f"lnew{i}"):
            yield Shown(name, "" if i or name != "age0" else "none yet", "dim")
        return
    # Of several at once the figures are their mean.
    age = coarse(last.age_s)
    yield Shown(f"age{i}", f"{age}, n {last.n}" if last.n > 1 else f"{age} ago", "dim")
    yield Shown(f"lttft{i}", units.seconds(last.ttft_s))
    tokens = {"lprompt": last.prompt_tokens, "lhit": last.cached_tokens, "lnew": last.computed_tokens}
    for name, count in tokens.items():
        yield Shown(f"{name}{i}", units.count(count and round(count / last.n)))


def _mtp(mtp: Mtp | None, *, known: bool) -> Iterator[Shown]:
    if mtp is None:
        yield Shown("acc", "off" if known else units.NA, "dim")
        yield from (Shown(name, "") for name in ("len", "dra", "pos"))
        return
    yield Shown("acc", units.percent(mtp.acceptance_rate))
    yield Shown("len", units.number(mtp.mean_acceptance_length, 2))
    yield Shown("dra", units.count(mtp.drafts), "dim")
    yield Shown("pos", "  ".join(units.percent(p) for p in mtp.per_position or ()) or units.NA)
