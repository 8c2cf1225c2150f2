"""All probes of one boot, and what the server's counters said around the long prompt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from console.errors import ConsoleError
from console.lab.jobs import Message
from console.lab.probes.asking import Asker, Tally
from console.lab.probes.function import EXTRA, USUAL, json_schema, sampling, tool_call
from console.lab.probes.prefix import prefix_test
from console.lab.probes.recall import decode_afterwards, recall
from console.lab.shapes import Shape
from console.presets import Preset

Say = Callable[[str], None]
Count = Callable[[list[Message]], int]


def function_probes(asker: Asker, preset: Preset, shape: Shape, say: Say) -> dict[str, Tally]:
    """What an agent asks of a server besides text."""
    say("probes: tool calls")
    auto = preset.args.get("enable-auto-tool-choice") is True
    found = {"tool_call": tool_call(asker, shape.tool_probes, auto=auto)}
    say("probes: JSON by schema")
    found["json_schema"] = json_schema(asker, shape.schema_probes)
    return found


def sampling_probes(asker: Asker, say: Say) -> dict[str, Tally]:
    """Sampling settings; last of all, since there are builds of vLLM that die of one of them."""
    say("probes: sampling settings")
    return {"sampling_extra": sampling(asker, EXTRA), "sampling": sampling(asker, USUAL)}


def cache_probe(
    asker: Asker, preset: Preset, count: Count, block_tokens: int, blocks: int, say: Say
) -> dict[str, Tally]:
    """The prefix cache on itself over so many blocks, where it is on."""
    if preset.args.get("enable-prefix-caching") is not True or not blocks:
        return {}
    say("probes: prefix cache")
    try:
        test = prefix_test(asker, count, block_tokens, blocks, speculates=preset.speculative is not None)
    except ConsoleError as error:
        return {"prefix_cache": Tally(0, 1, f"{error.what}: {error.why}")}
    return {} if test.ok is None else {"prefix_cache": Tally(int(test.ok), 1, test.sentence)}


def long_probe(asker: Asker, shape: Shape, count: Count, seed: int, say: Say) -> dict[str, Tally]:
    """A fact in a prompt near the context's end."""
    if not shape.recall_tokens:
        return {}
    say(f"probes: recall over {shape.recall_tokens} tokens")
    try:
        return {"long_context": recall(asker, count, shape.recall_tokens, seed)}
    except ConsoleError as error:
        return {"long_context": Tally(0, 1, f"{error.what}: {error.why}")}


def afterwards(asker: Asker, say: Say) -> str | None:
    """Decode again after the long prompt; what went wrong."""
    say("probes: decoding after the long prompt")
    return decode_afterwards(asker)


def to_json(tallies: dict[str, Tally]) -> dict[str, Any]:
    """For the journal."""
    return {name: tally.to_json() for name, tally in tallies.items()}
