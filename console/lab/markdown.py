"""report.md, rendered from the JSON of a report and from nothing else. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from console import units
from console.lab.measures import MEASURES

Report = Mapping[str, Any]
_BOOT_HEAD = (
    "boot",
    "arm",
    "round",
    "counts",
    "vLLM",
    "compile cache",
    "block",
    "KV tokens",
    "VRAM peak",
    "start",
    "client late (p99)",
)


def render(report: Report) -> str:
    """The whole page."""
    plan = report["plan"]
    arms = [arm["name"] for arm in plan["arms"]]
    tag = "SIMULATED: " if report["simulated"] else ""
    lines = [f"# {tag}{report['kind']} on {report['preset']}: {' against '.join(arms)}", ""]
    if report["simulated"]:
        lines += ["The stand-in engine gave these numbers. They say nothing about any graphics card.", ""]
    lines += _verdict(report)
    lines += _metrics(report, arms)
    lines += _speculation(report)
    lines += _probes(report)
    lines += _plan(report)
    lines += _boots(report)
    if report["warnings"]:
        lines += ["## To know", "", *(f"- {text}" for text in report["warnings"]), ""]
    lines.append(f"Run `{report['id']}`, state: {report['state']}. Every request and stamp: `{report['journal']}`.")
    return "\n".join(lines) + "\n"


def _verdict(report: Report) -> list[str]:
    verdict = report["verdict"]
    if verdict is None:
        return ["**No verdict yet:** the run is not over.", ""]
    lines = [f"**{verdict['overall']}**: {verdict['sentence']}", ""]
    return [*lines, *(f"- {reason}" for reason in verdict["why"]), ""]


def value(name: str, number: float | None) -> str:
    """A measure's value in its own unit."""
    unit = MEASURES[name].unit if name in MEASURES else ""
    if unit == "s":
        return units.seconds(number)
    return units.per_second(number) if unit == "tok/s" else units.number(number, 0)


def _metrics(report: Report, arms: list[str]) -> list[str]:
    if not report["metrics"]:
        return ["No boot of any arm counts: no data.", ""]
    head = ["measure", *(f"{arm} (rounds/requests)" for arm in arms)]
    rows, pairs = [], []
    for name, metric in report["metrics"].items():
        rows.append([f"`{name}`", *(_figure(name, metric["arms"][arm]) for arm in arms)])
        pairs += [[f"`{name}`", *_pair(pair)] for pair in metric["compare"]]
    lines = ["## Measures", "", *_table(head, rows), ""]
    lines += [
        "Medians; the interval (95 %) comes from the boots. A gap is the time between arrivals, TPOT the time per"
    ]
    lines += ["token: under speculation an arrival holds several tokens, so gaps grow while text gets faster.", ""]
    return [*lines, "## Comparison", "", *_table(["measure", "arms", "change", "interval", "verdict"], pairs), ""]


def _figure(name: str, figure: Mapping[str, Any]) -> str:
    if figure["median"] is None:
        return "no data"
    span = "" if figure["lo"] is None else f" [{value(name, figure['lo'])}, {value(name, figure['hi'])}]"
    return f"{value(name, figure['median'])}{span} ({figure['n_rounds']}/{figure['n_requests']})"


def _pair(pair: Mapping[str, Any]) -> list[str]:
    span = units.NA if pair["lo"] is None else f"[{units.change(pair['lo'])}, {units.change(pair['hi'])}]"
    word = "; ".join([pair["verdict"], *pair["warnings"]])
    return [f"{pair['arm']} against {pair['against']}", units.change(pair["ratio"]), span, word]


def _speculation(report: Report) -> list[str]:
    rows = []
    for arm, found in report["mtp"].items():
        if found is None:
            continue
        positions = " · ".join(units.percent(rate) for rate in found["per_position"] or ()) or units.NA
        shares = (units.percent(found["acceptance_start"]), units.percent(found["acceptance_end"]))
        rows.append([arm, *shares, units.number(found["mean_acceptance_length"], 2), positions])
    if not rows:
        return []
    head = ["arm", "acceptance, start", "acceptance, end", "mean length", "by position"]
    return ["## Speculation", "", *_table(head, rows), ""]


def _probes(report: Report) -> list[str]:
    rows = [
        [arm, probe, f"{tally['passed']} of {tally['of']}"]
        for arm, tallies in report["probes"].items()
        for probe, tally in tallies.items()
    ]
    if not rows:
        return []
    note = "Read them across arms: what no arm passes says nothing about the setting under test."
    return ["## Function", "", *_table(["arm", "probe", "passed"], rows), "", note, ""]


def _plan(report: Report) -> list[str]:
    plan = report["plan"]
    differs = ", ".join(f"`{key}`" for key in plan["differs"]) or "nothing (equal arms)"
    lines = ["## Plan", "", f"- differs between the arms: {differs}"]
    for arm in plan["arms"]:
        changes = ", ".join(f"`{key}={setting}`" for key, setting in arm["overrides"].items())
        lines.append(f"- {arm['name']}: {changes or 'the preset as it is'}")
    lines.append(
        f"- {plan['rounds']} round(s), size {plan['size']}, seed {plan['seed']}, order {' '.join(plan['order'])}"
    )
    return [*lines, ""]


def _boots(report: Report) -> list[str]:
    rows = []
    for boot in report["boots"]:
        env = boot["env"]
        peak = env.get("vram_peak_bytes")
        rows.append(
            [
                str(boot["n"]),
                boot["arm"],
                str(boot["round"]),
                _state(boot),
                str(env.get("vllm") or units.NA),
                str(env.get("compile_cache") or units.NA),
                units.count(env.get("block_tokens")),
                units.count(env.get("kv_tokens")),
                " · ".join(units.gib(card) for card in peak) if peak else units.NA,
                units.seconds(env.get("start_s")),
                units.seconds(env.get("client_lateness_s")),
            ]
        )
    return ["## Boots", "", *_table(_BOOT_HEAD, rows), ""]


def _state(boot: Mapping[str, Any]) -> str:
    if boot["crash"]:
        return f"crashed: {boot['crash']['what']} ({boot['crash']['cause']})"
    return "yes" if boot["valid"] else f"no: {boot['reason']}"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    titles = list(head)
    body = [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows]
    return [f"| {' | '.join(titles)} |", f"|{'---|' * len(titles)}", *body]
