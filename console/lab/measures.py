"""The measures of a run: what each is made of, which way is better. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from console.lab.trace import Trace

BOOT = "boot"
"""The pairing key of a measure that has one value a boot."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure, named `workload.measure`."""

    name: str
    title: str
    unit: str
    """s, tokens or tok/s."""
    lower_is_better: bool
    judged: bool = True
    """Whether it takes part in the overall verdict; the others are information."""


MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        measure.name: measure
        for measure in (
            Measure("decode.tpot_s", "time per output token", "s", True),
            # Under speculation a gap holds several tokens and grows while text gets faster.
            Measure("decode.gap_s", "gap between arrivals", "s", True, judged=False),
            Measure("decode.output_tokens_per_s", "output throughput, one stream", "tok/s", False, judged=False),
            Measure("agent.ttft_cold_s", "time to first token, cold", "s", True),
            # In align mode the first repeat of a prefix may hit nothing: it is a measure of its own.
            Measure("agent.ttft_repeat_s", "time to first token, first repeat", "s", True, judged=False),
            Measure("agent.ttft_warm_s", "time to first token, warm", "s", True),
            Measure("agent.cached_tokens", "prompt tokens from the cache, warm", "tokens", False, judged=False),
            Measure("agent.prefill_tokens_per_s", "prefill rate", "tok/s", False, judged=False),
        )
    }
)


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
    decode = [request for request in sent if request.workload == "decode"]
    found = {
        "decode.tpot_s": _each(decode, lambda trace: trace.tpot_s),
        "decode.gap_s": _each(decode, lambda trace: trace.gap_s),
        "decode.output_tokens_per_s": _throughput(decode),
        "agent.ttft_cold_s": _each(_phase(sent, "cold"), lambda trace: trace.ttft_s),
        "agent.ttft_repeat_s": _each(_phase(sent, "prime"), lambda trace: trace.ttft_s),
        "agent.ttft_warm_s": _each(_phase(sent, "warm"), lambda trace: trace.ttft_s),
        "agent.cached_tokens": _each(_phase(sent, "warm"), lambda trace: trace.cached_tokens),
        "agent.prefill_tokens_per_s": {} if prefill_tokens_per_s is None else {BOOT: prefill_tokens_per_s},
    }
    return {name: values for name, values in found.items() if values}


def _phase(sent: Iterable[Sent], phase: str) -> list[Sent]:
    return [request for request in sent if request.workload == "agent" and request.phase == phase]


def _each(sent: Iterable[Sent], measure: Callable[[Trace], float | None]) -> dict[str, float]:
    pairs = ((request.key, measure(request.trace)) for request in sent)
    return {key: float(value) for key, value in pairs if value is not None}


def _throughput(sent: Iterable[Sent]) -> dict[str, float]:
    """Output tokens over the wall time from the first request's start to the last one's end."""
    traces = [request.trace for request in sent]
    if not traces:
        return {}
    wall = max(t.sent + (t.ended or 0.0) for t in traces) - min(t.sent for t in traces)
    tokens = sum(t.completion_tokens or 0 for t in traces)
    return {BOOT: tokens / wall} if wall > 0 else {}
