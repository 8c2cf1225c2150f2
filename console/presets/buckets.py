"""Finer histogram buckets for the servers we start, so that quantiles can be told and not only bounded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from console.presets.installed import installed, takes
from console.presets.model import Preset

FLAG = "custom-histogram-buckets"
# Twelve steps a decade, each less than a quarter above the one before: what the console calls narrow.
_STEPS = (1, 1.22, 1.5, 1.8, 2.2, 2.7, 3.3, 4, 4.9, 6, 7.3, 8.9)


def _ladder(low: float, high: float) -> list[float]:
    steps = (round(step * 10.0**power, 7) for power in range(-3, 5) for step in _STEPS)
    return [step for step in steps if low <= step <= high]


BUCKETS: Mapping[str, list[float]] = {
    "inter_token_latency": _ladder(0.002, 2.2),
    "time_to_first_token": _ladder(0.02, 730.0),
    "request_latency": _ladder(0.01, 2200.0),
}
"""Seconds, by vLLM's names of bucket families; `request_latency` is e2e, queue, prefill and decode."""


def measured(preset: Preset) -> Preset:
    """The preset with finer buckets where its vLLM has the flag and the preset does not set it.

    An empty map in the preset leaves vLLM's own buckets: vLLM refuses an empty one, so it is left out.
    """
    args = dict(preset.args)
    if FLAG in args:
        if args[FLAG] == {}:
            del args[FLAG]
        return replace(preset, args=args)
    found = installed(preset)
    if found is None or not takes(found, FLAG):
        return preset
    return replace(preset, args={**args, FLAG: dict(BUCKETS)})
