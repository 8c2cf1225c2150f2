"""Runs the A/B lab on the real engine and writes down what came out.

    python -m tests.engine.ab_table [--rounds 3] [--only aa,mtp,…]      about an hour; writes docs/ab-results.md

Parts: aa, mtp, chunk, prefix, agreement, killed, foreign, crash. With --only the document is printed instead.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from console import __version__, units
from tests.bench.calibration import commit
from tests.engine.ab_shows import Agreement, Json, Site, agreement, crash_arm, foreign_traffic, killed_three_times
from tests.engine.install import VERSION, engine

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs" / "ab-results.md"
RUNS = {
    "aa": ("plain", "equal arms: this machine's noise floor"),
    "mtp": ("plain", "MTP off against n = 2, without prefix caching"),
    "chunk": ("plain", "chunk budgets 512 and 2048"),
    "prefix": ("cached", "prefix caching on against off"),
}
SHOWN: dict[str, Callable[[Site], str]] = {
    "killed": killed_three_times,
    "foreign": foreign_traffic,
    "crash": crash_arm,
}
_TITLES = {"killed": "Killed and resumed", "foreign": "Foreign traffic", "crash": "An arm that crashes"}


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
    lines = ["## Beside `vllm bench serve`", "", "The same server, the same prompts, in turn; *ours / theirs* with the"]
    lines += ["interval of the repeats. TPOT is defined alike where the first chunk holds one token.", ""]
    lines += ["| measure | streams | ours | vllm bench | ours / theirs | |", "|---|---|---|---|---|---|"]
    for row in rows:
        unit = "s" if "mean" in row.measure else "tok/s"
        ours, theirs = (_value(unit, sum(values) / len(values)) for values in (row.ours, row.theirs))
        word = "within noise" if row.agrees else "APART"
        ratio = f"{row.ratio:.3f} ± {row.half_width:.3f}"
        lines.append(f"| {row.measure} | {row.streams} | {ours} | {theirs} | {ratio} | {word} |")
    return [*lines, ""]


def head(args: argparse.Namespace, seconds: float) -> list[str]:
    """What the document says first."""
    busy = os.getloadavg()[1]
    other = f" Other work ran beside it (load average {busy:.1f} on {os.cpu_count()} cores): the noise is its own."
    return [
        "# A/B runs on the real engine",
        "",
        f"`python -m tests.engine.ab_table --rounds {args.rounds}`, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, commit "
        f"{commit()}, qwen-console {__version__}, vLLM {VERSION} (CPU build, TP 2, a tiny hybrid model), Python "
        f"{platform.python_version()}, {units.duration(seconds)}.{other if busy > os.cpu_count() else ''}"  # type: ignore[operator]
        " These numbers say how the lab works, nothing about a GPU.",
        "",
    ]


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=4, help="of either client for the agreement")
    parser.add_argument("--only", help="some of the parts, on the screen only")
    args = parser.parse_args()
    wanted = args.only.split(",") if args.only else [*RUNS, "agreement", *SHOWN]
    place, begun, lines = engine(), time.monotonic(), list[str]()
    if not place.ready:
        print("the engine is not installed: python -m tests.engine.install", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        site = Site(Path(folder), place)
        try:
            for part in wanted:
                print(f"{units.duration(time.monotonic() - begun)}: {part}", file=sys.stderr, flush=True)
                lines += carry_out(site, part, args)
        finally:
            site.console.end()
    text = "\n".join([*head(args, time.monotonic() - begun), *lines])
    if args.only:
        print(text)
    else:
        DOCS.write_text(text, encoding="utf-8")
    return 0


def carry_out(site: Site, part: str, args: argparse.Namespace) -> list[str]:
    """One part of the document."""
    if part in RUNS:
        begun = time.monotonic()
        arms = ["--arms", "512,2048"] if part == "chunk" else []
        words = (part, "--preset", RUNS[part][0], "--rounds", str(args.rounds), "--size", "small", *arms)
        return section(part, site.run(*words), time.monotonic() - begun)
    if part == "agreement":
        return agreement_section(agreement(site, args.repeats))
    return [f"## {_TITLES[part]}", "", f"{SHOWN[part](site)}.", ""]


if __name__ == "__main__":
    sys.exit(main())
