"""Hints can be pasted: they name the command as this console was started."""

from __future__ import annotations

from pathlib import Path

import pytest

from console import hints
from console.errors import ConsoleError
from console.tui.farewell import farewell
from console.tui.stories import error_story, wrapped

SCRIPT = "#!/bin/sh\n"


def script(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "qwen-console"
    path.write_text(SCRIPT)
    path.chmod(0o755)
    return path


def test_plain_where_path_leads_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = script(tmp_path / "bin")
    monkeypatch.setenv("PATH", str(path.parent))
    hints.started_as(str(path))
    assert hints.told("try `qwen-console up`") == "try `qwen-console up`"


def test_as_it_was_typed_where_path_does_not_lead_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other, mine = script(tmp_path / "bin"), script(tmp_path / "my venv")
    monkeypatch.setenv("PATH", str(other.parent))
    monkeypatch.chdir(mine.parent)
    hints.started_as("./qwen-console")
    assert hints.told("`qwen-console up`, `qwen-console`") == "`./qwen-console up`, `./qwen-console`"
    hints.started_as(str(mine))
    assert hints.told("`qwen-console up`") == f"`'{mine}' up`"


def test_a_demo_stays_a_demo_and_presets_come_along() -> None:
    hints.started_as("qwen-console", demo=True, presets=Path("my presets"))
    once = hints.told("`qwen-console down` stops it; `qwen-console sim` too; qwen-console: fine")
    assert once == (
        "`qwen-console --demo --presets 'my presets' down` stops it; `qwen-console sim` too; qwen-console: fine"
    )
    assert hints.told(once) == once


def test_a_hint_that_names_the_demo_keeps_it() -> None:
    assert hints.told("`qwen-console --demo` shows it") == "`qwen-console --demo` shows it"
    hints.started_as("qwen-console", demo=True)
    assert hints.told("`qwen-console --demo` shows it") == "`qwen-console --demo` shows it"


def test_errors_json_and_the_screens_say_it_so() -> None:
    hints.started_as("qwen-console", demo=True)
    error = ConsoleError("nothing runs", "", "`qwen-console up`")
    assert error.lines() == ["nothing runs", "  fix: `qwen-console --demo up`"]
    assert error.fix == "`qwen-console up`", "what is kept says nothing of how this console was started"
    assert hints.told_all({"fix": ["`qwen-console up`", 3, None]}) == {"fix": ["`qwen-console --demo up`", 3, None]}
    shown = ["".join(text for text, _ in row) for row in (*error_story(error, 80), *wrapped("`qwen-console up`", 80))]
    assert sum("--demo up" in row for row in shown) == 2


def test_the_farewell_says_it_so() -> None:
    from console.server.status import ServerStatus, State
    from console.tui.situation import Situation

    hints.started_as("qwen-console", demo=True)
    now = Situation(status=ServerStatus(State.READY, preset="p", url="http://h:1"), known=True)
    assert list(farewell(now)) == ["qwen-console: p keeps running on http://h:1; `qwen-console --demo down` stops it"]
