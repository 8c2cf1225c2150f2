"""A secret is told by its name or its looks, and its value reaches no file and no screen."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from console.cli.main import main
from console.lab import carried
from console.lab.adopt import adopt, draft
from console.lab.conditions import deciding
from console.lab.difference import difference
from console.lab.folder import folder_at_hand, read_folder, write_folder
from console.lab.history import identity
from console.lab.plan import Plan, make_plan
from console.lab.report import to_json
from console.lab.results import PLAN_FILE
from console.paths import Paths
from console.presets import Preset, apply_overrides, load_catalog
from console.presets.catalog import stand_in
from console.presets.secrecy import covered, is_secret, masked, unmasked
from console.server.worked import keep_worked, read_worked, worked_file
from tests.unit.lab_runs import BASE, whole_run

KEY = "VLLM_API_KEY"
WORD = "open-sesame-7131"
OTHER = "open-barley-4242"


@pytest.mark.parametrize(
    "name", [KEY, "HF_TOKEN", "MY_PASSWORD", "NEW_API_KEY", "MYTOK", "AWS_SECRET_ACCESS_KEY", "KEY2", "MY_PASS", "PASS"]
)
def test_names_of_secrets(name: str) -> None:
    assert is_secret(name)
    assert is_secret(name.lower())
    assert is_secret("PLAIN", [name])


@pytest.mark.parametrize(
    "name",
    ["TOKENIZERS_PARALLELISM", "VLLM_MAX_TOKENS", "HF_HOME", "KEYBOARD", "OMP_NUM_THREADS", "COMPASS", "PASS_RATE"],
)
def test_names_that_are_none(name: str) -> None:
    assert not is_secret(name)


HEX = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"


@pytest.mark.parametrize(
    "value",
    [
        "sk-proj-abcdefgh1234",
        "hf_abcdefghijklmnop",
        "Bearer x",
        "bearer something",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        "http://me:hunter22@proxy:3128",
        HEX,
        HEX[:32],
        "Kq3_Zt9vLr-0xWm7sYbN2dPfUh5jGc8aQe1oTiRk4Mw",
        "3q2+7wAAnYh1Zb8tQm9kXv5rLw2sPd4fGj6hKl0=",
    ],
)
def test_values_that_look_like_secrets_are_some_whatever_their_name(value: str) -> None:
    assert is_secret("PLAIN", value=value)
    preset = apply_overrides(BASE, {"env.PLAIN": value})
    assert preset.secrets == {"PLAIN"}
    assert value not in json.dumps(preset.to_json())


@pytest.mark.parametrize(
    "value",
    [
        "1",
        "",
        "unsloth/Qwen3.8-27B-NVFP4",
        "Qwen3-Next-80B-A3B-Instruct-FP8-dynamic",
        "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6,GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77",
        "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6",
        "/home/me/.cache/huggingface/hub/models--unsloth--Qwen3.8-27B-NVFP4",
        "expandable_segments:True,garbage_collection_threshold:0.8",
        "https://huggingface.co",
        "http://proxy:3128",
        "da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "sk-1",
        "FLASHINFER_TRTLLM_CUTLASS_MARLIN_TRITON",
        "${PLAIN_BUT_SOMEWHAT_LONG_VARIABLE_1234567890}",
    ],
)
def test_values_that_do_not_look_like_secrets(value: str) -> None:
    assert not is_secret("PLAIN", value=value)


def test_a_literal_of_an_arm_is_masked_by_its_looks_and_comes_back(tmp_path: Path) -> None:
    plan = make_plan(
        "custom", BASE, b={"env.UPSTREAM": f"Bearer {WORD}"}, changes={"env.HOOK": HEX}, size="small", rounds=1
    )
    text = json.dumps(plan.to_json())
    assert WORD not in text
    assert HEX not in text
    back = Plan.from_json(json.loads(text), {"HOOK": HEX}, [{}, {"UPSTREAM": f"Bearer {WORD}"}])
    assert back.preset_of("b").env == {"HOOK": HEX, "UPSTREAM": f"Bearer {WORD}"}
    assert carried.pack_arms(plan).popitem()[1] == f"Bearer {WORD}"
    assert deciding({"VLLM_HOOK": HEX, "VLLM_USE_V1": "1"}, ()) == {"VLLM_USE_V1": "1"}
    preset = _catalog_preset(tmp_path / "presets", f"  UPSTREAM: {HEX}\n  PLAIN: a\n")
    assert preset.secrets == {"UPSTREAM"}
    assert HEX not in json.dumps(preset.to_json())


def test_masking_there_and_back() -> None:
    changes: dict[str, Any] = {f"env.{KEY}": WORD, "env.X": "1", "env.HF_TOKEN": None, "max-num-seqs": 2}
    hidden = masked(changes)
    assert hidden == changes | {f"env.{KEY}": f"${{{KEY}}}"}
    assert unmasked(hidden, {KEY: WORD}) == changes
    assert unmasked(hidden, {}) == hidden
    assert masked({"env.X": "1"}, {"X"}) == {"env.X": "${X}"}


def _catalog_preset(folder: Path, env: str) -> Preset:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "p.yaml").write_text(f"model: m\nenv:\n{env}")
    return load_catalog([folder]).get("p")


def test_secrets_of_a_preset_file_however_they_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY, raising=False)
    monkeypatch.setenv("MYTOK", OTHER)
    env = f"  MY_PASSWORD: {WORD}\n  MYVAR: ${{MYTOK}}\n  PLAIN: a\n  TOKENIZERS_PARALLELISM: 'false'\n"
    preset = _catalog_preset(tmp_path / "presets", env)
    assert preset.secrets == {"MY_PASSWORD", "MYVAR"}
    assert preset.env["MY_PASSWORD"] == WORD
    text = json.dumps(preset.to_json())
    assert WORD not in text
    assert OTHER not in text
    assert stand_in(preset, ["sim"]).env == {"PLAIN": "a", "TOKENIZERS_PARALLELISM": "false"}


def test_a_secret_that_is_set_for_one_start_is_one_and_a_removed_one_is_none() -> None:
    preset = apply_overrides(BASE, {"env.NEW_API_KEY": WORD, "env.X": "1"})
    assert preset.secrets == {"NEW_API_KEY"}
    assert WORD not in json.dumps(preset.to_json())
    assert apply_overrides(preset, {"env.NEW_API_KEY": None}).secrets == frozenset()


def test_a_secret_in_an_experiment_of_the_preset_is_not_written_down() -> None:
    preset = Preset("p", "m", lab={"keys": {"env.HF_TOKEN": WORD}, "chunk": ["1x"]})
    assert preset.to_json()["lab"] == {"keys": {"env.HF_TOKEN": "${HF_TOKEN}"}, "chunk": ["1x"]}


def _plan(**more: Any) -> Plan:
    changes = {f"env.{KEY}": WORD, "env.X": "1"}
    return make_plan("custom", BASE, b={"env.HF_TOKEN": OTHER}, changes=changes, size="small", rounds=1, seed=1, **more)


def test_a_plan_holds_no_value_of_a_secret_and_gets_it_back() -> None:
    plan = _plan()
    text = json.dumps(plan.to_json())
    assert WORD not in text
    assert OTHER not in text
    back = Plan.from_json(json.loads(text), {KEY: WORD}, [{}, {"HF_TOKEN": OTHER}])
    assert back.preset_of("b").env == {KEY: WORD, "X": "1", "HF_TOKEN": OTHER}
    assert back.preset_of("b").secrets == {KEY, "HF_TOKEN"}


def test_the_labs_process_gets_each_arms_secrets_and_no_file_does(monkeypatch: pytest.MonkeyPatch) -> None:
    paths = Paths.from_env()
    paths.make()
    folder = paths.run("20260101-000000-custom")
    folder.mkdir()
    plan = _plan()
    write_folder(folder, paths, plan, None)
    assert WORD not in (folder / PLAN_FILE).read_text()
    with carried.in_environment(carried.pack("plan", plan.base) | carried.pack_arms(plan)):
        read = read_folder(folder)
    assert read.plan.preset_of("b").env["HF_TOKEN"] == OTHER
    assert read.missing_secrets == ()
    monkeypatch.delenv("HF_TOKEN", raising=False)
    assert folder_at_hand(folder).missing_secrets == ("HF_TOKEN",)
    monkeypatch.setenv("HF_TOKEN", OTHER)
    assert folder_at_hand(folder).plan.preset_of("b").env["HF_TOKEN"] == OTHER


def test_long_after_a_secret_comes_from_the_presets_own_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MY_PASSWORD", raising=False)
    paths = Paths.from_env()
    paths.make()
    preset = _catalog_preset(paths.own_presets, f"  MY_PASSWORD: {WORD}\n")
    folder = paths.run("20260101-000000-aa")
    folder.mkdir()
    write_folder(folder, paths, make_plan("aa", preset, size="small", rounds=1), preset)
    found = folder_at_hand(folder)
    assert (found.missing_secrets, found.missing) == ((), ())
    assert found.before is not None
    assert found.before.env["MY_PASSWORD"] == found.plan.base.env["MY_PASSWORD"] == WORD


def test_the_way_back_knows_a_secret_that_stands_in_the_preset_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MY_PASSWORD", raising=False)
    paths = Paths.from_env()
    paths.make()
    keep_worked(paths, _catalog_preset(paths.own_presets, f"  MY_PASSWORD: {WORD}\n"))
    assert WORD not in worked_file(paths).read_text()
    back = read_worked(paths, None)
    assert back is not None
    assert (back.env["MY_PASSWORD"], back.unset) == (WORD, ())


def test_a_dry_run_prints_no_secret(capsys: pytest.CaptureFixture[str]) -> None:
    paths = Paths.from_env()
    _catalog_preset(paths.own_presets, "  X: 1\n")
    words = ["ab", "custom", "--preset", "p", "--set", f"env.{KEY}={WORD}", "--b", f"env.HF_TOKEN={OTHER}"]
    for extra in ([], ["--json"]):
        assert main([*words, "--dry-run", *extra]) == 0
        said = "".join(capsys.readouterr())
        assert WORD not in said
        assert OTHER not in said


def test_adopting_writes_the_name_of_a_secret_into_a_file_of_ones_own() -> None:
    made = whole_run(changes={f"env.{KEY}": WORD, "env.X": "1"})
    name = made.folder.name
    assert WORD not in json.dumps(to_json(made.folder))
    assert f"env.{KEY} (secret)" in draft(made.paths, name, "on").changes
    previous = os.umask(0o022)
    try:
        path = adopt(made.paths, name, "on")
    finally:
        os.umask(previous)
    text = path.read_text()
    assert WORD not in text
    assert f"{KEY}: ${{{KEY}}}" in text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_run_of_an_older_console_is_adopted_without_its_secret_too() -> None:
    made = whole_run(changes={f"env.{KEY}": WORD})
    plan = json.loads((made.folder / PLAN_FILE).read_text())
    (made.folder / PLAN_FILE).write_text(json.dumps(plan | {"changes": {f"env.{KEY}": WORD}}))
    assert WORD not in adopt(made.paths, made.folder.name, "on").read_text()


def test_a_difference_names_a_secret_and_shows_none() -> None:
    (row,) = difference(BASE, apply_overrides(BASE, {f"env.{KEY}": WORD}))
    assert row.text == f"env.{KEY}: not set → (secret)"


def test_what_a_run_keeps_of_the_environment_holds_no_secret() -> None:
    assert deciding({"VLLM_MY_TOKEN": WORD, "VLLM_X": "1"}, ()) == {"VLLM_X": "1"}
    base = Preset("p", "m", env={"VLLM_PLAIN": WORD}, secrets=frozenset({"VLLM_PLAIN"}))
    assert identity(make_plan("aa", base, size="small", rounds=1))["env"] == {}


_DEEP = {
    "hf-overrides": {"auth_token": WORD, "eos_token": "</s>", "inner": [{"password": "tiny"}, "a"]},
    "kv-transfer-config": f'{{"api_key": "{WORD}"}}',
    "hf-token": WORD,
    "max-model-len": 4096,
}


def test_secrets_in_args_are_covered_wherever_they_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = "".join(f"  {key}: {json.dumps(value)}\n" for key, value in _DEEP.items())
    (tmp_path / "p.yaml").write_text(f"model: m\nargs:\n{args}")
    where = ("--presets", str(tmp_path))
    shown = [("show", "p"), ("show", "p", "--json"), ("ab", "aa", "--preset", "p", "--dry-run", "--json")]
    for words in shown:
        assert main([*where, *words]) == 0
        said = capsys.readouterr()
        assert WORD not in said.out + said.err
        assert "tiny" not in said.out
        assert "</s>" in said.out
    assert load_catalog([tmp_path]).get("p").args["hf-token"] == WORD
    main([*where, "lint", "p", "--json"])
    found = json.loads(capsys.readouterr().out)["presets"][0]["findings"]
    flags = {one["key"] for one in found if one["rule"] == "key-in-args"}
    assert flags == {"hf-overrides", "kv-transfer-config", "hf-token"}
    assert any("ps" in one["why"] and "env" in one["fix"] for one in found if one["rule"] == "key-in-args")


def test_a_difference_of_args_shows_no_secret() -> None:
    before, after = Preset("p", "m"), Preset("p", "m", args=_DEEP)
    texts = " ".join(one.text for one in difference(before, after))
    assert WORD not in texts
    assert "hf-token: not set → (secret)" in texts
    assert "eos_token" in texts


def test_what_covers_nothing_leaves_all_as_it_is() -> None:
    plain = {"a": {"eos_token": "x", "b": [1, None, True]}, "c": "${HF_TOKEN}", "api-key": ""}
    assert covered(plain) is plain
    assert covered({"auth_token": "a", "b": "banana"}) == {"auth_token": "•••", "b": "banana"}
