"""Numbers to text, in one place: rounding, units, and what absence looks like."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

NA = "n/a"
_GIB = 1024**3
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufff9-\ufffb]"
)
"""What moves the cursor, rings, recolours or turns the direction of writing, and halves of characters."""
_CSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def number(value: float | None, digits: int = 1, suffix: str = "") -> str:
    """A plain number with a fixed count of decimals."""
    return NA if value is None else f"{value:,.{digits}f}{suffix}"


def count(value: float | None) -> str:
    """A whole number with thousands separators, short above 100,000 (`102K`)."""
    if value is None:
        return NA
    if abs(value) >= 10_000_000:
        return f"{value / 1e6:.1f}M"
    return f"{value / 1000:.0f}K" if abs(value) >= 100_000 else f"{value:,.0f}"


def counted(number: int, noun: str) -> str:
    """`1 round`, `3 rounds`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def gib(value: float | None, digits: int = 2) -> str:
    """Bytes as GiB."""
    return NA if value is None else f"{value / _GIB:.{digits}f} GiB"


def rate(value: float | None) -> str:
    """Bytes a second, in decimal units as PCIe is quoted."""
    if value is None:
        return NA
    for unit, size in (("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3)):
        if abs(value) >= size:
            return f"{value / size:.1f} {unit}"
    return f"{value:.0f} B/s"


def seconds(value: float | None) -> str:
    """A latency: `8.40 ms`, `184 ms`, `1.32 s`, `124.6 s`."""
    if value is None:
        return NA
    return f"{_in_ms(value)} ms" if value < 1 else f"{_in_s(value)} s"


def _in_ms(value: float) -> str:
    return f"{value * 1000:.{2 if value < 0.01 else 1 if value < 0.1 else 0}f}"


def _in_s(value: float) -> str:
    return f"{value:.{3 if value < 0.1 else 2 if value < 10 else 1}f}"


def bounds(low: float, high: float | None) -> str:
    """What is only known to lie between two latencies, in one unit: `<10.0 ms`, `10.0-25.0 ms`, `0.49-2.20 s`."""
    if high is None:
        return f">{seconds(low)}"
    if low <= 0:
        return f"<{seconds(high)}"
    return f"{_in_ms(low)}-{seconds(high)}" if high < 1 else f"{_in_s(low)}-{seconds(high)}"


def duration(value: float | None) -> str:
    """A span of wall time: `8 s`, `2m05s`, `3h12m`, `4d03h`."""
    if value is None:
        return NA
    whole = int(value)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // 86400}d{whole % 86400 // 3600:02d}h"


def took(value: float | None) -> str:
    """A span that was measured: `5.8 s`, `41.0 s`, `2m05s`."""
    return duration(value) if value is None or value >= 60 else f"{value:.1f} s"


def percent(ratio: float | None, digits: int = 1) -> str:
    """A ratio 0..1 as percent."""
    return NA if ratio is None else f"{ratio * 100:.{digits}f} %"


def per_second(value: float | None, unit: str = "tok/s") -> str:
    """A rate with its unit; one decimal below a hundred."""
    if value is None:
        return NA
    return f"{value:,.0f} {unit}" if abs(value) >= 100 else f"{value:.1f} {unit}"


def local_minute(at: float) -> str:
    """A unix time on this machine's clock: `2026-01-31 22:30`."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))


def local_moment(utc: str | None, now: float | None = None) -> str:
    """A moment of the state files on this machine's clock: `22:30:05`, with its day where that is over; `n/a`.

    Args:
        utc: as ISO 8601.
        now: unix time; the clock's without one.
    """
    try:
        at = datetime.fromisoformat(utc or "").timestamp()
    except (ValueError, OverflowError, OSError):
        return NA
    now = time.time() if now is None else now
    same_day = time.localtime(at)[:3] == time.localtime(now)[:3]
    return time.strftime("%H:%M:%S", time.localtime(at)) if same_day else local_minute(at)


def clip(text: str, width: int) -> str:
    """A text of at most `width` characters; what was cut off shows as `…`."""
    return text if len(text) <= width else f"{text[: width - 1]}…"


def uncoloured(text: str) -> str:
    """A line without what would colour it or move the cursor (CSI sequences)."""
    return _CSI.sub("", text)


def printable(text: str) -> str:
    """A text of somebody else's, safe for a terminal: what is no sign stands there as its escape (`\\x1b`).

    Line ends and tabs stay.
    """
    return _UNPRINTABLE.sub(lambda sign: ascii(sign[0])[1:-1], text)


def one_line(text: str) -> str:
    """The same on one line, whatever line ends and runs of blanks it holds."""
    return printable(" ".join(text.split()))


def change(ratio: float | None) -> str:
    """A ratio of two measures as a signed change: 0.48 is `-52.0 %`; what rounds to nothing has no sign: `0.0 %`."""
    if ratio is None:
        return NA
    text = f"{(ratio - 1) * 100:+.1f} %"
    return text if text.strip("+-0. %") else "0.0 %"


def finite(value: Any) -> Any:
    """The same value without NaN and infinity, which JSON has no words for: they are unknown."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in value.items()}
    return [finite(item) for item in value] if isinstance(value, list | tuple) else value
