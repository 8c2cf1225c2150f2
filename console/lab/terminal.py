"""A run for a terminal, from the JSON of its report and nothing else: what one reads first, in 100 columns. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from textwrap import wrap

from console import units
from console.lab.markdown import Report, interval, value, word_of
from console.lab.measures import said
from console.lab.words import CHANGE, PARTING, explained, lacks, meaning, probe_title

WIDTH = 100
_NAME = 36
"""Columns that a table's first column takes at most."""
_GAP = "  "


def render(report: Report) -> str:
    """The whole of it."""
    parts = (_head(report), _verdict(report), _measures(report), _speculation(report), _function(report), _foot(report))
    return "\n".join("\n".join(part) for part in map(list, parts) if part) + "\n"


def _head(report: Report) -> Iterator[str]:
    plan, versions = report["plan"], report["versions"]
    tag = " SIMULATED (no graphics card gave these numbers)" if report["simulated"] else ""
    mine = {plan["own_arm"]: f" (what {report['preset']} runs)"}
    arms = " against ".join(f"{arm['name']}{mine.get(arm['name'], '')}" for arm in plan["arms"])
    yield f"{report['kind']} on {report['preset']}: {arms}{tag}"
    vllm = ", ".join(f"vLLM {version}" for version in versions["vllm"]) or "no server was seen"
    valid = sum(boot["valid"] for boot in report["boots"])
    counts = f"{valid} of {len(plan['order'])} boots count"
    rounds = f"{plan['rounds']} round{'' if plan['rounds'] == 1 else 's'}"
    yield f"run {report['id']} · {report['state']} · size {plan['size']}, {rounds} · {counts} · {vllm}"
    yield ""


def _verdict(report: Report) -> Iterator[str]:
    word, verdict = word_of(report), report["verdict"]
    sentence = verdict["sentence"] if verdict else "no verdict yet, the run is not over"
    yield from _wrapped(sentence if sentence.startswith(word) else f"{word}: {sentence}", "")
    if text := meaning(report["kind"], word):
        yield from _wrapped(f"({word}: {text})", "  ")
    yield ""
    # What the table says of each measure need not stand above it too.
    heads = tuple(f"{said(name)}{end}" for name in report["metrics"] for end in (" +", " -", " 0", ":"))
    reasons = [text for text in (verdict["why"] if verdict else ()) if not text.startswith(heads)]
    for text in reasons:
        yield from _listed(text)
    if reasons:
        yield ""


def _measures(report: Report) -> Iterator[str]:
    """One row a measure and pair: those that are judged, then the others."""
    arms = [arm["name"] for arm in report["plan"]["arms"]]
    several = len(arms) > 2
    head = ["measure", arms[0], "arm" if several else arms[-1], "change", "95 % interval", "verdict"]
    if several:
        head.insert(3, "value")
    for judged, title in ((True, "judged"), (False, "information")):
        rows = [
            row
            for name, metric in report["metrics"].items()
            if metric["judged"] == judged
            for row in _rows(name, metric, arms[0], several=several)
        ]
        if rows:
            yield from _table([f"{head[0]} ({title})", *head[1:]], rows)
            yield ""
    words = [pair["verdict"] for metric in report["metrics"].values() for pair in metric["compare"]]
    for text in (CHANGE, *explained("", words)) if words else ():
        yield from _wrapped(text, "  ")
    if words:
        yield ""


def _rows(name: str, metric: Report, base: str, *, several: bool) -> Iterator[list[str]]:
    for pair in metric["compare"]:
        first, other = (value(name, metric["arms"][arm]["median"]) for arm in (base, pair["arm"]))
        named = [pair["arm"], other] if several else [other]
        advice = f" ({_short(pair)})" if pair["verdict"] == "undecided" and _short(pair) else ""
        yield [said(name), first, *named, units.change(pair["ratio"]), interval(pair), f"{pair['verdict']}{advice}"]


def _short(pair: Report) -> str:
    return lacks(pair["short_of"], pair["more_rounds"], pair["ratio"])


def _speculation(report: Report) -> Iterator[str]:
    for arm, found in report["mtp"].items():
        if found is None:
            continue
        shares = [units.percent(found[f"acceptance_{when}"]) for when in ("start", "end", "after_long_prompt")]
        places = " · ".join(units.percent(rate) for rate in found["per_position"] or ()) or units.NA
        length = units.number(found["mean_acceptance_length"], 2)
        yield from _wrapped(
            f"speculation, {arm}: acceptance {shares[0]} at the start, {shares[1]} at the end, {shares[2]} after the "
            f"long prompt; by position {places}; {length} tokens a step",
            "",
        )
    for arm, found in report["divergence"].items():
        if found is not None:
            same = f"{found['equal']} of {found['pairs']} the same as the first arm's, token by token"
            yield from _wrapped(f"greedy answers, {arm}: {same}. {PARTING}", "")


def _function(report: Report) -> Iterator[str]:
    """A row a probe, an arm beside the other."""
    arms = list(report["probes"])
    names = list(dict.fromkeys(name for tallies in report["probes"].values() for name in tallies))
    if not names:
        return
    yield ""
    rows = [[probe_title(name), *(_tally(report["probes"][arm].get(name)) for arm in arms)] for name in names]
    yield from _table(["probe", *arms], rows)


def _tally(found: Report | None) -> str:
    if found is None or not found["of"]:
        return units.NA if found is None or not found["note"] else f"{units.NA} ({found['note']})"
    return f"{found['passed']} of {found['of']}"


def _foot(report: Report) -> Iterator[str]:
    yield ""
    if report["warnings"]:
        yield "to know"
        for text in report["warnings"]:
            yield from _listed(text)
        yield ""
    folder = Path(report["journal"]).parent
    if (folder / "report.md").is_file():
        yield f"whole report with pictures: {folder / 'report.md'}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Columns as wide as they need to be; the first and the last to the left, numbers to the right.

    What is long in the first one goes on below it.
    """
    firsts = [wrap(row[0], _NAME, subsequent_indent="  ") or [""] for row in (head, *rows)]
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(1, len(head))]
    width = max(len(text) for texts in firsts for text in texts)
    for (first, *more), row in zip(firsts, (head, *rows), strict=True):
        cells = [cell.rjust(wide) for cell, wide in zip(row[1:], widths, strict=True)]
        yield _GAP.join([first.ljust(width), *cells[:-1], row[-1]]).rstrip()
        yield from more


def _listed(text: str) -> Iterable[str]:
    return wrap(f"- {text}", WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _wrapped(text: str, indent: str) -> Iterable[str]:
    rest = indent + "  "
    return wrap(
        text, WIDTH, initial_indent=indent, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )
