"""A line plot as SVG text, without a plotting library."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 860, 460, 50, 40, 230, 40
_COLOURS = ("#1b6ca8", "#c8553d", "#588157", "#7b2d8b", "#b08900", "#444444", "#2a9d8f", "#e76f51")


def line_plot(title: str, xs: Sequence[int], lines: Mapping[str, Sequence[float]]) -> str:
    """Return lines of percentages over `xs`, each named at its right end, as they come down there."""
    wide, high = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def point(x: float, y: float) -> tuple[float, float]:
        return _LEFT + wide * x / max(xs), _TOP + high * (1 - y / 100)

    parts = _frame(title)
    for y in range(0, 101, 20):
        _, at = point(0, y)
        parts.append(_gridline(at, wide, str(y)))
    for x in xs:
        at, bottom = point(x, 0)
        parts.append(f'<text x="{at - 6:.1f}" y="{bottom + 18:.1f}">{x}</text>')
    taken = -99.0
    for number, (name, ys) in enumerate(sorted(lines.items(), key=lambda line: -line[1][-1])):
        points = [point(x, y) for x, y in zip(xs, ys, strict=True)]
        taken = max(points[-1][1], taken + 15)
        parts += _line(points, _COLOURS[number % len(_COLOURS)], f"{name} {ys[-1]:.1f}", taken)
    return "\n".join([*parts, "</svg>", ""])


def log_plot(title: str, xs: Sequence[int], lines: Mapping[str, Mapping[int, float]]) -> str:
    """Return lines of positive figures over `xs` on two logarithmic axes; a line may lack some of the xs."""
    wide, high = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    values = [value for line in lines.values() for value in line.values()]
    low, top = math.floor(math.log10(min(values, default=1))), math.ceil(math.log10(max(values, default=10)))
    left, right = math.log10(min(xs)), math.log10(max(xs))

    def point(x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - left) / ((right - left) or 1)
        return _LEFT + wide * across, _TOP + high * (1 - (math.log10(y) - low) / ((top - low) or 1))

    parts = _frame(title)
    for power in range(low, top + 1):
        _, at = point(xs[0], 10**power)
        parts.append(_gridline(at, wide, f"{10**power:,.10g}"))
    for x in xs:
        at, bottom = point(x, 10**low)
        parts.append(f'<text x="{at - 6:.1f}" y="{bottom + 18:.1f}">{x:,}</text>')
    taken = -99.0
    named = [(name, sorted(line.items())) for name, line in lines.items() if line]
    for number, (name, pairs) in enumerate(sorted(named, key=lambda line: -line[1][-1][1])):
        points = [point(x, y) for x, y in pairs]
        taken = max(points[-1][1], taken + 15)
        parts += _line(points, _COLOURS[number % len(_COLOURS)], f"{name} {pairs[-1][1]:,.0f}", taken)
    return "\n".join([*parts, "</svg>", ""])


def _frame(title: str) -> list[str]:
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="22">{escape(title)}</text>',
    ]


def _gridline(at: float, wide: float, label: str) -> str:
    return f'<path d="M{_LEFT} {at:.1f}h{wide}" stroke="#ddd"/><text x="2" y="{at + 4:.1f}">{label}</text>'


def _line(points: Sequence[tuple[float, float]], colour: str, label: str, label_at: float) -> list[str]:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return [
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>',
        f'<text x="{points[-1][0] + 8:.1f}" y="{label_at + 4:.1f}" fill="{colour}">{escape(label)}</text>',
    ]
