"""The vLLM that a preset's command starts: where it is, its version, and the flags it takes, without starting it."""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

from console.files import read_text
from console.presets.command import child_env
from console.presets.model import Preset

_HELP_S = 90.0
"""A help text takes vLLM a minute on a slow disk; what is silent for longer is ended."""
_REAP_S = 5.0
_FLAG = re.compile(r"--([a-z0-9][a-z0-9-]*)")
_HEAD = re.compile(r"^ {1,4}-")
_BELIEVED = 60
"""A help text with fewer flags is none of `vllm serve`."""
_STAND_IN = "console.sim"


@dataclass(frozen=True, slots=True)
class Installed:
    """One installation, as its files tell."""

    command: tuple[str, ...]
    """The preset's command words, the first one an absolute path."""
    version: str | None = None
    source: Path | None = None
    """The folder of the package `vllm`; `None` where it is not found beside the command."""
    stand_in: bool = False


def stands_in(command: Sequence[str]) -> bool:
    """Whether these command words start the stand-in engine: what it says is simulated, in a demo or not."""
    return _STAND_IN in command or (len(command) > 1 and (Path(command[0]).name, command[1]) == ("qwen-console", "sim"))


def command_file(preset: Preset) -> Path | None:
    """The file of the command's first word: as given, else from PATH, else beside our interpreter."""
    name, beside = preset.command[0], str(Path(sys.executable).parent)
    found = shutil.which(name, path=child_env(preset).get("PATH", os.defpath)) or shutil.which(name, path=beside)
    return None if found is None else Path(found).absolute()


def installed(preset: Preset) -> Installed | None:
    """What the preset's command is; `None` where there is no such command."""
    path = command_file(preset)
    if path is None:
        return None
    words = (str(path), *preset.command[1:])
    if preset.simulated or stands_in(preset.command):
        return Installed(words, stand_in=True)
    for prefix in _prefixes(path):
        for package in sorted(prefix.glob("lib*/python3*/*-packages/vllm")):
            if (package / "__init__.py").is_file():
                return Installed(words, _version(package), package)
    return Installed(words)


def _prefixes(script: Path) -> list[Path]:
    """Where the packages of a command may lie: beside the script, and beside the interpreter that runs it."""
    found = [script.parent.parent]
    try:
        with script.open("rb") as file:
            first = file.readline(300).decode(errors="replace")
    except OSError:
        first = ""
    if first.startswith("#!"):
        interpreter = first[2:].split()
        name = interpreter[-1] if interpreter and interpreter[0].endswith("/env") else (interpreter or [""])[0]
        where = shutil.which(name)
        if where:
            found += [Path(where).parent.parent, Path(where).resolve().parent.parent]
    return list(dict.fromkeys(found))


def _version(package: Path) -> str | None:
    names = [path.name for path in package.parent.glob("vllm-*.dist-info")]
    return names[0].removeprefix("vllm-").removesuffix(".dist-info") if len(names) == 1 else None


def takes(found: Installed, flag: str) -> bool:
    """Whether this vLLM has the flag, by its own parsers' sources; milliseconds, and nothing is run."""
    if found.stand_in:
        return True
    return found.source is not None and any(
        _says(found.source / Path(*place), sign.format(flag=flag, name=flag.replace("-", "_")))
        for place, sign in _PARSERS
    )


# The engine's flags stand there as they are typed, those of the web server in newer versions as fields of a class.
_PARSERS = (
    (("engine", "arg_utils.py"), '"--{flag}"'),
    (("entrypoints", "openai", "cli_args.py"), '"--{flag}"'),
    (("entrypoints", "openai", "cli_args.py"), "    {name}:"),
)


def _says(file: Path, sign: str) -> bool:
    try:
        return sign in _text(file, file.stat().st_mtime_ns)
    except OSError:
        return False


@lru_cache(maxsize=4)
def _text(path: Path, changed: int) -> str:
    del changed  # part of the cache's key: another vLLM may be installed while the console runs
    return path.read_text(errors="replace")


def flags(found: Installed, cache: Path) -> frozenset[str] | None:
    """Every flag that this vLLM's own `--help=all` names, without dashes; asked once a version, which takes seconds.

    `None` where it does not say: no such command, too old, broken, silent for too long.
    """
    if found.stand_in:
        return None
    kept = cache / "vllm-flags" / f"{_key(found)}.txt"
    try:
        lines = read_text(kept).splitlines()
        return frozenset(line for line in lines if not line.startswith("#"))
    except (OSError, UnicodeDecodeError):
        pass
    asked = _ask(found, "--help=all")
    if asked is not None and len(asked) < _BELIEVED:
        # Before `--help` had sections it had no `=all`, and told everything.
        asked = _ask(found, "--help")
    if asked is None or len(asked) < _BELIEVED:
        return None
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        draft = kept.with_suffix(f".{os.getpid()}")
        draft.write_text(f"# flags of {' '.join(found.command)}, {found.version}\n" + "\n".join(sorted(asked)) + "\n")
        draft.replace(kept)
    except OSError:
        pass  # A cache that cannot be written costs seconds, no more.
    return asked


def _ask(found: Installed, word: str, limit_s: float = _HELP_S) -> frozenset[str] | None:
    """The flags of one help text; `None` where the command was silent for too long, and was ended."""
    env = dict(os.environ) | {"VLLM_NO_USAGE_STATS": "1", "COLUMNS": "200"}
    try:
        asked = subprocess.Popen(
            [*found.command, word],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            errors="replace",
            env=env,
            start_new_session=True,
        )
    except OSError:
        return frozenset()
    # A command that starts a server instead must end with whoever asked, and all of its children with it.
    end = partial(_end_group, asked.pid)
    atexit.register(end)
    try:
        return parse_help(asked.communicate(timeout=limit_s)[0])
    except subprocess.TimeoutExpired:
        return None
    finally:
        if asked.poll() is None:
            _end_group(asked.pid)
            with suppress(subprocess.TimeoutExpired):
                asked.communicate(timeout=_REAP_S)
        atexit.unregister(end)


def _end_group(leader: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def parse_help(text: str) -> frozenset[str]:
    """The flags of an argparse help text; a pair `--x, --no-x` is the flag x."""
    named = {
        flag
        for line in text.splitlines()
        if _HEAD.match(line)
        for flag in _FLAG.findall(line.strip().partition("  ")[0])
    }
    return frozenset(flag for flag in named if not (flag.startswith("no-") and flag.removeprefix("no-") in named))


def _key(found: Installed) -> str:
    """Names one installation: another version, or the command written anew, is asked anew."""
    try:
        changed = Path(found.command[0]).stat().st_mtime_ns
    except OSError:
        changed = 0
    source = found.source.stat().st_mtime_ns if found.source else 0
    return hashlib.sha256(f"{found.command} {found.version} {changed} {source}".encode()).hexdigest()[:24]
