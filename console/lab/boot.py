"""One boot of one arm: start it, measure it, stop it; whatever it does becomes the boot's record."""

from __future__ import annotations

import secrets
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from console.endpoint import Endpoint, free_port
from console.errors import ConsoleError
from console.gpu.source import open_source
from console.lab.bench import Bench, Place, Prompts
from console.lab.cards import CardLog
from console.lab.conditions import (
    Conditions,
    deciding,
    environment_of,
    fingerprint,
)
from console.lab.journal import Journal, JournalError
from console.lab.outcome import ArmCrashed, BootEnd, BootVoid, ended
from console.lab.plan import Plan
from console.lab.probing import Probing
from console.presets import Preset
from console.presets.model import KEY_VARIABLE
from console.server.failure import diagnosis_json
from console.server.life import Server
from console.server.log import ends
from console.server.room import NoRoom, full_note, is_full
from console.server.startup import read_startup
from console.server.status import ServerStatus, State
from console.timely import asleep_s, slept_since

LOOPBACK = "127.0.0.1"


def arm_preset(plan: Plan, arm: str, port: int, key: str) -> Preset:
    """The arm as it is booted: on loopback, on a port and with a key of its own, without looking for downloads."""
    preset = plan.preset_of(arm)
    env = {"HF_HUB_OFFLINE": "1", **preset.env, KEY_VARIABLE: key}
    server = replace(preset.server, host=LOOPBACK, port=port, restart="never")
    return replace(preset, env=env, secrets=preset.secrets | {KEY_VARIABLE}, server=server)


@dataclass(slots=True)
class Shared:
    """What the boots of a run have in common."""

    plan: Plan
    server: Server
    """The one server of this console."""
    journal: Journal
    folder: Path
    """The run's folder; logs of arms go into it."""
    prompts: Prompts
    conditions: Conditions
    primed: set[str]
    """Arms whose compile cache was filled by a boot of this run."""


class Boot:
    """The life of one arm in one round.

    Args:
        shared: what all boots share.
        place: number of the boot, its round, its arm.
    """

    def __init__(self, shared: Shared, place: tuple[int, int, str]) -> None:
        number, round_number, arm = place
        self._shared, self._server, self._journal = shared, shared.server, shared.journal
        self._run = shared.folder.name
        self._preset = arm_preset(shared.plan, arm, free_port(LOOPBACK), secrets.token_hex(16))
        self._endpoint = Endpoint(f"http://{LOOPBACK}:{self._preset.server.port}", self._preset.api_key)
        self._log = free_log(shared.folder / "boots", f"{number:02d}-{arm}")
        self._end = BootEnd(number, arm, round_number)
        self._cards = CardLog(self._open_cards)
        self._place = Place(
            shared.plan, self._preset, self._server, self._endpoint, self._journal, self._log, self._end
        )
        self._bench = Bench(self._place, shared.prompts, self._cards.look)

    def run(self) -> BootEnd:
        """Everything, journalled; the server is stopped at the end."""
        end, asleep = self._end, asleep_s()
        self._journal.add("boot-start", n=end.n, arm=end.arm, round=end.round, port=self._preset.server.port)
        try:
            self._start()
            self._bench.run()
            if slept := slept_since(asleep):
                raise BootVoid(f"the machine was suspended for {slept:.0f} s")
            end.valid = True
            if end.round == 1:
                self._probe()
        except ArmCrashed as crash:
            # What was measured before stays measured: a server that dies of a probe is a result beside it.
            end.crash = diagnosis_json(crash.diagnosis)
            end.reason = None if end.valid else f"crashed: {crash.diagnosis.what}"
        except BootVoid as void:
            end.reason = str(void)
        except (JournalError, NoRoom):
            raise
        except ConsoleError as error:
            end.reason = f"{error.what}: {error.why}" if error.why else error.what
        if not end.valid and is_full(self._shared.folder):
            raise NoRoom(full_note(self._shared.folder), end.reason or "")
        end.env = self._environment()
        self._cards.close()
        if self._cards.silent:
            end.warn("the driver did not answer: figures of the cards are missing")
        self._stop()
        self._journal.add("boot-end", **asdict(end))
        self._journal.sync()
        return end

    def _start(self) -> None:
        self._start_once(self._log)
        if self._is_cold() and self._end.arm not in self._shared.primed:
            # A cold compile cache makes this start slow and its KV cache another size: it only fills the cache.
            self._place.say("priming: the compile cache was cold, so this start is not measured")
            self._journal.add("primed", n=self._end.n, arm=self._end.arm)
            self._shared.primed.add(self._end.arm)
            self._server.stop(for_run=self._run)
            self._log.rename(free_log(self._log.parent, f"{self._log.stem}-priming"))
            self._start_once(self._log)
        if self._is_cold():
            self._end.warn("its compile cache was cold")
        self._journal.add("boot-ready", n=self._end.n)
        self._see_environment()

    def _start_once(self, log: Path) -> None:
        log.parent.mkdir(exist_ok=True)
        self._place.say("starting")
        begun = time.monotonic()
        self._server.start(self._preset, log=log, for_run=self._run, recorded=False)
        status: ServerStatus | None = None
        for status in self._server.follow_start(for_run=self._run):
            self._place.say(f"starting: {status.detail or status.phase or status.state}")
        if status is None or status.state is not State.READY:
            raise ended(status)
        self._end.env = {"start_s": round(time.monotonic() - begun, 2), "vllm": status.version}

    def _is_cold(self) -> bool:
        return read_startup(ends(self._log)).facts.compile_cached is False

    def _see_environment(self) -> None:
        """Hold the server's own environment against that of the first boot."""
        record = self._server.record()
        env = environment_of(record.child.pid) if record and record.child else {}
        conditions, varied = self._shared.conditions, self._shared.plan.differs
        first = conditions.first is None
        problem = conditions.problem(env)
        if first:
            self._journal.add("environment", variables=conditions.first)
        self._end.env["env_hash"] = fingerprint(deciding(env, varied))
        if problem:
            raise BootVoid(problem)

    def _probe(self) -> None:
        Probing(self._place, self._block_tokens() or self._shared.plan.block_tokens).run()
        self._cards.look()

    def _stop(self) -> None:
        self._place.say("stopping")
        self._endpoint.close()
        try:
            report = self._server.stop(for_run=self._run)
        except ConsoleError:
            # Nothing of it lives any more.
            return
        for pid, reason in report.left:
            self._end.warn(f"process {pid} stayed after the stop: {reason}")

    def _open_cards(self) -> Any:
        return open_source(self._endpoint if self._preset.simulated else None, self._server.ours)

    def _block_tokens(self) -> int | None:
        facts, page = read_startup(ends(self._log)).facts, self._bench.cache
        return facts.block_tokens or (page.block_tokens if page else None)

    def _environment(self) -> dict[str, Any]:
        facts, page = read_startup(ends(self._log)).facts, self._bench.cache
        late = self._bench.lateness_s
        return {
            "vllm": self._end.env.get("vllm") or facts.version,
            "driver": self._cards.driver,
            "compile_cache": {True: "cached", False: "cold", None: None}[facts.compile_cached],
            "block_tokens": self._block_tokens(),
            "kv_tokens": facts.kv_tokens_usable or (page.kv_tokens if page else None),
            "vram_peak_bytes": self._cards.vram_peak_bytes,
            "cards": self._cards.rows(),
            "start_s": self._end.env.get("start_s"),
            "kernel": " + ".join(facts.kernels) or None,
            "env_hash": self._end.env.get("env_hash"),
            "client_lateness_s": None if late is None else round(late, 6),
        }


def free_log(folder: Path, stem: str) -> Path:
    """A log file that does not exist yet: the log of a boot that was cut short is not written over."""
    names = (stem if n == 1 else f"{stem}-{n}" for n in range(1, 1000))
    return next(path for name in names if not (path := folder / f"{name}.log").exists())
