"""What the recorder kept of the last hour, for graphs: a console that comes back shows how things came to be.

`python -P -m console.notices.past STATE` prints it as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from console.server.history import BootHistory, read_history
from console.server.minutes import MINUTE_S, CardMinute, Minute, history_path

_HOUR_S = 3600.0
_EVERY_S = 5
"""A minute's mean stands for each of its parts; no column of a graph is narrower."""
Past = Mapping[str, Sequence[tuple[float, float]]]
"""Ring → samples of (monotonic second, value), oldest first."""


def past_of(boots: Sequence[BootHistory], since: float, until: float, to_monotonic: float) -> Past:
    """Samples of the rings between two unix times.

    Args:
        boots: what was recorded.
        since: the oldest.
        until: before which the samples end.
        to_monotonic: what makes monotonic seconds of unix time.
    """
    seen = [(row.at, dict(_server(row))) for boot in boots for row in boot.rows]
    seen += [(row.at, dict(_card(row))) for boot in boots for row in boot.card_rows]
    rings: dict[str, list[tuple[float, float]]] = {}
    for begun, values in sorted(seen, key=lambda one: one[0]):
        times = [float(at) for at in range(begun, begun + MINUTE_S, _EVERY_S) if since <= at < until]
        for name, value in values.items():
            if value is not None:
                rings.setdefault(name, []).extend((at + to_monotonic, value) for at in times)
    return rings


def _server(row: Minute) -> Iterator[tuple[str, float | None]]:
    yield "running", row.running_max
    yield "kv_used", row.kv_used_max
    yield "ttft_s", row.ttft_mean_s
    yield "itl_s", row.itl_mean_s
    yield "tpot_s", row.tpot_mean_s
    yield "generation_tokens_per_s", row.generation_tokens_per_s
    yield "prefix_hit_rate", row.hit_rate
    yield "acceptance_rate", row.acceptance_rate


def _card(row: CardMinute) -> Iterator[tuple[str, float | None]]:
    yield f"card {row.card} vram_used_bytes", row.vram_peak_bytes
    yield f"card {row.card} pcie_tx_bytes_per_s", row.pcie_tx_bytes_per_s
    yield f"card {row.card} pcie_rx_bytes_per_s", row.pcie_rx_bytes_per_s
    yield f"card {row.card} power_w", row.power_w
    yield f"card {row.card} temp_c", row.temp_max_c


def main(state: str) -> int:
    """Print the last hour of a state folder; nothing recorded is an empty map."""
    now = time.time()
    found = read_history(history_path(Path(state)), now - _HOUR_S)
    print(json.dumps(past_of(found.boots, now - _HOUR_S, now, time.monotonic() - now)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
