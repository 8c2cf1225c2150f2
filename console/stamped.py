"""Files and folders whose names begin with the moment they were made at. Standard library only."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

_DIGITS = 14
"""Of a year to a second."""
_NO_DIGIT = re.compile(r"\D")
_SLACK = timedelta(minutes=1)


def oldest_first(names: Iterable[str]) -> list[str]:
    """By the UTC moment each name begins with.

    What was made while the clock stood ahead counts as the oldest: it would be the newest until that day comes.
    """
    now = (datetime.now(UTC) + _SLACK).strftime("%Y%m%d%H%M%S")
    return sorted(names, key=lambda name: (_NO_DIGIT.sub("", name)[:_DIGITS] <= now, name))
