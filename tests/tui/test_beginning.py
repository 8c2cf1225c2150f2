"""The console as a program: what it refuses before it draws, and what it draws where little can be drawn."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.endpoint import free_port
from tests.tui.terminal import ENTERED, terminal

CONSOLE = ("-P", "-m", "console")


@pytest.mark.parametrize("url", ["not a url", "ftp://box", "http://box:port"])
def test_what_is_no_address_is_refused_before_the_first_frame(own_folders: Path, url: str) -> None:
    with terminal(*CONSOLE, "--url", url, env={"XDG_STATE_HOME": str(own_folders / "state")}) as shown:
        shown.until(shown.ended)
        shown.shows("is no address", "http://HOST:PORT")
        assert shown.code == 2
        assert ENTERED not in shown.output


def test_a_config_that_cannot_be_used_is_refused_with_file_line_and_key(own_folders: Path) -> None:
    folder = own_folders / "config" / "qwen-console"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text("\nthem: light\n")
    env = {"XDG_STATE_HOME": str(own_folders / "state"), "XDG_CONFIG_HOME": str(own_folders / "config")}
    with terminal(*CONSOLE, size=(200, 24), env=env) as shown:
        shown.until(shown.ended)
        shown.shows("config.yaml:2: them", "no such key", "`theme`")
        assert shown.code == 2
        assert ENTERED not in shown.output


def test_an_unreachable_server_elsewhere_is_said_to_be_that(own_folders: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with terminal(*CONSOLE, "--url", url, env={"XDG_STATE_HOME": str(own_folders / "state")}) as shown:
        shown.shows(url.removeprefix("http://"), "✖ unreachable", f"{url} does not answer", "ssh -L")
        shown.type(b"q")
        shown.until(shown.ended)
        assert shown.code == 0


@pytest.mark.parametrize(
    "env", [{"LC_ALL": "C"}, {"LC_ALL": "en_US.ISO-8859-1"}, {"TERM": "vt220"}], ids=["C", "latin", "vt220"]
)
def test_where_only_ascii_is_known_only_ascii_is_sent(own_folders: Path, env: dict[str, str]) -> None:
    env = {"XDG_STATE_HOME": str(own_folders / "state"), "LANG": "", "LC_CTYPE": ""} | env
    with terminal(*CONSOLE, "--demo", env=env) as shown:
        shown.shows("o stopped", ">1 qwen3.8", "- prefix cache", "q quit")
        shown.type(b"q")
        shown.until(shown.ended)
        assert shown.output.isascii()


@pytest.mark.parametrize("term", ["screen", "tmux-256color", "xterm", "linux"])
def test_every_usual_terminal_is_served(own_folders: Path, term: str) -> None:
    env = {"XDG_STATE_HOME": str(own_folders / "state"), "TERM": term, "LC_ALL": "C.UTF-8"}
    with terminal(*CONSOLE, "--demo", env=env) as shown:
        shown.shows("○ stopped", "▸1 qwen3.8", "─ prefix cache", "q quit")
        shown.type(b"q")
        shown.until(shown.ended)
        assert shown.code == 0


def test_no_color_means_no_colour(own_folders: Path) -> None:
    env = {"XDG_STATE_HOME": str(own_folders / "state"), "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}
    with terminal(*CONSOLE, "--demo", env=env) as shown:
        shown.shows("○ stopped", "▸1 qwen3.8", "q quit")
        codes = {code for row in shown.glass.cells for _, style in row for code in style}
        assert not {code for code in codes if code.isdigit() and (30 <= int(code) <= 37 or 40 <= int(code) <= 47)}
        shown.type(b"q")
        shown.until(shown.ended)
