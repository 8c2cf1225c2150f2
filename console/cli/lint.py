"""`lint`: what is known to go wrong with a preset, before it is started."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from console import units
from console.cli.house import House
from console.cli.plan import prospect
from console.cli.voice import say, show, show_json
from console.errors import Exit
from console.lint import Finding, Ground, Weight, lint
from console.presets import Preset
from console.presets.installed import flags, installed

_MARKS = {Weight.BAD: "✖", Weight.LOOK: "▲", Weight.INFO: "·"}


def run(args: argparse.Namespace) -> int:
    """Findings on stdout; 0 with or without them, 2 where a preset is broken."""
    house = House.of(args)
    catalog = house.catalog()
    chosen = list(catalog.presets.values()) if args.preset is None else [catalog.get(args.preset)]
    problems = catalog.problems if args.preset is None else ()
    asked: dict[tuple[str, ...], frozenset[str] | None] = {}
    checked = []
    for preset in chosen:
        if preset.command not in asked:
            asked[preset.command] = _flags(preset, house)
        checked.append(_Checked(preset, asked[preset.command]))
    if args.json:
        broken = [
            {"name": p.name, "what": p.error.what, "why": p.error.why, "fix": p.error.fix, "path": str(p.path)}
            for p in problems
        ]
        show_json({"schema": 1, "presets": [one.to_json() for one in checked], "problems": broken})
    else:
        show(line for one in checked for line in one.text())
    for problem in problems:
        say("\n".join([f"! {problem.name}: {problem.error.what}", *problem.error.lines()[1:]]))
    return Exit.USAGE if problems else Exit.OK


def _flags(preset: Preset, house: House) -> frozenset[str] | None:
    found = installed(preset)
    if found is None or found.stand_in:
        return None
    say(f"asking {found.command[0]} for its flags (some seconds, once a version)")
    return flags(found, house.paths.cache)


class _Checked:
    """One preset with what was found."""

    def __init__(self, preset: Preset, known: frozenset[str] | None) -> None:
        self.preset, self.known, self.prospect = preset, known, prospect(preset)
        found = self.prospect.vllm
        seen = self.prospect
        ground = Ground(found.version if found else None, known, seen.memory, seen.hybrid, seen.no_model)
        self.findings = lint(preset, ground)

    def to_json(self) -> dict[str, Any]:
        """The contract of `lint --json`."""
        told = self.prospect.to_json()
        told["vllm"]["flags"] = len(self.known) if self.known is not None else None
        findings = [asdict(finding) for finding in self.findings]
        path = str(self.preset.path) if self.preset.path else None
        return {"name": self.preset.name, "path": path, "findings": findings, **told}

    def text(self) -> list[str]:
        """For people."""
        lines = [f"{self.preset.name}: {self._summary()}"]
        for finding in self.findings:
            lines += _finding_lines(finding)
        return lines

    def _summary(self) -> str:
        found, count = self.prospect.vllm, len(self.findings)
        if found is None:
            against = f"no command {self.preset.command[0]} here, so its flags are not checked"
        elif self.known is None:
            against = "on the stand-in engine" if found.stand_in else "its vLLM does not tell its flags"
        else:
            against = f"checked against vLLM {found.version or units.NA} ({len(self.known)} flags)"
        return f"{f'{count} finding' + 's' * (count != 1) if count else 'nothing found'}; {against}"


def _finding_lines(finding: Finding) -> list[str]:
    return [
        f"  {_MARKS[finding.weight]} {finding.key}: {finding.what}",
        f"      why: {finding.why}",
        f"      fix: {finding.fix}",
    ]
