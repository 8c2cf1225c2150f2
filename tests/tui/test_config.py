"""`config.yaml`: what it may hold, and what is said of what it may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.errors import UsageError
from console.tui.commands import PAGE_KEYS
from console.tui.config import Config, load
from console.tui.screens.pager import Pager
from tests.tui.fakes import House, settled, shows


def written(folder: Path, text: str) -> Path:
    path = folder / "config.yaml"
    path.write_text(text)
    return path


def test_without_a_file_everything_is_as_shipped(tmp_path: Path) -> None:
    assert load(tmp_path / "config.yaml") == Config()


def test_everything_can_be_set(tmp_path: Path) -> None:
    text = """
keys: {log: L, stop: [X, f8], palette: ";"}
bell: false
notify: osc9
low-bandwidth: true
theme: light
mouse: off
ascii: on
"""
    found = load(written(tmp_path, text))
    assert found == Config(
        keys={"log": ("L",), "stop": ("X", "f8"), "palette": ("semicolon",)},
        bell=False,
        notify="osc9",
        low_bandwidth=True,
        theme="light",
        mouse="off",
        ascii="on",
    )
    assert found.wants_ascii
    assert not found.wants_mouse


@pytest.mark.parametrize(
    ("text", "where", "why", "fix"),
    [
        ("bel: true", "config.yaml:1: bel", "no such key", "`bell`"),
        ("\ntheme: dark", "config.yaml:2: theme", "'dark' is none of its words", "calm, light, plain"),
        ("bell: loud", "config.yaml:1: bell", "'loud' is neither true nor false", "write true or false"),
        ("keys: {logs: L}", "keys.logs", "no such command", "`log`"),
        ("keys: {log: x}", "keys.log", "x means stop and log", "another key"),
        ("keys: {log: two words}", "keys.log", "'two words' is no key", "f5"),
        ("keys: 7", "config.yaml:1: keys", "a map of command and key", "keys: {log: L}"),
        ("- a", "config.yaml:1", "", ""),
    ],
)
def test_what_it_may_not_hold_is_said_with_file_line_and_way_out(
    tmp_path: Path, text: str, where: str, why: str, fix: str
) -> None:
    with pytest.raises(UsageError) as raised:
        load(written(tmp_path, text))
    error = raised.value
    assert where in error.what
    assert why in error.why
    assert fix in error.fix


@pytest.mark.parametrize(
    ("env", "ascii_only"),
    [
        ({}, False),
        ({"LANG": "C"}, True),
        ({"LANG": "C", "LC_ALL": "C.UTF-8"}, False),
        ({"LANG": "de_DE.ISO-8859-1"}, True),
        ({"LANG": "en_US.utf8"}, False),
        ({"TERM": "vt220"}, True),
    ],
)
def test_ascii_where_the_locale_or_the_terminal_knows_no_more(
    monkeypatch: pytest.MonkeyPatch, env: dict[str, str], ascii_only: bool
) -> None:
    for name in ("LANG", "LC_ALL", "LC_CTYPE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert Config().wants_ascii is ascii_only


def test_over_ssh_the_mouse_is_the_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    assert Config().wants_mouse
    monkeypatch.setenv("SSH_CONNECTION", "1 2 3 4")
    assert not Config().wants_mouse
    assert Config(mouse="on").wants_mouse


async def test_a_key_that_was_set_works_and_the_old_one_does_not() -> None:
    house = House(config=Config(keys={"log": ("L",), "cards": ("l",)}))
    async with house.app().run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await shows(pilot, "L log")
        await pilot.press("l")
        await shows(pilot, "card 0")
        await pilot.press("escape", "L")
        await shows(pilot, "─ log ")
        await pilot.press("escape", "?")
        await shows(pilot, "L          the server's log")


@pytest.mark.parametrize(
    ("command", "key"), [("log", "z"), ("stop", "!"), ("chain", "&"), ("write", "N"), ("cards", "left")]
)
def test_a_key_that_pages_have_is_given_to_no_command_that_works_there(command: str, key: str, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(f"keys: {{{command}: '{key}'}}\n")
    with pytest.raises(UsageError, match="moves or finds on the pages"):
        load(file)
    file.write_text(f"keys: {{restart: '{key}', notices: n, log: L}}\n")
    assert load(file).keys["log"] == ("L",)


def test_the_keys_of_pages_are_those_that_they_bind() -> None:
    bound = {key for binding in Pager.BINDINGS for key in binding.key.split(",")}  # type: ignore[union-attr]
    assert bound | {"escape", "q"} == PAGE_KEYS


def test_what_is_no_map_is_not_taken_for_a_preset(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as found:
        load(written(tmp_path, "- theme\n"))
    assert "the configuration is a map of keys" in found.value.what
    assert "theme: light" in found.value.fix
    assert "model" not in str(found.value).replace(str(tmp_path), "")
