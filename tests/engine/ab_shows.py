"""What A/B runs show on the real engine: each function carries one thing out and says how it went."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from console.lab.folder import LAB_RECORD
from console.paths import APP, Paths
from console.server.life import Server
from console.server.state import read_server
from tests.console_process import Console, wait_until, write_preset
from tests.engine import truth
from tests.engine.conftest import preset_text
from tests.engine.install import Engine

_RUN_S = 5400.0
Json = dict[str, Any]


@dataclass
class Site:
    """A console with folders of its own, and presets of the real engine.

    One rank: on two cores a second one spins on the core that the client needs, and what is measured then is how the
    two share it. Two ranks are the server's, the faults' and the figures' tests.
    """

    folder: Path
    engine: Engine
    console: Console = field(init=False)

    def __post_init__(self) -> None:
        presets = self.folder / "presets"
        self.console = Console({"XDG_STATE_HOME": str(self.folder / "state"), "QWEN_CONSOLE_PRESETS": str(presets)})
        for name, prefix in (("plain", False), ("cached", True)):
            write_preset(presets, name, preset_text(self.engine, prefix=prefix, ranks=1) + _PREFIX_EXPERIMENT)

    @property
    def paths(self) -> Paths:
        """The console's own folders, seen from here."""
        state = self.folder / "state" / APP
        return Paths(state, self.folder / "config", self.folder / "cache")

    def run(self, *words: str, code: int | None = 0) -> Json:
        """A run to its end; its report."""
        return dict(self.console("ab", *words, "--json", code=code, timeout=_RUN_S).json)

    def begin(self, *words: str) -> str:
        """A run under way; its id."""
        return self.console("ab", *words, "--no-wait", timeout=120).out.strip()

    def events(self, run_id: str) -> list[Json]:
        """The run's journal."""
        text = (self.paths.run(run_id) / "journal.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines() if line.startswith("{") and line.endswith("}")]

    def state_of(self, run_id: str) -> str:
        """running, done, interrupted or failed."""
        return str(self.console("ab", "show", run_id, "--json").json["state"])

    def until(self, run_id: str, boot: int, event: str) -> None:
        """Wait until a boot has come to an event."""

        def there() -> bool:
            boots = [e["n"] for e in self.events(run_id) if e["event"] == "boot-start"]
            return boots[-1:] == [boot] and any(e["event"] == event and e.get("n") == boot for e in self.events(run_id))

        wait_until(there, timeout=900, every=0.2)


_PREFIX_EXPERIMENT = "  prefix: {enable-prefix-caching: false}\n"


def killed_three_times(site: Site) -> str:
    """A run whose process is killed at three points goes on with its plan; no request is lost or there twice."""
    run_id = site.begin("aa", "--preset", "plain", "--rounds", "2", "--size", "small")
    plan = (site.paths.run(run_id) / "plan.json").read_bytes()
    for boot, event in ((1, "boot-start"), (2, "warm"), (3, "request")):
        site.until(run_id, boot, event)
        record, _ = read_server(site.paths.run(run_id) / LAB_RECORD)
        assert record is not None
        assert record.child is not None
        os.kill(record.child.pid, signal.SIGKILL)
        wait_until(lambda: site.state_of(run_id) == "interrupted", timeout=120, every=0.5)
        wait_until(lambda: not site.console.processes(), timeout=120, every=0.5)
        site.console("ab", "resume", run_id, "--no-wait", timeout=120)
    wait_until(lambda: site.state_of(run_id) != "running", timeout=_RUN_S, every=2)
    report = site.console("ab", "show", run_id, "--json").json
    assert (site.paths.run(run_id) / "plan.json").read_bytes() == plan
    assert report["state"] == "done", report["warnings"]
    assert [boot["valid"] for boot in report["boots"]] == [True] * 4, report["warnings"]
    counts = _requests(site.events(run_id))
    assert all(count == 1 for boot in counts.values() for count in boot.values())
    assert len({frozenset(boot) for boot in counts.values()}) == 1
    each = len(counts[1])
    return (
        "killed (SIGKILL) while boot 1 started, boot 2 was warm and boot 3 was measured; resumed three times: the plan "
        f"is the same to the byte, 4 of 4 boots count, each with its {each} requests once"
    )


def _requests(events: list[Json]) -> dict[int, Counter[str]]:
    found: dict[int, Counter[str]] = {}
    for event in events:
        if event["event"] == "boot-start":
            found[event["n"]] = Counter()
        elif event["event"] == "request" and event["workload"] != "warm-up":
            found[event["n"]][event["key"]] += 1
    return found


def foreign_traffic(site: Site) -> str:
    """One request of somebody else during a round."""
    run_id = site.begin("aa", "--preset", "plain", "--rounds", "1", "--size", "small")
    site.until(run_id, 1, "request")
    wait_until(
        lambda: any(e["event"] == "request" and e["workload"] == "agent" for e in site.events(run_id)), timeout=300
    )
    # Port and key are the run's own: only whoever reads them from the process can get in at all.
    endpoint = Server(site.paths).endpoint()
    assert endpoint is not None
    truth.ask(endpoint.url, "hello", max_tokens=2, key=endpoint.key)
    wait_until(lambda: site.state_of(run_id) != "running", timeout=900, every=1)
    report = site.console("ab", "show", run_id, "--json").json
    first = report["boots"][0]
    assert first["valid"] is False
    assert "foreign traffic" in first["reason"]
    assert report["verdict"]["overall"] == "invalid"
    return f"the boot does not count (“{first['reason']}”), and the run says *{report['verdict']['overall']}*"


def crash_arm(site: Site) -> str:
    """MTP with prefix caching dies on this build at its first request."""
    report = site.run("mtp", "--preset", "cached", "--rounds", "1", "--size", "small", code=1)
    (crashed,) = [boot for boot in report["boots"] if boot["arm"] == "on"]
    assert crashed["crash"]["cause"] == "engine-crashed"
    return f"{report['verdict']['overall']}: {report['verdict']['sentence']}"


def budgets_and_blocks(site: Site) -> str:
    """Chunk budgets of a hybrid model with prefix caching: named before any start, and measured below the block too."""
    plan = site.console("ab", "chunk", "--preset", "cached", "--arms", "128,1x,1.5x,256", "--dry-run").out
    named = [text.strip() for text in plan.splitlines() if text.strip().startswith("note")]
    assert any("below the cache block" in text for text in named), plan
    assert any("equal to" in text for text in named), plan
    assert any("it starves" in text for text in named), plan
    report = site.run("chunk", "--preset", "cached", "--arms", "128,2x", "--rounds", "1", "--size", "small")
    assert [boot["valid"] for boot in report["boots"]] == [True, True], report["warnings"]
    told = "\n".join(f"- {text.removeprefix('note').strip()}" for text in named)
    small, large = (arm["name"] for arm in report["plan"]["arms"])
    return (
        f"Before any start:\n\n{told}\n\nMeasured, one round: the budget of {small} below the block ran (up to "
        f"vLLM 0.22 it would be skipped, with both numbers); {small} against {large}: {report['verdict']['sentence']}"
    )
