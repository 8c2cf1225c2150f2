"""Commands in hints, written so that they can be pasted: as this console was started, and in a demo with `--demo`.

A sentence names a command as "`qwen-console VERB`", whoever writes it; it need not know how this console was started.
Whoever shows a sentence to a user passes it through `told`, once and at the very end: the command line does so wherever
it prints, `ConsoleError.lines` for every error, the console (TUI) where text becomes a line. State files and reports
keep the plain form, so that another console can say it in its own way.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

PROGRAM = "qwen-console"
_HINT = re.compile(r"`qwen-console(?P<demo> --demo)?(?=[ `])(?! (?:sim|diagnose)\b)")
_ALONE = re.compile(r"`qwen-console(?= (?:sim|diagnose)\b)")

_program = PROGRAM
_options = ""


def started_as(argv0: str, *, demo: bool = False, presets: Path | None = None) -> None:
    """Remember how this console was started; told once, before anything is said.

    Args:
        argv0: the first word of the command line.
        demo: whether `--demo` was given.
        presets: what `--presets` named.
    """
    global _program, _options
    _program = _word(argv0)
    _options = (" --demo" if demo else "") + (f" --presets {shlex.quote(str(presets))}" if presets else "")


def _word(argv0: str) -> str:
    """What a shell needs: the plain name where PATH leads to this very file, else the path as it was typed.

    Under another name (`python -m console`, a test) it is the plain name too.
    """
    if os.path.basename(argv0) != PROGRAM:  # noqa: PTH119 - a word, not a file
        return PROGRAM
    found = shutil.which(PROGRAM)
    try:
        if found and Path(found).samefile(argv0):
            return PROGRAM
    except OSError:
        return PROGRAM
    return shlex.quote(argv0)


def told(text: str) -> str:
    """The text with its commands as this console would be called; saying it twice changes nothing."""
    if "`qwen-console" not in text:
        return text
    whole = f"{_program}{_options}"

    def one(match: re.Match[str]) -> str:
        if text.startswith(whole, match.start() + 1):
            return match.group()
        return f"`{whole}" + (match["demo"] or "" if "--demo" not in _options else "")

    return _HINT.sub(one, _ALONE.sub(f"`{_program}", text))


def told_all(value: Any) -> Any:
    """The same for every text within maps and lists, such as what is printed as JSON."""
    if isinstance(value, str):
        return told(value)
    if isinstance(value, dict):
        return {key: told_all(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [told_all(item) for item in value]
    return value
