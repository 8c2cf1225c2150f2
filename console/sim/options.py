"""`vllm serve`'s command line, as far as the stand-in minds it; vLLM's other flags are taken and ignored."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

TOTAL_BYTES = 16_311 * 1024**2
RESERVED_BYTES = 478 * 1024**2
"""Of one card: all of it, and what the driver keeps of that."""
WEIGHTS_BYTES = round(11.62 * 1024**3)
"""Resident a card, of about 23 GB in all."""
KV_BYTES_PER_TOKEN = 2_500_000_000 / 122_880
"""A card's share of one FP8 token, by the reported pair of figures."""
DEFAULT_KV_BYTES = 2_500_000_000
MODEL_MAX_LEN = 262_144
_FLAGS = Path(__file__).parents[1] / "presets" / "vllm-flags.txt"
_SIZES = {"k": 1000, "m": 1000**2, "g": 1000**3, "K": 1024, "M": 1024**2, "G": 1024**3}


class OptionError(Exception):
    """A flag that vLLM's parser would refuse; the message is what follows `vllm: error:`."""


@dataclass(frozen=True, slots=True)
class Options:
    """One stand-in, as its command line and environment describe it."""

    model: str
    given: dict[str, Any] = field(default_factory=dict)
    """Every flag that was given, known or not, for the log."""
    host: str = "127.0.0.1"
    port: int = 8000
    names: tuple[str, ...] = ()
    key: str | None = field(default=None, repr=False)
    max_len: int = 102_400
    budget: int = 2048
    streams: int = 256
    prefix_caching: bool = True
    mamba_mode: str = "align"
    drafts: int = 0
    tensor_parallel: int = 2
    block: int = 1600
    prompt_details: bool = False
    kv_bytes: int | None = None
    kv_dtype: str = "auto"
    memory_share: float = 0.92
    eager: bool = False
    async_scheduling: bool = True
    reasoning: bool = False
    custom_all_reduce: bool = True
    drain_s: float = 0.0
    """Seconds that running requests have left after a SIGTERM."""
    buckets: dict[str, list[float]] = field(default_factory=dict)

    @property
    def kv_per_token(self) -> float:
        """Bytes of KV cache a token takes on one card."""
        return KV_BYTES_PER_TOKEN * (1 if self.kv_dtype.startswith("fp8") else 2) * 2 / self.tensor_parallel

    @property
    def kv_tokens(self) -> int:
        """Tokens that fit the KV cache. Without a size given there is as much as one full request and a little."""
        if self.kv_bytes is not None:
            return round(self.kv_bytes / self.kv_per_token)
        return max(round(DEFAULT_KV_BYTES / self.kv_per_token), int(self.max_len * 1.07))

    @property
    def weights_bytes(self) -> int:
        """The model's share of one card."""
        return WEIGHTS_BYTES * 2 // self.tensor_parallel

    @property
    def fits(self) -> bool:
        """Whether a cache whose size was given has room on a card beside the weights."""
        return self.kv_bytes is None or self.weights_bytes + self.kv_bytes < TOTAL_BYTES - RESERVED_BYTES

    @property
    def kv_blocks(self) -> int:
        """Whole cache blocks of them."""
        return max(1, self.kv_tokens // self.block)


def human_int(text: str) -> int:
    """`2048`, `2k`, `25.6k`, `2K` (binary).

    Raises:
        ValueError: it is none of these.
    """
    found = re.fullmatch(r"(-?\d+(?:\.\d+)?)([kmgKMG]?)", text.strip())
    if not found or ("." in found[1] and not found[2]):
        raise ValueError(text)
    return int(float(found[1]) * _SIZES.get(found[2], 1))


def _count(text: str) -> int:
    if not re.fullmatch(r"-?\d+", text.strip()):
        raise ValueError(text)
    return int(text)


def _loads(text: str) -> Any:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError(text)
    return value


_INT: Callable[[str], Any] = _count
_HUMAN: Callable[[str], Any] = human_int
_TYPES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "port": ("int", _INT),
    "max-model-len": ("human_readable_int_or_auto", lambda text: -1 if text == "auto" else human_int(text)),
    "max-num-batched-tokens": ("human_readable_int", _HUMAN),
    "max-num-seqs": ("human_readable_int", _HUMAN),
    "tensor-parallel-size": ("int", _INT),
    "block-size": ("int", _INT),
    "kv-cache-memory-bytes": ("human_readable_int", _HUMAN),
    "gpu-memory-utilization": ("float", float),
    "shutdown-timeout": ("int", _INT),
    "speculative-config": ("loads", _loads),
    "custom-histogram-buckets": ("loads", _loads),
}
_ALIASES = {"tp": "tensor-parallel-size", "kv-cache-memory": "kv-cache-memory-bytes", "sc": "speculative-config"}
_BARE = frozenset(
    {
        *("enable-prefix-caching", "enable-prompt-tokens-details", "enforce-eager", "async-scheduling"),
        *("disable-custom-all-reduce", "enable-auto-tool-choice", "language-model-only", "trust-remote-code"),
        *("enable-flashinfer-autotune", "enable-chunked-prefill", "disable-log-stats", "disable-uvicorn-access-log"),
    }
)
"""Switches: the word after one of them is not its value."""


def parse(argv: list[str], env: Mapping[str, str] = os.environ) -> Options:
    """Read a command line.

    Raises:
        OptionError: vLLM would end with a usage error.
    """
    words = argv[1:] if argv[:1] == ["serve"] else list(argv)
    model, flags, unknown = _split(words)
    if model is None:
        raise OptionError("the following arguments are required: model_tag")
    if unknown:
        raise OptionError(f"unrecognized arguments: {' '.join(unknown)}")
    values = {name: _typed(name, found) for name, found in flags.items()}
    values.setdefault("api-key", [env["VLLM_API_KEY"]] if env.get("VLLM_API_KEY") else None)
    return _options(model, values)


@cache
def _known() -> frozenset[str]:
    """Flags of the version that it stands in for."""
    text = _FLAGS.read_text(encoding="utf-8")
    return frozenset(line for line in text.splitlines() if line and not line.startswith("#"))


def _full(name: str) -> str | None:
    """The flag that is meant, as argparse finds it: itself, `no-` it, a part of its map, or all that begin like it."""
    head, dot, part = name.partition(".")
    no, positive = ("no-", head[3:]) if head.startswith("no-") and head not in _known() else ("", head)
    found = [positive] if positive in _known() else [flag for flag in _known() if flag.startswith(positive)]
    return f"{no}{found[0]}{dot}{part}" if len(found) == 1 else None


def _split(words: list[str]) -> tuple[str | None, dict[str, list[str] | bool], list[str]]:
    """The model, each flag with its words (or its switch), and the words that no parser of vLLM knows."""
    model: str | None = None
    unknown: list[str] = []
    flags: dict[str, list[str] | bool] = {}
    at = 0
    while at < len(words):
        word = words[at]
        began, at = at, at + 1
        if not word.startswith("-"):
            model = model or word
            continue
        name, equals, value = word.lstrip("-").partition("=")
        name = _ALIASES.get(name.replace("_", "-"), name.replace("_", "-"))
        # Short flags (`-tp 2`, `-O3`) are taken as they are.
        whole = _full(name) if word.startswith("--") else name
        name = whole or name
        found = [value] if equals else []
        bare = name in _BARE or name.startswith("no-")
        while not equals and not bare and at < len(words) and not _is_flag(words[at]):
            found.append(words[at])
            at += 1
        if whole is None:
            unknown += words[began:at]
        elif found:
            flags[name] = found
        else:
            flags[name.removeprefix("no-")] = not name.startswith("no-")
    return model or _as_model(flags), flags, unknown


def _is_flag(word: str) -> bool:
    return word.startswith("-") and not re.fullmatch(r"-\d+(\.\d+)?", word)


def _as_model(flags: dict[str, list[str] | bool]) -> str | None:
    given = flags.get("model")
    return given[0] if isinstance(given, list) else None


def _typed(name: str, found: list[str] | bool) -> Any:
    if name not in _TYPES:
        return found
    kind, read = _TYPES[name]
    if isinstance(found, bool):
        raise OptionError(f"argument --{name}: expected one argument")
    try:
        return read(found[0])
    except ValueError:
        reason = f"Value {found[0]} cannot be converted to <function loads>" if kind == "loads" else None
        raise OptionError(f"argument --{name}: {reason or f'invalid {kind} value: {found[0]!r}'}") from None


def _options(model: str, values: dict[str, Any]) -> Options:
    def first(name: str, default: str) -> str:
        found = values.get(name)
        return str(found[0]) if isinstance(found, list) and found else default

    speculation = values.get("speculative-config") or {}
    drafts = int(speculation.get("num_speculative_tokens", 1)) if speculation else 0
    dtype = first("kv-cache-dtype", "auto")
    length = values.get("max-model-len", 102_400)
    prefix = bool(values.get("enable-prefix-caching", True))
    key = values.pop("api-key", None)
    names = values.get("served-model-name")
    return Options(
        model=model,
        given=values,
        host=first("host", "0.0.0.0"),
        port=values.get("port", 8000),
        names=tuple(names) if isinstance(names, list) else (model,),
        key=key[0] if isinstance(key, list) else None,
        max_len=MODEL_MAX_LEN if length == -1 else length,
        budget=values.get("max-num-batched-tokens", 2048),
        streams=values.get("max-num-seqs", 256),
        prefix_caching=prefix,
        mamba_mode=first("mamba-cache-mode", "align") if prefix else "none",
        drafts=drafts,
        tensor_parallel=values.get("tensor-parallel-size", 1),
        block=values.get("block-size", 1600 if dtype.startswith("fp8") else 800),
        prompt_details=bool(values.get("enable-prompt-tokens-details", False)),
        kv_bytes=values.get("kv-cache-memory-bytes"),
        kv_dtype=dtype,
        memory_share=values.get("gpu-memory-utilization", 0.92),
        eager=bool(values.get("enforce-eager", False)),
        async_scheduling=bool(values.get("async-scheduling", True)),
        reasoning="reasoning-parser" in values,
        custom_all_reduce=not values.get("disable-custom-all-reduce", False),
        drain_s=float(values.get("shutdown-timeout", 0)),
        buckets=values.get("custom-histogram-buckets") or {},
    )
