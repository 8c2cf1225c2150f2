"""The life of the server: `up`, `down`, `restart`, `logs`."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from console import units
from console.cli.house import House
from console.errors import BusyError, ConsoleError, Exit, NothingError
from console.presets import Preset, apply_overrides, parse_assignments
from console.server.log import follow, redact, tail
from console.server.run_lock import run_is_live
from console.server.status import Diagnosis, ServerStatus, State

_FOLLOW_EVERY_S = 0.25


def say(line: str) -> None:
    """Narration goes to stderr; stdout is data."""
    print(line, file=sys.stderr, flush=True)


def up(args: argparse.Namespace) -> int:
    """Start a preset and stream its phases until it is ready."""
    house = House.of(args)
    preset = apply_overrides(house.preset(args.preset), parse_assignments(args.changes))
    _refuse_during_a_run(house)
    running = house.server.status()
    same = running.preset == preset.name and not args.changes
    if same and running.state is State.READY:
        say(f"{preset.name} is ready already")
        print(running.url)
        return Exit.OK
    if same and running.state is State.STARTING:
        return _see_through(house, preset, wait=not args.no_wait)
    return _start(house, preset, wait=not args.no_wait)


def _start(house: House, preset: Preset, *, wait: bool) -> int:
    try:
        house.server.start(preset)
    except KeyboardInterrupt:
        return _left_alone(preset)
    return _see_through(house, preset, wait=wait)


def _left_alone(preset: Preset) -> int:
    say(f"\nleft alone: if {preset.name} was started, it goes on; `qwen-console down` stops it")
    return Exit.INTERRUPTED


def _see_through(house: House, preset: Preset, *, wait: bool) -> int:
    """Watch a start, whoever began it."""
    if not wait:
        say(f"{preset.name} starts; `qwen-console status` shows how far it is, `qwen-console down` stops it")
        return Exit.OK
    try:
        return _watch(house, preset)
    except KeyboardInterrupt:
        return _left_alone(preset)


def _watch(house: House, preset: Preset) -> int:
    began = time.monotonic()
    simulated = " SIMULATED" if preset.simulated else ""
    say(f"starting {preset.name}{simulated}")
    last = ServerStatus()
    for now in house.server.follow_start():
        last = now
        if now.phase and now.state in (State.STARTING, State.READY):
            detail = f" · {now.detail}" if now.detail else ""
            say(f"{time.monotonic() - began:7.1f} s  {now.phase.value}{detail}")
    if last.state is State.READY:
        say(f"ready in {units.duration(time.monotonic() - began)}: model {last.model}, vLLM {last.version or units.NA}")
        print(last.url)
        return Exit.OK
    raise failure(preset.name, last)


def failure(name: str, status: ServerStatus) -> ConsoleError:
    """A start that did not end in ready, as the error its user reads."""
    found = status.diagnosis or Diagnosis("unknown", "the server is not running", status.note or "", "")
    why = "\n       ".join([found.why, *found.evidence]) if found.why else "\n       ".join(found.evidence)
    log = f"{found.fix}\n  log: {status.log}" if status.log else found.fix
    error = ConsoleError(f"{name} did not become ready: {found.what}", why, log)
    error.cause = found.cause
    return error


def down(args: argparse.Namespace) -> int:
    """Stop the server, whole."""
    house = House.of(args)
    _refuse_during_a_run(house)
    return _stop(house)


def _stop(house: House) -> int:
    report = house.server.stop(on_event=say)
    if report.left:
        left = "; ".join(f"pid {pid}: {reason}" for pid, reason in report.left)
        raise ConsoleError(
            "the server is not wholly stopped", left, "see these processes; `qwen-console down` tries again"
        )
    say(f"stopped in {units.duration(report.seconds)}{' (it had to be killed)' if report.escalated else ''}")
    return Exit.OK


def restart(args: argparse.Namespace) -> int:
    """Stop what runs, then start it (or another preset) again."""
    house = House.of(args)
    _refuse_during_a_run(house)
    running = house.server.preset()
    if args.preset is None and running is None:
        raise NothingError("no server runs", "", "start one: `qwen-console up PRESET`")
    preset = house.preset(args.preset) if args.preset or running is None else running
    if house.server.status(probe=False).state not in (State.STOPPED, State.FAILED):
        _stop(house)
    return _start(house, preset, wait=not args.no_wait)


def _refuse_during_a_run(house: House) -> None:
    if run_id := run_is_live(house.paths):
        raise BusyError(f"the A/B run {run_id} owns the server", "", f"`qwen-console ab stop {run_id}` ends it first")


def logs(args: argparse.Namespace) -> int:
    """The server's log on stdout; `-f` goes on."""
    house = House.of(args)
    record = house.server.record()
    if record is None or not Path(record.log).exists():
        raise NothingError("there is no log", "no server was started here yet", "start one: `qwen-console up PRESET`")
    path, secrets = Path(record.log), house.server.secrets()
    offset = path.stat().st_size
    for line in tail(path, args.lines):
        print(redact(line, secrets))
    while args.follow:
        sys.stdout.flush()
        time.sleep(_FOLLOW_EVERY_S)
        lines, offset = follow(path, offset)
        for line in lines:
            print(redact(line, secrets))
    return Exit.OK
