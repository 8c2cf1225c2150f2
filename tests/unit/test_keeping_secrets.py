"""Secrets over a restart: taken over where nobody else knows them, and never lost in silence."""

from __future__ import annotations

import pytest

from console.errors import UsageError
from console.presets import Preset
from console.presets.model import Unset
from console.server.keeping_secrets import from_record, keep_secrets, recorded

KEY = "VLLM_API_KEY"
RUNNING = Preset("a", "m", env={KEY: "sesame", "HF_TOKEN": "hf", "X": "1"}, secrets=frozenset({KEY, "HF_TOKEN"}))


def lacking(name: str, variable: str | None = None) -> Unset:
    return Unset(("env", name), variable or name, UsageError(f"{name} is not set"))


def test_the_key_is_taken_over_and_nothing_that_is_not_asked_for() -> None:
    kept, names = keep_secrets(Preset("b", "m", env={"X": "2"}), RUNNING)
    assert (kept.env, names) == ({"X": "2", KEY: "sesame"}, (KEY,))
    assert kept.secrets == {KEY}
    own = Preset("b", "m", env={KEY: "mine"}, secrets=frozenset({KEY}))
    assert keep_secrets(own, RUNNING) == (own, ())
    assert keep_secrets(own, None) == (own, ())


def test_what_a_preset_lacks_is_taken_over_and_the_rest_still_refuses_the_start() -> None:
    preset = Preset("b", "m", unset=(lacking("HF_TOKEN"), lacking(KEY), lacking("OTHER"), lacking("A", "HF_TOKEN")))
    kept, names = keep_secrets(preset, RUNNING)
    assert (kept.env, names) == ({KEY: "sesame", "HF_TOKEN": "hf"}, ("HF_TOKEN", KEY))
    assert [one.key[1] for one in kept.unset] == ["OTHER", "A"]


def test_a_secret_that_nobody_knows_refuses_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of a process can be hidden: a restart must not take that for "no key"."""
    monkeypatch.delenv(KEY, raising=False)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    for preset in (recorded(RUNNING.to_json(), {}), from_record(RUNNING.to_json(), None)):
        assert preset.env == {"X": "1"}
        with pytest.raises(UsageError) as caught:
            preset.see_whole()
        assert "HF_TOKEN of preset a is not known here" in caught.value.what
    assert from_record(RUNNING.to_json(), RUNNING) == RUNNING
    assert recorded(RUNNING.to_json(), RUNNING.env) == RUNNING
