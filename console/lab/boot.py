"""One boot of one arm: start it, measure it, stop it; whatever it does becomes the boot's record."""

from __future__ import annotations

import secrets
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from console.endpoint import Endpoint, free_port
from console.errors import ConsoleError
from console.gpu.source import open_source
from console.lab.bench import Bench
from console.lab.journal import Journal
from console.lab.outcome import ArmCrashed, BootEnd, BootVoid, diagnosis_of
from console.lab.plan import Plan
from console.lab.workload import Jobs
from console.presets import Preset
from console.presets.model import KEY_VARIABLE
from console.server.life import Server
from console.server.log import ends
from console.server.startup import read_startup
from console.server.status import Diagnosis, ServerStatus, State

LOOPBACK = "127.0.0.1"


def arm_preset(plan: Plan, arm: str, port: int, key: str) -> Preset:
    """The arm as it is booted: on loopback, on a port and with a key of its own, without looking for downloads."""
    preset = plan.preset_of(arm)
    env = {"HF_HUB_OFFLINE": "1", **preset.env, KEY_VARIABLE: key}
    server = replace(preset.server, host=LOOPBACK, port=port, restart="never")
    return replace(preset, env=env, secrets=preset.secrets | {KEY_VARIABLE}, server=server)


class Boot:
    """The life of one arm in one round.

    Args:
        plan: the run's plan.
        place: number of the boot, its round, its arm.
        server: the one server of this console.
        journal: where everything goes as it happens.
        folder: the run's folder; the arm's log goes into it.
        made: prompts by round, shared by the boots of a run.
    """

    def __init__(
        self,
        plan: Plan,
        place: tuple[int, int, str],
        server: Server,
        journal: Journal,
        folder: Path,
        made: dict[int, Jobs],
    ) -> None:
        number, round_number, arm = place
        self._server = server
        self._journal = journal
        self._preset = arm_preset(plan, arm, free_port(LOOPBACK), secrets.token_hex(16))
        self._endpoint = Endpoint(f"http://{LOOPBACK}:{self._preset.server.port}", self._preset.api_key)
        self._run_id = folder.name
        self._log = folder / "boots" / f"{number:02d}-{arm}.log"
        self._end = BootEnd(number, arm, round_number)
        self._bench = Bench(plan, self._preset, server, self._endpoint, journal, self._log, self._end, made)
        self._peaks: list[int | None] = []

    def run(self) -> BootEnd:
        """Everything, journalled; the server is stopped at the end."""
        end = self._end
        self._journal.add("boot-start", n=end.n, arm=end.arm, round=end.round, port=self._preset.server.port)
        try:
            self._start()
            self._measure()
            end.valid = True
        except ArmCrashed as crash:
            end.crash = _crash(crash.diagnosis)
            end.reason = f"crashed: {crash.diagnosis.what}"
        except BootVoid as void:
            end.reason = str(void)
        except ConsoleError as error:
            end.reason = f"{error.what}: {error.why}" if error.why else error.what
        end.env = self._environment()
        self._stop()
        self._journal.add("boot-end", **asdict(end))
        self._journal.sync()
        return end

    def _say(self, text: str) -> None:
        self._journal.add("step", n=self._end.n, text=text)

    def _start(self) -> None:
        self._log.parent.mkdir(exist_ok=True)
        self._say("starting")
        begun = time.monotonic()
        self._server.start(self._preset, log=self._log, for_run=self._run_id)
        status: ServerStatus | None = None
        for status in self._server.follow_start():
            self._say(f"starting: {status.detail or status.phase or status.state}")
        if status is None or status.state is not State.READY:
            raise ArmCrashed(diagnosis_of(status))
        self._end.env = {"start_s": round(time.monotonic() - begun, 2), "vllm": status.version}
        self._journal.add("boot-ready", n=self._end.n)

    def _measure(self) -> None:
        self._see_cards()
        self._bench.run()
        if self._end.round == 1:
            self._bench.probe()
        self._see_cards()

    def _stop(self) -> None:
        self._say("stopping")
        self._endpoint.close()
        try:
            report = self._server.stop()
        except ConsoleError:
            # Nothing of it lives any more.
            return
        for pid, reason in report.left:
            self._end.warn(f"process {pid} stayed after the stop: {reason}")

    def _see_cards(self) -> None:
        """Note the cards' memory: between workloads only, since a look at the driver would colour stamps."""
        ours = frozenset(self._server.status(probe=False).ours)
        source = open_source(self._endpoint if self._preset.simulated else None, lambda: ours)
        try:
            used = [card.vram_used_bytes for card in source.read().cards]
        finally:
            source.close()
        before = self._peaks if len(self._peaks) == len(used) else [None] * len(used)
        self._peaks = [max((v for v in pair if v is not None), default=None) for pair in zip(before, used, strict=True)]

    def _environment(self) -> dict[str, Any]:
        facts, page = read_startup(ends(self._log)).facts, self._bench.cache
        late = self._bench.lateness_s
        return {
            "vllm": self._end.env.get("vllm") or facts.version,
            "compile_cache": {True: "cached", False: "cold", None: None}[facts.compile_cached],
            "block_tokens": facts.block_tokens or (page.block_tokens if page else None),
            "kv_tokens": facts.kv_tokens_usable or (page.kv_tokens if page else None),
            "vram_peak_bytes": self._peaks or None,
            "start_s": self._end.env.get("start_s"),
            "kernel": " + ".join(facts.kernels) or None,
            "client_lateness_s": None if late is None else round(late, 6),
        }


def _crash(diagnosis: Diagnosis) -> dict[str, Any]:
    return {
        "cause": diagnosis.cause,
        "what": diagnosis.what,
        "why": diagnosis.why,
        "fix": diagnosis.fix,
        "phase": diagnosis.phase,
        "evidence": list(diagnosis.evidence),
    }
