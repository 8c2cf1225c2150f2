"""`presets` and `show`."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import replace
from typing import Any

from console.cli.house import DEFAULT_PRESET, House
from console.cli.plan import prospect
from console.cli.voice import say, show_json
from console.cli.voice import show as put
from console.errors import Exit
from console.presets import Preset, apply_overrides, argv, parse_assignments, shell_line
from console.presets.buckets import FLAG, measured
from console.presets.command import own_env
from console.presets.installed import stands_in
from console.presets.secrecy import covered
from console.units import one_line

_WHAT_FOR = "finer steps of the latency histograms, so that /metrics tells p50, p90 and p99; it changes no answer"


def presets(args: argparse.Namespace) -> int:
    """List presets on stdout, broken files on stderr."""
    house = House.of(args)
    catalog = house.catalog()
    if args.json:
        broken = [
            {"name": p.name, "path": str(p.path), "what": p.error.what, "why": p.error.why, "fix": p.error.fix}
            for p in catalog.problems
        ]
        listed = [_summary(preset) for preset in catalog.presets.values()]
        whole = {"presets": listed, "problems": broken, "bases": sorted(catalog.bases), "notes": list(catalog.notes)}
        show_json({"schema": 1, **whole})
        return Exit.OK
    width = max((len(one_line(name)) for name in catalog.presets), default=0)
    for name, preset in catalog.presets.items():
        mark = "*" if name == DEFAULT_PRESET else " "
        put([f"{mark} {one_line(name):<{width}}  {one_line(preset.description)}".rstrip()])
        if preset.unset:
            lacking = ", ".join(dict.fromkeys(missing.variable for missing in preset.unset))
            put([f"  {'':<{width}}  not startable yet: not set in this shell: {lacking}"])
    if catalog.bases:
        put([f"  bases for others, without a model of their own: {', '.join(sorted(catalog.bases))}"])
    for note in catalog.notes:
        say(f"note: {note}")
    for problem in catalog.problems:
        say("\n".join([f"! {problem.name}: {problem.error.what}", *problem.error.lines()[1:]]))
    return Exit.OK


def _summary(preset: Preset) -> dict[str, Any]:
    return {
        "name": preset.name,
        "description": preset.description,
        "model": preset.model,
        "path": str(preset.path),
        "default": preset.name == DEFAULT_PRESET,
        "simulated": preset.simulated or stands_in(preset.command),
        "unset": [missing.variable for missing in preset.unset],
    }


def show(args: argparse.Namespace) -> int:
    """The exact command on stdout, copy-paste ready; with `--json` the resolved preset."""
    house = House.of(args)
    preset = apply_overrides(house.preset(args.preset), parse_assignments(args.changes))
    started = _covered(measured(preset))
    if args.json:
        whole = _covered(preset).to_json() | {"schema": 1, "argv": argv(started), "shell": shell_line(started)}
        whole |= prospect(preset).to_json() | {"unset": [missing.variable for missing in preset.unset]}
        show_json(whole)
        return Exit.OK
    # A line end in one of them would end the comment, and a shell would run what comes then.
    lines = [f"{preset.name}: {preset.description}", f"from {preset.path}", *prospect(preset).lines()]
    for missing in preset.unset:
        lines += [f"not startable yet: {missing.error.what}", *missing.error.lines()[1:]]
    if FLAG in started.args and FLAG not in preset.args:
        lines += [f"its last flag is the console's own: {_WHAT_FOR}", f"(`--set '{FLAG}={{}}'` leaves it out)"]
    put(f"# {_indented(line)}" for line in lines)
    put(command_lines(preset))
    return Exit.OK


def _indented(line: str) -> str:
    return line[: len(line) - len(line.lstrip())] + one_line(line)


def command_lines(preset: Preset) -> list[str]:
    """The exact command, copy-paste ready, a variable or a flag a line; secrets as variables."""
    variables = {
        name: f'"${name}"' if name in preset.secrets else _quoted(value) for name, value in own_env(preset).items()
    }
    return [*(f"{name}={value} \\" for name, value in variables.items()), *_wrapped(argv(_covered(measured(preset))))]


def _covered(preset: Preset) -> Preset:
    """The same to be looked at: secrets that stand in `args` are covered."""
    return replace(preset, args=covered(preset.args))


def _quoted(value: str) -> str:
    return shlex.quote(value)


def _wrapped(words: list[str]) -> list[str]:
    """One flag a line, joined by backslashes."""
    lines: list[list[str]] = [[]]
    for word in words:
        if word.startswith("--"):
            lines.append([])
        lines[-1].append(_quoted(word))
    return " \\\n    ".join(" ".join(line) for line in lines).split("\n")
