"""One stand-in from its command line to its exit code."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from starlette.applications import Starlette

from console.sim import log
from console.sim.batch import Limits
from console.sim.boot import BootFailedError, boot, refuse_model
from console.sim.engine import Engine
from console.sim.faults import NAMES, crash_reason, say_crash
from console.sim.http import Site
from console.sim.options import OptionError, Options, parse
from console.sim.scheduler import Scheduler
from console.sim.tally import Tally
from console.sim.timing import Build, Timing

CRASH_LINGER_S = 1.0
"""How long a server answers 503 before it ends after its engine."""
STOP_GRACE_S = 1
SLOW = 10.0
_USAGE = "usage: vllm serve [model_tag] [options]"
_HELP = """\
usage: qwen-console sim MODEL [vllm serve's flags]

A stand-in for `vllm serve`: same command line, same routes, same metrics; no model is loaded and no GPU is used.
For example: qwen-console sim acme/tiny --served-model-name tiny --port 8000 --max-model-len 8192

environment:
  QWEN_CONSOLE_SIM_START_S=3   seconds that a start takes
  QWEN_CONSOLE_SIM_SPEED=1     how much faster than the reference machine it computes
  QWEN_CONSOLE_SIM_SEED=N      the same answers again
  QWEN_CONSOLE_SIM_ANY_MODEL=1 a model's folder need not be there
  QWEN_CONSOLE_SIM_FAULT=NAME  what goes wrong: {faults}
"""


@dataclass(frozen=True, slots=True)
class Conditions:
    """What the environment says of this run of the stand-in."""

    start_s: float = 3.0
    seed: int = 0
    fault: str | None = None
    speed: float = 1.0
    """How much faster than the reference machine it computes."""
    any_model: bool = False
    """Whether a folder that is not there will do as a model: nothing is loaded from it."""

    @classmethod
    def read(cls, env: Mapping[str, str]) -> Conditions:
        """From `QWEN_CONSOLE_SIM_*`.

        Raises:
            OptionError: a value cannot be used.
        """
        fault = env.get("QWEN_CONSOLE_SIM_FAULT") or None
        if fault is not None and fault not in NAMES:
            raise OptionError(f"QWEN_CONSOLE_SIM_FAULT={fault}: one of {', '.join(sorted(NAMES))}")
        try:
            seed = env.get("QWEN_CONSOLE_SIM_SEED")
            start = float(env.get("QWEN_CONSOLE_SIM_START_S") or 3.0)
            return cls(
                start_s=start * SLOW if fault == "slow-start" else start,
                seed=int(seed) if seed else random.SystemRandom().getrandbits(31),
                fault=fault,
                speed=float(env.get("QWEN_CONSOLE_SIM_SPEED") or 1.0),
                any_model=bool(env.get("QWEN_CONSOLE_SIM_ANY_MODEL")),
            )
        except ValueError as error:
            raise OptionError(f"QWEN_CONSOLE_SIM_*: {error}") from None


class StoppedError(Exception):
    """A signal asked the process to end while it was starting."""


def serve(argv: list[str], env: Mapping[str, str] = os.environ) -> int:
    """Run the stand-in; its exit code."""
    if any(word in ("-h", "--help") or word.startswith("--help=") for word in argv):
        print(_HELP.format(faults=", ".join(sorted(NAMES))))
        return 0
    try:
        options, conditions = parse(argv, env), Conditions.read(env)
    except OptionError as error:
        log.raw(f"{_USAGE}\nvllm: error: {error}")
        return 2
    _catch(conditions)
    try:
        # vLLM, too, takes its port first and listens on it last.
        with contextlib.closing(_bind(options)) as door:
            if options.model.startswith(("/", ".")) and not conditions.any_model and not Path(options.model).exists():
                refuse_model(options)
                return 1
            boot(options, conditions.start_s, conditions.fault)
            return asyncio.run(_serve(options, conditions, door))
    except OSError as error:
        _say_port(error)
        return 1
    except BootFailedError:
        return 1
    except StoppedError:
        log.say("APIServer", "launcher.py:254", "[shutdown] API server: shutdown triggered")
        return 0


def build(options: Options, conditions: Conditions) -> Engine:
    """An engine as the command line describes it, at rest."""
    make = Build(
        drafts=options.drafts,
        tensor_parallel=options.tensor_parallel,
        eager=options.eager,
        weight_only=conditions.fault == "kernel-fallback",
    )
    limits = Limits(
        budget=options.budget,
        streams=options.streams,
        block=options.block,
        kv_tokens=options.kv_tokens,
        max_len=options.max_len,
        prefix_caching=options.prefix_caching,
        drafts=options.drafts,
        collapse=conditions.fault == "mtp-collapse",
    )
    scheduler = Scheduler(limits, Timing(make, conditions.seed), conditions.seed)
    before = crash_reason(conditions.fault, options)
    hangs = conditions.fault == "hang-at-first-request"
    return Engine(scheduler, Tally(options), speed=conditions.speed, hangs=hangs, before_step=before)


def _catch(conditions: Conditions) -> None:
    lost = conditions.fault == "lose-first-sigterm"

    def stop(number: int, _frame: object) -> None:
        nonlocal lost
        if lost and number == signal.SIGTERM:
            lost = False
            return
        raise StoppedError

    ignores = conditions.fault == "ignore-sigterm"
    signal.signal(signal.SIGTERM, signal.SIG_IGN if ignores else stop)
    signal.signal(signal.SIGINT, stop)


def _bind(options: Options) -> socket.socket:
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    door = socket.socket(family, socket.SOCK_STREAM)
    door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        door.bind((options.host, options.port))
    except OSError:
        door.close()
        raise
    return door


def _say_port(error: OSError) -> None:
    head = f"(APIServer pid={os.getpid()}) "
    for text in (
        "Traceback (most recent call last):",
        '  File "/opt/vllm/bin/vllm", line 8, in <module>',
        "    sys.exit(main())",
        f"OSError: [Errno {error.errno}] {os.strerror(error.errno or 0)}",
    ):
        log.raw(head + text)


class _Server(uvicorn.Server):
    """Uvicorn without its own signal handling, which would end the process by the signal that it caught."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _serve(options: Options, conditions: Conditions, door: socket.socket) -> int:
    engine = build(options, conditions)
    ending = asyncio.Event()

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as tasks:
            jobs = (_work(engine, options, server), engine.report(), _end(engine, options, server, ending))
            working = [tasks.create_task(job) for job in jobs]
            yield
            for task in working:
                task.cancel()

    server = _Server(_config(options, Site(options, engine, conditions.seed).app(lifespan)))
    loop = asyncio.get_running_loop()
    if conditions.fault != "ignore-sigterm":
        loop.add_signal_handler(signal.SIGTERM, ending.set)
    loop.add_signal_handler(signal.SIGINT, ending.set)
    await server.serve(sockets=[door])
    # As in vLLM, a server that ends because its engine died ends by the ordinary way, with code 0.
    return 0


async def _work(engine: Engine, options: Options, server: uvicorn.Server) -> None:
    """Run the engine; when it dies, say so, and end the server a little later."""
    say_crash(await engine.run(), options)
    await asyncio.sleep(CRASH_LINGER_S)
    server.should_exit = True


async def _end(engine: Engine, options: Options, server: uvicorn.Server, ending: asyncio.Event) -> None:
    """Wait for the signal to end; with `--shutdown-timeout` requests may run on for so long."""
    await ending.wait()
    _say_shutdown("drain" if options.drain_s else "abort", options.drain_s)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(options.drain_s):
            await engine.rest()
    engine.stop("shutdown")
    for place, text in _GONE:
        log.say("APIServer", place, f"[shutdown] {text}")
    server.should_exit = True


def _config(options: Options, app: object) -> uvicorn.Config:
    level = options.given.get("uvicorn-log-level")
    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        loop="asyncio",
        http="httptools",
        ws="none",
        lifespan="on",
        log_level=level[0] if isinstance(level, list) else "info",
        access_log=not options.given.get("disable-uvicorn-access-log", False),
        use_colors=False,
        timeout_graceful_shutdown=STOP_GRACE_S,
    )


_GONE = (
    ("launcher.py:279", "API server: engine client stopped"),
    ("launcher.py:304", "API server: shutting down FastAPI HTTP server"),
)


def _say_shutdown(mode: str, drain_s: float) -> None:
    for place, text in (
        ("launcher.py:254", "API server: shutdown triggered"),
        ("launcher.py:270", f"API server: stopping engine client mode={mode} timeout={drain_s:.0f}s"),
        ("core_client.py:770", f"MPClient: start timeout={drain_s:.0f}s"),
        ("utils.py:628", "Process manager: send sigterm to process EngineCore"),
    ):
        log.say("APIServer", place, f"[shutdown] {text}")
    log.say("EngineCore", "core.py:1454", "[shutdown] EngineCore: trigger received signal=SIGTERM")
