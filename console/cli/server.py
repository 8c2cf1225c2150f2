"""The life of the server: `up`, `down`, `restart`."""

from __future__ import annotations

import argparse
import time

from console import units
from console.cli.house import DEFAULT_PRESET, House
from console.cli.joining import is_of, start_or_join
from console.cli.voice import offer, say
from console.errors import ConsoleError, Exit, NothingError, UsageError
from console.presets import Preset, apply_overrides, parse_assignments
from console.presets.installed import installed, stands_in
from console.server.run_lock import refuse_during_a_run
from console.server.status import Diagnosis, ServerStatus, State
from console.server.stop import StopReport


def up(args: argparse.Namespace) -> int:
    """Start a preset and stream its phases until it is ready."""
    house = House.of(args)
    if args.no_wait and args.prove:
        raise UsageError(
            "`up` takes --no-wait or --prove", "only a server that is ready can be proved", "leave one out"
        )
    preset = apply_overrides(house.preset(args.preset), parse_assignments(args.changes))
    refuse_during_a_run(house.paths)
    running = house.server.status()
    changed = bool(args.changes)
    same = is_of(house, running, preset, changed=changed)
    if same and running.state is State.READY:
        say(f"{preset.name} is ready already{_not_the_default(args.preset, preset)}")
        _tell_changes(house.server.preset(), preset)
        return _prove(house, running.url) if args.prove else _ready(running.url)
    try:
        if not (same and running.state is State.STARTING):
            _warn(preset)
            start_or_join(house, preset, changed=changed)
        if args.no_wait:
            say(f"{preset.name} starts; `qwen-console status` shows how far it is, `qwen-console down` stops it")
            return Exit.OK
        last = _watch(house, preset)
        return _prove(house, last.url) if args.prove else _ready(last.url)
    except KeyboardInterrupt:
        return _left_alone(preset)


def _warn(preset: Preset) -> None:
    """What is bad about this preset, by what can be told at once; it is started all the same."""
    if preset.simulated:
        return
    from console.lint import Ground, Weight, lint

    found = installed(preset)
    for finding in lint(preset, Ground(found.version if found else None)):
        if finding.weight is Weight.BAD:
            say(f"note: {finding.what}: {finding.why}\n  fix: {finding.fix}")


def _not_the_default(named: str | None, running: Preset) -> str:
    """What one hears who named no preset while another one than the default runs."""
    if named or running.name == DEFAULT_PRESET:
        return ""
    return f"; the default is {DEFAULT_PRESET}: `qwen-console restart {DEFAULT_PRESET}` switches to it"


def _simulated(preset: Preset) -> bool:
    return preset.simulated or stands_in(preset.command)


def _ready(url: str | None) -> int:
    offer(str(url))
    return Exit.OK


def _left_alone(preset: Preset) -> int:
    say(f"\nleft alone: {preset.name} goes on; `qwen-console status` shows it, `qwen-console down` stops it")
    return Exit.INTERRUPTED


def _prove(house: House, url: str | None) -> int:
    """One prompt of nearly the whole context, and what the cards had left."""
    from console.server.prove import prove

    proof = prove(house.server, lambda: house.gpus(house.server.endpoint() if house.demo else None), say)
    margin = f", {units.gib(proof.margin)} of VRAM left" if proof.margin is not None else ""
    say(f"proved: {proof.prompt_tokens:,} tokens answered in {units.took(proof.seconds)}{margin}")
    return _ready(url)


def _watch(house: House, preset: Preset) -> ServerStatus:
    """Stream the phases of a start, whoever began it; the ready server.

    Raises:
        ConsoleError: it did not become ready.
    """
    watched, last = _Watched(preset), ServerStatus()
    for last in house.server.follow_start():
        watched.tell(last)
    if last.state is not State.READY:
        raise failure(preset.name, last)
    watched.done(last)
    return last


class _Watched:
    """A start on stderr, a line a change; it begins with the first."""

    def __init__(self, preset: Preset) -> None:
        self._preset = preset
        self._began: float | None = None
        self._said: set[str] = set()

    def tell(self, now: ServerStatus) -> None:
        """One change."""
        if self._began is None:
            self._began = time.monotonic()
            say(f"starting {self._preset.name}{' SIMULATED' if _simulated(self._preset) else ''}")
        if now.phase and now.state in (State.STARTING, State.READY):
            detail = f" · {now.detail}" if now.detail else ""
            left = f" · about {units.duration(now.eta_s)} left" if now.eta_s and now.state is State.STARTING else ""
            say(f"{time.monotonic() - self._began:7.1f} s  {now.phase.value}{detail}{left}")
        if now.state is State.STARTING:
            self._once(f"note: {now.note}" if now.note else "")
            self._once(now.silence or "")
            found = now.diagnosis
            self._once(f"{found.cause}: {found.what}\n  why: {found.why}\n  fix: {found.fix}" if found else "")

    def _once(self, text: str) -> None:
        if text and text not in self._said:
            self._said.add(text)
            say("\n".join(f"           {line}" for line in text.splitlines()))

    def done(self, ready: ServerStatus) -> None:
        """It is ready."""
        took = units.took(time.monotonic() - (self._began or time.monotonic()))
        say(f"ready in {took}: model {ready.model}, vLLM {ready.version or units.NA}")


def failure(name: str, status: ServerStatus) -> ConsoleError:
    """A start that did not end in ready, as the error its user reads."""
    if status.state is State.STOPPED:
        why = status.note or "another console asked for it, or a signal to its keeper"
        return ConsoleError(
            f"{name} did not become ready: it was stopped meanwhile", why, "`qwen-console up` starts it"
        )
    found = status.diagnosis or Diagnosis("unknown", "the server is not running", status.note or "", "")
    why = "\n       ".join([found.why, *unsaid(found)] if found.why else found.evidence)
    log = f"{found.fix}\n  log: {status.log}" if status.log else found.fix
    error = ConsoleError(f"{name} did not become ready: {found.what}", why, log)
    error.cause = found.cause
    return error


def unsaid(found: Diagnosis) -> list[str]:
    """The log lines that prove it, without what its reason quotes already."""
    _, _, quoted = found.why.partition("The log says: ")
    quoted = quoted.strip("… ")
    return [line for line in found.evidence if not quoted or (quoted not in line and line.strip("… ") not in found.why)]


def down(args: argparse.Namespace) -> int:
    """Stop the server, whole; with `--drain` after it has answered what it was asked."""
    house = House.of(args)
    refuse_during_a_run(house.paths)
    if args.drain is not None and not _drained(house, args.drain):
        return Exit.INTERRUPTED
    return _told(house.server.stop(on_event=say))


def _drained(house: House, limit_s: float) -> bool:
    """Wait for the requests in flight; `False` when its user broke that off, and nothing was stopped."""
    try:
        end = house.server.drain(limit_s, say)
    except KeyboardInterrupt:
        say("\nnot stopped: the server goes on")
        return False
    if end is None:
        return True
    if end.left is None:
        say(f"how many requests run cannot be told ({end.why}): stopping now")
    elif end.left:
        say(f"requests still in flight after {units.took(end.seconds)}: {end.left}; they are cut off")
    else:
        say(f"no request is in flight (waited {units.took(end.seconds)})")
    return True


def _told(report: StopReport) -> int:
    """A stop's report, in words.

    Raises:
        ConsoleError: something stays.
    """
    for note in report.notes:
        say(f"note: {note}")
    if report.left:
        left = "; ".join(f"pid {pid}: {reason}" if pid else reason for pid, reason in report.left)
        fix = "see these processes; `qwen-console down` tries again"
        raise ConsoleError("the server is not wholly stopped", left, fix)
    say(f"stopped in {units.took(report.seconds)}{' (it had to be killed)' if report.escalated else ''}")
    return Exit.OK


def restart(args: argparse.Namespace) -> int:
    """Stop what runs, then start it again, or another preset; says how to go back when that does not come up."""
    from console.server.room import make_state
    from console.server.start import command_path
    from console.server.switch import stop_before, switch, with_secrets

    house = House.of(args)
    if args.back and args.preset is not None:
        raise UsageError(
            f"`restart --back` takes no preset, and {args.preset} is one",
            "it starts what was ready before",
            "leave one of them out",
        )
    refuse_during_a_run(house.paths)
    preset = _wanted(house, args)
    _warn(preset)
    if args.drain is not None and not _drained(house, args.drain):
        return Exit.INTERRUPTED
    if args.no_wait:
        preset = with_secrets(house.server, preset, say)
        command_path(preset)
        make_state(house.paths)
        stop_before(house.server, preset, say)
        house.server.start(preset)
        say(f"{preset.name} starts; `qwen-console status` shows how far it is, `qwen-console down` stops it")
        return Exit.OK
    watched = _Watched(preset)
    try:
        end = switch(house.server, preset, say=say, tell=watched.tell)
    except KeyboardInterrupt:
        return _left_alone(preset)
    if end.ok:
        watched.done(end.status)
        return _ready(end.status.url)
    error = end.error or failure(preset.name, end.status)
    if end.back is not None:
        error.fix += f"\n  go back: `qwen-console restart --back` starts {end.back.name} again, which was ready before"
    raise error


def _wanted(house: House, args: argparse.Namespace) -> Preset:
    """Which preset a restart is about.

    Raises:
        NothingError: none runs, none was named.
    """
    if args.back:
        worked = house.server.worked()
        if worked is None:
            last = house.server.preset()
            what = f"no other preset than {last.name} was ready before" if last else "no preset was ready yet"
            raise NothingError(what, "", f"start one: `qwen-console up {last.name if last else 'PRESET'}`")
        return worked
    if args.preset is not None:
        return house.preset(args.preset)
    running = house.server.preset()
    if running is None and house.server.status(probe=False).pid is not None:
        return house.preset(None)
    if running is None:
        raise NothingError("no server runs", "", "start one: `qwen-console up PRESET`")
    _tell_changes(running, house.catalog().presets.get(running.name))
    return running


def _tell_changes(running: Preset | None, file: Preset | None) -> None:
    """What a preset's file says otherwise by now than what was started under its name."""
    from console.lab.difference import changes_of_file

    if running is not None and (changes := changes_of_file(running, file)):
        say(f"note: it was started otherwise than its file says by now: {'; '.join(changes)}")
        say(f"  `qwen-console restart {running.name}` starts it as the file says")
