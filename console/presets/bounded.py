"""YAML of any text: as deep and as large as a person writes it, and every way in which it can be wrong is one error."""

from __future__ import annotations

import datetime
import math
import re
from typing import Any

import yaml

DEEPEST = 32
MOST_VALUES = 10_000
"""What an alias stands for counts each time."""
LARGEST_WHOLE = 2**63 - 1
_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9]*|[0-9]*\.[0-9]*)(?:[eE][-+]?[0-9]+)?")
_MERGE = "tag:yaml.org,2002:merge"
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_ODD = (yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
"""What PyYAML raises on text that is wrong: beside errors of its own, those of the functions it builds values with."""

KeyPath = tuple[str, ...]


class YamlError(Exception):
    """Text that cannot be used: where, why, and what to do."""

    def __init__(self, why: str, fix: str, *, line: int | None = None, key: KeyPath = ()) -> None:
        super().__init__(why)
        self.what = ".".join(key) or "this cannot be used"
        self.ours = True
        """Whether it is YAML, and only no value that can stand here."""
        self.why = why
        self.fix = fix
        self.line = line


class _Loader(yaml.SafeLoader):
    """Stops at what is too deep or too much, and at what holds itself."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0
        self._deepest = 0
        self._values = 0
        self._open: set[str] = set()
        """Anchors whose value is being read."""
        self._anchored: dict[str, tuple[int, int]] = {}
        """How many values an anchor stands for, and how deep they go."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        anchor, line = event.anchor, event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            if anchor in self._open:
                fix = "write out what is meant there"
                raise YamlError(f"the alias *{anchor} stands within what it stands for", fix, line=line)
            values, height = self._anchored.get(anchor, (1, 0))
            self._grow(values, self._depth + 1 + height, line)
            return super().compose_node(parent, index)
        if anchor:
            self._open.add(anchor)
        self._depth += 1
        before, outside, self._deepest = self._values, self._deepest, self._depth
        self._grow(1, self._depth, line)
        node = super().compose_node(parent, index)
        if anchor:
            self._open.discard(anchor)
            self._anchored[anchor] = (self._values - before, self._deepest - self._depth)
        self._deepest = max(outside, self._deepest)
        self._depth -= 1
        return node

    def _grow(self, values: int, depth: int, line: int) -> None:
        self._values += values
        self._deepest = max(self._deepest, depth)
        if self._deepest > DEEPEST:
            raise YamlError(f"it is nested more than {DEEPEST} levels deep", "write it flatter", line=line)
        if self._values > MOST_VALUES:
            raise YamlError(f"it holds more than {MOST_VALUES:,} values", "write less; an alias counts", line=line)


def compose(text: str) -> yaml.Node | None:
    """The nodes of a text, `None` of an empty one.

    Raises:
        YamlError: it is not YAML, or too deep, too large, or holds itself.
    """
    try:
        return _Loader(text).get_single_node()
    except _ODD as error:
        found = YamlError(_why(error), "mend the line; a tab or a missing colon is common", line=_line(error, text))
        found.what, found.ours = "this is not YAML", False
        raise found from None


def _why(error: Exception) -> str:
    return str(getattr(error, "problem", None) or str(error).partition("\n")[0] or type(error).__name__)


def _line(error: Exception, text: str) -> int | None:
    mark = getattr(error, "problem_mark", None)
    if mark is not None:
        # A file that ends too early is wrong on its last line, not behind it.
        return min(int(mark.line) + 1, max(1, len(text.splitlines())))
    position = getattr(error, "position", None)
    return text.count("\n", 0, position) + 1 if isinstance(position, int) else None


def plain(node: yaml.Node, lines: dict[KeyPath, int], at: KeyPath = ()) -> Any:
    """Values of nodes: maps, lists, text, numbers, truth and nothing; the line of every key goes into `lines`.

    Numbers are those that everybody reads alike: YAML's own 010 (eight), 1:30 (ninety) and 1_000 are refused. Under
    `env` a number is text and stays as it is written.

    Raises:
        YamlError: a value that cannot be built or that no preset can hold, a key given twice.
    """
    return _plain(yaml.SafeLoader(""), node, at, lines)


def _plain(loader: yaml.SafeLoader, node: yaml.Node, at: KeyPath, lines: dict[KeyPath, int]) -> Any:
    if isinstance(node, yaml.MappingNode):
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = _key(loader, key_node, at)
            line = key_node.start_mark.line + 1
            if key in result:
                first = lines[(*at, key)]
                raise YamlError(f"given twice (first on line {first})", "keep one", line=line, key=(*at, key))
            lines[(*at, key)] = line
            result[key] = _plain(loader, value_node, (*at, key), lines)
        return result
    if isinstance(node, yaml.SequenceNode):
        found = [_plain(loader, item, at, lines) for item in node.value]
        if None in found:
            line = node.value[found.index(None)].start_mark.line + 1
            raise YamlError("an empty value in a list", "take it out, or quote the word", line=line, key=at)
        return found
    return _scalar(loader, node, at)


def _key(loader: yaml.SafeLoader, node: yaml.Node, at: KeyPath) -> str:
    if node.tag == _MERGE:
        fix = "write the keys out, or put what is shared into a preset of its own and name it in `extends:`"
        raise YamlError("merge keys are not read", fix, line=node.start_mark.line + 1, key=(*at, "<<"))
    if not isinstance(node, yaml.ScalarNode):
        raise YamlError("a key is a word", "write `name: value`", line=node.start_mark.line + 1, key=at)
    return str(_scalar(loader, node, at))


def _scalar(loader: yaml.SafeLoader, node: yaml.Node, at: KeyPath) -> Any:
    line = node.start_mark.line + 1
    try:
        value = loader.construct_object(node, deep=True)
    except _ODD as error:
        raise YamlError(f"a value YAML cannot build: {_why(error)}", "use plain values", line=line, key=at) from None
    if isinstance(value, datetime.date):
        return str(node.value)
    if isinstance(value, str) and (found := _CONTROL.search(value)):
        why = f"it holds the control character {ascii(found[0])[1:-1]}"
        raise YamlError(why, "take it out; only line ends and tabs may stand in a text", line=line, key=at)
    if isinstance(value, int) and abs(value) > LARGEST_WHOLE:
        why = f"a number out of all proportion, beyond {LARGEST_WHOLE}"
        raise YamlError(why, "write a smaller one", line=line, key=at)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _number(value, str(node.value), at, line)
    if not isinstance(value, str | bool | None):
        raise YamlError(f"a value of a kind no preset holds ({type(value).__name__})", "quote it", line=line, key=at)
    return value


def _number(value: float, text: str, at: KeyPath, line: int) -> Any:
    if at[:1] == ("env",):
        return text
    if not math.isfinite(value):
        raise YamlError(f"{text} is no number that can be passed on", "write a finite one", line=line, key=at)
    if not _DECIMAL.fullmatch(text):
        why = f"YAML reads {text} as {value}, which is hardly what is meant"
        raise YamlError(why, f"write {value}, or '{text}' in quotes for the text", line=line, key=at)
    return value


def value_of(text: str, at: KeyPath = ()) -> Any:
    """The value that a short text stands for, as after `--set k=`, and where it would stand in a file.

    Raises:
        YamlError: it stands for none.
    """
    node = compose(text)
    return None if node is None else plain(node, {}, at)
