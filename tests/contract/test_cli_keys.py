"""The server's key and other variables: what is missing is said, and nothing that was closed comes up open."""

from __future__ import annotations

import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.endpoint import free_port
from tests.console_process import Console, write_preset

SIM = f"[{sys.executable}, -P, -m, console.sim]"
KEY = "sesame-open"


@pytest.fixture
def console(own_folders: Path, tmp_path: Path) -> Iterator[Console]:
    presets = tmp_path / "presets"
    for name, value in (("closed", "${VLLM_API_KEY}"), ("either", "${VLLM_API_KEY:-}"), ("silent", None)):
        env = f"env: {{VLLM_API_KEY: '{value}'}}\n" if value else ""
        text = f"model: m\nserved-name: m\ncommand: {SIM}\nserver: {{port: {free_port()}}}\n"
        write_preset(presets, name, text + env)
    found = Console({"XDG_STATE_HOME": str(own_folders / "state"), "QWEN_CONSOLE_PRESETS": str(presets)})
    found.env["QWEN_CONSOLE_SIM_START_S"] = "0.3"
    yield found
    left = found.processes()
    found.end()
    assert left == [], f"left running: {left}"


def is_closed(url: str) -> bool:
    """Whether a request without a key is refused."""
    try:
        urllib.request.urlopen(f"{url}/v1/models", timeout=10).close()
    except urllib.error.HTTPError as error:
        error.close()
        return error.code == 401
    return False


def test_a_key_that_is_missing_is_said_and_the_preset_stays_to_be_seen(console: Console) -> None:
    error = console("up", "closed", code=2).err
    assert "closed.yaml:5: env.VLLM_API_KEY" in error
    assert "${VLLM_API_KEY:-}" in error
    assert console.state == "stopped"
    listed = console("presets")
    assert "not startable yet: not set in this shell: VLLM_API_KEY" in listed.out
    assert "not startable yet" in console("show", "closed").out
    assert console("show", "closed", "--json").json["unset"] == ["VLLM_API_KEY"]
    told = {preset["name"]: preset["unset"] for preset in console("presets", "--json").json["presets"]}
    assert (told["closed"], told["either"]) == (["VLLM_API_KEY"], [])
    url = console("up", "either").out.strip()
    assert not is_closed(url)
    console("down")


def test_a_server_that_is_open_to_others_is_said_so_when_it_starts(console: Console) -> None:
    said = console("up", "either", "--set", "server.host=0.0.0.0").err
    assert "note: the server listens on 0.0.0.0 without a key" in said
    console("down")
    console.env["VLLM_API_KEY"] = KEY
    assert "without a key" not in console("up", "either", "--set", "server.host=0.0.0.0").err
    console("down")


def test_a_restart_keeps_the_running_servers_key(console: Console) -> None:
    console.env["VLLM_API_KEY"] = KEY
    assert is_closed(console("up", "closed").out.strip())
    del console.env["VLLM_API_KEY"]
    for words in (("restart",), ("restart", "closed"), ("restart", "either"), ("restart", "silent")):
        done = console(*words)
        assert is_closed(done.out.strip()), words
        assert ("the running server's is kept" in done.err) == (len(words) > 1), words
        assert console.state == "ready"
    assert is_closed(console("restart", "--back").out.strip())
    state = Path(console.env["XDG_STATE_HOME"])
    assert not any(KEY in file.read_text(errors="replace") for file in state.rglob("*") if file.is_file())
    console("down")
    # Nobody knows the key any more.
    error = console("restart", "--back", code=2).err
    assert "VLLM_API_KEY of preset silent is not known here" in error
    assert console.state == "stopped"
