"""The measures of a run: what each is made of, which way is better. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from console.lab.jobs import GREEDY
from console.lab.trace import Trace

BOOT = "boot"
"""The pairing key of a measure that has one value a boot."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure, named `workload.measure`."""

    name: str
    short: str
    """In the field's terms, for a narrow column."""
    title: str
    unit: str
    """s, tokens or tok/s."""
    lower_is_better: bool
    judged: bool = True
    """Whether it takes part in the overall verdict; the others are information."""

    @property
    def said(self) -> str:
        """The title within a sentence, where a comma would part it: `time to first token (cold)`."""
        head, comma, rest = self.title.partition(", ")
        return f"{head} ({rest})" if comma else head


def said(name: str) -> str:
    """A measure by its name, for a sentence; the name itself where it is no measure of today."""
    return MEASURES[name].said if name in MEASURES else name


MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        measure.name: measure
        for measure in (
            Measure("decode.tpot_s", "TPOT", "time per output token", "s", True),
            Measure("decode.tpot_greedy_s", "TPOT, greedy", "time per output token, greedy", "s", True, judged=False),
            # Under speculation a gap holds several tokens and grows while text gets faster.
            Measure("decode.gap_s", "gap (ITL)", "gap between arrivals", "s", True, judged=False),
            Measure(
                "decode.output_tokens_per_s",
                "output, one stream",
                "output throughput, one stream",
                "tok/s",
                False,
                judged=False,
            ),
            Measure("agent.ttft_cold_s", "TTFT, cold", "time to first token, cold", "s", True),
            # In align mode the first repeat of a prefix may hit nothing: it is a measure of its own.
            Measure(
                "agent.ttft_repeat_s",
                "TTFT, first repeat",
                "time to first token, first repeat",
                "s",
                True,
                judged=False,
            ),
            Measure("agent.ttft_warm_s", "TTFT, warm", "time to first token, warm", "s", True),
            Measure(
                "agent.cached_tokens",
                "cached tokens, warm",
                "prompt tokens from the cache, warm",
                "tokens",
                False,
                judged=False,
            ),
            Measure("agent.prefill_tokens_per_s", "prefill rate", "prefill rate", "tok/s", False, judged=False),
            Measure(
                "interference.gap_max_s", "longest gap (ITL)", "longest gap of a stream beside a cold prompt", "s", True
            ),
            Measure(
                "interference.gap_p95_s", "gap (ITL), p95", "95 % of those gaps are shorter", "s", True, judged=False
            ),
            Measure(
                "interference.ttft_s",
                "TTFT beside a stream",
                "time to first token of the cold prompt beside a stream",
                "s",
                True,
            ),
            Measure(
                "concurrent.output_tokens_per_s",
                "output, all sessions",
                "output throughput, all sessions",
                "tok/s",
                False,
            ),
            Measure(
                "concurrent.ttft_s",
                "TTFT, all sessions",
                "time to first token, several sessions",
                "s",
                True,
                judged=False,
            ),
            Measure(
                "concurrent.tpot_s",
                "TPOT, all sessions",
                "time per output token, several sessions",
                "s",
                True,
                judged=False,
            ),
            Measure("replay.ttft_s", "TTFT, recorded", "time to first token, recorded requests", "s", True),
            Measure("replay.tpot_s", "TPOT, recorded", "time per output token, recorded requests", "s", True),
            Measure(
                "replay.cached_tokens",
                "cached, recorded",
                "prompt tokens from the cache, recorded requests",
                "tokens",
                False,
                False,
            ),
        )
    }
)

PRIMARY: Mapping[str, str] = MappingProxyType(
    {"mtp": "decode.tpot_s", "prefix": "agent.ttft_warm_s", "graphs": "decode.tpot_s"}
)
"""The measure that a kind of run is about, named before anything is measured; other kinds have none."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A measured request: its place in the workload and what was seen."""

    workload: str
    phase: str
    key: str
    trace: Trace


def boot_values(requests: Iterable[Sent], prefill_tokens_per_s: float | None) -> dict[str, dict[str, float]]:
    """Measure → pairing key → value, of one boot."""
    sent = [request for request in requests if request.trace.ok]
    decode, greedy, sessions = _of(sent, "decode", "decode"), _of(sent, "decode", GREEDY), _of(sent, "concurrent")
    cold, warm, replay = _of(sent, "agent", "cold"), _of(sent, "agent", "warm"), _of(sent, "replay")
    found = {
        "decode.tpot_s": _each(decode, lambda trace: trace.tpot_s),
        "decode.tpot_greedy_s": _each(greedy, lambda trace: trace.tpot_s),
        "decode.gap_s": _each(decode, lambda trace: trace.gap_s),
        "decode.output_tokens_per_s": _alone(decode),
        "agent.ttft_cold_s": _each(cold, lambda trace: trace.ttft_s),
        "agent.ttft_repeat_s": _each(_of(sent, "agent", "prime"), lambda trace: trace.ttft_s),
        "agent.ttft_warm_s": _each(warm, lambda trace: trace.ttft_s),
        "agent.cached_tokens": _each(warm, lambda trace: trace.cached_tokens),
        "agent.prefill_tokens_per_s": {} if prefill_tokens_per_s is None else {BOOT: prefill_tokens_per_s},
        "interference.ttft_s": _each(_of(sent, "interference", "intruder"), lambda trace: trace.ttft_s),
        "concurrent.output_tokens_per_s": _together(sessions),
        "concurrent.ttft_s": _each(sessions, lambda trace: trace.ttft_s),
        "concurrent.tpot_s": _each(sessions, lambda trace: trace.tpot_s),
        "replay.ttft_s": _each(replay, lambda trace: trace.ttft_s),
        "replay.tpot_s": _each(replay, lambda trace: trace.tpot_s),
        "replay.cached_tokens": _each(replay, lambda trace: trace.cached_tokens),
        **_torn(sent),
    }
    return {name: values for name, values in found.items() if values}


def _of(sent: Iterable[Sent], workload: str, phase: str | None = None) -> list[Sent]:
    return [request for request in sent if request.workload == workload and phase in (None, request.phase)]


def _each(sent: Iterable[Sent], measure: Callable[[Trace], float | None]) -> dict[str, float]:
    pairs = ((request.key, measure(request.trace)) for request in sent)
    return {key: float(value) for key, value in pairs if value is not None}


def _alone(sent: Iterable[Sent]) -> dict[str, float]:
    """Output tokens over the time of the requests that brought them, one after the other."""
    traces = [request.trace for request in sent]
    wall = sum(trace.ended or 0.0 for trace in traces)
    return {BOOT: sum(trace.completion_tokens or 0 for trace in traces) / wall} if wall > 0 else {}


def _together(sent: Iterable[Sent]) -> dict[str, float]:
    """Output tokens over the wall time from the first request's start to the last one's end."""
    traces = [request.trace for request in sent]
    if not traces:
        return {}
    wall = max(t.sent + (t.ended or 0.0) for t in traces) - min(t.sent for t in traces)
    tokens = sum(t.completion_tokens or 0 for t in traces)
    return {BOOT: tokens / wall} if wall > 0 else {}


def clashes(sent: Iterable[Sent]) -> list[tuple[str, Trace, Trace]]:
    """(key, stream, cold prompt) of every clash that both survived."""
    pairs: dict[str, dict[str, Trace]] = {}
    for request in _of(sent, "interference"):
        pairs.setdefault(request.key.rpartition("/")[0], {})[request.phase] = request.trace
    whole = ((key, pair.get("stream"), pair.get("intruder")) for key, pair in pairs.items())
    return [(key, stream, intruder) for key, stream, intruder in whole if stream is not None and intruder is not None]


def _torn(sent: Iterable[Sent]) -> dict[str, dict[str, float]]:
    """The gaps of each stream from the arrival of the cold prompt to that prompt's first token."""
    longest: dict[str, float] = {}
    tail: dict[str, float] = {}
    for key, stream, intruder in clashes(sent):
        start = intruder.sent - stream.sent
        gaps = sorted(stream.gaps(start, start + (intruder.ttft_s or 0.0)))
        if gaps:
            longest[key] = gaps[-1]
            tail[key] = gaps[math.ceil(0.95 * len(gaps)) - 1]
    return {"interference.gap_max_s": longest, "interference.gap_p95_s": tail}
