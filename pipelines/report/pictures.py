"""SVG pictures of a report, styled as the explorer. No `style` attributes: the CSP forbids them.

Positions and sizes are in units of each picture's view box.
"""

import math
from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import Any

_WIDTH, _HEIGHT, _TOP, _BAND = 1040, 346, 34, 165
_FOOT = _HEIGHT - 78
#: Longest name that stays on one line under the river.
_ONE_LINE = 12


def river(funnel: Sequence[Mapping[str, Any]]) -> str:
    """Draw the run as a river that narrows at each stage; removed documents flow down."""
    all_documents = funnel[0]["documents_in"] or 1
    step = _WIDTH / (len(funnel) + 1)

    def high(documents: int) -> float:
        return max(1.5, _BAND * documents / all_documents) if documents else 0.0

    parts = [
        f"<svg class=river viewBox='0 0 {_WIDTH} {_HEIGHT}' role=img "
        "aria-label='Documents through the stages'>"
    ]
    for i, entry in enumerate(funnel):
        parts += _reach(
            entry, i * step, step, high(entry["documents_in"]), high(entry["documents"])
        )
    kept, x = funnel[-1]["documents"], len(funnel) * step
    parts.append(
        f"<path class='kept end' d='M{x:.1f},{_TOP} H{_WIDTH - 24} "
        f"L{_WIDTH - 4},{_TOP + high(kept) / 2:.1f} L{_WIDTH - 24},{_TOP + high(kept):.1f} "
        f"H{x:.1f} Z'/><text class=in x={x + 6:.1f} y={_TOP - 10}>{compact(kept)} kept</text></svg>"
    )
    return "".join(parts)


def _reach(entry: Mapping[str, Any], x: float, step: float, into: float, left: float) -> list[str]:
    """Draw one stage of the river, its height at both ends proportional to the documents."""
    removed = entry["documents_removed"]
    turn, end, last = x + step * 0.42, x + step, x + step * 0.7
    below = _TOP + into
    parts = [
        f"<path class=kept d='M{x:.1f},{_TOP} H{end:.1f} V{_TOP + left:.1f} "
        f"C{turn + step * 0.3:.1f},{_TOP + left:.1f} {turn + step * 0.25:.1f},{_TOP + left:.1f} "
        f"{turn:.1f},{_TOP + left:.1f} L{x:.1f},{_TOP + left:.1f} Z'/>",
        f"<text class=in x={x + 6:.1f} y={_TOP - 10}>{compact(entry['documents_in'])}</text>",
    ]
    if removed:
        wide = min(into - left if into > left else 1.5, step * 0.5)
        down = max(below + 24, _FOOT - 30)
        parts.append(
            f"<path class=removed d='M{x:.1f},{_TOP + left:.1f} H{turn:.1f} "
            f"C{last:.1f},{_TOP + left:.1f} {last:.1f},{_TOP + left + 20:.1f} "
            f"{last:.1f},{down:.1f} "
            f"V{_FOOT} H{last - wide:.1f} V{down:.1f} C{last - wide:.1f},{below:.1f} "
            f"{turn - 4:.1f},{below:.1f} {x:.1f},{below:.1f} Z'/>"
        )
    for i, line in enumerate(_in_two(entry["stage"])):
        parts.append(
            f"<text class=stage x={last:.1f} y={_FOOT + 18 + 16 * i} text-anchor=end>"
            f"{escape(line)}</text>"
        )
    lost = f"−{compact(removed)}" if removed else "none"
    kind = "out" if removed else "out none"
    parts.append(f"<text class='{kind}' x={last:.1f} y={_FOOT + 56} text-anchor=end>{lost}</text>")
    return parts


def _in_two(name: str) -> tuple[str, str]:
    """Split a name into one or two lines, at its first hyphen."""
    head, hyphen, tail = name.partition("-")
    return ("", name) if len(name) < _ONE_LINE or not hyphen else (head + hyphen, tail)


def track(kept: int, removed: int, of: int) -> str:
    """Draw a bar of two colours: shares of a whole."""
    if not of:
        return ""
    first, second = 100 * kept / of, 100 * removed / of
    return (
        f"<svg class='track meter' aria-hidden=true><rect class=kept width='{first:.2f}%' "
        f"height='100%'/><rect class=removed x='{first:.2f}%' width='{second:.2f}%' "
        "height='100%'/></svg>"
    )


_CHART_WIDTH, _CHART_HEIGHT, _LEFT, _RIGHT = 480, 190, 46, 10
_MIDDLE, _BOTTOM, _CHART_TOP, _TICKS = 108, 164, 14, 4


def chart(found: Mapping[str, Any], thresholds: Sequence[float]) -> str:
    """Draw a histogram with thresholds: kept above the axis, removed documents below.

    Kept and removed documents have separate scales.
    """
    counts, edges = found["counts"], found["edges"]
    gone = [a + b for a, b in zip(counts["removed"], counts["other"], strict=True)]
    up, down = max(max(counts["kept"]), 1), max(max(gone), 1)
    scaled: Any = (lambda v: math.log1p(max(v, 0))) if found["scale"] == "log" else float
    low, high = scaled(edges[0]), scaled(edges[-1])

    def place(value: float) -> float:
        inside = min(max(scaled(value), low), high)
        return _LEFT + (_CHART_WIDTH - _LEFT - _RIGHT) * (inside - low) / (high - low)

    xs = [place(edge) for edge in edges]
    above = [(_MIDDLE - _CHART_TOP) * n / up for n in counts["kept"]]
    mine = [(_BOTTOM - _MIDDLE - 4) * n / down for n in counts["removed"]]
    theirs = [(_BOTTOM - _MIDDLE - 4) * n / down for n in counts["other"]]
    parts = [
        f"<svg class='chart report' viewBox='0 0 {_CHART_WIDTH} {_CHART_HEIGHT}' role=img "
        f"aria-label='Histogram of {escape(found['signal'], quote=True)}'>",
        _columns("kept", xs, [_MIDDLE - h for h in above], above),
        _columns("removed", xs, [_MIDDLE + 2.0] * len(mine), mine),
        _columns("other", xs, [_MIDDLE + 2 + h for h in mine], theirs),
        f"<line class=axis x1={_LEFT} x2={_CHART_WIDTH - _RIGHT} y1={_MIDDLE + 1} "
        f"y2={_MIDDLE + 1} />",
        f"<text x={_LEFT - 6} y={_CHART_TOP + 8} text-anchor=end>{compact(up)}</text>",
        f"<text x={_LEFT - 6} y={_BOTTOM} text-anchor=end>{compact(down)}</text>",
    ]
    for value in thresholds:
        x = place(value)
        parts.append(f"<line class=limit x1={x:.1f} x2={x:.1f} y1={_CHART_TOP - 6} y2={_BOTTOM} />")
    for i in range(_TICKS + 1):
        at = low + (high - low) * i / _TICKS
        value = math.expm1(at) if found["scale"] == "log" else at
        anchor = "start" if not i else "end" if i == _TICKS else "middle"
        x = _LEFT + (_CHART_WIDTH - _LEFT - _RIGHT) * i / _TICKS
        parts.append(
            f"<text x={x:.1f} y={_CHART_HEIGHT - 8} text-anchor={anchor}>{short(value)}</text>"
        )
    return "".join(parts) + "</svg>"


def _columns(
    kind: str, xs: Sequence[float], tops: Sequence[float], heights: Sequence[float]
) -> str:
    """Draw the columns of one group as one path; small ones are kept visible."""
    path = "".join(
        f"M{left + 0.4:.1f},{top:.1f}H{right - 0.4:.1f}V{top + max(height, 1):.1f}"
        f"H{left + 0.4:.1f}Z"
        for (left, right), top, height in zip(pairwise(xs), tops, heights, strict=True)
        if height > 0
    )
    return f"<path class={kind} d='{path}'/>" if path else ""


def compact(number: float) -> str:
    """Format a number as `9,999`, `12.3K`, `4.5M`."""
    size = abs(number)
    for unit, name in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e4, "K")):
        if size >= unit:
            return f"{number / (unit if name != 'K' else 1e3):.3g}{name}"
    return f"{number:,.0f}"


def short(value: float) -> str:
    """Format a value of a signal with two or three digits."""
    if abs(value) >= 1000:
        return compact(value)
    return f"{value:.0f}" if abs(value) >= 10 else f"{value:.2g}"
