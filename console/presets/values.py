"""What well-known flags of vLLM take, so that a slip is said with its line and not by the engine half a minute later.

Flags that are not named here take anything: vLLM itself judges them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from console.files import parse_json
from console.units import clip

Test = Callable[[Any], bool]
_QUOTED = 60
"""Characters of a value that an error quotes."""
_COUNT = re.compile(r"[0-9]+")
_SIZE = re.compile(r"([0-9]+)([kKmMgGtT]?)|([0-9]+\.[0-9]+)([kmgt])")
_SCALES = {letter: (1000**power, 1024**power) for power, letter in enumerate("kmgt", 1)}
_FRACTION = re.compile(r"[0-9]*\.?[0-9]+")


def _is_count(value: Any) -> bool:
    if isinstance(value, str):
        return _COUNT.fullmatch(value.strip()) is not None
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_size(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip() in ("auto", "-1") or _SIZE.fullmatch(value.strip()) is not None
    return isinstance(value, int) and not isinstance(value, bool) and value >= -1


_DIGITS = 18
"""More make no size of anything, and Python reads no number of some thousands."""


def whole(value: Any) -> int | None:
    """A number as vLLM reads it: `2048`, `2k` (thousands), `2K` (1,024s), `2.5g`; `None` for words."""
    if isinstance(value, str):
        found = _SIZE.fullmatch(value.strip())
        if found is None:
            return None
        number, letter = found[1] or found[3], found[2] or found[4] or ""
        if len(number) > _DIGITS:
            return None
        thousands, binary = _SCALES.get(letter.lower(), (1, 1))
        return int(number) * binary if letter.isupper() else int(float(number) * thousands) if letter else int(number)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def plain(args: Mapping[str, Any]) -> dict[str, Any]:
    """Flags with their values as numbers and maps, however a preset writes them (`120k`, a map as JSON text)."""
    return {key: _plain(key, value) for key, value in args.items()}


def _plain(key: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if key in _NUMBERS:
        return number if (number := whole(value)) is not None else value
    if key in _MAPS:
        try:
            return parse_json(value)
        except ValueError:
            return value
    return value


def _is_share(value: Any) -> bool:
    return _is_number(value) and 0 < float(value) <= 1


def _is_number(value: Any) -> bool:
    if isinstance(value, str):
        return _FRACTION.fullmatch(value.strip()) is not None
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


def _is_switch(value: Any) -> bool:
    return isinstance(value, bool)


def _is_map(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, str) and value.lstrip().startswith("{"))


_KINDS: tuple[tuple[Test, str, str, tuple[str, ...]], ...] = (
    (
        _is_count,
        "a whole number",
        "such as 4",
        (
            "tensor-parallel-size",
            "pipeline-parallel-size",
            "data-parallel-size",
            "max-num-seqs",
            "max-cudagraph-capture-size",
            "block-size",
        ),
    ),
    (
        _is_size,
        "a number",
        "such as 32768 or 32k",
        ("max-model-len", "max-num-batched-tokens", "kv-cache-memory-bytes"),
    ),
    (_is_share, "a share of a card", "above 0 and up to 1, such as 0.92", ("gpu-memory-utilization",)),
    (_is_number, "a number of GiB", "such as 4 or 0.5", ("swap-space", "cpu-offload-gb")),
    (
        _is_switch,
        "true or false",
        "without quotes",
        (
            "enable-prefix-caching",
            "enable-chunked-prefill",
            "enforce-eager",
            "async-scheduling",
            "trust-remote-code",
            "disable-custom-all-reduce",
            "enable-flashinfer-autotune",
            "language-model-only",
            "enable-prompt-tokens-details",
            "enable-auto-tool-choice",
            "enable-expert-parallel",
        ),
    ),
    (
        _is_map,
        "a map",
        "such as {method: mtp, num_speculative_tokens: 2}",
        ("speculative-config", "custom-histogram-buckets"),
    ),
)
_NUMBERS = frozenset(flag for test, _, _, flags in _KINDS if test in (_is_count, _is_size) for flag in flags)
_MAPS = frozenset(flag for test, _, _, flags in _KINDS if test is _is_map for flag in flags)
_TAKES: Mapping[str, tuple[Test, str, str]] = {
    flag: (test, what, example) for test, what, example, flags in _KINDS for flag in flags
}


def value_problem(flag: str, value: Any) -> tuple[str, str] | None:
    """Why this flag cannot have this value (why, fix), or `None`. A `${VAR}` is judged once it is filled in."""
    known = _TAKES.get(flag)
    if known is None or value is None or (isinstance(value, str) and "${" in value):
        return None
    test, what, example = known
    if test(value):
        return None
    return f"{shown(value)} is not {what}", f"--{flag} takes {what}, {example}"


def shown(value: Any) -> str:
    """A value as an error quotes it, in a few words."""
    return "true" if value is True else "false" if value is False else clip(repr(value), _QUOTED)
