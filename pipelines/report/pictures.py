"""SVG pictures of a report, styled as the explorer. No `style` attributes: the CSP forbids them.

Positions and sizes are in units of each picture's view box.
"""

from collections.abc import Mapping, Sequence
from html import escape
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


def compact(number: float) -> str:
    """Format a number as `9,999`, `12.3K`, `4.5M`."""
    size = abs(number)
    for unit, name in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e4, "K")):
        if size >= unit:
            return f"{number / (unit if name != 'K' else 1e3):.3g}{name}"
    return f"{number:,.0f}"
