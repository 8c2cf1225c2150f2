"""`main` reads as prose: parse, build the house, run one verb, turn what went wrong into words and a code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from console import hints
from console.cli.parser import parse
from console.cli.voice import ClosedOutput, ready_to_speak, say, silence
from console.errors import ConsoleError, Exit


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; the process's exit code (see `Exit`)."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _answered(words)
        if sys.stdout is not None:
            # Here and not while Python shuts down, where a full disk would be a complaint of the interpreter's.
            sys.stdout.flush()
        return code
    except BrokenPipeError:
        _leave_stdout()
        return int(Exit.OK)
    except OSError as error:
        _leave_stdout()
        for line in _refused(error).lines():
            say(line)
        return int(Exit.FAILED)


def _answered(words: list[str]) -> int:
    """The code of a verb, with what went wrong in words on stderr."""
    try:
        return _run(words)
    except ConsoleError as error:
        cause = f" (cause: {error.cause})" if error.cause else ""
        what, *rest = error.lines()
        say("\n".join([f"qwen-console: {what}{cause}", *rest]))
        return int(error.exit_code)
    except KeyboardInterrupt:
        say("interrupted")
        return int(Exit.INTERRUPTED)


def _run(words: list[str]) -> int:
    if words[:1] == ["sim"] or words[:2] == ["--demo", "sim"]:
        # The stand-in takes vllm serve's argv as it is: no parsing of ours may touch it.
        from console.sim import main as sim

        return sim(words[words.index("sim") + 1 :])
    ready_to_speak()
    hints.started_as(sys.argv[0], demo="--demo" in words)
    args = parse(words)
    hints.started_as(sys.argv[0], demo=args.demo, presets=args.presets)
    with ExitStack() as args.opened:
        return int(args.verb(args))


def _refused(error: OSError) -> ConsoleError:
    """What the system said, and what is in the way where that can be seen."""
    from console.server.access import in_the_way

    if isinstance(error, ClosedOutput):
        fix = "leave out what closes it (`>&-`), or let it go to a file"
        return ConsoleError("qwen-console: what was asked for was not delivered", str(error.strerror), fix)
    place = f" ({error.filename})" if error.filename else ""
    problem = in_the_way(Path(error.filename)) if isinstance(error.filename, str) else None
    why, fix = problem or ("", "see that the folder can be written and that the disk has room")
    return ConsoleError(f"qwen-console: the system refused: {error.strerror or error}{place}", why, fix)


def _leave_stdout() -> None:
    """stdout's reader has left, or its disk is full."""
    if sys.stdout is not None:
        silence(sys.stdout.fileno())
