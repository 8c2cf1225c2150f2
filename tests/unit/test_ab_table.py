"""The table of A/B runs on the real engine: a part that fails is shown as failing, and the others are carried out."""

from __future__ import annotations

import argparse
from typing import Any, cast

import pytest

from tests.engine import ab_table
from tests.engine.ab_shows import Site
from tests.engine.agreement import Agreement


def test_a_part_that_fails_is_in_the_document_and_does_not_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    cleaned: list[str] = []

    def carry_out(_site: Site, part: str, _args: argparse.Namespace) -> tuple[list[str], list[str]]:
        if part == "killed":
            raise AssertionError("a request is there twice")
        return [f"## {part}"], ["apart"] if part == "agreement" else []

    monkeypatch.setattr(ab_table, "carry_out", carry_out)
    monkeypatch.setattr(ab_table, "clean", lambda _site: cleaned.append("clean"))
    document = ab_table.Document()
    for part in ("foreign", "killed", "agreement", "crash"):
        document.add(cast("Any", None), part, argparse.Namespace())
    assert [line for line in document.lines if line.startswith("##")] == [
        "## foreign",
        "## killed: FAILED",
        "## agreement",
        "## crash",
    ]
    assert document.failures == ["killed: AssertionError: a request is there twice", "agreement: apart"]
    assert cleaned == ["clean"]
    assert len(document.took) == 4


def test_two_clients_agree_within_their_noise_and_not_beyond() -> None:
    assert Agreement("TTFT, mean", 1, [1.0, 1.02, 0.99, 1.01], [1.0, 1.01, 0.98, 1.03]).agrees
    assert not Agreement("TTFT, mean", 1, [1.5, 1.51, 1.49, 1.5], [1.0, 1.01, 0.99, 1.0]).agrees


def test_a_repeat_that_stood_still_widens_the_interval_and_moves_the_ratio_little() -> None:
    quiet = Agreement("TTFT, mean", 1, [1.0, 1.02, 0.99, 1.01], [1.0, 1.01, 0.98, 1.03])
    stalled = Agreement("TTFT, mean", 1, [1.0, 1.02, 0.99, 10.0], [1.0, 1.01, 0.98, 1.03])
    assert quiet.interval[1] - quiet.interval[0] < 0.2
    assert stalled.agrees
    assert 1.0 < stalled.ratio < 2.0
