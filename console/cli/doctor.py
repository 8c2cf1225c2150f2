"""`doctor`: what of this machine a server depends on."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict

from console.cli.house import House
from console.cli.voice import say, show, show_json
from console.errors import Exit
from console.gpu.sample import GpuSource
from console.gpu.source import open_source
from console.server.doctor import Check, examine

_MARKS = {"ok": "✓", "look": "▲", "bad": "✖", "unknown": "?"}


def doctor(args: argparse.Namespace) -> int:
    """The checks on stdout; 1 when one of them is bad: a server will not start, or not live long."""
    house = House.of(args)
    checks = examine(house.paths, house.server, house.catalog().presets.values(), _cards(house), say)
    end = Exit.FAILED if any(check.verdict == "bad" for check in checks) else Exit.OK
    if args.json:
        count = {verdict: sum(check.verdict == verdict for check in checks) for verdict in _MARKS}
        show_json({"schema": 1, "checks": [asdict(check) for check in checks], "count": count})
        return end
    width = max(len(check.check) for check in checks)
    show(line for check in checks for line in _lines(check, width))
    return end


def _cards(house: House) -> Callable[[], GpuSource]:
    """The machine's own, in a demo too: it is the machine that is examined."""
    return lambda: open_source(None, house.server.ours, house.server.card_env)


def _lines(check: Check, width: int) -> list[str]:
    lines = [f"{_MARKS[check.verdict]} {check.verdict:<7} {check.check:<{width}}  {check.value}"]
    if check.verdict != "ok":
        lines += [f"{'':>10}{label}: {text}" for label, text in (("why", check.why), ("fix", check.fix)) if text]
    return lines
