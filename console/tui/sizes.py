"""What fits on a terminal of which size, as style classes of the dashboard. Pure."""

from __future__ import annotations

LEAST = 60, 15
"""Columns and rows of the smallest terminal for which there is a drawing."""
_SLIM, _WIDE, _VAST = 80, 120, 176
_LOW, _TALL, _HIGH = 22, 34, 54


def classes(width: int, height: int) -> dict[str, bool]:
    """Class → whether it holds."""
    return {
        "-slim": width < _SLIM,
        "-narrow": width < _WIDE,
        "-wide": width >= _WIDE,
        "-vast": width >= _VAST,
        "-low": height < _LOW,
        "-short": height < _TALL,
        "-tall": height >= _TALL,
        "-high": height >= _HIGH,
        "-tiny": width < LEAST[0] or height < LEAST[1],
    }
