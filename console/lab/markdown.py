"""report.md, rendered from the JSON of a report and from nothing else. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from console import units
from console.lab.measures import MEASURES, said
from console.lab.words import CHANGE, ONE_ROUND, PARTING, explained, meaning, probe_title, run_word

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
    "clocks, heat, power",
    "start",
    "client late (p99)",
)

_BOOT_SIGNS = (
    "- *counts*: yes, or why this start is left out of every number.",
    "- *compile cache*: cached where the start found what an earlier one had compiled, cold where it compiled itself.",
    "- *block*, *KV tokens*: tokens of a block of the prefix cache, and what the cache holds, as the server told them.",
    "- *VRAM peak*, *clocks, heat, power*: a card each, the clocks as they ranged under load.",
    "- *client late*: how much later than due the client that measures came to read, by itself; n/a where not known.",
    "",
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
    lines += _pictures(report)
    lines += _speculation(report)
    lines += _divergence(report)
    lines += _probes(report)
    lines += _plan(report)
    lines += _boots(report)
    if report["warnings"]:
        lines += ["## To know", "", *(f"- {text}" for text in report["warnings"]), ""]
    versions = report["versions"]
    seen = [f"qwen-console {versions['console']}", *(f"vLLM {v}" for v in versions["vllm"])]
    seen += [f"driver {v}" for v in versions["driver"]]
    lines.append(
        f"Run `{report['id']}`, state: {report['state']}; {', '.join(seen)}. "
        f"Every request and stamp: `{report['journal']}`."
    )
    return "\n".join(lines) + "\n"


def word_of(report: Report) -> str:
    """The run's word."""
    return run_word(report["kind"], report["state"], report["verdict"] and report["verdict"]["overall"])


def _verdict(report: Report) -> list[str]:
    word, verdict = word_of(report), report["verdict"]
    if verdict is None:
        return [f"**{word}:** no verdict yet, the run is not over.", ""]
    text = meaning(report["kind"], word)
    means = [f"*{word}*: {text}.", ""] if text else []
    lines = [f"**{word}**: {verdict['sentence']}", "", *means]
    return [*lines, *(f"- {reason}" for reason in verdict["why"]), ""]


def _words(report: Report) -> list[str]:
    """What the words of the comparison mean."""
    pairs = [pair["verdict"] for metric in report["metrics"].values() for pair in metric["compare"]]
    return [*(f"- {text}" for text in explained("", pairs)), ""] if pairs else []


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
        rows.append([said(name), *(_figure(name, metric["arms"][arm]) for arm in arms)])
        pairs += [[said(name), *_pair(pair)] for pair in metric["compare"]]
    lines = ["## Measures", "", *_table(head, rows), ""]
    lines += [
        "Medians; the interval (95 %) comes from the boots. A gap is the time between arrivals, TPOT the time per",
        "token: under speculation an arrival holds several tokens, so gaps grow while text gets faster.",
        "",
    ]
    return [
        *lines,
        "## Comparison",
        "",
        *_table(["measure", "arms", "change", "interval", "spread (df)", "verdict"], pairs),
        "",
        CHANGE,
        "",
        *_words(report),
    ]


def _figure(name: str, figure: Mapping[str, Any]) -> str:
    if figure["median"] is None:
        return "no data"
    span = "" if figure["lo"] is None else f" [{value(name, figure['lo'])}, {value(name, figure['hi'])}]"
    return f"{value(name, figure['median'])}{span} ({figure['n_rounds']}/{figure['n_requests']})"


def interval(pair: Mapping[str, Any]) -> str:
    """The interval of a ratio as a change; that of a single round is marked."""
    mark = f" ({ONE_ROUND})" if pair["rounds"] == 1 else ""
    return (units.NA if pair["lo"] is None else f"[{units.change(pair['lo'])}, {units.change(pair['hi'])}]") + mark


def _pair(pair: Mapping[str, Any]) -> list[str]:
    span = interval(pair)
    lent = f", {pair['pooled_df']} of earlier runs" if pair["pooled_df"] else ""
    spread = units.NA if pair["spread"] is None else f"{units.percent(pair['spread'])} ({pair['df']}{lent})"
    word = "; ".join([pair["verdict"], *pair["warnings"]])
    return [f"{pair['arm']} against {pair['against']}", units.change(pair["ratio"]), span, spread, word]


def _pictures(report: Report) -> list[str]:
    found = report["pictures"]
    return ["## Pictures", "", *(f"![{row['shows']}]({row['file']})" for row in found), ""] if found else []


def _divergence(report: Report) -> list[str]:
    rows = []
    for arm, found in report["divergence"].items():
        if found is not None:
            first = units.NA if found["median_first"] is None else f"{found['median_first']:.0f} tokens"
            rows.append([arm, f"{found['equal']} of {found['pairs']}", first])
    if not rows:
        return []
    note = f"Greedy answers to the same prompts, token by token. {PARTING}"
    head = ["arm", "equal to the first arm's", "the others part after (median)"]
    return ["## First divergence", "", *_table(head, rows), "", note, ""]


def _speculation(report: Report) -> list[str]:
    rows = []
    for arm, found in report["mtp"].items():
        if found is None:
            continue
        positions = " · ".join(units.percent(rate) for rate in found["per_position"] or ()) or units.NA
        shares = (units.percent(found["acceptance_start"]), units.percent(found["acceptance_end"]))
        long = units.percent(found["acceptance_after_long_prompt"])
        past = units.count(found["tokens_past_natural_end"])
        rows.append([arm, *shares, long, units.number(found["mean_acceptance_length"], 2), positions, past])
    if not rows:
        return []
    head = [
        "arm",
        "acceptance, start",
        "acceptance, end",
        "after the long prompt",
        "mean length",
        "by position",
        "tokens past an answer's own end (not counted)",
    ]
    return ["## Speculation", "", *_table(head, rows), ""]


def _probes(report: Report) -> list[str]:
    rows = [
        [
            arm,
            probe_title(probe),
            f"{tally['passed']} of {tally['of']}" if tally["of"] else units.NA,
            tally["note"] or "",
        ]
        for arm, tallies in report["probes"].items()
        for probe, tally in tallies.items()
    ]
    if not rows:
        return []
    note = "Read them across arms: what no arm passes says nothing about the setting under test."
    return ["## Function", "", *_table(["arm", "probe", "passed", "note"], rows), "", note, ""]


def _plan(report: Report) -> list[str]:
    plan = report["plan"]
    differs = ", ".join(f"`{key}`" for key in plan["differs"]) or "nothing (equal arms)"
    lines = ["## Plan", "", f"- differs between the arms: {differs}"]
    for arm in plan["arms"]:
        changes = ", ".join(f"`{key}={setting}`" for key, setting in arm["overrides"].items())
        own = " (what the preset runs)" if changes and arm["name"] == plan["own_arm"] else ""
        lines.append(f"- {arm['name']}: {changes or 'the preset as it is'}{own}")
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
                " · ".join(_card(card) for card in env.get("cards") or ()) or units.NA,
                units.seconds(env.get("start_s")),
                units.seconds(env.get("client_lateness_s")),
            ]
        )
    return ["## Boots", "", *_table(_BOOT_HEAD, rows), "", *(_BOOT_SIGNS if rows else ())]


def _card(card: Mapping[str, Any]) -> str:
    """One card under load: `2610-2790 MHz, 64 °C, 151 W`."""
    low, high = card.get("sm_clock_low_mhz"), card.get("sm_clock_mhz")
    clocks = units.NA if high is None else f"{low}-{high} MHz" if low != high else f"{high} MHz"
    heat = units.number(card.get("temp_c"), 0, " °C")
    return f"{clocks}, {heat}, {units.number(card.get('power_w'), 0, ' W')}"


def _state(boot: Mapping[str, Any]) -> str:
    crash = f"crashed: {boot['crash']['what']} ({boot['crash']['cause']})" if boot["crash"] else ""
    if boot["valid"]:
        return f"yes, then {crash}" if crash else "yes"
    return crash or f"no: {boot['reason']}"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    titles = list(head)
    body = [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows]
    return [f"| {' | '.join(titles)} |", f"|{'---|' * len(titles)}", *body]
