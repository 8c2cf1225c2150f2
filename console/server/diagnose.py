"""What a vLLM log says went wrong: the root cause in the user's words, or None where nothing did.

Pure: lines in, a diagnosis out. The same code watches our own server and reads any file.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence

from console.server.diagnosis.engine import speculates_with_prefix_cache
from console.server.diagnosis.memory import oom_phase
from console.server.diagnosis.rule import Fault, told
from console.server.diagnosis.rules import find_fault
from console.server.diagnosis.silence import find_silence
from console.server.diagnosis.story import Raised, Record, Story, end_of_chain, read_story, root_exception
from console.server.lines import evidence
from console.server.status import Diagnosis, Phase

_ASKED_TO_STOP = (-signal.SIGTERM, -signal.SIGINT, 128 + signal.SIGTERM, 128 + signal.SIGINT)
_LAST_RESORT = 2
"""The tier of rules that only say that a process died: any real exception says more."""


def diagnose(
    lines: Sequence[str], *, alive: bool = False, silent_s: float = 0.0, exit_code: int | None = None
) -> Diagnosis | None:
    """Why a server is dead, failing or stuck.

    Args:
        lines: its log, oldest first; several starts in one file are told apart, the last one counts.
        alive: does the process still run? Then slow is not dead, and silence has to be long.
        silent_s: seconds since the last line, for a process that is alive.
        exit_code: of a dead process, negative for a signal; None where nobody saw it end.

    Returns:
        None where nothing is wrong, a stop that somebody asked for included.
    """
    story = read_story(lines)
    if alive:
        broken = _broken(story) if story.fatal_at is not None else None
        return broken or find_silence(story, silent_s)
    if story.ready_at is None:
        return _dead_start(story, exit_code)
    return _dead_server(story, exit_code)


def _broken(story: Story) -> Diagnosis | None:
    """The root cause of a log that holds an engine's death."""
    fault = find_fault(story)
    if fault and fault.rule.tier < _LAST_RESORT:
        return _told(fault)
    root = root_exception(story)
    if root and not root.wraps:
        return _exception(story, root)
    if fault:
        return _told(fault)
    if root:
        return _exception(story, root)
    return _marker(story) if story.fatal_at is not None else None


def _dead_start(story: Story, exit_code: int | None) -> Diagnosis | None:
    fault = find_fault(story)
    if fault and fault.rule.tier < _LAST_RESORT:
        return _told(fault)
    if story.stop_at is not None and story.fatal_at is None:
        return None
    if exit_code in _ASKED_TO_STOP:
        return None
    return _broken(story) or _ended(story, exit_code)


def _dead_server(story: Story, exit_code: int | None) -> Diagnosis | None:
    if story.fatal_at is not None:
        return _broken(story)
    fault = find_fault(story)
    if fault and fault.rule.id == "port-in-use":  # older versions bind last, and clean up in an orderly way
        return _told(fault)
    if story.stop_at is not None or exit_code in _ASKED_TO_STOP:
        return None
    if fault:
        return _told(fault)
    return None if exit_code is None else _ended(story, exit_code)


def _told(fault: Fault) -> Diagnosis:
    if fault.rule.cause == "oom":
        return told(fault, oom_phase(fault))
    if fault.rule.id == "port-in-use" and fault.record.phase in (Phase.READY, Phase.STOPPING):
        return told(fault, Phase.WARM_UP)  # "startup complete" comes before the bind there
    return told(fault)


def _exception(story: Story, root: Raised) -> Diagnosis:
    """An exception that no rule knows: shown as it is, with what it became on its way up."""
    last = end_of_chain(story, root)
    said = _said(root)
    became = f" It ended as {_said(last)}" if last is not root else ""
    shown = story.shown(*_frames(story, root), root.record, last.record)
    phase = root.record.phase
    if story.ready_at is not None:
        return Diagnosis(
            cause="engine-crashed",
            what="The engine crashed while it served.",
            why=f"{said}{became}",
            fix=_crash_fix(story),
            evidence=shown,
            phase=Phase.READY if phase is Phase.STOPPING else phase,
        )
    return Diagnosis(
        cause="unknown",
        what=f"The start failed in phase {phase.value}, for a reason this console does not know.",
        why=f"{said}{became}",
        fix="the evidence is what the log says about it; the whole log has the traceback",
        evidence=shown,
        phase=phase,
    )


def _said(raised: Raised) -> str:
    if raised.inner:
        return f"A worker failed with: {evidence(raised.inner)}"
    name = raised.type.rpartition(".")[2]
    return evidence(f"{name}: {raised.said}") if raised.said else name


def _frames(story: Story, raised: Raised) -> list[Record]:
    """The place in the code where it was raised: the last frame above it."""
    above = [record for record in story.before(raised.record, 8) if record.text.lstrip().startswith('File "')]
    return above[-1:]


def _crash_fix(story: Story) -> str:
    if speculates_with_prefix_cache(story):
        return (
            "start again; if it comes back, take apart what runs together: --no-enable-prefix-caching, then "
            "--no-async-scheduling, then without --speculative-config (MTP with prefix caching crashes some versions)"
        )
    return "start again; if it comes back, try --no-async-scheduling, then --enforce-eager, and keep the log"


def _marker(story: Story) -> Diagnosis:
    """The log says that the engine died, and nothing about why."""
    record = story.records[story.fatal_at or 0]  # the caller knows that there is one
    last = [line for line in story.before(record, 12) if line.text.strip() and not line.line.folded][-3:]
    return Diagnosis(
        cause="engine-crashed" if story.ready_at is not None else "unknown",
        what="The engine died, and its log does not say why.",
        why=f"The first line about it: {story.shown(record)[0] if record.text.strip() else 'empty'}",
        fix="look at the kernel log (`dmesg`) for the OOM killer or an Xid of a GPU, and start again",
        evidence=story.shown(*last, record),
        phase=Phase.READY if record.phase is Phase.STOPPING else record.phase,
    )


def _ended(story: Story, exit_code: int | None) -> Diagnosis | None:
    """Nothing in the log explains the end; the exit code may."""
    if exit_code == 0:
        return None
    last = [record for record in story.records if record.text.strip() and not record.line.folded][-3:]
    name = _signal(exit_code)
    phase = Phase.READY if story.ready_at is not None else story.phase
    where = "while it was ready" if phase is Phase.READY else f"in phase {phase.value}"
    return Diagnosis(
        cause="engine-crashed" if name in _CRASHES else "unknown",
        what=_end_sentence(exit_code, name, where),
        why=_end_reason(name),
        fix=(
            "look for the OOM killer in the kernel log (`dmesg | grep -i -e oom -e killed`), free main memory; then "
            "start again"
            if name == "SIGKILL"
            else "look at the last lines of the log and at the kernel log (`dmesg`), and start again"
        ),
        evidence=story.shown(*last),
        phase=phase,
    )


_CRASHES = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE")


def _signal(exit_code: int | None) -> str | None:
    number = -exit_code if exit_code is not None and exit_code < 0 else (exit_code or 0) - 128
    try:
        return signal.Signals(number).name if number > 0 else None
    except ValueError:
        return None


def _end_sentence(exit_code: int | None, name: str | None, where: str) -> str:
    if name == "SIGKILL":
        return f"The server was killed (SIGKILL) {where}."
    if name:
        return f"The server was ended by {name} {where}."
    if exit_code is None:
        return f"The server's log ends {where} without a word."
    return f"The server ended with exit code {exit_code} {where}, and its log does not say why."


def _end_reason(name: str | None) -> str:
    if name == "SIGKILL":
        return "Nothing in its log explains it. SIGKILL comes from outside: somebody, or the kernel's OOM killer."
    if name in _CRASHES:
        return f"{name} is a crash outside of Python: a kernel, a driver, or a library."
    return "The cause is unknown: no line of the log is an error. It may have been killed from outside."
