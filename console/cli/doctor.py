"""`doctor`: what of this machine a server depends on."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from console.cli.house import House
from console.cli.server import say
from console.errors import Exit
from console.server.doctor import Check, examine

_MARKS = {"ok": "✓", "look": "▲", "bad": "✖", "unknown": "?"}


def doctor(args: argparse.Namespace) -> int:
    """The checks on stdout; 0 whatever they say, since the looking worked."""
    house = House.of(args)
    checks = examine(house.paths, house.server, house.catalog().presets.values(), lambda: house.gpus(None), say)
    if args.json:
        count = {verdict: sum(check.verdict == verdict for check in checks) for verdict in _MARKS}
        print(json.dumps({"schema": 1, "checks": [asdict(check) for check in checks], "count": count}, indent=1))
        return Exit.OK
    width = max(len(check.check) for check in checks)
    print("\n".join(line for check in checks for line in _lines(check, width)))
    return Exit.OK


def _lines(check: Check, width: int) -> list[str]:
    lines = [f"{_MARKS[check.verdict]} {check.verdict:<7} {check.check:<{width}}  {check.value}"]
    if check.verdict != "ok":
        lines += [f"{'':>10}{label}: {text}" for label, text in (("why", check.why), ("fix", check.fix)) if text]
    return lines
