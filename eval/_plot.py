"""A line plot as SVG text, without a plotting library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 860, 460, 50, 40, 230, 40
_COLOURS = ("#1b6ca8", "#c8553d", "#588157", "#7b2d8b", "#b08900", "#444444", "#2a9d8f", "#e76f51")


def line_plot(title: str, xs: Sequence[int], lines: Mapping[str, Sequence[float]]) -> str:
    """Return lines of percentages over `xs`, each named at its right end, as they come down there."""
    wide, high = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def point(x: float, y: float) -> tuple[float, float]:
        return _LEFT + wide * x / max(xs), _TOP + high * (1 - y / 100)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="22">{escape(title)}</text>',
    ]
    for y in range(0, 101, 20):
        _, at = point(0, y)
        parts.append(
            f'<path d="M{_LEFT} {at:.1f}h{wide}" stroke="#ddd"/><text x="{_LEFT - 30}" y="{at + 4:.1f}">{y}</text>'
        )
    for x in xs:
        at, bottom = point(x, 0)
        parts.append(f'<text x="{at - 6:.1f}" y="{bottom + 18:.1f}">{x}</text>')
    taken = -99.0
    for number, (name, ys) in enumerate(sorted(lines.items(), key=lambda line: -line[1][-1])):
        colour = _COLOURS[number % len(_COLOURS)]
        points = [point(x, y) for x, y in zip(xs, ys, strict=True)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        taken = max(points[-1][1], taken + 15)
        label = f"{escape(name)} {ys[-1]:.1f}"
        parts.append(f'<text x="{points[-1][0] + 8:.1f}" y="{taken + 4:.1f}" fill="{colour}">{label}</text>')
    return "\n".join([*parts, "</svg>", ""])
