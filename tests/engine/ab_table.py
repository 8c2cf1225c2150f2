"""Runs the A/B lab on the real engine and writes down what came out.

    python -m tests.engine.ab_table [--rounds 3] [--only aa,mtp,…] [--out docs/ab-results.md]      about an hour

Parts: aa, mtp, chunk, prefix, agreement, budgets, killed, foreign, crash. A part that does not show what it should
stands in the document as FAILED with its reason, the others are carried out all the same, and the exit code is 1.
Without --out the document is printed.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import geometric_mean

from console import __version__, units
from tests.bench.document import commit, hand_in, listed, refused
from tests.engine.ab_shows import Json, Site, budgets_and_blocks, crash_arm, foreign_traffic, killed_three_times
from tests.engine.agreement import Agreement, agreement
from tests.engine.install import VERSION, engine

RUNS = {
    "aa": ("plain", "equal arms: this machine's noise floor"),
    "mtp": ("plain", "MTP off against n = 2, without prefix caching"),
    "chunk": ("plain", "chunk budgets 512 and 2048"),
    "prefix": ("cached", "prefix caching on against off"),
}
SHOWN: dict[str, Callable[[Site], str]] = {
    "budgets": budgets_and_blocks,
    "killed": killed_three_times,
    "foreign": foreign_traffic,
    "crash": crash_arm,
}
PARTS = (*RUNS, "agreement", *SHOWN)
_TITLES = {
    "budgets": "Chunk budgets and the cache block",
    "killed": "Killed and resumed",
    "foreign": "Foreign traffic",
    "crash": "An arm that crashes",
}


def table(report: Json) -> list[str]:
    """The comparison of a run."""
    lines = ["| measure | " + " | ".join(arm["name"] for arm in report["plan"]["arms"]) + " | change | interval | |"]
    lines.append("|---" * (len(report["plan"]["arms"]) + 4) + "|")
    for name, metric in report["metrics"].items():
        for pair in metric["compare"]:
            medians = [_value(metric["unit"], metric["arms"][arm["name"]]["median"]) for arm in report["plan"]["arms"]]
            span = units.NA if pair["lo"] is None else f"[{units.change(pair['lo'])}, {units.change(pair['hi'])}]"
            word = pair["verdict"] if metric["judged"] else "information"
            row = [f"`{name}`", *medians, units.change(pair["ratio"]), span, word]
            lines.append(f"| {' | '.join(row)} |")
    return lines


def _value(unit: str, value: float | None) -> str:
    if unit == "s":
        return units.seconds(value)
    return units.per_second(value) if unit == "tok/s" else units.count(value)


def section(kind: str, report: Json, seconds: float) -> list[str]:
    """One run."""
    preset, text = RUNS[kind]
    boots = report["boots"]
    valid = sum(boot["valid"] for boot in boots)
    lines = [f"## `ab {kind}` on `{preset}`: {text}", ""]
    lines += [f"**{report['verdict']['overall']}**: {report['verdict']['sentence']}", ""]
    lines += [f"{valid} of {len(boots)} boots count; {units.duration(seconds)}.", "", *table(report), ""]
    for arm, found in report["mtp"].items():
        if found is not None:
            rates = " · ".join(units.percent(rate) for rate in found["per_position"])
            lines.append(
                f"{arm}: acceptance {units.percent(found['acceptance_start'])} at the start, "
                f"{units.percent(found['acceptance_end'])} at the end, "
                f"{units.percent(found['acceptance_after_long_prompt'])} after the long prompt; by position {rates}; "
                f"mean length {found['mean_acceptance_length']:.2f}."
            )
    for arm, probes in report["probes"].items():
        tallies = ", ".join(f"{name} {tally['passed']} of {tally['of']}" for name, tally in probes.items())
        lines.append(f"Probes, {arm}: {tallies}.")
    beside = [text for text in report["verdict"]["why"] if text.startswith(("noise floor", "boot-to-boot", "memory"))]
    return [*lines, "", *(f"- {text}" for text in beside), *(f"- {text}" for text in report["warnings"]), ""]


def agreement_section(rows: list[Agreement]) -> list[str]:
    """Ours beside `vllm bench serve`."""
    lines = [
        "## Beside `vllm bench serve`",
        "",
        "The same server, the same prompts, in turn, and each of the two first in half of the repeats; *ours / theirs*",
        "of the geometric means over the repeats, with its interval (95 % for all rows together). TPOT is defined",
        "alike where the first chunk holds one token.",
        "",
        "| measure | streams | ours | vllm bench | ours / theirs | interval | |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        unit = "tok/s" if "a second" in row.measure else "s"
        ours, theirs = (_value(unit, geometric_mean(values)) for values in (row.ours, row.theirs))
        word = "within noise" if row.agrees else "APART"
        lines.append(f"| {row.measure} | {row.streams} | {ours} | {theirs} | {apart(row)} | {word} |")
    return [*lines, ""]


def apart(row: Agreement) -> str:
    """The ratio and its interval, as two cells."""
    low, high = row.interval
    return f"{row.ratio:.3f} | [{low:.3f}, {high:.3f}]"


def head(args: argparse.Namespace, seconds: float) -> list[str]:
    """What the document says first."""
    busy = os.getloadavg()[1]
    other = f" Other work ran beside it (load average {busy:.1f} on {os.cpu_count()} cores): the noise is its own."
    return [
        "# A/B runs on the real engine",
        "",
        f"`python -m tests.engine.ab_table --rounds {args.rounds}`, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, commit "
        f"{commit()}, qwen-console {__version__}, vLLM {VERSION} (CPU build, one rank, a tiny hybrid model), Python "
        f"{platform.python_version()}, {units.duration(seconds)}.{other if busy > os.cpu_count() else ''}"  # type: ignore[operator]
        " These numbers say how the lab works, nothing about a GPU.",
        "",
    ]


@dataclass
class Document:
    """What the parts said, and which of them did not show what they should."""

    lines: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    took: list[str] = field(default_factory=list)

    def add(self, site: Site, part: str, args: argparse.Namespace) -> None:
        """Carry a part out; whatever becomes of it, the next one finds a clean site."""
        begun = time.monotonic()
        try:
            lines, problems = carry_out(site, part, args)
            self.lines += lines
            self.failures += [f"{part}: {text}" for text in problems]
        except Exception as error:  # noqa: BLE001 - a part that fails is a result of the table
            traceback.print_exc(file=sys.stderr)
            said = str(error).strip() or "an assertion did not hold"
            self.failures.append(f"{part}: {type(error).__name__}: {units.clip(said.splitlines()[0], 200)}")
            self.lines += [f"## {part}: FAILED", "", "```", *said.splitlines()[:20], "```", ""]
            clean(site)
        self.took.append(f"{part} {units.duration(time.monotonic() - begun)}")


def clean(site: Site) -> None:
    """End what a failed part left behind: a run, a server."""
    for word in (("ab", "stop"), ("down",)):
        with suppress(AssertionError, subprocess.TimeoutExpired):
            site.console(*word, code=None, timeout=300)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=8, help="of either client for the agreement")
    parser.add_argument("--only", default=",".join(PARTS), help="some of the parts")
    parser.add_argument("--out", type=Path, help="write the document there instead of to stdout")
    args = parser.parse_args()
    wanted = args.only.split(",")
    if unknown := set(wanted) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; parts: {', '.join(PARTS)}")
    if refused():
        return 2
    place, begun, document = engine(), time.monotonic(), Document()
    if not place.ready:
        print("the engine is not installed: python -m tests.engine.install", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        site = Site(Path(folder), place)
        try:
            for part in wanted:
                print(f"{units.duration(time.monotonic() - begun)}: {part}", file=sys.stderr, flush=True)
                document.add(site, part, args)
        finally:
            site.console.end()
    held = listed(document.failures, "every part showed what it should")
    tail = ["## Failed", "", *held, "", f"Time: {', '.join(document.took)}."]
    lines = [*head(args, time.monotonic() - begun), *document.lines, *tail]
    return hand_in(lines, args.out, document.failures, "FAILED")


def carry_out(site: Site, part: str, args: argparse.Namespace) -> tuple[list[str], list[str]]:
    """One part of the document, and what in it is not as it should be."""
    if part in RUNS:
        begun = time.monotonic()
        arms = ["--arms", "512,2048"] if part == "chunk" else []
        words = (part, "--preset", RUNS[part][0], "--rounds", str(args.rounds), "--size", "small", *arms)
        # MTP's arm dies of a probe on this build, after it was measured: that is a result, with exit code 1.
        report = site.run(*words, code=None if part == "mtp" else 0)
        bad = [boot for boot in report["boots"] if not boot["valid"]]
        problems = [f"boot {boot['n']} ({boot['arm']}) does not count: {boot['reason']}" for boot in bad]
        if report["state"] != "done":
            problems.append(f"the run is {report['state']}")
        return section(part, report, time.monotonic() - begun), problems
    if part == "agreement":
        rows = agreement(site, args.repeats)
        problems = [f"{row.measure}, {row.streams} streams: {apart(row)}" for row in rows if not row.agrees]
        return agreement_section(rows), problems
    return [f"## {_TITLES[part]}", "", f"{SHOWN[part](site).rstrip('.')}.", ""], []


if __name__ == "__main__":
    sys.exit(main())
