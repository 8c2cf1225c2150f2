"""Error lines of a log, counted for the notice about them."""

from __future__ import annotations

import re
from collections.abc import Iterable

_ERROR = re.compile(r"(?:^|\) |\s)(?:ERROR|CRITICAL)(?: \d\d-\d\d |:\s)")


def errors_in(lines: Iterable[str]) -> tuple[int, str | None]:
    """How many of these lines are errors by vLLM's or the web server's own level, and the last of them.

    The lines of one traceback carry the level each; a run of them counts once.
    """
    count, last, within = 0, None, False
    for line in lines:
        found = _ERROR.search(line[:200]) is not None
        if found and not within:
            count, last = count + 1, line.strip()
        within = found
    return count, last
