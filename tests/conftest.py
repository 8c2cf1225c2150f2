"""Every test has folders of its own, and CI may not skip."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from console import hints
from console.tui.keycaps import keys_are
from tests.console_process import PORT_VARIABLE, QUIET_PORT
from tests.engine.install import Engine, engine

# CI tries the same cases every time: what it finds must be the change's, not the dice's.
settings.register_profile("ci", derandomize=True, deadline=None)
# Elsewhere too, no case fails because the machine is busy.
settings.register_profile("here", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "here")

NO_SKIPS = "QWEN_CONSOLE_NO_SKIPS"
_OURS = (
    "QWEN_CONSOLE_PRESETS",
    "QWEN_CONSOLE_SIM_ANY_MODEL",
    "QWEN_CONSOLE_SIM_FAULT",
    "QWEN_CONSOLE_SIM_START_S",
    "QWEN_CONSOLE_SIM_SEED",
    "QWEN_CONSOLE_SIM_SPEED",
)
# Read before any test moves XDG_CACHE_HOME.
_ENGINE = engine()
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="also run the long tables (marker full)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--full"):
        full = [item for item in items if item.get_closest_marker("full")]
        items[:] = [item for item in items if not item.get_closest_marker("full")]
        config.hook.pytest_deselected(items=full)
    if not _ENGINE.ready:
        skip = pytest.mark.skip(reason="the real vLLM is not installed: python -m tests.engine.install (3.5 GB)")
        for item in items:
            if item.get_closest_marker("engine"):
                item.add_marker(skip)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = len(reporter.stats.get("skipped", [])) if reporter else 0
    if reporter and os.environ.get(NO_SKIPS) and skipped:
        reporter.write_line(f"{NO_SKIPS} is set and {skipped} tests were skipped", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(autouse=True)
def own_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """State, config and cache of this test alone; nothing of the user's shell leaks in."""
    home = tmp_path_factory.mktemp("xdg")
    for kind in ("state", "config", "cache"):
        monkeypatch.setenv(f"XDG_{kind.upper()}_HOME", str(home / kind))
    for name in (*_OURS, *_PROXIES, *(proxy.lower() for proxy in _PROXIES), "VLLM_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(PORT_VARIABLE, QUIET_PORT)
    return home


@pytest.fixture(autouse=True)
def own_words() -> None:
    """What an earlier test's command line or configuration said is in none of this one's sentences."""
    hints.started_as(hints.PROGRAM)
    keys_are({})


@pytest.fixture(scope="session")
def real_engine() -> Engine:
    """The CPU build of vLLM and its tiny model."""
    return _ENGINE
