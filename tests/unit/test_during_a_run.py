"""While an A/B run goes on, nothing of this console sends requests of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from console.cli.main import main
from console.cli.under_way import UnderWay, run_under_way
from console.errors import BusyError
from console.gpu.sim import SimSource
from console.paths import Paths
from console.server.life import Server
from console.server.prove import prove
from console.server.run_lock import PROBE_SPOILS, hold_run_lock


@pytest.mark.parametrize("words", [("probe", "prefix"), ("probe", "layout", "a.json", "b.json")])
def test_a_probe_is_refused_with_the_words_of_the_key(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(json.dumps({"messages": [{"role": "user", "content": "go"}]}))
    with hold_run_lock(Paths.from_env(), "20260101-000000-mtp"):
        assert main(list(words)) == 4
    said = capsys.readouterr().err
    assert said.startswith(f"qwen-console: {PROBE_SPOILS}\n")
    assert "ab stop 20260101-000000-mtp" in said


def test_the_long_prompt_of_a_proof_is_refused_too() -> None:
    paths = Paths.from_env()
    server = Server(paths)
    with hold_run_lock(paths, "20260101-000000-mtp"), pytest.raises(BusyError, match=PROBE_SPOILS):
        prove(server, lambda: SimSource(None, server.ours))
    server.close()


@pytest.mark.parametrize("plan", [None, "{", "[]"])
def test_of_a_run_that_cannot_be_read_only_its_name_is_told(
    plan: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = Paths.from_env()
    run_id = "20260101-000000-mtp"
    paths.make()
    paths.run(run_id).mkdir()
    if plan is not None:
        (paths.run(run_id) / "plan.json").write_text(plan)
    with hold_run_lock(paths, run_id):
        assert run_under_way(paths) == UnderWay(run_id)
        assert main(["status", "--json"]) == 0
        told = json.loads(capsys.readouterr().out)["run"]
        assert main(["status"]) == 0
    assert (told["id"], told["done"], told["planned"], told["eta_s"]) == (run_id, None, None, None)
    assert f"an A/B run goes on: {run_id}" in capsys.readouterr().out
    assert run_under_way(paths) is None
