"""Rules over the reading and the server's state. Each yields what holds now; thresholds with their units stand here."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from console import units
from console.metrics.reading import Mtp, Reading
from console.notices.model import Finding, Look, Past, Severity
from console.server.status import State

MIN_DRAFTS = 20
"""Fewer drafts in a window say nothing."""
MIN_LIFE_DRAFTS = 200
COLLAPSE, RECOVERED = 0.5, 0.75
"""Parts of the acceptance rate that was usual before."""
POOR, FAIR = 0.2, 0.3
"""Acceptance rates at which speculation costs more than it gives, and above which it may pay."""
HIT_FELL, HIT_BACK = 0.5, 0.8
"""Parts of the hit rate that was usual before."""
HIT_WORTH = 0.3
"""A hit rate below this had not far to fall."""
KV_FULL, KV_EASY = 0.92, 0.85
QUEUE_GROWS, QUEUE_SHORT = 3, 1
"""Waiting requests."""
QUEUE_S = 30.0
STALL_S = 300.0
"""A prefill of 100K tokens is 125 s in which no token moves; KV use does."""
LOG_S = 60.0

Rule = Callable[[Past], Iterator[Finding]]


def _drafting(reading: Reading | None) -> Mtp | None:
    mtp = reading.mtp if reading else None
    return mtp if mtp and mtp.acceptance_rate is not None and mtp.drafts >= MIN_DRAFTS else None


def acceptance_collapsed(past: Past) -> Iterator[Finding]:
    """The window's acceptance rate far below what it was in this life."""
    mtp, usual = _drafting(past.now.reading), past.before.acceptance
    if mtp is None or mtp.acceptance_rate is None or usual is None or usual < POOR:
        return
    limit = RECOVERED if past.stands("acceptance-collapsed") else COLLAPSE
    if mtp.acceptance_rate >= limit * usual:
        return
    yield Finding(
        "acceptance-collapsed",
        Severity.BAD,
        f"MTP acceptance fell to {units.percent(mtp.acceptance_rate)}, it was {units.percent(usual)} before",
        f"{mtp.drafts} drafts in the last {_window(past.now.reading)}; some vLLM versions lose every draft once a "
        "request crosses position 32,768, until they are restarted",
        "`qwen-console restart`; then keep prompts below 32K, or run without MTP: `qwen-console ab mtp` measures it",
    )


def acceptance_poor(past: Past) -> Iterator[Finding]:
    """No window of this life has ever shown an acceptance rate worth the drafts."""
    best, drafts = past.before.best_acceptance, past.before.drafts
    if past.now.reading is None or past.now.reading.mtp is None or best is None or drafts < MIN_LIFE_DRAFTS:
        return
    if best >= (FAIR if past.stands("acceptance-poor") else POOR):
        return
    yield Finding(
        "acceptance-poor",
        Severity.WARN,
        f"MTP acceptance has never risen above {units.percent(best)} since the start",
        f"{drafts} drafts seen; every rejected draft costs a forward pass of the drafter and room in the batch",
        "measure it: `qwen-console ab mtp`; a wrong drafter, a quantised MTP head or high temperature are usual causes",
    )


def hit_rate_fell(past: Past) -> Iterator[Finding]:
    """The window's prefix hit rate far below what it was in this life, with the likeliest cause."""
    reading, usual = past.now.reading, past.before.hit_rate
    if reading is None or usual is None or usual < HIT_WORTH or reading.ttft_s.n < 1:
        return
    rate, computed = reading.prefix_cache.hit_rate, reading.prefix_cache.computed_tokens
    if computed is not None and computed < 2 * (reading.prefix_cache.block_tokens or 0):
        return
    limit = HIT_BACK if past.stands("prefix-hit-rate-fell") else HIT_FELL
    if rate is None or rate >= limit * usual:
        return
    why, fix = _why_no_hit(past.now, reading)
    yield Finding(
        "prefix-hit-rate-fell",
        Severity.WARN,
        f"the prefix hit rate fell to {units.percent(rate)}, it was {units.percent(usual)} before",
        f"{units.count(reading.prefix_cache.computed_tokens)} tokens were computed for {reading.ttft_s.n} requests in "
        f"the last {_window(reading)}; {why}",
        fix,
    )


def _why_no_hit(look: Look, reading: Reading) -> tuple[str, str]:
    cache, n = reading.prefix_cache, reading.ttft_s.n
    tokens = (cache.cached_tokens or 0) + (cache.computed_tokens or 0)
    if cache.block_tokens and tokens and tokens / n < cache.block_tokens:
        return (
            f"the prompts are shorter than one cache block of {cache.block_tokens} tokens, below which nothing can hit",
            "nothing to mend: short prompts are cheap to compute",
        )
    if (reading.kv_used or 0) > KV_EASY or (reading.preemptions or 0) > 0:
        return (
            f"the KV cache is {units.percent(reading.kv_used, 0)} full, so older prefixes are evicted",
            "fewer sessions at once (`max-num-seqs`), a shorter context, or more memory for KV",
        )
    hybrid = look.facts is not None and look.facts.mamba_mode == "align"
    if n <= 2 and not cache.cached_tokens and (hybrid or reading.mtp is not None):
        return (
            "the first repeat of a prefix does not hit in align mode or under MTP, only the second one does",
            "wait for the next turn; `qwen-console probe prefix` tests it",
        )
    return (
        "the head of the prompts may have changed (a date, reordered tools): `/metrics` cannot tell",
        "compare two successive requests: `qwen-console probe layout A.json B.json`",
    )


def kv_pressure(past: Past) -> Iterator[Finding]:
    """The KV cache is nearly full while requests wait, or running ones are thrown back."""
    reading = past.now.reading
    if reading is None:
        return
    if reading.window_s and reading.preemptions:
        yield Finding(
            "preemptions",
            Severity.WARN,
            f"{reading.preemptions} requests were thrown back to the queue in the last {_window(reading)}",
            f"the KV cache is full ({units.percent(reading.kv_used, 0)} now): what they had computed is computed again",
            "`max-num-seqs` lower, `max-model-len` shorter, or more memory for KV",
        )
    limit = KV_EASY if past.stands("kv-pressure") else KV_FULL
    if (reading.kv_used or 0) >= limit and (reading.waiting or 0) > 0:
        yield Finding(
            "kv-pressure",
            Severity.WARN,
            f"the KV cache is {units.percent(reading.kv_used, 0)} full and {reading.waiting} requests wait",
            "new requests start only when running ones free their blocks, and cached prefixes are evicted",
            "fewer sessions at once, a shorter context, or more memory for KV",
        )


def queue_grows(past: Past) -> Iterator[Finding]:
    """Requests wait, and more of them than half a minute ago."""
    now = past.now.reading
    waiting = now.waiting if now else None
    if waiting is None:
        return
    looks = past.last(QUEUE_S)
    before = [look.reading.waiting for look in looks if look.reading and look.reading.waiting is not None]
    stands = past.stands("queue-grows") and waiting > QUEUE_SHORT
    grown = past.now.at - past.looks[0].at >= QUEUE_S and min(before) > 0 and waiting - before[0] >= QUEUE_GROWS
    if not stands and not grown:
        return
    yield Finding(
        "queue-grows",
        Severity.WARN,
        f"{waiting} requests wait, {before[0]} did {past.now.at - looks[0].at:.0f} s ago",
        f"{units.count(now.running if now else None)} run: they arrive faster than they are answered",
        "`max-num-seqs` higher if the KV cache has room, fewer agents, or a preset made for several",
    )


def engine_stalled(past: Past) -> Iterator[Finding]:
    """Requests run, and neither a token nor the KV use has moved for minutes; or the server's own state says so."""
    status = past.now.status
    if status.state is State.STALLED:
        found = status.diagnosis
        yield Finding(
            "engine-stalled",
            Severity.BAD,
            found.what if found else "the server answers no requests any more",
            found.why if found else status.note or "its process lives",
            found.fix if found else "`qwen-console restart`",
        )
        return

    def still(look: Look) -> bool:
        reading, now = look.reading, past.now.reading
        if reading is None or now is None or reading.kv_used != now.kv_used:
            return False
        return look.busy and reading.generation_tokens_per_s == 0 and reading.ttft_s.n == 0

    if past.held(STALL_S, still):
        now = past.now.reading
        yield Finding(
            "engine-stalled",
            Severity.BAD,
            f"{units.count(now.running if now else None)} requests run, nothing has moved for {STALL_S / 60:.0f} min",
            "no token came out and the KV use stands still, so it is no long prefill",
            "look at `qwen-console logs -n 50`; `qwen-console restart` brings it back",
        )


def clients_refused(past: Past) -> Iterator[Finding]:
    """Requests answered with 4xx: the client asks for something this server does not do."""
    reading = past.now.reading
    refused = reading.refused_requests if reading and reading.window_s else None
    if not refused:
        return
    yield Finding(
        "clients-refused",
        Severity.INFO,
        f"{refused} requests were refused (HTTP 4xx) in the last {_window(reading)}",
        "too long a prompt, a wrong model name, a missing key, or a setting this version refuses (`min_p` and "
        "`logit_bias` under speculation)",
        "the log has the reason of each: `qwen-console logs -n 100`",
    )


def log_errors(past: Past) -> Iterator[Finding]:
    """The log gained error lines lately."""
    looks = [look for look in past.last(LOG_S) if look.log_errors]
    if not looks:
        return
    count = sum(look.log_errors for look in looks)
    yield Finding(
        "log-errors",
        Severity.WARN,
        f"the log gained {count} error line{'s' if count > 1 else ''} in the last {LOG_S:.0f} s",
        (looks[-1].log_error or "")[:200],
        "`qwen-console logs -n 100` shows them in their place",
    )


def _window(reading: Reading | None) -> str:
    return f"{reading.window_s:.0f} s" if reading and reading.window_s else "life of the server"


RULES: tuple[Rule, ...] = (
    acceptance_collapsed,
    acceptance_poor,
    hit_rate_fell,
    kv_pressure,
    queue_grows,
    engine_stalled,
    clients_refused,
    log_errors,
)
