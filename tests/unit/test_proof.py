"""The proof of a preset: kept for exactly its settings, and a link of the chain."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from console.paths import Paths
from console.presets import Preset
from console.server.fingerprint import fingerprint
from console.server.proof import CardPeak, Proof, proof_file, proof_link, read_proof, write_proof

GIB = 1024**3
PRESET = Preset(name="p", model="m", args={"max-model-len": 102_400})
PROOF = Proof(
    fingerprint=fingerprint(PRESET),
    at="2026-11-29T12:00:00+00:00",
    version="0.32.0",
    prompt_tokens=102_384,
    max_model_len=102_400,
    seconds=125.2,
    ok=True,
    cards=(CardPeak(0, 15 * GIB, 16 * GIB, GIB), CardPeak(1, 15 * GIB, 16 * GIB, GIB // 2)),
)


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(tmp_path, tmp_path, tmp_path)


def test_it_is_kept_for_these_settings_only(paths: Paths) -> None:
    write_proof(paths, "p", PROOF)
    assert read_proof(paths, PRESET) == PROOF
    assert read_proof(paths, PRESET.with_port(1)) == PROOF
    assert read_proof(paths, replace(PRESET, args={"max-model-len": 1})) is None
    assert read_proof(paths, replace(PRESET, name="q")) is None
    assert proof_file(paths, "p").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("torn", ["", "{", "[]", '{"schema": 1, "fingerprint": "FP"}'])
def test_a_torn_file_proves_nothing(paths: Paths, torn: str) -> None:
    write_proof(paths, "p", PROOF)
    proof_file(paths, "p").write_text(torn.replace("FP", PROOF.fingerprint))
    assert read_proof(paths, PRESET) is None


def test_its_link_tells_time_and_the_thinnest_margin() -> None:
    link = proof_link(PROOF, "0.32.0")
    assert (link.link, link.verdict) == ("long prompt", "ok")
    assert link.value == "102,384 tokens in 125.2 s, 0.50 GiB of VRAM left"


def test_what_does_not_prove_says_what_to_do() -> None:
    nothing = proof_link(None, "0.32.0")
    assert (nothing.verdict, "up --prove" in nothing.fix) == ("unknown", True)
    other = proof_link(PROOF, "0.33.0")
    assert (other.verdict, "this is 0.33.0" in other.evidence) == ("unknown", True)
    failed = proof_link(replace(PROOF, ok=False, why="HTTP 500"), "0.32.0")
    assert (failed.verdict, "HTTP 500" in failed.value) == ("look", True)
    thin = proof_link(replace(PROOF, cards=(CardPeak(0, 1, 2, 1024),)), "0.32.0")
    assert thin.verdict == "look"
    bare = proof_link(replace(PROOF, cards=()), "0.32.0")
    assert (bare.verdict, bare.value) == ("ok", "102,384 tokens in 125.2 s")
