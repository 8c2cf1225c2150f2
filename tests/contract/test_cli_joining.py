"""Two consoles that start something at the same moment: one start, and a clear word to whoever wanted another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.test_server_verbs import House, lived_in


@pytest.fixture
def house(tmp_path: Path, own_folders: Path) -> Iterator[House]:
    with lived_in(tmp_path, own_folders / "state") as found:
        yield found


@pytest.mark.parametrize("changes", [(), ("--set", "max-num-seqs=3")])
def test_two_that_start_the_same_at_the_same_moment_see_one_start_through(
    house: House, changes: tuple[str, ...]
) -> None:
    house.preset("p")
    house.preset("other")
    both = [house.console.start("up", "p", *changes) for _ in range(2)]
    said = [one.communicate(timeout=60)[0] for one in both]
    assert [one.returncode for one in both] == [0, 0], said
    assert sum("is being started by another console already" in text for text in said) <= 1
    url = house.console.status()["server"]["url"]
    assert all(text.splitlines()[-1] == url for text in said)
    assert "ready already" in house.console("up", "p", *changes).err
    assert "the server p is up on" in house.console("up", "other", code=4).err
    house.console("down")


def test_another_one_at_the_same_moment_is_told_what_is_in_its_way(house: House) -> None:
    house.preset("p")
    house.preset("other")
    house.console("up", "other")
    house.console("down")
    both = [house.console.start("up", name) for name in ("p", "other")]
    said = [one.communicate(timeout=60)[0] for one in both]
    codes = [one.returncode for one in both]
    assert sorted(codes) == [0, 4], said
    refused = said[codes.index(4)]
    assert "is up on" in refused or "is being started by another console" in refused
    assert f"the server {'p' if codes.index(4) == 0 else 'other'} is up" not in refused
    house.console("down")
