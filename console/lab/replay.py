"""The user's own requests, recorded one a line, as a workload."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from console.errors import UsageError
from console.files import describe, parse_json, read_text
from console.lab.jobs import Job

FILE = "replay.jsonl"
MOST = 500
_LARGEST_BYTES = 512_000_000
"""As many requests as that, each as long as a context may be."""
_OURS = frozenset({"model", "messages", "stream", "stream_options", "cache_salt", "user", "metadata", "store", "n"})
"""Keys of a recorded request that are ours to set, or that say nothing to the engine."""


def read_recorded(path: Path) -> tuple[Job, ...]:
    """The requests of a file: a chat completion's body a line, bare or under `request` or `body`.

    Raises:
        UsageError: the file cannot be read, or a line is no such request.
    """
    try:
        lines = read_text(path, _LARGEST_BYTES).split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read", describe(error), "name a file of recorded requests") from None
    found = [_job(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not found:
        raise UsageError(f"{path} holds no request", "", "one chat completion request a line, as JSON")
    if len(found) > MOST:
        raise UsageError(f"{path} holds {len(found)} requests", f"at most {MOST} fit a boot", "cut it shorter")
    return tuple(found)


def _job(path: Path, number: int, line: str) -> Job:
    try:
        raw = parse_json(line)
    except ValueError as error:
        raise _bad(path, number, f"it is no JSON: {error}") from None
    request = next((raw[name] for name in ("request", "body") if isinstance(raw, dict) and name in raw), raw)
    messages = request.get("messages") if isinstance(request, Mapping) else None
    if not isinstance(messages, list) or not messages or not all(isinstance(part, dict) for part in messages):
        raise _bad(path, number, "it has no `messages`")
    for name in ("max_tokens", "max_completion_tokens"):
        limit = request.get(name)
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
            raise _bad(path, number, f"its `{name}` is no number of tokens: {json.dumps(limit)[:40]}")
    rest = {key: value for key, value in request.items() if key not in _OURS}
    return Job("replay", "replay", f"replay/{number}", tuple(messages), None, None, "", recorded=rest)


def _bad(path: Path, number: int, why: str) -> UsageError:
    return UsageError(
        f"{path}:{number} is no recorded request", why, 'each line: {"messages": […], "max_tokens": 256, …}'
    )


def write_recorded(jobs: tuple[Job, ...], run_dir: Path) -> None:
    """Put them into the run's folder, so that the run can be resumed whatever becomes of the file."""
    rows: list[dict[str, Any]] = [{"messages": list(job.messages), **(job.recorded or {})} for job in jobs]
    path = run_dir / FILE
    path.touch(mode=0o600)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
