"""The arms of each kind of run, as overrides of one preset."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from console.errors import UsageError
from console.lint import Ground, Weight, lint
from console.presets import Preset
from console.presets.model import Value

SPECULATION = "speculative-config"
BUDGET = "max-num-batched-tokens"
_MTP_DEFAULT: Mapping[str, Value] = {"method": "mtp", "num_speculative_tokens": 2}
_CHUNK_DEFAULT: tuple[Value, ...] = ("1x", "2x")
_DEEPEST = 4
_ASSERTS_BELOW_BLOCK = (0, 22)
"""Up to this version a budget below the cache block ends the start with an assertion."""
_BUILT_IN = ("mtp", "chunk", "aa", "custom")


@dataclass(frozen=True, slots=True)
class Arm:
    """One of the settings under comparison; the first arm of a plan is the one the others are held against."""

    name: str
    overrides: Mapping[str, Value] = field(default_factory=dict)


def arms_for(
    kind: str,
    preset: Preset,
    words: Sequence[str],
    a: Mapping[str, Value] | None,
    b: Mapping[str, Value] | None,
    block_tokens: int,
) -> tuple[Arm, ...]:
    """The arms of a run of `kind`.

    Raises:
        UsageError: no such kind, or arms that cannot be.
    """
    if (a is not None or b is not None) and kind != "custom":
        raise UsageError(f"`ab {kind}` takes no --a and --b", "", "`ab custom --a k=v --b k=v`")
    if words and kind not in ("mtp", "chunk"):
        raise UsageError(f"`ab {kind}` takes no --arms", "", "--arms is for `ab mtp` and `ab chunk`")
    if kind == "mtp":
        return _mtp(preset, words)
    if kind == "chunk":
        return _chunk(preset, words, block_tokens)
    if kind == "aa":
        return (Arm("a1"), Arm("a2"))
    if kind == "custom":
        if not a and not b:
            raise UsageError(
                "a custom run needs its arms", "", "`ab custom --a k=v --b k=v`; one of them may be left out"
            )
        return (Arm("a", dict(a or {})), Arm("b", dict(b or {})))
    return _named(kind, preset)


def _mtp(preset: Preset, words: Sequence[str]) -> tuple[Arm, ...]:
    running = preset.speculative
    off = Arm("off", {SPECULATION: None} if running is not None else {})
    if not words:
        overrides = {} if running is not None else _mtp_overrides(preset)
        return (off, Arm("on", overrides))
    counts = [_count(word) for word in words if word not in ("off", "n0", "0")]
    config = dict(running or _mtp_overrides(preset).get(SPECULATION) or _MTP_DEFAULT)
    if len(set(counts)) != len(counts) or not counts:
        raise UsageError("the arms of an MTP run must differ", "", "for example --arms 1,2,3")
    return (off, *(Arm(f"n{n}", {SPECULATION: config | {"num_speculative_tokens": n}}) for n in counts))


def _mtp_overrides(preset: Preset) -> Mapping[str, Value]:
    named = preset.lab.get("mtp")
    return dict(named) if isinstance(named, Mapping) else {SPECULATION: dict(_MTP_DEFAULT)}


def mtp_notes(presets: Sequence[Preset]) -> Iterator[str]:
    """What is reported of deep speculation."""
    for preset in presets:
        depth = (preset.speculative or {}).get("num_speculative_tokens")
        if isinstance(depth, int) and depth > _DEEPEST:
            yield f"{depth} speculative tokens: more than {_DEEPEST} are reported to crash on this model family"


def _count(word: str) -> int:
    if not re.fullmatch(r"n?[1-9]", word):
        raise UsageError(f"{word!r} is no MTP arm", "", "give the numbers of speculative tokens: --arms 1,2,3")
    return int(word.removeprefix("n"))


def _chunk(preset: Preset, words: Sequence[str], block_tokens: int) -> tuple[Arm, ...]:
    named = preset.lab.get("chunk")
    choices: Sequence[Any] = words or (named if isinstance(named, list) else _CHUNK_DEFAULT)
    budgets = [_budget(preset, choice, block_tokens) for choice in choices]
    if len(set(budgets)) != len(budgets) or len(budgets) < 2:
        raise UsageError("a chunk run needs two or more budgets that differ", "", "for example --arms 512,2048")
    if not words:
        # What runs today is what the others have to beat; arms given by hand stay in the order given.
        budgets.sort(key=lambda budget: budget != preset.args.get(BUDGET))
    return tuple(Arm(str(budget), {BUDGET: budget}) for budget in budgets)


def _budget(preset: Preset, choice: Value, block_tokens: int) -> int:
    text = str(choice).strip()
    if match := re.fullmatch(r"(\d{1,3}(?:\.\d+)?)x", text):
        return round(float(match[1]) * block_tokens) + decode_share(preset)
    if not re.fullmatch(r"[1-9]\d{1,6}", text):
        raise UsageError(f"{text!r} is no chunk budget", "", "tokens such as 2048, or cache blocks such as 2x")
    return int(text)


def decode_share(preset: Preset, streams: int | None = None) -> int:
    """Tokens of a step's budget that `streams` decoding streams take (all of `max-num-seqs` by default)."""
    if streams is None:
        seqs = preset.args.get("max-num-seqs")
        streams = seqs if isinstance(seqs, int) else 1
    config = preset.speculative or {}
    extra = config.get("num_speculative_tokens", 0)
    return streams * (1 + (extra if isinstance(extra, int) else 0))


def effective_chunk(preset: Preset, block_tokens: int, streams: int) -> int | None:
    """Prefill tokens a step really runs beside `streams` decoding ones; `None` without prefix caching.

    A hybrid model with prefix caching (align mode) prefills in whole cache blocks. A budget below the block is let
    through as it is by the versions that take it.
    """
    budget = preset.args.get(BUDGET)
    if not isinstance(budget, int) or preset.args.get("enable-prefix-caching") is not True:
        return None
    left = budget - decode_share(preset, streams)
    return left // block_tokens * block_tokens if budget >= block_tokens else max(left, 0)


def too_small(preset: Preset, block_tokens: int, version: str | None) -> str | None:
    """Why this arm's budget cannot even start, with both numbers; `None` if it can, or if nobody knows."""
    budget, known = preset.args.get(BUDGET), re.match(r"v?(\d+)\.(\d+)", version or "")
    if effective_chunk(preset, block_tokens, 0) is None or not isinstance(budget, int) or known is None:
        return None
    if budget >= block_tokens or (int(known[1]), int(known[2])) > _ASSERTS_BELOW_BLOCK:
        return None
    return f"budget {budget} is below the cache block of {block_tokens} tokens, which vLLM {version} refuses"


def lint_notes(arms: Sequence[Arm], resolved: Sequence[Preset], version: str | None) -> Iterator[str]:
    """What is known to go wrong with an arm and not with the first one, before it is started on purpose."""
    ground = Ground(version)
    of_first = {finding.rule for finding in lint(resolved[0], ground)}
    for arm, preset in zip(arms[1:], resolved[1:], strict=True):
        for found in lint(preset, ground):
            if found.weight is not Weight.INFO and found.rule not in of_first:
                yield f"arm {arm.name}: {found.what}: {found.why} (instead: {found.fix})"


def chunk_notes(presets: Sequence[Preset], block_tokens: int) -> Iterator[str]:
    """What the budgets come to in effect, for a hybrid model: equal ones and starving ones are named."""
    alone: dict[int, int] = {}
    for preset in presets:
        free, busy = (effective_chunk(preset, block_tokens, streams) for streams in (0, 1))
        if free is None or busy is None:
            continue
        budget = int(preset.args[BUDGET])
        text = f"budget {budget}: prefills {free} tokens a step alone, {busy} beside one decoding stream"
        text += f" (if the model is a hybrid with cache blocks of {block_tokens})"
        if budget < block_tokens:
            text += "; below the cache block: taken as it is, vLLM up to 0.22 refuses to start with it"
        if busy == 0:
            text += "; it starves: no prefill while a stream decodes"
        elif free in alone:
            text += f"; alone it is equal to {alone[free]} in effect"
        alone.setdefault(free, budget)
        yield text


def _named(kind: str, preset: Preset) -> tuple[Arm, ...]:
    experiment = preset.lab.get(kind)
    if not isinstance(experiment, Mapping):
        own = [key for key, value in preset.lab.items() if isinstance(value, Mapping) and key not in _BUILT_IN]
        why = f"the preset {preset.name} has no such key under `lab:`"
        raise UsageError(f"there is no experiment {kind!r}", why, f"known here: {', '.join([*_BUILT_IN, *own])}")
    return (Arm("base"), Arm("changed", dict(experiment)))
