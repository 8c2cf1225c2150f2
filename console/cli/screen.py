"""The verb without a name: the TUI."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from console.cli.house import DEFAULT_PRESET, House
from console.endpoint import Endpoint, normal_url
from console.errors import UsageError
from console.gpu.sample import GpuSource
from console.presets import Preset
from console.tui.services import Services


def tui(args: argparse.Namespace) -> int:
    """Run the console on the terminal until its user quits; the server and a run stay."""
    # Textual draws on stderr.
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise UsageError(
            "the console needs a terminal",
            "stdin, stdout or stderr is none",
            "for scripts: `qwen-console status --json`",
        )
    if os.environ.get("TERM", "dumb") in ("dumb", "unknown", ""):
        raise UsageError(
            f"a terminal of type {os.environ.get('TERM') or 'none'!r} cannot show the console",
            "it cannot move its cursor",
            "set TERM to what the terminal is, for example `TERM=xterm-256color`",
        )
    from console.tui.app import run

    watched = Endpoint(normal_url(args.url)) if args.url else None
    return run(services(House.of(args), watched, low_bandwidth=args.low_bandwidth))


def services(house: House, watched: Endpoint | None = None, *, low_bandwidth: bool = False) -> Services:
    """What the screens need, from the floors below."""

    def open_gpus() -> GpuSource:
        return house.gpus(house.server.endpoint() if house.demo else None)

    def start_run(kind: str, preset: Preset) -> str:
        from console.cli.lab import start_one_key_run

        return start_one_key_run(house, kind, preset)

    def stop_run() -> None:
        from console.lab.control import stop_run as stop

        stop(house.paths)

    def adopt(run_id: str, arm: str) -> Path:
        from console.lab.adopt import adopt as write

        return write(house.paths, run_id, arm)

    return Services(
        paths=house.paths,
        server=house.server,
        catalog=house.catalog,
        open_gpus=open_gpus,
        start_run=start_run,
        stop_run=stop_run,
        adopt=adopt,
        demo=house.demo,
        watched=watched,
        default_preset=DEFAULT_PRESET,
        low_bandwidth=low_bandwidth,
    )
