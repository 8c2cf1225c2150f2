"""The series behind the graphs, one ring a figure: a second apart for an hour, thinned for a day."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from console.gpu.sample import GpuSample
from console.metrics.reading import Reading
from console.notices.model import Look
from console.series import Series

if TYPE_CHECKING:
    from console.notices.past import Past


class Rings:
    """Rings by name; a figure that a look does not have is a gap in its ring.

    Of the server: `running`, `waiting`, `kv_used`, `ttft_s`, `itl_s`, `tpot_s`, `generation_tokens_per_s`,
    `prefill_tokens_per_s`, `prefix_hit_rate`, `cached_tokens`, `computed_tokens`, `acceptance_rate`. Of card N:
    `card N vram_used_bytes`, `pcie_tx_bytes_per_s`, `pcie_rx_bytes_per_s`, `util`, `power_w`, `temp_c`.
    """

    def __init__(self) -> None:
        self._rings: dict[str, Series] = {}

    def __getitem__(self, name: str) -> Series:
        return self._rings.setdefault(name, Series())

    def __iter__(self) -> Iterator[str]:
        return iter(self._rings)

    def see(self, look: Look, past: Past | None = None) -> None:
        """Take a look into every ring; what was recorded before this console came goes in front of it."""
        for name, samples in (past or {}).items():
            self[name].put_before(samples)
        seen = dict(_server(look.reading or Reading()))
        for card in look.cards.cards if look.cards else ():
            seen |= dict(_card(card))
        for name, value in seen.items():
            self[name].add(look.at, value)
        for name in self._rings.keys() - seen.keys():
            self._rings[name].add(look.at, None)


def _server(reading: Reading) -> Iterator[tuple[str, float | None]]:
    cache, mtp = reading.prefix_cache, reading.mtp
    yield "running", reading.running
    yield "waiting", reading.waiting
    yield "kv_used", reading.kv_used
    yield "ttft_s", reading.ttft_s.mean
    yield "itl_s", reading.itl_s.mean
    yield "tpot_s", reading.tpot_s.mean
    yield "generation_tokens_per_s", reading.generation_tokens_per_s
    yield "prefill_tokens_per_s", reading.prefill_tokens_per_s
    yield "prefix_hit_rate", cache.hit_rate
    yield "cached_tokens", cache.cached_tokens
    yield "computed_tokens", cache.computed_tokens
    yield "acceptance_rate", mtp.acceptance_rate if mtp else None


def _card(card: GpuSample) -> Iterator[tuple[str, float | None]]:
    for name in ("vram_used_bytes", "pcie_tx_bytes_per_s", "pcie_rx_bytes_per_s", "util", "power_w", "temp_c"):
        yield f"card {card.index} {name}", getattr(card, name)
