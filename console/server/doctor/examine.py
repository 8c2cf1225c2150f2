"""All checks, in the order in which a start needs what they are about."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from console import units
from console.endpoint import Endpoint
from console.gpu.sample import GpuReport
from console.paths import Paths
from console.presets import Preset, child_env
from console.presets.installed import Installed, flags, installed
from console.server.cards import OpenCards, look
from console.server.doctor import machine
from console.server.doctor.check import Check
from console.server.doctor.session import session
from console.server.foreign import speaks_vllm
from console.server.life import Server
from console.server.sockets import answering, owner_of, url_of

Say = Callable[[str], None]


def examine(
    paths: Paths, server: Server, presets: Iterable[Preset], open_cards: OpenCards, say: Say = lambda _text: None
) -> tuple[Check, ...]:
    """Look at everything; takes seconds, and ten more the first time it asks a vLLM for its flags.

    Args:
        paths: whose state and cache.
        server: the server, whose own port is no trouble.
        presets: the known presets.
        open_cards: where to look at the cards.
        say: hears what takes long.
    """
    chosen = list(presets)
    env = child_env(chosen[0]) if chosen else dict(os.environ)
    report = look(open_cards)
    commands = {preset.command: preset for preset in chosen if not preset.simulated}
    found = {command: installed(preset) for command, preset in commands.items()}
    beside = next((Path(one.command[0]).parent for one in found.values() if one), None)
    needed = _has_cards(report)
    return (
        machine.own(),
        machine.driver(report),
        machine.persistence(report),
        *_vllms(chosen, found, paths.cache, say),
        machine.nvcc(env, needed),
        machine.ninja(env, beside, needed),
        machine.shared_memory(),
        machine.memlock(),
        machine.memory(),
        *machine.disks(env, paths.state),
        *_ports(chosen, server),
        session(),
    )


def _has_cards(report: GpuReport | None) -> bool:
    return bool(report and report.cards)


def _vllms(
    presets: list[Preset], found: dict[tuple[str, ...], Installed | None], cache: Path, say: Say
) -> Iterable[Check]:
    """Each command of the presets: its version, and whether it takes their flags."""
    for command, one in found.items():
        users = [preset for preset in presets if preset.command == command]
        names = _some([preset.name for preset in users])
        if one is None:
            yield Check(
                f"vllm: {command[0]}",
                "bad",
                "not found",
                f"{names} cannot be started",
                "install vLLM beside the console, or set `command:` in the preset to its full path",
            )
            continue
        value = f"{one.version or units.NA} ({one.command[0]})"
        yield Check(f"vllm: {command[0]}", "ok" if one.version else "unknown", value)
        yield _flags(command, users, one, cache, say)


def _flags(command: tuple[str, ...], users: list[Preset], one: Installed, cache: Path, say: Say) -> Check:
    name = f"flags: {command[0]}"
    say(f"asking {one.command[0]} for its flags (some seconds, once a version)")
    known = flags(one, cache)
    if known is None:
        fix = f"run `{' '.join(one.command)} --help=all`"
        return Check(name, "unknown", units.NA, "it does not tell which flags it takes", fix)
    missing = {preset.name: lacking(preset, known) for preset in users}
    bad = {preset: keys for preset, keys in missing.items() if keys}
    if not bad:
        return Check(name, "ok", f"takes every flag of {_some(list(missing))}")
    told = "; ".join(f"{preset}: {', '.join(f'--{key}' for key in keys)}" for preset, keys in bad.items())
    why = "a start would end at once with `unrecognized arguments`"
    return Check(
        name, "bad", told, why, "`qwen-console lint` names the nearest flags; or install a version that has them"
    )


def lacking(preset: Preset, known: frozenset[str]) -> tuple[str, ...]:
    """Keys of the preset's args that this vLLM does not take, also not as the beginning of one single flag."""
    return tuple(key for key in preset.args if key not in known and sum(flag.startswith(key) for flag in known) != 1)


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _ports(presets: list[Preset], server: Server) -> Iterable[Check]:
    """The presets' ports: free, ours, or somebody else's."""
    users: dict[tuple[str, int], list[Preset]] = {}
    for preset in presets:
        if preset.server.port:
            users.setdefault((preset.server.host, preset.server.port), []).append(preset)
    ours = server.status(probe=False)
    for (host, port), some in users.items():
        yield _port(host, port, some[0], ours.url if ours.pid else None)


def _port(host: str, port: int, preset: Preset, our_url: str | None) -> Check:
    name, url = f"port {port}", url_of(host, port)
    if url == our_url:
        return Check(name, "ok", "held by the server of this console")
    if not answering(host, port):
        return Check(name, "ok", "free")
    owner = owner_of(port)
    who = f"{owner[1]} (pid {owner[0]})" if owner else "another user's process"
    fix = "end it, or choose another port: `--set server.port=0` takes a free one"
    endpoint = Endpoint(url, preset.api_key)
    speaks = speaks_vllm(endpoint)
    endpoint.close()
    if speaks:
        return Check(name, "look", f"a vLLM server that is not ours: {who}", "a start would be refused", fix)
    return Check(name, "bad", f"taken by {who}", f"{preset.name} cannot listen there", fix)
