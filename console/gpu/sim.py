"""The simulated cards: read from the stand-in engine's own route."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

from console.endpoint import Endpoint, EndpointError
from console.gpu.sample import CardPair, GpuProcess, GpuReport, GpuSample

_ABSENT = "The simulated cards come with the simulated server: start a preset, or wait for the one that starts."
_STRINGS = ("name", "uuid", "pcie_source", "problem", "note")
_SWITCHES = ("persistence", "display")
_NUMBERS = tuple(
    field.name
    for field in fields(GpuSample)
    if field.name not in (*_STRINGS, *_SWITCHES, "index", "source", "throttle", "processes", "visible")
)


class SimSource:
    """Looks at the cards of `qwen-console sim`.

    Args:
        endpoint: the stand-in engine; `None` while there is none.
        ours: the pids of our server's processes, asked at each look.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        endpoint: Endpoint | None,
        ours: Callable[[], frozenset[int]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._endpoint = endpoint
        self._ours = ours
        self._clock = clock

    def read(self) -> GpuReport:
        """Look once; without the stand-in engine there are no cards, and a sentence says so."""
        if self._endpoint is None:
            return GpuReport(at=self._clock(), problem=_ABSENT)
        try:
            page = self._endpoint.get_json("/sim/gpus", deadline=1.0)
        except EndpointError:
            return GpuReport(at=self._clock(), problem=_ABSENT)
        cards = page.get("cards") if isinstance(page, dict) else None
        if not isinstance(cards, list) or not all(isinstance(card, dict) for card in cards):
            return GpuReport(
                at=self._clock(), problem="This server has no simulated cards: it is not `qwen-console sim`."
            )
        ours = self._ours()
        shared = page.get("processes")
        return GpuReport(
            at=self._clock(),
            cards=tuple(_card(i, card, shared, ours) for i, card in enumerate(cards)),
            pairs=tuple(_pairs(page.get("pairs"))),
        )

    def close(self) -> None:
        """Nothing to let go of: the endpoint belongs to whoever made it."""


def _card(index: int, card: dict[str, Any], shared: Any, ours: frozenset[int]) -> GpuSample:
    throttle = card.get("throttle")
    given: dict[str, Any] = {name: _number(card.get(name)) for name in _NUMBERS}
    given |= {name: card[name] for name in _STRINGS if isinstance(card.get(name), str)}
    given |= {name: card[name] for name in _SWITCHES if isinstance(card.get(name), bool)}
    return GpuSample(
        index=index,
        source="sim",
        throttle=tuple(str(word) for word in throttle) if isinstance(throttle, list) else None,
        processes=_processes(card.get("processes", shared), ours),
        **given,
    )


def _pairs(listed: Any) -> Iterator[CardPair]:
    for pair in listed if isinstance(listed, list) else []:
        if isinstance(pair, dict) and isinstance(pair.get("a"), int) and isinstance(pair.get("b"), int):
            p2p = pair.get("p2p")
            status, path = pair.get("p2p_status"), pair.get("path")
            yield CardPair(
                a=pair["a"],
                b=pair["b"],
                p2p=p2p if isinstance(p2p, bool) else None,
                p2p_status=status if isinstance(status, str) else None,
                path=path if isinstance(path, str) else None,
            )


def _number(value: Any) -> int | float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _processes(listed: Any, ours: frozenset[int]) -> tuple[GpuProcess, ...] | None:
    if not isinstance(listed, list):
        return None
    found = [
        (_number(entry.get("pid")), _number(entry.get("vram_bytes"))) for entry in listed if isinstance(entry, dict)
    ]
    return tuple(
        GpuProcess(int(pid), None if size is None else int(size), int(pid) in ours)
        for pid, size in found
        if pid is not None
    )
