"""Which cards a server sees, by CUDA's own rules."""

from __future__ import annotations

import pytest

from console.gpu.sample import GpuSample
from console.gpu.visible import seen_by

EQUAL = tuple(GpuSample(i, name="RTX", uuid=f"GPU-{word}") for i, word in enumerate(("aaa1", "aab2")))
MIXED = (GpuSample(0, name="RTX", uuid="GPU-a"), GpuSample(1, name="GTX", uuid="GPU-b"))
BY_BUS = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


@pytest.mark.parametrize(
    ("listed", "seen"),
    [
        ("0,1", (True, True)),
        ("1", (False, True)),
        ("", (False, False)),
        ("-1", (False, False)),
        ("1,7,0", (False, True)),  # the list ends at its first wrong word
        ("GPU-aab", (False, True)),
        ("GPU-aa", (False, False)),  # means both, so neither
        ("nonsense,0", (False, False)),
        (" 0 , 1 ", (True, True)),
    ],
)
def test_lists(listed: str, seen: tuple[bool, bool]) -> None:
    assert seen_by(EQUAL, {"CUDA_VISIBLE_DEVICES": listed}) == seen


def test_without_the_variable_all_are_seen() -> None:
    assert seen_by(MIXED, {}) == (True, True)
    assert seen_by((), {}) == ()


def test_numbers_of_unequal_cards_are_known_by_bus_order_only() -> None:
    assert seen_by(MIXED, {"CUDA_VISIBLE_DEVICES": "0"}) == (None, None)
    assert seen_by(MIXED, {"CUDA_VISIBLE_DEVICES": "0"} | BY_BUS) == (True, False)
    assert seen_by(MIXED, {"CUDA_VISIBLE_DEVICES": "GPU-b"}) == (False, True)


def test_what_the_ids_here_cannot_tell() -> None:
    """A slice belongs to some card; a lost card may be the one that is meant."""
    assert seen_by(EQUAL, {"CUDA_VISIBLE_DEVICES": "MIG-1234"}) == (None, None)
    lost = (EQUAL[0], GpuSample(1, problem="lost"))
    assert seen_by(lost, {"CUDA_VISIBLE_DEVICES": "GPU-aab2"}) == (None, None)
    assert seen_by(lost, {"CUDA_VISIBLE_DEVICES": "GPU-aaa1"}) == (True, False)
