"""`diagnose`: what a vLLM log says went wrong, for any file."""

from __future__ import annotations

import argparse
import re
from dataclasses import asdict

from console.cli.voice import say, show, show_json
from console.errors import Exit, UsageError
from console.files import describe, open_file
from console.server.chain import chain
from console.server.diagnose import diagnose as find
from console.server.startup import StartupReader
from console.units import uncoloured

_LIMIT_BYTES = 64_000_000
_OURS = re.compile(r"vllm|EngineCore|Traceback|CUDA|\b(?:INFO|WARNING|ERROR)\b", re.IGNORECASE)
"""One of these words stands in every log of vLLM, or of what dies before it."""


def diagnose(args: argparse.Namespace) -> int:
    """Read the file with the code that watches our own server."""
    if args.silent and not args.alive:
        raise UsageError("--silent needs --alive", "a process that has ended is silent for good", "give both, or none")
    try:
        with open_file(args.log) as file:
            text = file.read(_LIMIT_BYTES).decode("utf-8", errors="replace")
    except OSError as error:
        raise UsageError(f"{args.log} cannot be read", describe(error), "name a log file") from None
    lines = text.split("\n")
    reader = StartupReader()
    reader.feed(lines)
    found = find(lines, alive=args.alive, silent_s=args.silent)
    if text.strip() and not _OURS.search(text):
        say(f"no line of {args.log} looks like vLLM's: is it the right file?")
    if args.json:
        whole = asdict(found) if found else {"cause": None, "what": None, "why": None, "fix": None, "evidence": []}
        whole["phase"] = found.phase if found and found.phase else reader.phase
        whole["chain"] = [asdict(link) for link in chain(reader.facts, None)]
        show_json({"schema": 1} | whole)
    elif found is None:
        show([f"nothing went wrong that this log tells; phase: {reader.phase.value}"])
    else:
        show([f"{found.cause}: {found.what}\n  why: {found.why}\n  fix: {found.fix}"])
        show(f"  | {uncoloured(line)}" for line in found.evidence)
    return Exit.OK
