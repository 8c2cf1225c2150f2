"""One log line, read for what it is: who wrote it, how loud, and what it says.

vLLM's lines differ by version: `(EngineCore pid=7) INFO 01-31 12:00:00 [core.py:1] text`, `(VllmWorker rank=1 pid=7)`,
a prefix twice, no prefix at all, colours, the prefix of a container's or the journal's log in front of it. Whoever
looks for a sentence searches in the text; whoever has to know which process spoke asks here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from console import units

LINE_LIMIT = 16_000
"""Characters of one line that are looked at: the engine's configuration is about 4,000, a prompt dump is endless."""

EVIDENCE_LIMIT = 400
"""Characters of one line that are shown as evidence."""

_CARRIER = re.compile(
    r"(?:[A-Za-z0-9_.-]+\s*\|\s)"  # docker compose: `vllm-1  | `
    r"|(?:\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:?\d\d)\s)"  # docker logs -t
    r"|(?:[A-Z][a-z]{2} [ \d]\d [\d:]{8} \S+ [\w.-]+\[\d+\]: )"  # the journal
)
_PROCESS = re.compile(
    r"\((?P<name>[A-Za-z][\w.:-]*)(?:[ ,]+[\w=.]+)*?[ ,]+(?:pid|ip)=[^)]*\) ?|\[rank(?P<rank>\d+)\]:\s?"
)
_LEVEL = re.compile(
    r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL|FATAL)"
    r"(?::\s+|\s+(?:\d{4}-)?\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?(?:\s|$))"
)
_PLACE = re.compile(r"\[?[\w./-]+\.(?:py|cpp|cu):\d+\](?: |$)")
_FOLD = re.compile(
    r"Dumping (?:input data|scheduler)|prompt_token_ids|prompt_embeds|Received request|\bprompt['\"]?[:=]"
)
_SECRET = re.compile(
    r"(?i)((?:api_key|api-key|hf_token|hf-token|password|authorization)['\"]?(?:\s*[=:]\s*|\s+(?=sk-|hf_))|--api-key\s+)"
    r"(\[[^\]]*\]|\([^)]*\)|'[^']*'|\"[^\"]*\"|[^\s,)}]+)"
)
_TOKEN = re.compile(r"\b(?:sk-|hf_|Bearer )[A-Za-z0-9_.-]{8,}")


@dataclass(frozen=True, slots=True)
class LogLine:
    """A parsed line.

    Attributes:
        text: what it says, indentation kept (a traceback is told by it).
        process: who wrote it, as vLLM names it (`APIServer`, `EngineCore`, `Worker_TP0`); None where nothing says so.
        level: INFO, WARNING, ERROR …; None for a bare line.
        folded: the line carries prompts or a state dump; nothing in it is evidence, and it must not be shown whole.
    """

    text: str
    process: str | None = None
    level: str | None = None
    folded: bool = False


def split(lines: Iterable[str]) -> Iterator[str]:
    """Physical lines to what a terminal would have shown one after another: progress bars overwrite by `\\r`."""
    for line in lines:
        if "\r" in line or "\n" in line:
            for piece in re.split(r"[\r\n]+", line):
                if piece.strip():
                    yield piece
        elif line:
            yield line


def parse(line: str) -> LogLine:
    """One line (already split) into its parts; never fails."""
    rest = units.uncoloured(line[:LINE_LIMIT]) if "\x1b" in line else line[:LINE_LIMIT]
    if carrier := _CARRIER.match(rest):
        rest = rest[carrier.end() :]
    rest, process = _take_processes(rest, None)
    level = None
    if found := _LEVEL.match(rest):
        level = found["level"]
        rest = rest[found.end() :]
        if place := _PLACE.match(rest):
            rest = rest[place.end() :]
        rest, process = _take_processes(rest, process)
    return LogLine(rest.rstrip(), process, level, folded=_FOLD.search(rest) is not None)


def _take_processes(rest: str, process: str | None) -> tuple[str, str | None]:
    """Strips process prefixes; the last one is the most exact: `(Worker pid=9) (Worker_TP1 pid=9)`."""
    while found := _PROCESS.match(rest):
        process = found["name"] or f"rank{found['rank']}"
        rest = rest[found.end() :]
    return rest, process


def mask(text: str) -> str:
    """Without what looks like a key or a token: older versions print their whole argument list."""
    return _TOKEN.sub("***", _SECRET.sub(r"\1***", text))


def evidence(line: str, around: str = "") -> str:
    """A line as it may be shown: bounded, one line, no keys, no prompts; cut so that `around` stays in it."""
    text = mask(units.uncoloured(line[:LINE_LIMIT])).strip()
    if folded := _FOLD.search(text):
        text = text[: folded.start()] + folded.group().split("prompt")[0] + "… (folded: it holds prompts)"
    if len(text) <= EVIDENCE_LIMIT:
        return text
    at = max(text.find(around[:80]), 0) if around else 0
    start = min(max(at - 60, 0), len(text) - EVIDENCE_LIMIT + 2)
    head = "…" if start else ""
    tail = "…" if start + EVIDENCE_LIMIT - 2 < len(text) else ""
    return f"{head}{text[start : start + EVIDENCE_LIMIT - 2]}{tail}"
