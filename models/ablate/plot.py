"""Curves of all runs as a drawing."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

_WIDTH, _HEIGHT, _LEFT, _TOP = 560, 320, 64, 40
_LEGEND = 240
#: Okabe and Ito's colours, which people with any colour vision distinguish.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")

Curve = Sequence[tuple[int, float]]


def curves_svg(curves: Mapping[str, Sequence[Curve]], title: str) -> str:
    """Return an SVG: bits per byte over tokens, a line for each seed of each run."""
    points = [point for seeds in curves.values() for curve in seeds for point in curve]
    if not points:
        return ""
    most = max(tokens for tokens, _ in points)
    low, high = min(bits for _, bits in points), max(bits for _, bits in points)
    high = high if high > low else low + 1.0
    lines, legend = [], []
    for number, (name, seeds) in enumerate(curves.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        lines += [_line(curve, colour, most, low, high) for curve in seeds]
        last = sum(curve[-1][1] for curve in seeds) / len(seeds)
        legend.append(_entry(number, colour, f"{name}: {last:.4f}"))
    width, height = _LEFT + _WIDTH + _LEGEND, _TOP + _HEIGHT + 56
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">'
        f'<rect width="{width}" height="{height}" fill="#fff"/>'
        f'<text x="{_LEFT}" y="24" font-size="14">{html.escape(title)}</text>'
        f"{_axes(most, low, high)}{''.join(lines)}{''.join(legend)}</svg>\n"
    )


def _line(curve: Curve, colour: str, most: int, low: float, high: float) -> str:
    places = " ".join(f"{_x(t, most)},{_y(bits, low, high)}" for t, bits in curve)
    return f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="1.5"/>'


def _entry(number: int, colour: str, text: str) -> str:
    y = _TOP + 16 + 20 * number
    x = _LEFT + _WIDTH + 16
    return (
        f'<rect x="{x}" y="{y - 9}" width="14" height="10" fill="{colour}"/>'
        f'<text x="{x + 20}" y="{y}">{html.escape(text)}</text>'
    )


def _axes(most: int, low: float, high: float) -> str:
    parts = [
        f'<rect x="{_LEFT}" y="{_TOP}" width="{_WIDTH}" height="{_HEIGHT}" fill="none" '
        'stroke="#999"/>'
    ]
    for k in range(5):
        bits, tokens = low + (high - low) * k / 4, most * k // 4
        parts.append(
            f'<text x="{_LEFT - 8}" y="{_y(bits, low, high) + 4}" text-anchor="end">{bits:.3f}'
            f'</text><text x="{_x(tokens, most)}" y="{_TOP + _HEIGHT + 18}" '
            f'text-anchor="middle">{_short(tokens)}</text>'
        )
    middle = _LEFT + _WIDTH / 2
    parts.append(
        f'<text x="{middle}" y="{_TOP + _HEIGHT + 42}" text-anchor="middle">tokens read</text>'
    )
    return "".join(parts)


def _short(tokens: int) -> str:
    for unit, sign in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if tokens >= unit:
            return f"{tokens / unit:.3g} {sign}"
    return str(tokens)


def _x(tokens: int, most: int) -> float:
    return round(_LEFT + _WIDTH * tokens / most, 1)


def _y(bits: float, low: float, high: float) -> float:
    return round(_TOP + _HEIGHT * (high - bits) / (high - low), 1)
