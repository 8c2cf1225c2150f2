"""The user's `config.yaml`: keys, bell, pace, colours, mouse. Validated whole; the nearest known word is named."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from console.presets.source import Document

_CHOICES: Mapping[str, tuple[str, ...]] = {
    "theme": ("calm", "light", "plain"),
    "mouse": ("auto", "on", "off"),
    "ascii": ("auto", "on", "off"),
    "notify": ("off", "osc9", "osc777"),
}
_SWITCHES = ("bell", "low-bandwidth")
KNOWN = (*_CHOICES, *_SWITCHES, "keys")
_KEY = re.compile(r"(?:(?:ctrl|shift|alt)\+)*(?:[a-z][a-z0-9_]+|\S)")
_PLAIN_TERMINALS = re.compile(r"vt\d|ansi|linux-16|cons")


@dataclass(frozen=True, slots=True)
class Config:
    """What the user has set; the rest is as it is shipped."""

    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Command → the keys that it has instead of its own."""
    bell: bool = True
    """Ring when a run ends or the server dies."""
    notify: str = "off"
    """`osc9`, `osc777`: then also ask the terminal for a desktop notification."""
    low_bandwidth: bool = False
    theme: str = "calm"
    """`calm`: the terminal's own colours; `light`: those that are legible on white; `plain`: none."""
    mouse: str = "auto"
    """`auto`: on, but not over SSH, where selecting text is worth more."""
    ascii: str = "auto"
    """`auto`: where the locale is not UTF-8, or the terminal is one of those that know no lines."""

    @property
    def wants_mouse(self) -> bool:
        """Whether clicks come to the console."""
        return self.mouse == "on" or (self.mouse == "auto" and "SSH_CONNECTION" not in os.environ)

    @property
    def wants_ascii(self) -> bool:
        """Whether only ASCII may be sent."""
        return self.ascii == "on" or (self.ascii == "auto" and _knows_only_ascii())


def _knows_only_ascii() -> bool:
    # Without a locale nobody knows; nearly every terminal of today shows UTF-8.
    locale = next((v for name in ("LC_ALL", "LC_CTYPE", "LANG") if (v := os.environ.get(name))), "")
    other = bool(locale) and not re.search(r"utf-?8", locale, re.IGNORECASE)
    return other or bool(_PLAIN_TERMINALS.match(os.environ.get("TERM", "")))


def load(path: Path) -> Config:
    """Read the file; without one everything is as shipped.

    Raises:
        UsageError: it cannot be used; file, line, key, and the nearest known word.
    """
    if not os.path.exists(path):  # noqa: PTH110 - of a closed folder it is no error
        return Config()
    # Imported here: few have such a file, and reading YAML takes a tenth of the time to the first frame.
    from console.presets.source import nearest, read

    document = read(path, "the configuration", "theme: light")
    for key in document.values:
        if key not in KNOWN:
            near = nearest(key, KNOWN)
            raise document.error((key,), "no such key", f"did you mean `{near}`?" if near else _list(KNOWN))
    chosen = {key: _choice(document, key) for key in _CHOICES if key in document.values}
    switched = {key.replace("-", "_"): _switch(document, key) for key in _SWITCHES if key in document.values}
    return Config(keys=_keys(document), **chosen, **switched)  # type: ignore[arg-type]


def _list(words: tuple[str, ...]) -> str:
    return f"one of {', '.join(words)}"


def _choice(document: Document, key: str) -> str:
    value = document.values[key]
    # YAML reads on and off as truth.
    text = {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value
    if text not in _CHOICES[key]:
        raise document.error((key,), f"{value!r} is none of its words", _list(_CHOICES[key]))
    return str(text)


def _switch(document: Document, key: str) -> bool:
    value = document.values[key]
    if not isinstance(value, bool):
        raise document.error((key,), f"{value!r} is neither true nor false", "write true or false")
    return value


def _keys(document: Document) -> dict[str, tuple[str, ...]]:
    """Command → keys; no key may mean two things."""
    from console.presets.source import nearest
    from console.tui.commands import COMMANDS

    given = document.values.get("keys") or {}
    names = [command.name for command in COMMANDS if not command.argument]
    if not isinstance(given, dict):
        raise document.error(("keys",), "a map of command and key is needed", "for example `keys: {log: L}`")
    found: dict[str, tuple[str, ...]] = {}
    for name, value in given.items():
        if name not in names:
            near = nearest(name, names)
            raise document.error(
                ("keys", name), "no such command", f"did you mean `{near}`?" if near else _list((*names,))
            )
        found[name] = _words(document, name, value)
    _refuse_doubles(document, {c.name + c.argument: found.get(c.name, c.keys) for c in COMMANDS}, found)
    return found


def _words(document: Document, name: str, value: Any) -> tuple[str, ...]:
    from console.tui.commands import key_named

    words = [str(word) for word in (value if isinstance(value, list) else [value])]
    for word in words:
        if not _KEY.fullmatch(word):
            raise document.error(("keys", name), f"{word!r} is no key", "a sign, or a name such as f5, ctrl+r, enter")
    return tuple(key_named(word) for word in words)


def _refuse_doubles(document: Document, keys: Mapping[str, tuple[str, ...]], given: Mapping[str, object]) -> None:
    from console.tui.commands import PAGE_KEYS, by_name, works_on_pages

    owner: dict[str, str] = {}
    for name, words in keys.items():
        for word in words:
            if name in given and works_on_pages(name) and word in PAGE_KEYS - set(by_name(name).keys):
                raise document.error(("keys", name), f"{word} moves or finds on the pages", "give it another key")
            other = owner.setdefault(word, name)
            if other != name:
                culprit = name if name in given else other
                raise document.error(
                    ("keys", culprit), f"{word} means {other} and {name} then", "give one of the two another key"
                )
