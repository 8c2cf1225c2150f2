"""The verb without a name: the TUI."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from console.cli.house import DEFAULT_PRESET, House
from console.endpoint import Endpoint, normal_url
from console.errors import UsageError
from console.gpu.sample import GpuSource
from console.presets import Preset


def tui(args: argparse.Namespace) -> int:
    """Run the console on the terminal until its user quits; the server and a run stay."""
    # Textual draws on stderr.
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise UsageError(
            "the console needs a terminal", "stdin, stdout or stderr is none", "for scripts: `qwen-console status --json`"
        )
    from console.tui.app import run
    from console.tui.services import Services

    house = House.of(args)
    watched = Endpoint(normal_url(args.url)) if args.url else None

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

    services = Services(
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
        low_bandwidth=args.low_bandwidth,
    )
    return run(services)
