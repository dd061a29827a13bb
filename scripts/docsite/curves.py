"""Line charts and bar charts as SVG for the pages; the same figures give the same bytes."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from scripts.docsite.pictures import GREY, INK, draw_text, render_svg

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LEFT, RIGHT, TOP, BOTTOM, WIDTH, HEIGHT = 84, 680, 56, 300, 730, 370
GRID = "#e5e7eb"
_LEGEND_STEP = 200


class Series(NamedTuple):
    """A line with its colour; ``marks`` draws the points, without it the line is dashed."""

    label: str
    colour: str
    points: Sequence[tuple[float, float]]
    marks: bool = True


class Axis(NamedTuple):
    """The label of an axis, how its ticks are written, and whether it is logarithmic."""

    label: str
    write: Callable[[float], str]
    log: bool = True


def draw_lines(title: str, x: Axis, y: Axis, series: Sequence[Series]) -> str:
    """Return a chart of lines over a logarithmic axis of whole powers of ten."""
    xs = [point[0] for one in series for point in one.points]
    ys = [point[1] for one in series for point in one.points]
    across, up = _Scale(xs, x, LEFT, RIGHT), _Scale(ys, y, BOTTOM, TOP)
    parts = []
    for tick in up.ticks:
        place = up.place(tick)
        parts.append(f'<path d="M{LEFT} {place:.1f}H{RIGHT}" stroke="{GRID}"/>')
        parts.append(draw_text(LEFT - 8, round(place + 5, 1), escape(y.write(tick)), GREY, "end", 13))
    parts += [
        draw_text(round(across.place(tick), 1), BOTTOM + 22, escape(x.write(tick)), GREY, size=13)
        for tick in across.ticks
    ]
    for number, one in enumerate(series):
        places = [(across.place(px), up.place(py)) for px, py in one.points]
        path = "L".join(f"{px:.1f} {py:.1f}" for px, py in places)
        dash = "" if one.marks else ' stroke-dasharray="6 4"'
        parts.append(f'<path d="M{path}" fill="none" stroke="{one.colour}" stroke-width="2"{dash}/>')
        if one.marks:
            parts += [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="4" fill="{one.colour}"/>' for px, py in places]
        at = LEFT + number * _LEGEND_STEP
        parts.append(f'<path d="M{at} 34h24" stroke="{one.colour}" stroke-width="2.5"{dash}/>')
        parts.append(draw_text(at + 30, 39, escape(one.label), INK, "start", 13))
    parts.append(draw_text((LEFT + RIGHT) / 2, BOTTOM + 48, escape(x.label), GREY, size=13))
    parts.append(draw_text(LEFT - 60, 20, escape(y.label), GREY, "start", 13))
    return render_svg(WIDTH, HEIGHT, escape(title), parts)


def draw_bars(title: str, caption: str, bars: Sequence[tuple[str, float, str, str]]) -> str:
    """Return a chart of horizontal bars under a caption: label, value, the text beside the bar, colour."""
    step, top, left, right = 40, 36, 285, 585
    most = max(value for _, value, _, _ in bars)
    parts = [draw_text(LEFT - 60, 20, escape(caption), GREY, "start", 13)]
    for number, (label, value, words, colour) in enumerate(bars):
        y = top + number * step
        width = max(2.0, (right - left) * value / most)
        parts.append(draw_text(left - 12, y + 18, escape(label), INK, "end", 14))
        place = f'x="{left}" y="{y}" width="{width:.1f}" height="26"'
        parts.append(f'<rect {place} rx="4" fill="{colour}"/>')
        parts.append(draw_text(round(left + width + 10, 1), y + 18, escape(words), INK, "start", 14))
    return render_svg(WIDTH, top + len(bars) * step + 4, escape(title), parts)


class _Scale:
    """Places of values between two edges."""

    def __init__(self, values: Sequence[float], axis: Axis, begin: float, end: float) -> None:
        self._log, self._begin, self._end = axis.log, begin, end
        if axis.log:
            low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)) - 1e-9)
            high = max(high, low + 1)
            self.ticks = [10.0**power for power in range(low, high + 1)]
            self._low, self._high = float(low), float(high)
        else:
            unit = 10.0 ** math.floor(math.log10(max(values)))
            step = next(unit * part for part in (0.2, 0.5, 1, 2) if max(values) / (unit * part) <= 6)
            count = math.ceil(max(values) / step - 1e-9)
            self.ticks = [step * number for number in range(count + 1)]
            self._low, self._high = 0.0, step * count

    def place(self, value: float) -> float:
        """The place of a value."""
        level = math.log10(value) if self._log else value
        return self._begin + (self._end - self._begin) * (level - self._low) / (self._high - self._low)
