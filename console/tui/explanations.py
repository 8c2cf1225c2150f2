"""What every figure on the dashboard is: its definition, where it comes from, over what it goes. One table. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from console.metrics.reading import Distribution, Reading

NOW, WINDOW, LIFETIME, LAST = "now", "window", "lifetime", "last"


@dataclass(frozen=True, slots=True)
class Explanation:
    """One figure."""

    title: str
    what: str
    source: str
    over: str
    """`now`, `window`, `lifetime`, or `last`: over what it goes."""


_TTFT, _ITL = "time_to_first_token_seconds", "inter_token_latency_seconds"
_LATENCIES = {
    "t": (
        "TTFT",
        "from the arrival of a request to its first token, and counted with that token; the cache makes it shorter",
        _TTFT,
    ),
    "q": (
        "queue",
        "how long a request waited until the engine took it up; it counts once it has ended, so those that wait or run "
        "now are not in it yet",
        "request_queue_time_seconds",
    ),
    "g": (
        "ITL",
        "the gap between two engine steps of a request: what the eye sees as smoothness. With MTP a step yields "
        "several tokens, so this grows while the text gets faster",
        _ITL,
    ),
    "o": (
        "TPOT",
        "time for each token after the first, one value a finished request: the speed of the text, with MTP too",
        "request_time_per_output_token_seconds",
    ),
    "e": (
        "e2e",
        "from the arrival of a request to its last token; it counts once it has ended",
        "e2e_request_latency_seconds",
    ),
}
_STATISTICS = {
    "m": (", mean", "Δsum / Δcount of vllm:{}: exact"),
    "p50": (", p50: half are shorter", "buckets of vllm:{}: ~ is an estimate within a narrow one, else the bucket"),
    "p90": (", p90: 9 of 10 are shorter", "buckets of vllm:{}: ~ is an estimate within a narrow one, else the bucket"),
    "p99": (
        ", p99: 99 of 100 are shorter",
        "buckets of vllm:{}: ~ is an estimate within a narrow one, else the bucket",
    ),
    "n": (", n: how many", "Δcount of vllm:{}"),
}
_READING = {
    "hit": Explanation(
        "prefix hit rate",
        "part of the prompt tokens that came from the cache instead of being computed; off is not 0 %",
        "cached / (cached + computed), the tokens beside it",
        WINDOW,
    ),
    "life": Explanation(
        "prefix hit rate, lifetime",
        "the same since the server became ready; the console's own first request is left out",
        "cached / (cached + computed) tokens since then",
        LIFETIME,
    ),
    "cached": Explanation(
        "prompt tokens from the cache",
        "not computed again",
        "Δ of vllm:prompt_tokens_by_source, else prompt_tokens_cached",
        WINDOW,
    ),
    "fresh": Explanation(
        "prompt tokens computed",
        "prefilled on the cards; this is what costs TTFT",
        "Δ of vllm:prompt_tokens less the cached ones",
        WINDOW,
    ),
    "block": Explanation(
        "cache block",
        "the cache works in whole blocks: a common beginning shorter than this cannot hit",
        "vllm:cache_config_info, or the log of the start",
        NOW,
    ),
    "run": Explanation("running", "requests in the engine's batch now", "vllm:num_requests_running", NOW),
    "wai": Explanation("waiting", "requests that the engine has not taken up yet", "vllm:num_requests_waiting", NOW),
    "kv": Explanation("KV used", "part of the KV cache that live requests hold", "vllm:kv_cache_usage_perc", NOW),
    "pre": Explanation(
        "preempted",
        "requests thrown out of the batch for want of KV blocks, and computed again later: any at all costs speed",
        "Δ of vllm:num_preemptions",
        WINDOW,
    ),
    "out": Explanation(
        "output", "tokens generated a second, all requests together", "Δ of vllm:generation_tokens / seconds", WINDOW
    ),
    "pref": Explanation(
        "prefill, per request",
        "computed prompt tokens a second of prefill; prefills at the same time count twice, so it is no total",
        "Δ computed tokens / Δsum of vllm:request_prefill_time_seconds",
        WINDOW,
    ),
    "acc": Explanation(
        "MTP acceptance",
        "drafted tokens that were right",
        "Δaccepted / Δdraft tokens of vllm:spec_decode_*",
        WINDOW,
    ),
    "len": Explanation(
        "MTP mean length",
        "tokens an engine step yields: one, and the drafted ones that were right",
        "1 + Δaccepted / Δdrafts of vllm:spec_decode_*",
        WINDOW,
    ),
    "dra": Explanation(
        "MTP drafts",
        "how often tokens were drafted: the n of these figures",
        "Δ of vllm:spec_decode_num_drafts",
        WINDOW,
    ),
    "pos": Explanation(
        "MTP positions",
        "how often the first, second, … drafted token was right; a last one below about 30 % seldom pays",
        "Δ of vllm:spec_decode_num_accepted_tokens_per_pos / Δdrafts",
        WINDOW,
    ),
}
_LASTS = {
    "age": Explanation("last requests: when", "how long ago the first token came", "the scrape that saw it", LAST),
    "lttft": Explanation(
        "last requests: TTFT",
        "of this request alone, or the mean of those that came together",
        f"Δ of vllm:{_TTFT}",
        LAST,
    ),
    "lprompt": Explanation("last requests: prompt", "tokens of its prompt", "cached + computed", LAST),
    "lhit": Explanation("last requests: cached", "prompt tokens from the cache", "Δ of the token counters", LAST),
    "lnew": Explanation("last requests: computed", "prompt tokens prefilled", "Δ of the token counters", LAST),
}
_CARDS = {
    "bar": Explanation("VRAM", "memory in use of all there is", "NVML memory info", NOW),
    "vram": Explanation(
        "VRAM used / in all",
        "what the driver keeps for itself is counted apart: the page of the cards shows it",
        "NVML memory info",
        NOW,
    ),
    "tx": Explanation(
        "PCIe TX",
        "bytes a second from the card to the machine, headers included",
        "NVML byte counters, else a 20 ms sample",
        NOW,
    ),
    "rx": Explanation(
        "PCIe RX",
        "bytes a second from the machine to the card, headers included",
        "NVML byte counters, else a 20 ms sample",
        NOW,
    ),
    "link": Explanation(
        "PCIe link",
        "generation and lanes now; at rest it falls, under load it must not",
        "NVML",
        NOW,
    ),
    "util": Explanation("utilisation", "time in which any kernel ran: not how hard the card worked", "NVML", NOW),
    "temp": Explanation("temperature", "of the chip", "NVML", NOW),
    "watt": Explanation("power", "drawn now, of the limit; yellow where the clocks are throttled", "NVML", NOW),
}


def explanation(name: str, *, card: bool) -> Explanation | None:
    """What the figure of that name in a form is; `None` for what is no figure."""
    if card:
        return _CARDS.get(name)
    key, _, statistic = name.partition("_")
    if key in _LATENCIES and statistic in _STATISTICS:
        title, what, series = _LATENCIES[key]
        suffix, source = _STATISTICS[statistic]
        return Explanation(title + suffix, what, source.format(series), WINDOW)
    return _READING.get(name) or _LASTS.get(re.sub(r"\d$", "", name))


def span(found: Explanation, name: str, reading: Reading) -> str:
    """Over what the figure on the screen goes, and how many it rests on."""
    if found.over == NOW:
        return "this moment"
    if found.over == LIFETIME:
        return "since the server became ready"
    if found.over == LAST:
        return "one rise of the request counter between two scrapes; n 2: two requests came at once, their mean"
    if reading.window_s is None:
        return "no window yet: two scrapes are needed"
    n = _n(name, reading)
    return f"the last {reading.window_s:.0f} s" + ("" if n is None else f", n = {n:,}")


def _n(name: str, reading: Reading) -> int | None:
    """How many requests, steps or drafts a figure of the window rests on."""
    of: dict[str, Distribution] = {
        "t": reading.ttft_s,
        "q": reading.queue_s,
        "g": reading.itl_s,
        "o": reading.tpot_s,
        "e": reading.e2e_s,
    }
    key, _, statistic = name.partition("_")
    if key in of and statistic:
        return of[key].n
    if name in ("acc", "len", "pos"):
        return reading.mtp.drafts if reading.mtp else None
    return reading.ttft_s.n if name in ("hit", "cached", "fresh") else None
