"""Whether the server outlives the login that started it: what systemd-logind does when its user leaves."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Iterable
from pathlib import Path

from console.server.doctor.check import Check

_ETC = Path("/etc/systemd")
_SHIPPED = (Path("/usr/lib/systemd"), Path("/lib/systemd"))
_RUN = Path("/run/systemd")
_BY_LOGIND = ("sessions", "seats", "users")
"""Folders that it makes under /run/systemd when it starts."""
_LINGER = Path("/var/lib/systemd/linger")
_LINE = re.compile(r"^\s*KillUserProcesses\s*=\s*(\w+)", re.MULTILINE)
_ONLY = re.compile(r"^\s*KillOnlyUsers\s*=\s*(.*)$", re.MULTILINE)
_NOT = re.compile(r"^\s*KillExcludeUsers\s*=\s*(.*)$", re.MULTILINE)
_YES = frozenset({"yes", "true", "1", "on", "y", "t"})


def session(
    user: str | None = None,
    run: Path = _RUN,
    files: Iterable[Path] | None = None,
    linger: Path = _LINGER,
) -> Check:
    """Logind ends a user's processes at logout where it is told to: the server would end with the last SSH session."""
    name = user or _user()
    if not run.is_dir():
        return Check("logout", "ok", "no systemd here: nothing ends processes at logout")
    if not any((run / name).is_dir() for name in _BY_LOGIND):
        return Check("logout", "ok", "no systemd-logind runs here: nothing ends processes at logout")
    told = _settings(list(files) if files is not None else _files())
    if told is None:
        return Check("logout", "unknown", "logind's configuration cannot be read", "", _linger_fix(name))
    kills = _kills(told, name)
    lingers = (linger / name).exists()
    if not kills:
        more = ", lingering is on" if lingers else ""
        return Check("logout", "ok", f"logind leaves processes alone at logout (KillUserProcesses=no{more})")
    if lingers:
        return Check("logout", "ok", f"KillUserProcesses=yes, but lingering is on for {name}")
    return Check(
        "logout",
        "bad",
        f"KillUserProcesses=yes and no lingering for {name}",
        "logind ends the server when the last session of its user ends: with the SSH line",
        _linger_fix(name),
    )


def _linger_fix(name: str) -> str:
    return f"`sudo loginctl enable-linger {name}`, or KillUserProcesses=no in /etc/systemd/logind.conf"


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _files() -> list[Path]:
    """In the order in which later ones win: the main file, then the drop-ins by name, whatever folder they lie in."""
    mains = [folder / "logind.conf" for folder in (_ETC, *_SHIPPED)]
    main = next((path for path in mains if path.exists()), None)
    folders = (*reversed(_SHIPPED), _RUN, _ETC)
    dropped = {path.name: path for folder in folders for path in (folder / "logind.conf.d").glob("*.conf")}
    return [*([main] if main else []), *(dropped[name] for name in sorted(dropped))]


def _settings(files: list[Path]) -> str | None:
    """All that is set; `None` when a file is there and cannot be read."""
    try:
        return "\n".join(path.read_text(errors="replace") for path in files)
    except OSError:
        return None


def _kills(told: str, name: str) -> bool:
    values = _LINE.findall(told)
    if not values or values[-1].lower() not in _YES:
        return False
    only, spared = _ONLY.findall(told), _NOT.findall(told)
    if only and only[-1].strip() and name not in only[-1].split():
        return False
    # root is spared unless the list says otherwise.
    return name not in (spared[-1].split() if spared else ["root"])
