"""A preset in full as lines: what it changes, what is known to go wrong with it, its plan, its exact command. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.presets.overrides import keys_changed
from console.presets.secrecy import covered
from console.tui.stories import labelled, wrapped
from console.tui.widgets.lines import Line, line

if TYPE_CHECKING:
    from console.lint import Finding
    from console.presets import Preset
    from console.presets.model import Unset

_MARKS = {"bad": ("✖", "bad"), "look": ("▲", "warn"), "info": ("·", "dim")}
_LONGEST = 48


@dataclass(frozen=True, slots=True)
class Inspection:
    """A preset, looked at from all sides."""

    preset: Preset
    running: Preset | None
    """What runs now, if it is another one, or was started otherwise than its file says by now."""
    findings: tuple[Finding, ...]
    prospect: tuple[str, ...]
    """Its vLLM, its model's files, its memory: a sentence each."""
    command: tuple[str, ...]
    """The exact command, a line a flag, secrets as variables."""


def preset_page(found: Inspection, width: int) -> list[Line]:
    """What one wants to know before pressing enter."""
    preset = found.preset
    lines = wrapped(preset.description or preset.model, width, "strong")
    lines += [line(str(preset.path or ""), "dim"), ()]
    for missing in preset.unset:
        lines += [*_lacking(missing, width), ()]
    lines += [*_differences(found, width), ()]
    lines += [line("known to go wrong", "title"), *_findings(found, width), ()]
    lines.append(line("plan", "title"))
    lines += [row for text in found.prospect for row in wrapped(text, width)]
    return [*lines, (), line("command", "title"), *(line(text) for text in found.command)]


def _lacking(missing: Unset, width: int) -> Iterator[Line]:
    """Why it cannot start, as the start would say."""
    yield from labelled("▲", f"it cannot start: {missing.error.what}", width, "warn")
    yield from labelled("why", missing.error.why, width)
    yield from labelled("fix", missing.error.fix, width)


def _differences(found: Inspection, width: int) -> list[Line]:
    if found.running is None:
        return [line("no other preset runs", "dim")]
    keys = list(keys_changed(found.running, found.preset))
    secrets = found.running.secrets | found.preset.secrets
    own = found.running.name == found.preset.name
    against = "against what was started from it, and runs" if own else f"against {found.running.name}, which runs"
    lines = [line(against, "title")]
    for missing in found.preset.unset:
        before = _value(found.running, missing.name, secrets)
        lines += wrapped(f"{missing.name}: {before} → ${{{missing.variable}}}, not set", width)
        keys = [key for key in keys if key != missing.name]
    if not keys and not found.preset.unset:
        return [*lines, line("nothing differs", "dim")]
    for key in keys:
        before, after = (_value(preset, key, secrets) for preset in (found.running, found.preset))
        lines += wrapped(f"{key}: {before} → {after}", width, indent="  ")
    return lines


def _value(preset: Preset, key: str, secrets: frozenset[str]) -> str:
    """A key's value as a preset file writes it; of a secret only that it is one."""
    kind, _, name = key.partition(".")
    if kind == "env" and name:
        value: object = "(secret)" if name in secrets and name in preset.env else preset.env.get(name)
    elif kind == "server" and name:
        value = preset.to_json()["server"].get(name)
    else:
        value = covered(preset.args).get(key, preset.to_json().get(key))
    if value is None:
        return "not set"
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _findings(found: Inspection, width: int) -> list[Line]:
    lines: list[Line] = []
    for finding in found.findings:
        mark, tone = _MARKS[finding.weight]
        lines += labelled(mark, f"{finding.key}: {finding.what}", width, tone)
        lines += [*labelled("why", finding.why, width), *labelled("fix", finding.fix, width)]
    return lines or [line("nothing found", "dim")]
