"""A server that is alive and says nothing: what silence means depends on where it stands."""

from __future__ import annotations

import re
from dataclasses import dataclass

from console.server.diagnosis.engine import P2P_FIX
from console.server.diagnosis.story import Record, Story
from console.server.status import Diagnosis, Phase

BLOCKED = re.compile(r"No available shared memory broadcast block found in (?P<seconds>\d+) second")
PROGRESS = re.compile(r"throughput: (?!0\.0\b)[\d.]+ tokens/s|\"POST \S+ HTTP/[\d.]+\" 200")
_WAITING = re.compile(r"Waiting for \d+ (?:local, \d+ remote )?core engine proc|\"GET \S+ HTTP|Avg prompt throughput")
_NCCL = re.compile(r"\bnccl\b|NCCL|P2P access cache|custom_all_reduce|[Cc]ustom allreduce|SymmMem", re.IGNORECASE)
_GROUPS_DONE = re.compile(r"is assigned as DP rank|Starting to load model")

READY_LIMIT_S = 120.0
"""Seconds for which a server that is ready may find its workers deaf: longer is a hang."""


@dataclass(frozen=True, slots=True)
class Watch:
    """What silence means at one point of a start.

    Attributes:
        limit_s: seconds that are still slow; beyond them it is said to be stuck. Nothing is ever killed for it.
        means: why nothing is printed there.
    """

    limit_s: float
    means: str


WATCHES: dict[Phase, Watch] = {
    Phase.DOWNLOAD: Watch(float("inf"), "files come over the network, and may print nothing for as long as they like"),
    Phase.START: Watch(180.0, "Python imports vLLM and the ranks start up; a minute from a cold disk is normal"),
    Phase.LOAD: Watch(480.0, "weights are read from the disk, which prints only as each file ends"),
    Phase.COMPILE: Watch(480.0, "torch.compile prints nothing for minutes while its cache is cold: slow, not stuck"),
    Phase.KV_CACHE: Watch(180.0, "memory is measured and the cache made: seconds, a minute at most"),
    Phase.GRAPH_CAPTURE: Watch(240.0, "CUDA graphs are captured, seconds each"),
    Phase.WARM_UP: Watch(300.0, "kernels warm up with the first request, which takes up to half a minute"),
}
CONNECTING = Watch(
    60.0, "the ranks connect over NCCL, which takes seconds: longer silence here is how cards without peer access hang"
)


def find_silence(story: Story, silent_s: float) -> Diagnosis | None:
    """A hang, or None while the silence is explained by what the server does."""
    if story.stop_at is not None:
        return None
    blocked = _blocked(story)
    waits = (BLOCKED.search(record.text) for record in blocked)
    quiet_s = silent_s + sum(int(wait["seconds"]) for wait in waits if wait)
    if story.ready_at is not None:
        return _stalled(story, blocked, quiet_s) if blocked and quiet_s >= READY_LIMIT_S else None
    if story.phase is Phase.START and quiet_s >= CONNECTING.limit_s and (last := _last_nccl(story)):
        return _nccl_stuck(story, last, quiet_s)
    watch = WATCHES.get(story.phase)
    if watch and quiet_s >= watch.limit_s:
        return _stuck_start(story, blocked, quiet_s)
    return None


def meaning(story: Story, silent_s: float) -> str | None:
    """What a silence in the middle of a start means there; `None` where nothing starts."""
    if story.ready_at is not None or story.stop_at is not None:
        return None
    connecting = story.phase is Phase.START and _last_nccl(story) is not None
    watch = CONNECTING if connecting else WATCHES.get(story.phase)
    if watch is None:
        return None
    limit = f"; called stuck after {watch.limit_s:.0f} s" if watch.limit_s < float("inf") else ""
    return f"silent for {silent_s:.0f} s: {watch.means}{limit}"


def _blocked(story: Story) -> list[Record]:
    """The lines at the end that say the ranks do not read any more."""
    blocked: list[Record] = []
    for record in reversed(story.records[story.begin :]):
        if BLOCKED.search(record.text):
            blocked.append(record)
        elif PROGRESS.search(record.text) or (story.ready_at is None and not _WAITING.search(record.text)):
            break
    return blocked[::-1]


def _last_nccl(story: Story) -> Record | None:
    """The last line about the ranks' connections, unless they were made."""
    for record in reversed(story.records):
        if _GROUPS_DONE.search(record.text):
            return None
        if _NCCL.search(record.text) and not record.line.folded and "non-default args" not in record.text:
            if "with config:" in record.text:
                return None
            return record
    return None


def _nccl_stuck(story: Story, last: Record, quiet_s: float) -> Diagnosis:
    shown = story.shown(last)
    return Diagnosis(
        cause="nccl-stuck",
        what="The ranks hang while NCCL connects the cards.",
        why=f"The last line is about nccl, and nothing came for {quiet_s:.0f} s (seconds are normal): {shown[0]}",
        fix=P2P_FIX,
        evidence=shown,
        phase=Phase.START,
    )


def _stalled(story: Story, blocked: list[Record], quiet_s: float) -> Diagnosis:
    return Diagnosis(
        cause="engine-stalled",
        what="The engine is stalled: a worker does not take its work any more.",
        why=(
            f"{len(blocked)} times the engine found no free broadcast block, {quiet_s:.0f} s in all, without a token "
            f"in between: {story.shown(blocked[-1])[0]}"
        ),
        fix=f"restart the server; if it comes back: {P2P_FIX}; or --no-async-scheduling",
        evidence=story.shown(*blocked[-1:]),
        phase=Phase.READY,
    )


def _stuck_start(story: Story, blocked: list[Record], quiet_s: float) -> Diagnosis:
    last = [record for record in story.records if record.text.strip() and not record.line.folded][-1:]
    ranks = (story.facts.tensor_parallel or 1) * (story.facts.pipeline_parallel or 1)
    fix = "stop the server and start again"
    if ranks > 1:
        fix += f"; if it hangs there again: {P2P_FIX}"
    if story.phase is Phase.START:
        fix += "; a SIGTERM while it starts, from whomever, can leave it like this"
    if story.phase is Phase.GRAPH_CAPTURE:
        fix += "; or --enforce-eager to do without graphs"
    return Diagnosis(
        cause="engine-stalled",
        what=f"The start stands still in phase {story.phase.value}.",
        why=f"Nothing came for {quiet_s:.0f} s, longer than this phase takes on a slow machine.",
        fix=fix,
        evidence=story.shown(*blocked[-1:], *last),
        phase=story.phase,
    )
