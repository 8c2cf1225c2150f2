"""A start's log, read as it grows: phase, what the phase is doing, and the facts it states."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from console.server.facts import EACH, FACTS, FIRST, LARGEST, SMALLEST, Fact, StartupFacts
from console.server.lines import LINE_LIMIT, evidence, mask, parse, split
from console.server.status import Phase

_ORDER = tuple(Phase)

_PHASES: tuple[tuple[str, Phase], ...] = (
    ("Downloading", Phase.DOWNLOAD),
    ("Fetching ", Phase.DOWNLOAD),
    ("Starting to load model", Phase.LOAD),
    ("Loading safetensors", Phase.LOAD),
    ("checkpoint shards", Phase.LOAD),
    ("Loading weights took", Phase.LOAD),
    ("Loading drafter model", Phase.LOAD),
    ("Model loading took", Phase.LOAD),
    ("Starting torch.compile", Phase.COMPILE),
    ("Using cache directory", Phase.COMPILE),
    ("Dynamo bytecode transform", Phase.COMPILE),
    ("Compiling a graph", Phase.COMPILE),
    ("Cache the graph", Phase.COMPILE),
    ("Directly load", Phase.COMPILE),
    ("torch.compile t", Phase.COMPILE),
    ("Available KV cache memory", Phase.KV_CACHE),
    ("memory for KV Cache as specified", Phase.KV_CACHE),
    ("GiB for KV cache on", Phase.KV_CACHE),
    ("KV cache size:", Phase.KV_CACHE),
    ("Capturing", Phase.GRAPH_CAPTURE),
    ("Graph capturing finished", Phase.GRAPH_CAPTURE),
    ("init engine", Phase.WARM_UP),
    ("Starting vLLM", Phase.WARM_UP),
    ("Started server process", Phase.WARM_UP),
    ("Application startup complete", Phase.READY),
    ("[shutdown]", Phase.STOPPING),
    ("Shutting down", Phase.STOPPING),
    ("Waiting for application shutdown", Phase.STOPPING),
    ("Received SIGTERM", Phase.STOPPING),
)
"""A literal → the phase it belongs to; a pattern of `_CHECKS` may have to hold too."""

_CHECKS: dict[str, re.Pattern[str]] = {
    "Downloading": re.compile(r"\bDownloading\b.*(?:\d+%\||shard|\.\.\.|weights|model|B/s)"),
    "Fetching ": re.compile(r"Fetching \d+ files"),
    "Capturing": re.compile(r"Capturing (?:[\w-]+ )*CUDA graphs?\b.*\d+%"),
    "init engine": re.compile(r"init engine .*took"),
    "Starting vLLM": re.compile(r"Starting vLLM (?:API )?server"),
    "Shutting down": re.compile(r"INFO:?\s+Shutting down|Shutting down\.?$|Shutting down FastAPI"),
    "[shutdown]": re.compile(r"\[shutdown\] (?:API server|MPClient|EngineCore|Process manager)"),
}

_STAMP = re.compile(r"\b\d\d-\d\d \d\d:\d\d:\d\d\b")
_HEAD = 160
"""Characters of a line in which its stamp stands."""
_BACK_TO_START = re.compile(r"Resolved architecture|LLM engine \(v")
_NEW_LIFE = re.compile(r"█.*\bversion +v?\d|API server version \d")
_SHARDS = re.compile(r"Loading (?:\w+ )?checkpoint shards: +(\d+)%")
_GRAPHS = re.compile(r"Capturing (?:[\w-]+ )*CUDA graphs?(?: \(([^)]*)\))?: +\d+%.*?(\d+)/(\d+)")
_DOWNLOAD = re.compile(r"(?:Fetching (\d+) files|([\w.-]+\.\w+)): +(\d+)%")
_COMPILE = re.compile(r"torch\.compile t(?:ook|akes) ([\d.]+) s in total")
_CACHED = re.compile(r"Directly load (?:AOT|the)")
_COLD = re.compile(r"Compiling a graph|Cache the graph|Compiling the graph")

_NOTHING = StartupFacts()
_DETAIL_KEYS = (
    "checkpoint shards",
    "CUDA graph",
    "%|",
    "torch.compile t",
    "Directly load",
    "graph for",
    "a graph",
    "the graph",
)
_KEYS = tuple(dict.fromkeys([fact.key for fact in FACTS] + [key for key, _ in _PHASES] + list(_DETAIL_KEYS)))
_KEYS_WHEN_READY = (*(key for key, phase in _PHASES if phase is Phase.STOPPING), "version")


class StartupReader:
    """Reads a log line by line; `phase` never falls back within one life of the server."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self.phase = Phase.START
        self.detail: str | None = None
        self.share: float | None = None
        """Part of the phase's work that is done, 0..1, where the log counts it."""
        self.entered: dict[Phase, str] = {}
        """When each phase began: the stamp of its line, else of the last line that had one."""
        self.facts = StartupFacts()
        self._stamp: str | None = None
        self._compile_by_process: dict[str, float] = {}

    def feed(self, lines: Iterable[str]) -> None:
        """Takes further lines; with `\\r` inside or already split. Cheap for lines that say nothing of interest."""
        for line in split(lines):
            text = line[:LINE_LIMIT] if len(line) > LINE_LIMIT else line
            started = self.phase in (Phase.READY, Phase.STOPPING)
            if not started and (stamp := _STAMP.search(text, 0, _HEAD)):
                self._stamp = stamp.group()
            if any(key in text for key in (_KEYS_WHEN_READY if started else _KEYS)):
                self._read(text)

    def _read(self, text: str) -> None:
        if "Dumping " in text or "Received request" in text:
            return
        if self.phase is not Phase.START and "version" in text and _NEW_LIFE.search(text):
            self._begin()  # the same file goes on with another start
        self._advance(text)
        if self.phase is Phase.STOPPING:
            return
        for fact in FACTS:
            if fact.key in text and (found := fact.pattern.search(text)):
                self._note(fact, found, text)
        self._progress(text)

    def _advance(self, text: str) -> None:
        for key, phase in _PHASES:
            if key in text and (key not in _CHECKS or _CHECKS[key].search(text)):
                self._enter(phase)
        if self.phase is Phase.DOWNLOAD and _BACK_TO_START.search(text):
            self.phase, self.detail, self.share = Phase.START, None, None

    def _enter(self, phase: Phase) -> None:
        downloads = phase is Phase.DOWNLOAD and self.phase is Phase.START
        if downloads or _ORDER.index(phase) > max(_ORDER.index(self.phase), _ORDER.index(Phase.START)):
            self.phase, self.detail, self.share = phase, None, None
            if self._stamp is not None:
                self.entered.setdefault(phase, self._stamp)

    def _note(self, fact: Fact, found: re.Match[str], text: str) -> None:
        changes: dict[str, Any] = {}
        for field, group in found.groupdict().items():
            if group is None:
                continue
            try:
                value = fact.read(mask(group) if field == "args" else group)
            except ValueError:
                continue
            old = getattr(self.facts, field)
            kept = value if old == getattr(_NOTHING, field) and fact.keep != EACH else _keep(old, value, fact.keep)
            if kept != old:
                changes[field] = kept
        if changes:
            shown = evidence(text, found.group())
            proofs = dict(self.facts.evidence) | dict.fromkeys(changes, shown)
            self.facts = replace(self.facts, **changes, evidence=tuple(proofs.items()))

    def _progress(self, text: str) -> None:
        if found := _SHARDS.search(text):
            self._say(Phase.LOAD, f"weights {found[1]} %", int(found[1]) / 100)
        elif found := _GRAPHS.search(text):
            self._graphs(found, text)
        elif found := _COMPILE.search(text):
            self._compiled(text, float(found[1]))
        elif self.phase is Phase.DOWNLOAD and (found := _DOWNLOAD.search(text)):
            self._say(Phase.DOWNLOAD, f"{found[2] or found[1] + ' files'} {found[3]} %")
        elif _CACHED.search(text) and self.facts.compile_cached is None:
            self._compile_cache(text, cached=True)
        elif _COLD.search(text) and self.facts.compile_cached is not False:
            self._compile_cache(text, cached=False)

    def _graphs(self, found: re.Match[str], text: str) -> None:
        kind = found[1]
        self._say(Phase.GRAPH_CAPTURE, f"graphs {found[2]}/{found[3]}" + (f" ({kind})" if kind else ""))
        if kind and kind not in self.facts.graphs:
            self._set(text, graphs=(*self.facts.graphs, kind))

    def _compiled(self, text: str, seconds: float) -> None:
        process = parse(text).process
        before = self._compile_by_process.get(process, 0.0) if process else 0.0
        self._compile_by_process[process or ""] = before + seconds
        slowest = max(self._compile_by_process.values())
        self._set(text, compile_seconds=round(slowest, 2))
        self._say_compile()

    def _compile_cache(self, text: str, *, cached: bool) -> None:
        self._set(text, compile_cached=cached)
        self._say_compile()

    def _say_compile(self) -> None:
        seconds, cached = self.facts.compile_seconds, self.facts.compile_cached
        how = {True: " cached", False: " cold", None: ""}[cached]
        self._say(Phase.COMPILE, f"torch.compile{f' {seconds:.0f} s' if seconds is not None else ''}{how}")

    def _say(self, phase: Phase, detail: str, share: float | None = None) -> None:
        if self.phase is phase:
            self.detail, self.share = detail, share

    def _set(self, text: str, **changes: Any) -> None:
        proofs = dict(self.facts.evidence) | dict.fromkeys(changes, evidence(text))
        self.facts = replace(self.facts, **changes, evidence=tuple(proofs.items()))


def _keep(old: Any, new: Any, keep: str) -> Any:
    if keep == EACH:
        return old if new in old else (*old, new)
    if keep == FIRST:
        return old
    if keep == LARGEST:
        return max(old, new)
    if keep == SMALLEST:
        return min(old, new)
    return new


def read_startup(lines: Iterable[str]) -> StartupReader:
    """A whole log at once."""
    reader = StartupReader()
    reader.feed(lines)
    return reader
