"""The server's log: a file that grows, is cut, and may hold secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from console.endpoint import TOKENIZE
from console.files import open_file
from console.paths import Paths
from console.server.rotation import pieces
from console.stamped import oldest_first

KEPT = 20
"""Log files of past lives that stay."""
HEAD_BYTES = 256_000
"""What is read of a long log's beginning: the version, the arguments, the first phases."""
TAIL_BYTES = 1_000_000
"""What is read of a long log's end: the cause of death."""
_BATCH_BYTES = 1_000_000
_LONGEST_LINE = 200_000
_SECRETS = ("VLLM_API_KEY", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
_HIDDEN = "•••"
_NAME_BYTES = 180
"""A file's name has 255 of them, and pieces of a log have a tail behind it."""
_SHORTEST_SECRET = 4
"""A shorter "secret" would black out half of the log and hide nothing."""


_OWN_LOOK = re.compile(
    rf'"(?:GET /(?:metrics|health|sim/gpus|version|v1/models)\b[^"]*|POST {re.escape(TOKENIZE)} [^"]*)" 200'
)
_ANSWERED = re.compile(r'"(?:GET|POST) /[^"]*" 200')


def is_own_look(line: str) -> bool:
    """Whether it is an access line of what our own consoles and recorder ask: all the time, or to make a prompt."""
    return " /" in line and _OWN_LOOK.search(line) is not None


def is_background(line: str, *, of_run: bool) -> bool:
    """Whether it is an access line that nobody's client caused: a look of our own, or what an A/B run asks its arm.

    Args:
        line: of the log.
        of_run: whether it is the log of a run's arm: a client has not its key, so whatever is answered there is the
            run's own.
    """
    return is_own_look(line) or (of_run and _ANSWERED.search(line) is not None)


def new_log(paths: Paths, preset: str) -> Path:
    """A fresh file for one server life; the oldest beyond `KEPT` go."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")[:-3] + "Z"
    safe = "".join(c if c.isalnum() or c in "._-" else "_" for c in preset)
    while len(os.fsencode(safe)) > _NAME_BYTES:
        safe = safe[:-1]
    old = oldest_first(file.name for file in paths.logs.glob("*.log"))
    for file in map(paths.logs.joinpath, old[: max(0, len(old) - KEPT + 1)]):
        for piece in (file, *map(Path, pieces(str(file)))):
            piece.unlink(missing_ok=True)
    return paths.logs / f"{stamp}-{safe}.log"


def tail(path: Path, n: int) -> list[str]:
    """The last `n` lines; empty when there is no log. Of a log that was just cut, they begin in its last piece."""
    if n <= 0:
        return []
    lines = _text(_read_end(path, TAIL_BYTES)).splitlines()
    if len(lines) < n and (cut := pieces(str(path))):
        lines = _text(_read_end(Path(cut[-1]), TAIL_BYTES)).splitlines() + lines
    return lines[-n:]


def ends(path: Path) -> list[str]:
    """The log as far as a reader of causes needs it: all of it, or its beginning and its end."""
    files = [*map(Path, pieces(str(path))), path]
    sizes = [_size(file) for file in files]
    if sum(sizes) <= HEAD_BYTES + TAIL_BYTES:
        return _text(b"".join(_read_end(file, size) for file, size in zip(files, sizes, strict=True))).splitlines()
    end = b""
    for file, size in zip(reversed(files), reversed(sizes), strict=True):
        room = TAIL_BYTES - len(end)
        end = _read_end(file, min(room, size if file != files[0] else max(0, size - HEAD_BYTES))) + end
    return head(files[0]) + _text(end).splitlines()[1:]


def head(path: Path) -> list[str]:
    """The whole lines of a log's beginning."""
    try:
        with open_file(path) as file:
            return _text(_whole(file.read(HEAD_BYTES))).splitlines()
    except OSError:
        return []


def follow(path: Path, offset: int) -> tuple[list[str], int]:
    """Whole lines after byte `offset`, and the offset to go on from.

    A file that shrank was cut: reading starts over. What exceeds one batch comes with the next call. A line without an
    end waits for it, unless it is absurdly long. Progress bars end their states with a carriage return, which counts
    as a line's end.
    """
    try:
        with open_file(path) as file:
            if file.seek(0, 2) < offset:
                offset = 0
            file.seek(offset)
            chunk = file.read(_BATCH_BYTES)
    except OSError:
        return [], offset
    complete = max(chunk.rfind(b"\n"), chunk.rfind(b"\r")) + 1
    if not complete and len(chunk) >= _LONGEST_LINE:
        complete = len(chunk)
    return _text(chunk[:complete]).splitlines(), offset + complete


def secret_values(env: Mapping[str, str], names: Iterable[str]) -> frozenset[str]:
    """Values in an environment that must not be shown: of the usual names of keys, and of these."""
    return frozenset(env.get(name, "") for name in (*_SECRETS, *names)) - {""}


def redact(line: str, secrets: Iterable[str]) -> str:
    """The line without the values of these secrets."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST_SECRET:
            line = line.replace(secret, _HIDDEN)
    return line


def _read_end(path: Path, limit: int) -> bytes:
    try:
        with open_file(path) as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - limit))
            return file.read(limit)
    except OSError:
        return b""


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _whole(chunk: bytes) -> bytes:
    return chunk[: chunk.rfind(b"\n") + 1]


def _text(raw: bytes) -> str:
    # str.splitlines also breaks at form feeds and the like, which do not end a line of a log.
    return raw.decode(errors="replace").replace("\r\n", "\n").translate(_NO_BREAKS)


_NO_BREAKS = {ord(c): " " for c in "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"}
