"""Which cards a process sees, by the rules of `CUDA_VISIBLE_DEVICES`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from console.gpu.sample import GpuSample

VARIABLE = "CUDA_VISIBLE_DEVICES"
ORDER = "CUDA_DEVICE_ORDER"


def seen_by(cards: Sequence[GpuSample], env: Mapping[str, str]) -> tuple[bool | None, ...]:
    """For each card whether a process with this environment sees it; `None` where that cannot be told.

    The list ends at its first word that names no card. Numbers count by bus only with
    `CUDA_DEVICE_ORDER=PCI_BUS_ID`; CUDA's own order is by speed, so it is known for equal cards alone.
    """
    listed = env.get(VARIABLE)
    if listed is None:
        return (True,) * len(cards)
    by_bus = env.get(ORDER) == "PCI_BUS_ID" or len({card.name for card in cards}) <= 1
    seen: set[int] = set()
    for word in (word.strip() for word in listed.split(",")):
        if word.isdigit():
            if int(word) >= len(cards):
                break
            if not by_bus:
                return (None,) * len(cards)
            seen.add(int(word))
            continue
        named = [i for i, card in enumerate(cards) if card.uuid and word and card.uuid.startswith(word)]
        # A slice of a card is named by an id of its own, and a card that is lost may have lost its id.
        nameless = not named and word.startswith("GPU-") and any(card.uuid is None for card in cards)
        if word.startswith("MIG") or nameless:
            return (None,) * len(cards)
        if len(named) != 1:
            break
        seen.add(named[0])
    return tuple(i in seen for i in range(len(cards)))
