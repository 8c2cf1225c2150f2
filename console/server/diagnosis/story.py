"""A log as a story: where it was ready, where it was told to stop, where it broke, and which exceptions it holds.

A dying vLLM says the same thing many times: each rank prints its traceback, the engine wraps it, the API server wraps
that, and a normal stop prints exceptions too. The story marks what is the cause and what only repeats it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from console.server.facts import StartupFacts
from console.server.lines import LogLine, evidence, parse, split
from console.server.startup import StartupReader
from console.server.status import Phase

_HEAD, _TAIL = 10_000, 20_000
"""Lines read of a long log: a start fits in the first, a death in the last."""

_NEW_LIFE = re.compile(r"█.*\bversion +v?\d|API server version \d|(?:^|[|:] +)usage: [\w.-]*vllm\b")
_QUIET = frozenset({"DEBUG", "INFO", "WARNING"})
_NOISE = re.compile(
    r"^\[W\d+ |\.py:\d+: \w*Warning:|^\s*(?:File \"|\^+\s*$|~+)|Retrying with a new port|^ - leaked |^nanobind:"
    r"|^\s+raise \w+"
)
_EXCEPTION = re.compile(
    r"^(?:E\s+|\s*\|\s+)?(?P<type>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Timeout)|(?:[a-z_]\w*\.)+[A-Z]\w+)"
    r"(?:: ?(?P<said>.*)|\s*)$"
)
WRAPPER = re.compile(
    r"Engine core initialization failed|WorkerProc initialization failed|Engine process failed to start"
    r"|EngineCore encountered an issue|please check the stack trace|EngineDeadError|Executor failed"
    r"|EngineCore \(|Cancelled(?:Error)?\b|MQEngineDeadError|Engine loop (?:has died|is not running)"
    r"|WorkerProc failed to start|ContextTerminated|died unexpectedly|failed to start in a background process"
    r"|See root cause above|SystemExit|KeyboardInterrupt|WorkerProc .*startup failure"
)
_INNER = re.compile(r"Worker failed with error '(?P<said>.+)', please check")
FATAL = re.compile(
    r"EngineCore (?:failed to start|encountered a fatal error)|EngineCore hit an exception|WorkerProc hit an exception"
    r"|WorkerProc failed to start|Engine core initialization failed|WorkerProc initialization failed|EngineDeadError"
    r"|AsyncLLM output_handler failed|died unexpectedly|exited unexpectedly|Fatal Python error|Segfault encountered"
    r"|Segmentation fault|Bus error|core dumped|terminate called after throwing|Engine process failed to start"
    r"|Worker proc .* died|Engine loop has died|MQLLMEngine (?:is already dead|terminated)"
    r"|Invocation of \w+ method failed|VLLM_ENGINE_READY_TIMEOUT"
)
_STOP = re.compile(
    r"\[shutdown\] API server: shutdown triggered|[Rr]eceived (?:SIGTERM|SIGINT|signal 15|shutdown signal)"
    r"|^KeyboardInterrupt|^SystemExit(?:: ?0)?$|Gracefully stopping"
)
_STOP_WHEN_READY = re.compile(r"^Shutting down\b|Shutting down FastAPI HTTP server|WorkerProc was terminated")
_STOP_OF_ENGINE = re.compile(r"\[shutdown\] EngineCore: trigger received signal")
_CLEANUP = re.compile(r"\[shutdown\] (?:MPClient|Process manager)")
_CHAIN = re.compile(r"^(?:The above exception was the direct cause|During handling of the above exception)")


@dataclass(frozen=True, slots=True)
class Record:
    """A line with its place in the story."""

    at: int
    line: LogLine
    raw: str
    phase: Phase

    @property
    def text(self) -> str:
        """What the line says."""
        return self.line.text

    @property
    def may_accuse(self) -> bool:
        """Can this line be a cause? Information and warnings, traceback frames and folded dumps cannot."""
        return self.line.level not in _QUIET and not self.line.folded and not _NOISE.search(self.text)


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception's own line."""

    record: Record
    type: str
    said: str

    @property
    def inner(self) -> str | None:
        """What a wrapper quotes of the worker's own error."""
        found = _INNER.search(self.said)
        return found["said"] if found else None

    @property
    def wraps(self) -> bool:
        """Does it only say that something else broke?"""
        return WRAPPER.search(f"{self.type}: {self.said}") is not None


@dataclass(slots=True)
class Story:
    """The last life in a log."""

    records: list[Record] = field(default_factory=list)
    facts: StartupFacts = field(default_factory=StartupFacts)
    phase: Phase = Phase.START
    ready_at: int | None = None
    stop_at: int | None = None
    """Where somebody asked the server to stop; what breaks after it is no failure."""
    fatal_at: int | None = None
    """The first line that says the engine is dead, after the last good news and before a stop."""
    raised: list[Raised] = field(default_factory=list)

    @property
    def begin(self) -> int:
        """Where a cause can stand at the earliest: a server that became ready has survived what came before."""
        return self.ready_at or 0

    @property
    def end(self) -> int:
        """One past where a cause can stand."""
        return len(self.records) if self.stop_at is None else self.stop_at

    def accusing(self) -> list[Record]:
        """Lines that may be a cause."""
        return [record for record in self.records[self.begin : self.end] if record.may_accuse]

    def before(self, record: Record, count: int) -> list[Record]:
        """The lines in front of one."""
        return self.records[max(record.at - count, 0) : record.at]

    def after(self, record: Record, count: int) -> list[Record]:
        """The lines behind one."""
        return self.records[record.at + 1 : record.at + 1 + count]

    def arg(self, name: str) -> str | None:
        """A non-default argument's printed value, by its Python name."""
        found = re.search(rf"'{name}': ([^,}}]+)|\b{name}=([^,)]+)", self.facts.args or "")
        return next((group.strip("'\" ") for group in found.groups() if group), None) if found else None

    def shown(self, *records: Record, around: str = "") -> tuple[str, ...]:
        """Records as evidence lines: bounded, each text once whatever the ranks repeat."""
        seen: dict[str, str] = {}
        for record in records:
            seen.setdefault(record.text.strip(), evidence(record.raw, around))
        return tuple(seen.values())[:6]


def read_story(lines: Sequence[str]) -> Story:
    """Reads the last life in a log; pure, and never fails."""
    story = Story()
    reader = StartupReader()
    cleaning = False
    for raw in _last_life(list(split(lines))):
        reader.feed((raw,))
        record = Record(len(story.records), parse(raw), raw, reader.phase)
        story.records.append(record)
        cleaning = cleaning or _CLEANUP.search(record.text) is not None
        _mark(story, record, cleaning)
    story.facts, story.phase = reader.facts, reader.phase
    return story


def _last_life(lines: list[str]) -> list[str]:
    """A file may hold several starts: only the last one is asked about. Of a long life, its start and its end."""
    starts = [at for at, line in enumerate(lines) if ("version" in line or "usage" in line) and _NEW_LIFE.search(line)]
    if starts:
        lines = lines[starts[-1] :]
    return lines if len(lines) <= _HEAD + _TAIL else lines[:_HEAD] + lines[-_TAIL:]


def _mark(story: Story, record: Record, cleaning: bool) -> None:
    text = record.text
    if "Application startup complete" in text and not record.line.folded:
        story.ready_at, story.fatal_at = record.at, None
        return
    if story.stop_at is not None or record.line.folded:
        return
    if _is_stop(story, record, cleaning):
        story.stop_at = record.at
    elif record.may_accuse:
        if story.fatal_at is None and FATAL.search(text):
            story.fatal_at = record.at
        if found := _EXCEPTION.match(text):
            story.raised.append(_raised(record, found))


def _is_stop(story: Story, record: Record, cleaning: bool) -> bool:
    if story.fatal_at is not None:
        return False
    if _STOP.search(record.text):
        return True
    if _STOP_OF_ENGINE.search(record.text):
        return not cleaning
    return story.ready_at is not None and _STOP_WHEN_READY.search(record.text) is not None


def _raised(record: Record, found: re.Match[str]) -> Raised:
    return Raised(record, found["type"], (found["said"] or "").strip())


def root_exception(story: Story) -> Raised | None:
    """The exception that started it: the first real one after the first fatal line, or the last one there is."""
    there = [raised for raised in story.raised if story.begin <= raised.record.at < story.end]
    real = [raised for raised in there if not raised.wraps]
    if story.fatal_at is not None:
        behind = [raised for raised in real if raised.record.at >= story.fatal_at]
        near = [raised for raised in real if story.fatal_at - 200 <= raised.record.at < story.fatal_at]
        real = behind[:1] or near
    if real:
        return real[-1]
    quoting = [raised for raised in there if raised.inner] or there
    return quoting[0] if quoting else None


def end_of_chain(story: Story, root: Raised) -> Raised:
    """What the exception became on its way up in the same process: often the sentence that was meant for a reader."""
    last = root
    for raised in story.raised:
        if raised.record.at <= last.record.at or raised.wraps:
            continue
        if raised.record.line.process != root.record.line.process:
            continue
        between = story.records[last.record.at : raised.record.at]
        if not any(_CHAIN.match(record.text) for record in between):
            break
        last = raised
    return last
