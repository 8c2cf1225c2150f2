"""What a preset may hold: keys, types, and vLLM's own flags."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from console.address import is_host
from console.presets.bounded import KeyPath
from console.presets.model import ServerOptions
from console.presets.source import Document, PresetError, nearest, together
from console.presets.values import shown, value_problem

TOP_KEYS = ("description", "extends", "model", "served-name", "command", "args", "env", "server", "lab")
SERVER_TAKES = {
    "host": "an address of this machine, such as 127.0.0.1",
    "port": "a number from 0 to 65535; 0 takes a free one",
    "ready-timeout": "seconds from the start to ready, such as 900",
    "stop-grace": "seconds between asking to end and killing, such as 30",
    "restart": "never or on-crash",
}
SERVER_KEYS = tuple(SERVER_TAKES)
_OWNED = {
    "host": "server: {host: …}",
    "port": "server: {port: …}",
    "served-model-name": "served-name: …",
    "model": "model: …",
    "api-key": "env: {VLLM_API_KEY: ${VLLM_API_KEY}}",
}
_NEAR = 0.8
_LONGEST_S = 366 * 86_400.0
_PORT = re.compile(r"[0-9]{1,5}")
_TAKEN = frozenset({"list", "show", "compare", "resume", "stop", "adopt", "recover", "aa", "custom", "replay"})
"""What `ab` does beside experiments: a key of that name under `lab:` could never be run."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BUDGET = re.compile(r"\d{1,3}(?:\.\d+)?x|[1-9]\d{1,6}")


@cache
def vllm_flags() -> frozenset[str]:
    """Flags of a recent `vllm serve`, without dashes."""
    text = Path(__file__).with_name("vllm-flags.txt").read_text(encoding="utf-8")
    return frozenset(line for line in text.splitlines() if line and not line.startswith("#"))


def flag_problem(name: str) -> tuple[str, str] | None:
    """Why `name` cannot stand in `args` (why, fix), or `None`.

    A flag that no known one resembles passes: a newer vLLM may have it.
    """
    if name in _OWNED:
        return f"the console sets --{name} itself", f"write it as {_OWNED[name]}"
    flags = vllm_flags()
    if name in flags:
        return None
    if name.startswith("no-") and name.removeprefix("no-") in flags:
        return "a flag is switched off by `false`", f"write `{name.removeprefix('no-')}: false`"
    near = nearest(name, flags, _NEAR)
    if near is None:
        return None
    return f"vLLM has no flag --{name}", f"did you mean `{near}`?"


def env_problem(name: str, value: Any) -> tuple[str, str] | None:
    """Why the environment cannot have such a variable (why, fix), or `None`."""
    if not _VARIABLE.fullmatch(name):
        return f"{name!r} is no name of a variable", "a name has letters, digits and `_`, and begins with no digit"
    if isinstance(value, dict | list):
        return "a variable of the environment is a plain value", "quote it as a string"
    return None


def check(document: Document) -> None:
    """Check one file by itself, before inheritance.

    Raises:
        PresetError: unknown keys or values of the wrong kind, with file, line and the nearest known key.
    """
    odd = [_unknown(document, (key,), TOP_KEYS) for key in document.values if key not in TOP_KEYS]
    odd += _maps(document) or _insides(document)
    if odd:
        raise together(odd)


def _insides(document: Document) -> list[PresetError]:
    """What is wrong within the maps of a file."""
    given = document.values
    odd = [
        _unknown(document, ("server", key), SERVER_KEYS) for key in given.get("server") or {} if key not in SERVER_KEYS
    ]
    odd += [
        document.error(("args", key), *problem) for key in given.get("args") or {} if (problem := flag_problem(key))
    ]
    odd += [
        document.error(("env", key), *problem)
        for key, value in (given.get("env") or {}).items()
        if (problem := env_problem(key, value))
    ]
    found = (_lab(document, key, value) for key, value in (given.get("lab") or {}).items())
    return odd + [one for one in found if one]


def check_values(where: Callable[[KeyPath], Document], args: Mapping[str, Any]) -> None:
    """Check the values of well-known flags, after inheritance and with variables filled in.

    Args:
        where: the file that set a key.
        args: the flags.

    Raises:
        PresetError: values of the wrong kind.
    """
    problems = {key: value_problem(key, value) for key, value in args.items()}
    odd = [where(("args", key)).error(("args", key), *problem) for key, problem in problems.items() if problem]
    if odd:
        raise together(odd)


def _lab(document: Document, key: str, value: Any) -> PresetError | None:
    """What is wrong with what a run varies: `chunk` is a list of budgets, anything else a map of what `--set` takes."""
    if value is None:
        return None
    if key in _TAKEN:
        return document.error(("lab", key), f"`ab {key}` is a verb of its own", "give the experiment another name")
    if key == "chunk":
        if isinstance(value, list) and all(_BUDGET.fullmatch(str(one).strip()) for one in value):
            return None
        fix = "tokens such as 2048, or cache blocks such as 2x"
        return document.error(("lab", key), "a list of chunk budgets is needed", fix)
    if not isinstance(value, dict):
        why = f"a map of what differs is needed, this is {_kind(value)}"
        return document.error(("lab", key), why, f"write `{key}: {{max-num-seqs: 4}}`")
    for name, wanted in value.items():
        section, _, rest = name.partition(".")
        if section == "server" and rest not in SERVER_KEYS:
            return _unknown(document, ("lab", key, name), tuple(f"server.{one}" for one in SERVER_KEYS))
        if section == "env" and (problem := env_problem(rest, wanted)):
            return document.error(("lab", key, name), *problem)
        if section in ("server", "env") and rest:
            continue
        problem = flag_problem(name.replace("_", "-")) or value_problem(name.replace("_", "-"), wanted)
        if problem:
            return document.error(("lab", key, name), *problem)
    return None


def _unknown(document: Document, key: tuple[str, ...], known: tuple[str, ...]) -> PresetError:
    near = nearest(key[-1], known)
    if near:
        fix = f"did you mean `{near}`?"
    elif key[-1] in vllm_flags():
        fix = "flags of vLLM stand under `args:`"
    else:
        fix = f"known here: {', '.join(known)}"
    return document.error(key, "unknown key", fix)


def _maps(document: Document) -> list[PresetError]:
    odd = []
    for key in ("args", "env", "server", "lab"):
        value = document.values.get(key)
        if value is not None and not isinstance(value, dict):
            why = f"a map is needed, this is {_kind(value)}"
            odd.append(document.error((key,), why, f"write `{key}: {{name: value}}`"))
    for key in ("description", "extends", "model", "served-name"):
        value = document.values.get(key)
        if value is not None and not isinstance(value, str):
            odd.append(document.error((key,), f"text is needed, this is {_kind(value)}", "quote it"))
    return odd


def _kind(value: Any) -> str:
    names = {bool: "true/false", int: "a number", float: "a number", str: "text", list: "a list", dict: "a map"}
    return names.get(type(value), type(value).__name__)


def server_options(document: Document, raw: dict[str, Any]) -> ServerOptions:
    """The `server:` map, checked.

    Raises:
        PresetError: a value of the wrong kind or out of range.
    """

    def fail(key: str, why: str) -> PresetError:
        return document.error(("server", key), why, f"`{key}:` takes {SERVER_TAKES[key]}")

    def seconds(key: str, default: float) -> float:
        value = raw.get(key, default)
        # A comparison with NaN is never true.
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _LONGEST_S:
            raise fail(key, f"{shown(value)} is no number of seconds")
        return float(value)

    host, port, restart = raw.get("host", "127.0.0.1"), raw.get("port", 8000), raw.get("restart", "never")
    if not isinstance(host, str) or not is_host(host):
        raise fail("host", f"{shown(host)} is no host name")
    if isinstance(port, str) and _PORT.fullmatch(port):
        port = int(port)
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
        raise fail("port", f"{shown(port)} is no port")
    if restart not in ("never", "on-crash"):
        raise fail("restart", f"{shown(restart)} is neither never nor on-crash")
    return ServerOptions(host, port, seconds("ready-timeout", 900.0), seconds("stop-grace", 30.0), restart)
