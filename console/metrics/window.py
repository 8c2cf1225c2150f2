"""Two pages of counters → a `Reading`. Pure: figures come from differences, and what has no samples has no figure."""

from __future__ import annotations

from console.metrics.reading import LastRequests, Mtp, PrefixCache, Reading
from console.metrics.span import Span, distribution, of_several_tokens, restarted
from console.metrics.vllm import Counters


def reading(old: Counters | None, new: Counters, lifetime_base: Counters | None = None) -> Reading:
    """Figures between `old` and `new`, gauges as of `new`.

    Without `old`, or where `old` belongs to a process that is gone, only gauges are known. `lifetime_base` is the page
    that lifetime figures count from (the server's start where there is none).
    """
    if old is None or new.at <= old.at or restarted(old, new):
        return Reading(
            running=new.running,
            waiting=new.waiting,
            kv_used=new.kv_used,
            prefix_cache=PrefixCache(
                enabled=_enabled(new),
                hit_rate_lifetime=_lifetime_hit_rate(lifetime_base, new),
                block_tokens=new.facts.block_tokens,
            ),
            mtp=None if new.spec_drafts is None else Mtp(),
        )
    span = Span(old, new)
    seconds = new.at - old.at
    return _fill(span, seconds, _lifetime_hit_rate(lifetime_base, new))


def lifetime(new: Counters, base: Counters | None = None) -> Reading:
    """Figures from `base` (from the server's start without one) to `new`: no window, so no rates a second of it."""
    return _fill(_since(base, new), None, _lifetime_hit_rate(base, new))


def last_requests(old: Counters, new: Counters, now: float) -> LastRequests | None:
    """The requests that got their first token between two successive pages; `None` if none did."""
    if restarted(old, new):
        return None
    span = Span(old, new)
    ttft = span.histogram("ttft")
    if ttft is None or ttft.count < 1:
        return None
    cached, computed = prompt_split(span)
    return LastRequests(
        age_s=max(0.0, now - new.at),
        n=int(ttft.count),
        ttft_s=ttft.sum / ttft.count,
        prompt_tokens=span.count("prompt_tokens"),
        cached_tokens=cached,
        computed_tokens=computed,
    )


def _since(base: Counters | None, new: Counters) -> Span:
    """The process's life; a base that belongs to a former process does not count."""
    return Span(None if base is None or restarted(base, new) else base, new)


def _fill(span: Span, seconds: float | None, hit_rate_lifetime: float | None) -> Reading:
    new = span.new
    return Reading(
        window_s=seconds,
        running=new.running,
        waiting=new.waiting,
        kv_used=new.kv_used,
        preemptions=span.count("preemptions"),
        ttft_s=distribution(span.histogram("ttft")),
        itl_s=distribution(span.histogram("itl")),
        tpot_s=distribution(of_several_tokens(span.histogram("tpot"), span.histogram("request_generation"))),
        e2e_s=distribution(span.histogram("e2e")),
        queue_s=distribution(span.histogram("queue")),
        prompt_tokens_per_s=ratio(span.count("prompt_tokens"), seconds),
        prefill_tokens_per_s=_prefill_rate(span),
        generation_tokens_per_s=ratio(span.count("generation_tokens"), seconds),
        prefix_cache=_prefix_cache(span, hit_rate_lifetime),
        mtp=_mtp(span),
        refused_requests=span.count("refused"),
    )


def ratio(part: float | None, whole: float | None) -> float | None:
    """Part by whole; `None` where either is unknown or there is nothing to divide by."""
    return None if part is None or not whole else part / whole


def _fraction(part: float | None, whole: float | None) -> float | None:
    """Part by whole; `None` also where the part is the larger one: one of the two is not what it is called."""
    found = ratio(part, whole)
    return found if found is None or found <= 1 else None


def _prefill_rate(span: Span) -> float | None:
    """Computed prefill tokens a second of prefill, over requests that ended."""
    spent = span.histogram("prefill")
    if spent is None or spent.count < 1:
        return None
    computed = span.histogram("prefill_computed")
    if computed is not None:
        return ratio(computed.sum, spent.sum)
    # Counted at the first token rather than the end of a request: exact only where the same requests did both.
    _, tokens = prompt_split(span)
    first = span.histogram("ttft")
    return ratio(tokens, spent.sum) if first is not None and first.count == spent.count else None


def prompt_split(span: Span) -> tuple[int | None, int | None]:
    """Cached and computed prompt tokens.

    On hybrid models the hit counter can stay 0 while the cache works; then the tokens that ended requests did not have
    to prefill tell it, as long as they are the same requests.
    """
    cached, computed = span.count("cached_tokens"), span.count("computed_tokens")
    if cached:
        return cached, computed if _of_the_same_requests(span) else None
    asked, worked, prompt = (
        span.histogram("request_prompt"),
        span.histogram("prefill_computed"),
        span.count("prompt_tokens"),
    )
    if asked is None or worked is None or prompt is None or asked.count != worked.count or asked.sum != prompt:
        return cached, computed
    saved = round(asked.sum - worked.sum)
    return (saved, round(worked.sum)) if saved > 0 else (cached, computed)


def _of_the_same_requests(span: Span) -> bool:
    """Whether hits and prompt tokens may be set against each other.

    Versions without a series of their own for cached tokens leave only the hits of the lookups, which count when a
    request is admitted, its prompt tokens later: where lookups and prompt tokens differ they are not of the same ones.
    """
    if not span.new.cached_by_hits:
        return True
    asked, prompt = span.count("prefix_queries"), span.count("prompt_tokens")
    return asked is None or prompt is None or asked == prompt


def _enabled(new: Counters) -> bool | None:
    """Whether prefix caching is on: the server's word, else the proof that it was asked."""
    if new.facts.prefix_caching is not None:
        return new.facts.prefix_caching
    return True if new.prefix_queries else None


def _prefix_cache(span: Span, hit_rate_lifetime: float | None) -> PrefixCache:
    cached, computed = prompt_split(span)
    return PrefixCache(
        enabled=_enabled(span.new),
        hit_rate=_hit_rate(span),
        hit_rate_lifetime=hit_rate_lifetime,
        cached_tokens=cached,
        computed_tokens=computed,
        block_tokens=span.new.facts.block_tokens,
    )


def _hit_rate(span: Span) -> float | None:
    """The cached part of the prompt tokens; `None` when caching is off or no prompt was read.

    Lookups count when a request is scheduled, its tokens at the end of its prefill: under load a window holds some of
    the one without the other, and the rate would contradict the tokens beside it. So it is made of them, and of the
    lookups only where no series tells the tokens.
    """
    if _enabled(span.new) is not True:
        return None
    cached, computed = prompt_split(span)
    if cached is not None and computed is not None:
        return _fraction(cached, cached + computed)
    return _fraction(span.count("prefix_hits"), span.count("prefix_queries"))


def _lifetime_hit_rate(base: Counters | None, new: Counters) -> float | None:
    return _hit_rate(_since(base, new))


def _mtp(span: Span) -> Mtp | None:
    """Speculation over the span; `None` where the server has no such series: it is off."""
    if span.new.spec_drafts is None:
        return None
    drafts = span.count("spec_drafts")
    accepted = span.count("spec_accepted_tokens")
    drafted = span.count("spec_draft_tokens")
    impossible = accepted is not None and drafted is not None and accepted > drafted
    steps = None if impossible else ratio(accepted, drafts)
    by_position, per_position = span.per_position(), None
    if by_position is not None and drafts and max(by_position, default=0) <= drafts:
        per_position = tuple(n / drafts for n in by_position)
    return Mtp(
        acceptance_rate=_fraction(accepted, drafted),
        mean_acceptance_length=None if steps is None else 1 + steps,
        per_position=per_position,
        drafts=drafts or 0,
    )
