"""The probes of one boot, with the server's death told from a wrong answer."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict

from console.endpoint import TOKENIZE, EndpointError
from console.lab.bench import Place
from console.lab.counting import Counting
from console.lab.jobs import Message
from console.lab.outcome import BootVoid, ended, look_for_death
from console.lab.probes.asking import Asker, Tally
from console.lab.probes.battery import (
    afterwards,
    cache_probe,
    function_probes,
    long_probe,
    sampling_probes,
    to_json,
)
from console.lab.proof import drafts_between
from console.presets.installed import stands_in
from console.server.status import State

NO_MEMORY = "not asked of the stand-in: it makes words up"


class Probing:
    """All probes, on a server that has been measured.

    Args:
        place: server, plan and the boot's record.
        block_tokens: the cache block.
    """

    def __init__(self, place: Place, block_tokens: int) -> None:
        self._place, self._block = place, block_tokens
        self._asker = Asker(place.endpoint, place.preset.served)
        self._counting = Counting(place.server, place.endpoint)

    def run(self) -> None:
        """Ask everything; results go into the boot's record.

        Raises:
            ArmCrashed: the server died of it.
        """
        place, found = self._place, dict[str, Tally]()
        for probe in (self._function, self._cache, self._long, self._sampling):
            found |= probe()
            place.end.probes = to_json(found)
            self._see_death()

    def _function(self) -> dict[str, Tally]:
        return function_probes(self._asker, self._place.preset, self._place.plan.shape, self._place.say)

    def _cache(self) -> dict[str, Tally]:
        place, blocks = self._place, self._place.plan.shape.probe_blocks
        return cache_probe(self._asker, place.preset, self._count, self._block, blocks, place.say)

    def _sampling(self) -> dict[str, Tally]:
        return sampling_probes(self._asker, self._place.say)

    def _long(self) -> dict[str, Tally]:
        plan, preset = self._place.plan, self._place.preset
        found = long_probe(self._asker, plan.shape, self._count, plan.seed, self._place.say)
        if found and (preset.simulated or stands_in(preset.command)):
            # The prompt is sent all the same: what it does to the server counts, and acceptance is looked at after it.
            found = {name: Tally(0, 0, NO_MEMORY) for name in found}
        if found and preset.speculative is not None:
            self._see_acceptance()
        return found

    def _see_acceptance(self) -> None:
        """Some versions lose all acceptance for good once a position of 32,768 was crossed."""
        before = self._counting.settled(None, [])
        if (why := afterwards(self._asker, self._place.say)) is not None:
            self._place.end.warn(f"no answer after the long prompt: {why}")
            return
        drafts = drafts_between(before, self._counting.settled(None, []))
        self._place.end.drafts_after_long = None if drafts is None else asdict(drafts)

    def _count(self, messages: list[Message]) -> int:
        body = {"model": self._place.preset.served, "messages": messages, "add_generation_prompt": True}
        try:
            status, answer = self._place.endpoint.post_json(TOKENIZE, body)
        except EndpointError as error:
            look_for_death(self._place.server, error.why)
        return int(answer["count"]) if status == 200 and isinstance(answer, dict) else 0

    def _see_death(self) -> None:
        """After a question that went wrong the server may be about to die: wait for it, or for signs that it lives."""
        if (trouble := self._asker.trouble) is not None:
            self._asker.trouble = None
            with suppress(BootVoid):
                look_for_death(self._place.server, trouble)
        status = self._place.server.status()
        if status.state in (State.FAILED, State.STOPPED):
            raise ended(status)
