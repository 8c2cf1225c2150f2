"""The verb without a name: the TUI."""

from __future__ import annotations

import argparse
import gc
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from console.cli.house import DEFAULT_PRESET, House
from console.errors import UsageError

if TYPE_CHECKING:
    from console.endpoint import Endpoint
    from console.gpu.sample import GpuSource
    from console.lab.adopt import Draft
    from console.lab.plan import Plan
    from console.presets import Preset
    from console.server.life import Server
    from console.tui.config import Config
    from console.tui.preset_page import Inspection
    from console.tui.services import Say, Services


def tui(args: argparse.Namespace) -> int:
    """Run the console on the terminal until its user quits; the server and a run stay."""
    # Textual draws on stderr.
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
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
    # Imports make many objects and no garbage: looking for it meanwhile costs a tenth of the time to the first frame.
    gc.disable()
    from console.tui.config import load
    from console.tui.run import run

    house = House.of(args)
    config = load(house.paths.config / "config.yaml")
    watched = house.elsewhere(args.url) if args.url else None
    low = args.low_bandwidth or config.low_bandwidth
    return run(services(house, watched, low_bandwidth=low, config=config))


def services(
    house: House, watched: Endpoint | None = None, *, low_bandwidth: bool = False, config: Config | None = None
) -> Services:
    """What the screens need, from the floors below; each is imported by the call that needs it."""
    from console.tui.config import Config
    from console.tui.services import Services

    turn = threading.Lock()

    def open_server() -> Server:
        with turn:
            return house.server

    def open_gpus() -> GpuSource:
        return house.gpus(house.server.endpoint() if house.demo else None)

    def plan_run(kind: str, preset: Preset, rounds: int | None) -> Plan:
        from console.cli.lab import plan_one_key_run

        return plan_one_key_run(house, kind, preset, rounds)

    def start_run(plan: Plan) -> str:
        from console.lab.launch import launch

        # The question has named what is cut off.
        return launch(house.paths, plan, interrupt=True)

    def stop_run() -> None:
        from console.lab.control import stop_run as stop

        stop(house.paths)

    def draft(run_id: str, arm: str) -> Draft:
        from console.cli.runs import measured_preset
        from console.lab.adopt import draft as look

        measured_preset(house, run_id)
        return look(house.paths, run_id, arm)

    def adopt(run_id: str, arm: str) -> Path:
        from console.lab.adopt import adopt as write

        return write(house.paths, run_id, arm)

    def inspect(preset: Preset) -> Inspection:
        return inspection(house, preset)

    def probe_prefix(say: Say) -> str:
        from console.cli.probe import prefix_probe

        return prefix_probe(house, say).sentence

    return Services(
        paths=house.paths,
        open_server=open_server,
        catalog=house.catalog,
        open_gpus=open_gpus,
        plan_run=plan_run,
        start_run=start_run,
        stop_run=stop_run,
        draft=draft,
        adopt=adopt,
        inspect=inspect,
        probe_prefix=probe_prefix,
        demo=house.demo,
        watched=watched,
        default_preset=DEFAULT_PRESET,
        low_bandwidth=low_bandwidth,
        config=config or Config(),
    )


def inspection(house: House, preset: Preset) -> Inspection:
    """A preset from all sides, against the one that runs."""
    from console.cli.plan import prospect
    from console.cli.presets import command_lines
    from console.lab.difference import changes_of_file
    from console.lint import Ground, lint
    from console.presets.installed import flags
    from console.tui.preset_page import Inspection

    seen = prospect(preset)
    vllm = seen.vllm
    asks = vllm is not None and not vllm.stand_in
    known = flags(vllm, house.paths.cache) if vllm is not None and asks else None
    silent = ("its `--help=all` told no flags: the preset's are not held against them",) if asks and not known else ()
    ground = Ground(vllm.version if vllm else None, known, seen.memory, seen.hybrid, seen.no_model)
    running = house.server.preset() if house.server.endpoint() is not None else None
    other = running is not None and (running.name != preset.name or bool(changes_of_file(running, preset)))
    return Inspection(
        preset=preset,
        running=running if other else None,
        findings=lint(preset, ground),
        prospect=(*seen.lines(), *silent),
        command=tuple(command_lines(preset)),
    )
