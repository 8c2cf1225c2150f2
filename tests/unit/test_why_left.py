"""Why a process is still there after everything was sent to it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from console.server.ending import why_left
from console.server.process import Identity, identify, read_stat

_NOBODY = 65_534
# The parent of a vfork waits in the kernel until its child is gone.
_HANG = "#include <unistd.h>\nint main(void) { if (vfork() == 0) { sleep(600); _exit(0); } return 0; }\n"


def test_what_hangs_in_the_kernel_is_said_to(tmp_path: Path) -> None:
    source = tmp_path / "hang.c"
    source.write_text(_HANG)
    subprocess.run(["gcc", "-w", "-o", str(tmp_path / "hang"), str(source)], check=True)
    process = subprocess.Popen([str(tmp_path / "hang")], start_new_session=True)
    try:
        end = time.monotonic() + 30
        while (stat := read_stat(process.pid)) is None or not stat.deaf:
            assert time.monotonic() < end
            time.sleep(0.01)
        who = identify(process.pid)
        assert who is not None
        assert "hangs in the kernel (state D, often a driver)" in (why_left(who) or "")
    finally:
        os.killpg(process.pid, 9)
        process.wait()


# Read and imported while it still has its rights.
_ASK = f"""
import os
from console.server.ending import why_left
from console.server.process import identify
if os.getuid() == 0:
    os.setuid({_NOBODY})
print(why_left(identify(1)))
"""


def test_what_belongs_to_another_user_is_said_to() -> None:
    done = subprocess.run([sys.executable, "-P", "-c", _ASK], capture_output=True, text=True, check=True)
    assert "belongs to another user" in done.stdout


def test_what_only_takes_its_time_and_what_is_gone() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    who = identify(process.pid)
    assert who is not None
    assert (why_left(who) or "").endswith("has not ended yet")
    assert why_left(Identity(who.pid, who.start + 1, who.boot)) is None
    process.kill()
    process.wait()
    assert why_left(who) is None
