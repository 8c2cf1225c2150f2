"""Is it the arm one meant to measure, and was anybody else there? Pure: facts and counters in, sentences out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from console.lab.arms import BUDGET
from console.lab.trace import Trace
from console.metrics.vllm import Counters
from console.presets import Preset
from console.server.facts import StartupFacts


@dataclass(frozen=True, slots=True)
class Treatment:
    """What the server itself says about the setting under test."""

    refuted: tuple[str, ...] = ()
    """The server runs something else: the boot does not count."""
    unproved: tuple[str, ...] = ()
    """Neither log nor metrics say."""


def treatment(preset: Preset, facts: StartupFacts, counters: Counters | None) -> Treatment:
    """Check speculation, chunk budget and prefix caching after the warm-up."""
    refuted: list[str] = []
    unproved: list[str] = []
    for problem, known in (
        _speculation(preset, facts, counters),
        _budget(preset, facts),
        _prefix_caching(preset, facts, counters),
    ):
        if problem:
            (refuted if known else unproved).append(problem)
    return Treatment(tuple(refuted), tuple(unproved))


def _speculation(preset: Preset, facts: StartupFacts, counters: Counters | None) -> tuple[str | None, bool]:
    drafts = counters.spec_drafts if counters else None
    if preset.speculative is None:
        return ("speculation was to be off, but the server drafts", True) if drafts is not None else (None, True)
    if counters is None:
        return "speculation: the server gives no metrics", False
    if drafts is None:
        return "speculation was to be on, but the server has no draft counters", True
    if drafts == 0:
        return "speculation was to be on, but after the warm-up the server had drafted nothing", True
    wanted = preset.speculative.get("num_speculative_tokens")
    if wanted and facts.speculative_tokens and facts.speculative_tokens != wanted:
        return f"{wanted} speculative tokens were set, the server runs {facts.speculative_tokens}", True
    return None, True


def _budget(preset: Preset, facts: StartupFacts) -> tuple[str | None, bool]:
    wanted = preset.args.get(BUDGET)
    if wanted is None:
        return None, True
    if facts.chunk_budget is None:
        return f"chunk budget {wanted}: the log does not state it", False
    if facts.chunk_budget != wanted:
        return f"the chunk budget was to be {wanted}, the server runs {facts.chunk_budget}", True
    return None, True


def _prefix_caching(preset: Preset, facts: StartupFacts, counters: Counters | None) -> tuple[str | None, bool]:
    wanted = preset.args.get("enable-prefix-caching")
    if not isinstance(wanted, bool):
        return None, True
    found = counters.facts.prefix_caching if counters else None
    found = facts.prefix_caching if found is None else found
    if found is None:
        return "prefix caching: neither log nor metrics state it", False
    if found != wanted:
        return f"prefix caching was to be {_on(wanted)}, the server has it {_on(found)}", True
    return None, True


def _on(value: bool) -> str:
    return "on" if value else "off"


@dataclass(frozen=True, slots=True)
class Traffic:
    """What the server counted between two scrapes, beside what we sent."""

    settled: bool
    """Whether the server's counters have caught up with our own sums."""
    foreign: str | None
    """Why somebody else must have been there; `None` if nobody was, or if the counters do not say."""


def traffic(before: Counters, after: Counters, traces: Iterable[Trace]) -> Traffic:
    """Compare the server's counters with our own sums: any surplus is somebody else's."""
    ours = list(traces)
    whole = [trace for trace in ours if trace.completion_tokens is not None and trace.ok]
    clean = len(whole) == len(ours)
    rows = (
        ("requests", _rise(before.requests_finished, after.requests_finished), len(ours)),
        ("prompt tokens", _rise(before.prompt_tokens, after.prompt_tokens), sum(t.prompt_tokens or 0 for t in ours)),
        (
            "output tokens",
            _rise(before.generation_tokens, after.generation_tokens),
            sum(t.completion_tokens or 0 for t in ours),
        ),
    )
    behind = any(rise is not None and rise < own for _, rise, own in rows)
    # A request of ours that broke off is counted by the server up to a point that we cannot know.
    surplus = [f"{rise:,} {name} where we sent {own:,}" for name, rise, own in rows if rise is not None and rise > own]
    return Traffic(
        not behind, f"foreign traffic: the server counted {', '.join(surplus)}" if surplus and clean else None
    )


def _rise(old: int | None, new: int | None) -> int | None:
    return None if old is None or new is None else new - old


@dataclass(frozen=True, slots=True)
class Drafts:
    """Speculation between two scrapes, in whole counts so that boots can be added up."""

    drafts: int = 0
    draft_tokens: int = 0
    accepted: int = 0
    per_position: tuple[int, ...] = ()

    @property
    def acceptance(self) -> float | None:
        """Accepted / drafted tokens."""
        return self.accepted / self.draft_tokens if self.draft_tokens else None

    @property
    def mean_length(self) -> float | None:
        """Tokens an engine step yields: 1 + accepted / drafts."""
        return 1 + self.accepted / self.drafts if self.drafts else None

    @property
    def rates(self) -> tuple[float, ...]:
        """Accepted at each position / drafts."""
        return tuple(count / self.drafts for count in self.per_position) if self.drafts else ()


def drafts_between(old: Counters | None, new: Counters | None) -> Drafts | None:
    """Speculation between two scrapes; `None` where the server has no such counters."""
    if old is None or new is None or new.spec_drafts is None or old.spec_drafts is None:
        return None
    positions = zip(new.spec_accepted_per_pos or (), old.spec_accepted_per_pos or (), strict=False)
    return Drafts(
        drafts=new.spec_drafts - old.spec_drafts,
        draft_tokens=(new.spec_draft_tokens or 0) - (old.spec_draft_tokens or 0),
        accepted=(new.spec_accepted_tokens or 0) - (old.spec_accepted_tokens or 0),
        per_position=tuple(a - b for a, b in positions),
    )


def drafts_of(traces: Iterable[Trace], depth: int) -> Drafts:
    """Speculation as arrivals show it, before the answers' own ends: a step yields its accepted tokens and one more.

    The server's counters are exact, but go on past an answer's end, into text that drafts too easily.

    Args:
        traces: answers with running token counts.
        depth: tokens a draft has.
    """
    yields = [size for trace in traces for size in trace.steps]
    right = [min(size - 1, depth) for size in yields]
    return Drafts(
        drafts=len(yields),
        draft_tokens=depth * len(yields),
        accepted=sum(right),
        per_position=tuple(sum(count > place for count in right) for place in range(depth)),
    )


def add_drafts(parts: Sequence[Drafts]) -> Drafts | None:
    """The sum over boots; `None` of none."""
    if not parts:
        return None
    width = max(len(part.per_position) for part in parts)
    padded = [part.per_position + (0,) * (width - len(part.per_position)) for part in parts]
    return Drafts(
        drafts=sum(part.drafts for part in parts),
        draft_tokens=sum(part.draft_tokens for part in parts),
        accepted=sum(part.accepted for part in parts),
        per_position=tuple(sum(column) for column in zip(*padded, strict=True)),
    )
