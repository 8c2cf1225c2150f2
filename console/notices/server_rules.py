"""Rules over the reading and the server's state. Each yields what holds now; thresholds with their units stand here."""

from __future__ import annotations

from collections.abc import Iterator

from console import units
from console.metrics.reading import Mtp, Reading
from console.notices.model import Finding, Look, Past, Rule, Severity, Unsure, window
from console.notices.prefix_rules import KV_EASY, hit_rate_fell
from console.server.status import State

MIN_DRAFTS = 20
"""Fewer drafts in a window say nothing."""
MIN_LIFE_DRAFTS = 200
COLLAPSE, RECOVERED = 0.5, 0.75
"""Parts of the acceptance rate that was usual before."""
LOST = 0.05
"""An acceptance rate that no text explains."""
POOR, FAIR = 0.2, 0.3
"""Acceptance rates at which speculation costs more than it gives, and above which it may pay."""
KV_FULL = 0.92
QUEUE_GROWS, QUEUE_SHORT = 3, 1
"""Waiting requests."""
QUEUE_S = 30.0
QUEUE_CALM_S = 15.0
STALL_S = 300.0
"""A prefill of 100K tokens is 125 s in which no token moves; KV use does."""
LOG_S = 60.0


def _drafting(reading: Reading | None) -> Mtp | None:
    mtp = reading.mtp if reading else None
    return mtp if mtp and mtp.acceptance_rate is not None and mtp.drafts >= MIN_DRAFTS else None


def acceptance_collapsed(past: Past) -> Iterator[Finding | Unsure]:
    """The window's acceptance rate far below what it was in this life."""
    name, mtp, usual = "acceptance-collapsed", _drafting(past.now.reading), past.before.acceptance
    if mtp is None or mtp.acceptance_rate is None:
        yield Unsure(name)
        return
    limit = RECOVERED if past.stands(name) else COLLAPSE
    if usual is None or usual < POOR or mtp.acceptance_rate >= limit * usual:
        return
    why = "another kind of text or a higher temperature may be drafted worse, or the drafter is off"
    fix = f"if it stays so: {_restart(past.now)}; `qwen-console ab mtp` measures whether it still pays"
    if mtp.acceptance_rate < LOST:
        why = "some vLLM versions lose every draft once a request crosses position 32,768, until they are restarted"
        fix = (
            f"{_restart(past.now)}; then keep prompts below 32K, or run without MTP: `qwen-console ab mtp` measures it"
        )
    yield Finding(
        name,
        Severity.BAD,
        f"MTP acceptance fell to {units.percent(mtp.acceptance_rate)}, "
        f"{past.before.words.format(units.percent(usual))}",
        f"{mtp.drafts} drafts in the last {window(past.now.reading)}; {why}",
        fix,
    )


def acceptance_poor(past: Past) -> Iterator[Finding]:
    """Neither the life of the server nor any window looked at shows an acceptance rate worth the drafts."""
    life = past.now.lifetime.mtp if past.now.lifetime else None
    best = past.before.best_acceptance or 0.0
    if life is None or life.acceptance_rate is None or life.drafts < MIN_LIFE_DRAFTS:
        return
    if max(best, life.acceptance_rate) >= (FAIR if past.stands("acceptance-poor") else POOR):
        return
    seen = f", and in no window seen here above {units.percent(best)}" if best else ""
    yield Finding(
        "acceptance-poor",
        Severity.WARN,
        f"MTP acceptance is {units.percent(life.acceptance_rate)} over the life of the server{seen}",
        f"{units.count(life.drafts)} drafts; every rejected draft costs a forward pass of the drafter and room in the "
        "batch",
        "measure it: `qwen-console ab mtp`; a wrong drafter, a quantised MTP head or high temperature are usual causes",
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
            f"{_times(reading.preemptions)} thrown back to the queue in the last {window(reading)}",
            f"the KV cache is full ({units.percent(reading.kv_used, 0)} now): what they had computed is computed again",
            "`max-num-seqs` lower, `max-model-len` shorter, or more memory for KV",
        )
    stands = past.stands("kv-pressure")
    # Once it stands, a queue that is empty for a moment does not end it.
    looks = past.last(QUEUE_CALM_S) if stands else [past.now]
    waited = max((look.reading.waiting or 0 for look in looks if look.reading), default=0)
    if (reading.kv_used or 0) >= (KV_EASY if stands else KV_FULL) and waited > 0:
        yield Finding(
            "kv-pressure",
            Severity.WARN,
            f"the KV cache is {units.percent(reading.kv_used, 0)} full and {_times(waited, 'wait', 'waits')}",
            "new requests start only when running ones free their blocks, and cached prefixes are evicted",
            "fewer sessions at once, a shorter context, or more memory for KV",
        )


def queue_grows(past: Past) -> Iterator[Finding]:
    """Requests wait, and more of them than half a minute ago; then until hardly any waits."""
    now = past.now.reading
    waiting = now.waiting if now else None
    if waiting is None:
        return
    known = [
        (look.at, look.reading.waiting)
        for look in past.last(QUEUE_S)
        if look.reading and look.reading.waiting is not None
    ]
    then, before = known[0]
    stands = past.stands("queue-grows") and waiting > QUEUE_SHORT
    old = past.now.at - past.looks[0].at >= QUEUE_S
    grown = old and min(count for _, count in known) > 0 and waiting - before >= QUEUE_GROWS
    if not stands and not grown:
        return
    pace = "they arrive faster than they are answered" if waiting > before else "the queue does not grow any more"
    yield Finding(
        "queue-grows",
        Severity.WARN,
        f"{_times(waiting, 'wait', 'waits')}, {before} did {past.now.at - then:.0f} s ago",
        f"{units.count(now.running if now else None)} run: {pace}",
        "`max-num-seqs` higher if the KV cache has room, fewer agents, or a preset made for several",
    )


def _times(count: int, many: str = "were", one: str = "was") -> str:
    return f"{count} requests {many}" if count != 1 else f"1 request {one}"


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
        if reading is None or now is None or now.kv_used is None or reading.kv_used != now.kv_used:
            return False
        return look.busy and reading.generation_tokens_per_s == 0 and reading.ttft_s.n == 0

    if past.held(STALL_S, still):
        now = past.now.reading
        yield Finding(
            "engine-stalled",
            Severity.BAD,
            f"{units.count(now.running if now else None)} requests run, nothing has moved for {STALL_S / 60:.0f} min",
            "no token came out and the KV use stands still, so it is no long prefill",
            f"look at {_log(past.now)}, then {_restart(past.now)}",
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
        f"{_times(refused)} refused (HTTP 4xx) in the last {window(reading)}",
        "too long a prompt, a wrong model name, a missing key, or a setting this version refuses (`min_p` and "
        "`logit_bias` under speculation)",
        f"the log has the reason of each: {_log(past.now)}",
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


def not_recorded(past: Past) -> Iterator[Finding]:
    """Minutes of the server get lost."""
    if found := past.now.status.unrecorded:
        yield Finding("not-recorded", Severity.WARN, found.what, found.why, found.fix)


def _restart(look: Look) -> str:
    """A server that is not ours is not ours to restart."""
    return "restart that server" if look.status.state is State.FOREIGN else "`qwen-console restart`"


def _log(look: Look) -> str:
    return "that server's own log" if look.status.state is State.FOREIGN else "`qwen-console logs -n 100`"


RULES: tuple[Rule, ...] = (
    acceptance_collapsed,
    acceptance_poor,
    hit_rate_fell,
    kv_pressure,
    queue_grows,
    engine_stalled,
    clients_refused,
    log_errors,
    not_recorded,
)
OF_CLIENTS: tuple[Rule, ...] = (hit_rate_fell, queue_grows, clients_refused)
"""Those about what is asked of the server; in an A/B run the console itself asks it."""
