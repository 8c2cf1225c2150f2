"""How the cards reach each other, what the driver is, and what this platform does not tell."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, TypeVar

from console.gpu.sample import CardPair

T = TypeVar("T")

# By NVML's numbers, which are part of its ABI.
_P2P = {
    0: "ok",
    1: "chipset not supported",
    2: "card not supported",
    3: "not supported over this topology",
    4: "disabled by regkey",
    5: "not supported",
}
_PATHS = {0: "same board", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
_READ, _NVLINK = 0, 2
_WSL = (
    "This is WSL: the Windows driver tells neither which process holds how much memory nor, at times, utilisation; "
    "a foreign process on a card cannot be seen here."
)


def driver_facts(nvml: Any) -> tuple[str | None, str | None]:
    """The driver's version and the newest CUDA version it takes."""
    driver = _asked(nvml, nvml.nvmlSystemGetDriverVersion)
    cuda = _asked(nvml, nvml.nvmlSystemGetCudaDriverVersion_v2)
    return driver or None, f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda and 0 < cuda < 100_000 else None


def pairs(nvml: Any, handles: Sequence[Any]) -> tuple[CardPair, ...]:
    """Every two of the cards (`None`: a card that does not answer has no pair)."""
    cards = [(index, handle) for index, handle in enumerate(handles) if handle is not None]
    return tuple(_pair(nvml, a, b) for a, b in combinations(cards, 2))


def _pair(nvml: Any, one: tuple[int, Any], two: tuple[int, Any]) -> CardPair:
    def status(capability: int) -> int | None:
        both = [
            _asked(nvml, lambda: nvml.nvmlDeviceGetP2PStatus(one[1], two[1], capability)),
            _asked(nvml, lambda: nvml.nvmlDeviceGetP2PStatus(two[1], one[1], capability)),
        ]
        known = [code for code in both if code in _P2P]
        return max(known) if len(known) == len(both) else None

    read, nvlink = status(_READ), status(_NVLINK)
    level = _asked(nvml, lambda: nvml.nvmlDeviceGetTopologyCommonAncestor(one[1], two[1]))
    return CardPair(
        a=one[0],
        b=two[0],
        p2p=None if read is None else read == 0,
        p2p_status=None if read is None else _P2P[read],
        nvlink=None if nvlink is None else nvlink == 0,
        path=None if level is None else _PATHS.get(level),
    )


def p2p_of(pairs: Sequence[CardPair]) -> tuple[bool | None, str]:
    """Whether all cards read each other's memory, and the words for it; `None` where the driver does not say."""
    known = [pair for pair in pairs if pair.p2p is not None]
    if not known or len(known) < len(pairs):
        return None, ""
    if all(pair.p2p for pair in known):
        return True, "; P2P yes, over NVLink" if all(pair.nvlink for pair in known) else "; P2P yes, over PCIe"
    why = next(pair.p2p_status for pair in known if not pair.p2p)
    return False, f"; P2P no ({why})"


def platform_note(release: str | None = None) -> str | None:
    """What this platform keeps from us; `release` is the kernel's own name."""
    return _WSL if "microsoft" in (release or platform.release()).lower() else None


def _asked(nvml: Any, call: Callable[[], T]) -> T | None:
    try:
        return call()
    except (nvml.NVMLError, UnicodeDecodeError):
        return None
