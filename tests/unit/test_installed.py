"""What a command's own files tell of the vLLM behind it, and the flags its help names."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from console.errors import UsageError
from console.presets import Preset, apply_overrides, argv
from console.presets.buckets import BUCKETS, FLAG, measured
from console.presets.installed import Installed, _ask, flags, installed, parse_help, takes

HELP = """\
usage: vllm serve [model_tag] [options]

options:
  -h, --help            show this help message
  --api-server-count API_SERVER_COUNT, -asc API_SERVER_COUNT
                        How many. See --nothing-of-this for more.
  --enable-prefix-caching, --no-enable-prefix-caching
                        Whether to cache.
  --no-alone            A flag of that name.
"""


def make_vllm(root: Path, version: str = "9.9.9", *, buckets: bool = True, help_text: str = "") -> Path:
    """A folder like an environment with vLLM in it, whose command prints a help text and counts how often."""
    site = root / "lib" / "python3.11" / "site-packages"
    (site / "vllm" / "engine").mkdir(parents=True)
    (site / "vllm" / "__init__.py").touch()
    (site / f"vllm-{version}.dist-info").mkdir()
    literal = f'group.add_argument("--{FLAG}")' if buckets else ""
    (site / "vllm" / "engine" / "arg_utils.py").write_text(literal)
    (root / "bin").mkdir()
    command = root / "bin" / "vllm"
    (root / "help.txt").write_text(help_text)
    command.write_text(
        f"#!{sys.executable}\nimport pathlib, sys\nroot = pathlib.Path({str(root)!r})\n"
        "(root / 'asked').open('a').write(sys.argv[-1] + '\\n')\n"
        "print((root / 'help.txt').read_text())\n"
    )
    command.chmod(0o755)
    return command


def preset(command: Path | str, **args: object) -> Preset:
    return Preset("p", "m", command=(str(command), "serve"), args=args)


def test_the_installation_beside_the_command(tmp_path: Path) -> None:
    command = make_vllm(tmp_path)
    found = installed(preset(command))
    assert found is not None
    assert (found.command, found.version) == ((str(command), "serve"), "9.9.9")
    assert found.source == tmp_path / "lib/python3.11/site-packages/vllm"
    assert takes(found, FLAG)
    assert not takes(found, "custom-histogram")
    assert installed(preset("/no/such/vllm")) is None


def test_a_flag_on_the_command_line_is_held_against_the_installed_vllm(tmp_path: Path) -> None:
    """One that only this version has is taken, whichever of its parsers has it; a slip is none of vLLM's business."""
    command = make_vllm(tmp_path)
    server = tmp_path / "lib/python3.11/site-packages/vllm/entrypoints/openai/cli_args.py"
    server.parent.mkdir(parents=True)
    server.write_text("class FrontendArgs:\n    brand_new_route: bool = False\n")
    fresh = preset(command)
    assert apply_overrides(fresh, {"brand-new-route": True}).args["brand-new-route"] is True
    with pytest.raises(UsageError) as caught:
        apply_overrides(fresh, {"foo": 1})
    assert "vLLM 9.9.9 has no flag --foo" in caught.value.why


def test_a_command_that_is_no_python_environment(tmp_path: Path) -> None:
    command = tmp_path / "vllm"
    command.write_bytes(b"\x7fELF")
    command.chmod(0o755)
    found = installed(preset(command))
    assert found is not None
    assert not takes(found, FLAG) or found.source is not None


def test_the_stand_in_takes_what_we_give() -> None:
    words = (sys.executable, "-P", "-m", "console.sim")
    found = installed(replace(preset("x"), command=words))
    assert found is not None
    assert found.stand_in
    assert takes(found, FLAG)
    assert flags(found, Path("/nowhere")) is None


def test_finer_buckets_where_the_version_has_the_flag(tmp_path: Path) -> None:
    new, old = make_vllm(tmp_path / "new"), make_vllm(tmp_path / "old", buckets=False)
    assert measured(preset(new)).args[FLAG] == BUCKETS
    assert f"--{FLAG}" in argv(measured(preset(new)))
    assert measured(preset(old)) == preset(old)
    assert measured(preset("/no/such/vllm")) == preset("/no/such/vllm")


def test_the_presets_own_buckets_win_and_an_empty_map_means_vllms(tmp_path: Path) -> None:
    command = make_vllm(tmp_path)
    own = {"time_to_first_token": [1.0, 2.0]}
    assert measured(preset(command, **{FLAG: own})).args[FLAG] == own
    assert FLAG not in measured(preset(command, **{FLAG: {}})).args


@pytest.mark.parametrize("family", BUCKETS)
def test_each_bucket_is_narrow(family: str) -> None:
    from itertools import pairwise

    from console.metrics.span import NARROW

    bounds = BUCKETS[family]
    assert all(0 < high - low < NARROW * low for low, high in pairwise(bounds))


def test_help_text_to_flags() -> None:
    assert sorted(parse_help(HELP)) == ["api-server-count", "enable-prefix-caching", "help", "no-alone"]


def test_flags_are_asked_once_a_version(tmp_path: Path) -> None:
    text = "\n".join(f"  --flag-{i} VALUE" for i in range(80))
    command = make_vllm(tmp_path / "v", help_text=text)
    found = installed(preset(command))
    assert found is not None
    first = flags(found, tmp_path / "cache")
    assert first == frozenset(f"flag-{i}" for i in range(80))
    assert flags(found, tmp_path / "cache") == first
    assert (tmp_path / "v" / "asked").read_text() == "--help=all\n"
    other = replace(found, version="10.0")
    assert flags(other, tmp_path / "cache") == first
    assert len((tmp_path / "v" / "asked").read_text().splitlines()) == 2


def test_a_command_that_gives_no_help_tells_nothing(tmp_path: Path) -> None:
    found = installed(preset(make_vllm(tmp_path / "v", help_text="usage: something else")))
    assert found is not None
    assert flags(found, tmp_path / "cache") is None
    assert flags(Installed((str(tmp_path / "gone"),)), tmp_path / "cache") is None


def test_a_command_that_ignores_help_is_ended_with_its_children(tmp_path: Path) -> None:
    command = tmp_path / "vllm"
    command.write_text(f"#!/bin/sh\ntrap '' TERM\nsleep 1000 &\necho $! > {tmp_path}/child\nwait\nsleep 1000\n")
    command.chmod(0o755)
    assert _ask(Installed((str(command),)), "--help=all", limit_s=1.0) is None
    stat = Path(f"/proc/{(tmp_path / 'child').read_text().strip()}/stat")
    end = time.monotonic() + 10
    while stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < end, "its child lives"
        time.sleep(0.01)
