"""A small writer of SVG charts: axes, points, intervals, bars, a legend. Pure: numbers in, text out.

Colours are readable on white and on dark paper; every mark has a shape or a place of its own beside its colour.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

WIDTH = 720
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 20, 34, 44
COLOURS = ("#4477aa", "#cc6633", "#228833", "#aa3377", "#887733")
_INK, _FAINT = "#777777", "#bbbbbb"
_STYLE = "font-family:sans-serif;font-size:12px"


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from `low` to `high`."""
    span = high - low
    if span <= 0 or not math.isfinite(span):
        return [low]
    rough = span / max(about, 1)
    size = 10 ** math.floor(math.log10(rough))
    step = min((m * size for m in (1, 2, 2.5, 5, 10)), key=lambda step: abs(step - rough))
    first = math.ceil(low / step - 1e-9)
    return [round(n * step, 12) for n in range(first, math.floor(high / step + 1e-9) + 1)]


def plain(value: float) -> str:
    """A tick's number without noise."""
    return f"{value:.10g}"


@dataclass
class Chart:
    """One picture with linear axes. Marks are given in the data's own units.

    Args:
        title: above it.
        x: what the horizontal axis shows.
        y: what the vertical axis shows.
        x_range: from, to.
        y_range: from, to.
        height: pixels.
    """

    title: str
    x: str
    y: str
    x_range: tuple[float, float]
    y_range: tuple[float, float]
    height: int = 300
    x_names: Sequence[str] = ()
    """Names at 0, 1, 2 … instead of numbers."""
    _marks: list[str] = field(default_factory=list)
    _legend: list[tuple[str, str]] = field(default_factory=list)

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Pixels of a place."""
        return self._scale(x, self.x_range, _LEFT, WIDTH - _RIGHT), self._scale(
            y, self.y_range, self.height - _BOTTOM, _TOP
        )

    @staticmethod
    def _scale(value: float, span: tuple[float, float], start: float, end: float) -> float:
        low, high = span
        share = 0.5 if high == low else (value - low) / (high - low)
        return round(start + share * (end - start), 2)

    def name(self, text: str, colour: str) -> None:
        """An entry of the legend."""
        self._legend.append((text, colour))

    def point(self, x: float, y: float, colour: str, *, hollow: bool = False) -> None:
        """A dot."""
        px, py = self.at(x, y)
        fill = "none" if hollow else colour
        self._marks.append(f'<circle cx="{px}" cy="{py}" r="4" fill="{fill}" stroke="{colour}" stroke-width="1.5"/>')

    def interval(self, x: float, low: float, high: float, colour: str) -> None:
        """A vertical bar with ends."""
        (px, bottom), (_, top) = self.at(x, low), self.at(x, high)
        d = f"M{px} {bottom}V{top}M{px - 5} {bottom}h10M{px - 5} {top}h10"
        self._marks.append(f'<path d="{d}" stroke="{colour}" stroke-width="2" fill="none"/>')

    def line(self, points: Iterable[tuple[float, float]], colour: str) -> None:
        """Points joined."""
        places = [self.at(x, y) for x, y in points]
        if places:
            d = "M" + "L".join(f"{x} {y}" for x, y in places)
            self._marks.append(f'<path d="{d}" stroke="{colour}" stroke-width="1.5" fill="none"/>')

    def bar(self, x: float, width: float, y: float, colour: str) -> None:
        """A bar from zero."""
        (left, base), (right, top) = self.at(x - width / 2, 0.0), self.at(x + width / 2, y)
        high = max(base - top, 0.0)
        size = f'width="{right - left:.2f}" height="{high:.2f}"'
        self._marks.append(f'<rect x="{left}" y="{top}" {size} fill="{colour}" fill-opacity="0.85"/>')

    def upright(self, x: float, text: str) -> None:
        """A dashed line at a moment, with its name."""
        (px, bottom), (_, top) = self.at(x, self.y_range[0]), self.at(x, self.y_range[1])
        self._marks.append(f'<path d="M{px} {bottom}V{top}" stroke="{_INK}" stroke-dasharray="4 3"/>')
        self._marks.append(f'<text x="{px + 4}" y="{top + 12}" fill="{_INK}">{escape(text)}</text>')

    def level(self, y: float, text: str = "") -> None:
        """A dashed line at a value."""
        (left, py), (right, _) = self.at(self.x_range[0], y), self.at(self.x_range[1], y)
        self._marks.append(f'<path d="M{left} {py}H{right}" stroke="{_INK}" stroke-dasharray="4 3"/>')
        if text:
            self._marks.append(f'<text x="{right}" y="{py - 4}" fill="{_INK}" text-anchor="end">{escape(text)}</text>')

    def render(self) -> str:
        """The whole file."""
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{self.height}" '
            f'viewBox="0 0 {WIDTH} {self.height}" style="{_STYLE}" role="img">'
        )
        title = f'<title>{escape(self.title)}</title><text x="{_LEFT}" y="16" fill="{_INK}">{escape(self.title)}</text>'
        return "\n".join([head, title, *self._axes(), *self._marks, *self._named(), "</svg>"]) + "\n"

    def _axes(self) -> Iterable[str]:
        (left, bottom), (right, top) = (
            self.at(self.x_range[0], self.y_range[0]),
            self.at(self.x_range[1], self.y_range[1]),
        )
        for value in ticks(*self.y_range):
            _, py = self.at(0, value)
            yield f'<path d="M{left} {py}H{right}" stroke="{_FAINT}" stroke-opacity="0.5"/>'
            yield f'<text x="{left - 6}" y="{py + 4}" fill="{_INK}" text-anchor="end">{plain(value)}</text>'
        named: list[tuple[float, str]] = list(enumerate(self.x_names)) or [
            (value, plain(value)) for value in ticks(*self.x_range, about=8)
        ]
        for value, text in named:
            px, _ = self.at(value, 0)
            yield f'<text x="{px}" y="{bottom + 16}" fill="{_INK}" text-anchor="middle">{escape(text)}</text>'
        yield f'<path d="M{left} {top}V{bottom}H{right}" stroke="{_INK}" fill="none"/>'
        middle = (left + right) / 2
        yield f'<text x="{middle}" y="{self.height - 8}" fill="{_INK}" text-anchor="middle">{escape(self.x)}</text>'
        turn = f'transform="rotate(-90 14 {(top + bottom) / 2})"'
        yield f'<text x="14" y="{(top + bottom) / 2}" fill="{_INK}" text-anchor="middle" {turn}>{escape(self.y)}</text>'

    def _named(self) -> Iterable[str]:
        x = WIDTH - _RIGHT
        for text, colour in reversed(self._legend):
            x -= 8 * len(text) + 26
            yield f'<rect x="{x}" y="7" width="11" height="11" fill="{colour}"/>'
            yield f'<text x="{x + 15}" y="17" fill="{_INK}">{escape(text)}</text>'
