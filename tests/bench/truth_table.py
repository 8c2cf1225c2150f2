"""Every live figure against a client that knows the truth, on the real engine: `python -m tests.bench.truth_table`

Idle, light, burst, idle again, with prefix caching and with MTP; the table goes to docs/numbers.md. Exit code 1 where a
figure stays off, 0 otherwise. Takes five minutes and more; needs the engine of `python -m tests.engine.install`.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from console import __version__, units
from console.endpoint import free_port
from console.metrics.feed import WINDOW_S
from console.metrics.reading import Distribution, Reading
from tests.bench.document import ROOT, commit, refused
from tests.bench.truth_load import Heart, Load, Watch
from tests.console_process import Console, write_preset
from tests.engine import truth
from tests.engine.conftest import _PRESET
from tests.engine.install import engine

DOC = ROOT / "docs" / "numbers.md"
PHASE_S = WINDOW_S + 12
_EDGE_S = 0.06
"""Events nearer than this to the edge of a window may be counted on its other side."""
_TOLERANCE, _SLACK_S = 0.05, 0.015
ATTEMPTS = 3
"""A phase with a figure off is measured again, so often in all: what is wrong is so each time, a machine that stood
still is not."""
MTP = "  speculative-config: {method: mtp, num_speculative_tokens: 2}\n"


@dataclass(frozen=True)
class Row:
    """One figure under one load."""

    load: str
    figure: str
    true: str
    shown: str
    difference: str
    good: bool


def settled(watch: Watch, seen: Sequence[truth.Seen], begin: float, end: float) -> tuple[float, float, Reading]:
    """The last whole window within a phase whose edges no prefill and no end of a request touches."""
    for at, reading in reversed(watch.readings):
        if reading.window_s is None or at > end or at - reading.window_s < begin:
            continue
        start = at - reading.window_s
        if all(_clear(one, edge) for one in seen for edge in (start, at)):
            return start, at, reading
    raise AssertionError("no window with clear edges; run it again")


def _clear(one: truth.Seen, edge: float) -> bool:
    prefilling = one.began - _EDGE_S < edge < one.began + one.ttft + _EDGE_S
    return not prefilling and abs(one.began + one.end - edge) > _EDGE_S


def compare(load: str, watch: Watch, seen: Sequence[truth.Seen], begin: float, end: float) -> Iterator[Row]:
    """Truth against shown over one window of a phase under load."""
    start, at, now = settled(watch, seen, begin, end)
    first = [one for one in seen if start < one.began + one.ttft <= at]
    ended = [one for one in seen if start < one.began + one.end <= at]
    gaps = [late - early for one in seen for early, late in _pairs(one) if start < one.began + late <= at]
    tokens = sum(count for one in seen for stamp, count in _steps(one) if start < one.began + stamp <= at)
    yield from latency(load, "TTFT", [one.ttft for one in first], now.ttft_s, slack=True)
    yield from latency(load, "e2e", [one.end for one in ended], now.e2e_s, slack=True)
    yield from latency(load, "TPOT", [one.tpot for one in ended], now.tpot_s)
    yield from latency(load, "gap (ITL)", gaps, now.itl_s)
    rate = tokens / (at - start)
    yield figure(load, "output rate", rate, now.generation_tokens_per_s, units.per_second)
    cached, prompt = sum(one.cached_tokens for one in first), sum(one.prompt_tokens for one in first)
    cache = now.prefix_cache
    if cache.enabled:
        yield figure(load, "cached tokens", float(cached), _number(cache.cached_tokens), units.count)
        yield figure(load, "computed tokens", float(prompt - cached), _number(cache.computed_tokens), units.count)
        yield figure(load, "prefix hit rate", cached / prompt, cache.hit_rate, units.percent)
    else:
        yield Row(
            load, "prefix hit rate", "off", "off" if cache.enabled is False else "n/a", "", cache.enabled is False
        )
    if now.mtp is not None:
        steps = [count for one in seen for stamp, count in list(_steps(one))[1:] if start < one.began + stamp <= at]
        yield figure(
            load,
            "MTP tokens a step",
            sum(steps) / len(steps),
            now.mtp.mean_acceptance_length,
            lambda v: units.number(v, 2),
        )


def _pairs(one: truth.Seen) -> Iterator[tuple[float, float]]:
    yield from zip(one.stamps, one.stamps[1:], strict=False)


def _steps(one: truth.Seen) -> Iterator[tuple[float, int]]:
    """Each chunk with the tokens it brought."""
    before = 0
    for stamp, count in zip(one.stamps, one.counts, strict=True):
        yield stamp, count - before
        before = count


def _number(value: int | None) -> float | None:
    return None if value is None else float(value)


def latency(load: str, name: str, true: list[float], shown: Distribution, *, slack: bool = False) -> Iterator[Row]:
    """The mean within 5 %, quantiles within what is claimed for them."""
    mean = sum(true) / len(true)
    yield figure(load, f"{name} mean", mean, shown.mean, units.seconds, slack_s=_SLACK_S if slack else 0.0)
    for word, share in (("p50", 0.5), ("p90", 0.9)):
        yield quantile(load, f"{name} {word}", true, share, shown, word, _SLACK_S if slack else 0.0)


def figure(
    load: str,
    name: str,
    true: float,
    shown: float | None,
    text: Callable[[float | None], str],
    slack_s: float = 0.0,
) -> Row:
    """A figure that must be within 5 % (or so many seconds)."""
    off = None if shown is None else abs(shown - true)
    good = off is not None and off <= max(_TOLERANCE * true, slack_s)
    return Row(load, name, text(true), text(shown), "" if shown is None else _change(shown, true), good)


def _change(shown: float, true: float) -> str:
    return "0 %" if shown == true else f"{(shown / true - 1) * 100:+.1f} %" if true else "n/a"


def quantile(
    load: str, name: str, true: list[float], share: float, shown: Distribution, word: str, slack_s: float
) -> Row:
    """A quantile inside its bounds, as near as two clocks are to each other; one sample has none and is exact."""
    ranked, rank = sorted(true), (len(true) - 1) * share
    low, high = ranked[int(rank)], ranked[min(int(rank) + 1, len(true) - 1)]
    value, bounds = getattr(shown, word), getattr(shown, f"{word}_bounds")
    middle = low + (high - low) * (rank - int(rank))
    if bounds is None:
        return figure(load, name, middle, value, units.seconds, slack_s)
    room = max(_TOLERANCE * middle, slack_s)
    good = bounds[0] - room <= low and (bounds[1] is None or high <= bounds[1] + room)
    estimate = "" if value is None else f"~{units.seconds(value)}, "
    text = f"{estimate}{units.bounds(*bounds)}"
    return Row(load, name, units.seconds(middle), text, "inside" if good else "outside", good)


def silent(load: str, watch: Watch, ended: float) -> Row:
    """How long after the load's end every figure is gone."""
    for at, now in watch.readings:
        busy = [now.ttft_s.n, now.itl_s.n, now.e2e_s.n, now.tpot_s.n, now.generation_tokens_per_s or 0]
        if at > ended and not any(busy) and now.prefix_cache.hit_rate is None:
            after = at - ended
            return Row(load, "all figures", "nothing happens", f"n/a after {after:.0f} s", "", after <= WINDOW_S + 2)
    return Row(load, "all figures", "nothing happens", "still there", "", False)


@dataclass
class Phases:
    """What was measured on one server."""

    rows: list[Row] = field(default_factory=list)
    again: list[str] = field(default_factory=list)
    """Windows that were not taken: which, what was off, and how long the measuring process itself stood still."""


def loads(url: str, tokens: int) -> Phases:
    """All phases on one server."""
    truth.load(url, [truth.prompt(300, 97)], max_tokens=8, at_once=1)
    watch, heart, found = Watch(url), Heart(), Phases()
    time.sleep(12)
    # What came before the first page is none of these figures.
    found.rows.append(idle(watch))
    for load, at_once, words in (("light", 1, 400), ("burst", 4, 700)):
        for attempt in range(ATTEMPTS):
            clients = Load(url, at_once, words, tokens)
            begun = time.monotonic()
            clients.run(PHASE_S)
            ended = time.monotonic()
            rows = list(compare(f"{load}, {at_once} at once", watch, clients.seen, begun, ended - 0.2))
            off = [row.figure for row in rows if not row.good]
            if not off or attempt + 1 == ATTEMPTS:
                break
            late = units.seconds(heart.late_s(begun, ended))
            found.again.append(f"{load}: {', '.join(off)} off; the client stood still for {late} in all")
        found.rows += rows
    time.sleep(WINDOW_S + 4)
    found.rows.append(silent("idle again", watch, ended))
    watch.close()
    heart.close()
    return found


def idle(watch: Watch) -> Row:
    """Before any load."""
    _, now = watch.readings[-1]
    good = now.ttft_s.mean is None and now.running == 0 and now.generation_tokens_per_s in (None, 0)
    return Row("idle", "all figures", "nothing happens", "n/a" if good else "figures", "", good)


def measure(folder: Path) -> dict[str, Phases]:
    """Both servers, one after the other."""
    place = engine()
    console = Console({"XDG_STATE_HOME": str(folder / "state"), "QWEN_CONSOLE_PRESETS": str(folder / "presets")})
    os.environ.pop("VLLM_API_KEY", None)
    found = {}
    for title, prefix, more in (("prefix caching", "true", ""), ("MTP n=2", "false", MTP)):
        text = _PRESET.format(model=place.model, vllm=place.vllm, prefix=prefix, port=free_port())
        write_preset(folder / "presets", "truth", text.replace("env:\n", f"{more}env:\n", 1))
        url = console("up", "truth").out.strip()
        try:
            found[title] = loads(url, tokens=64)
        finally:
            console("down", code=None)
    return found


def document(found: dict[str, Phases], vllm: str) -> str:
    """The page of the documentation."""
    lines = [
        "# The figures against the truth",
        "",
        f"Made by `python -m tests.bench.truth_table` on {datetime.now(UTC):%Y-%m-%d}, commit {commit()}: "
        f"qwen-console {__version__}, vLLM {vllm} (CPU build, TP 2, a tiny hybrid model).",
        "",
        "A client that stamps every chunk asks again and again; the console reads `/metrics` once a second. Each row",
        f"is one window of {WINDOW_S:.0f} s: what the client saw in it, and what the console showed at its end. Means",
        "must be within 5 % (TTFT and e2e within 5 % or 15 ms: HTTP and tokenising lie outside the server's clock),",
        "quantiles inside their bounds, with the same room at the edges, and nothing may be left one window after the",
        f"load has ended. A window with a figure off is measured again, {ATTEMPTS} times in all: a machine with few",
        "cores stands still now and then for a client or for the front end alone. Each of those is named below.",
        "",
    ]
    for title, phases in found.items():
        lines += [f"## {title}", "", "| load | figure | client | console | |", "|---|---|---|---|---|"]
        for row in phases.rows:
            mark = "" if row.good else " **off**"
            lines.append(f"| {row.load} | {row.figure} | {row.true} | {row.shown} | {row.difference}{mark} |")
        lines += ["", *(f"- measured again: {text}" for text in phases.again), *([""] if phases.again else [])]
    return "\n".join(lines)


def main() -> int:
    """Measure, write the page, say what is off."""
    if refused():
        return 2
    with tempfile.TemporaryDirectory(prefix="qwen-console-truth-") as folder:
        found = measure(Path(folder))
    DOC.parent.mkdir(exist_ok=True)
    DOC.write_text(document(found, engine().folder.name.rpartition("-")[2]))
    off = [f"{title}: {row}" for title, phases in found.items() for row in phases.rows if not row.good]
    print("\n".join(off) or f"every figure is right: {DOC.relative_to(ROOT)}")
    return 1 if off else 0


if __name__ == "__main__":
    sys.exit(main())
