"""A calibration table as a drawing: predicted probability against what came true."""

from __future__ import annotations

from collections.abc import Sequence

_SIZE, _EDGE = 320, 48  # of the square, and of the margin that holds the labels
_LARGEST = 12.0  # radius of the bin with most documents


def calibration_svg(table: Sequence[dict[str, float]], title: str) -> str:
    """SVG of a table by `metrics.calibration`; the area of a dot is its number of documents."""
    whole = _SIZE + 2 * _EDGE
    most = max((row["documents"] for row in table), default=1)
    dots = [(row, _LARGEST * (row["documents"] / most) ** 0.5) for row in table]
    marks = "".join(
        f'<circle cx="{_x(row["predicted"])}" cy="{_y(row["observed"])}" r="{max(radius, 2):.1f}" '
        f'fill="#2a6f97" fill-opacity="0.7"><title>predicted {row["predicted"]:.3f}, observed '
        f"{row['observed']:.3f}, {row['documents']:.0f} documents</title></circle>"
        for row, radius in dots
    )
    ticks = "".join(
        f'<text x="{_x(v)}" y="{_y(0) + 18}" text-anchor="middle">{v:g}</text>'
        f'<text x="{_x(0) - 8}" y="{_y(v) + 4}" text-anchor="end">{v:g}</text>'
        for v in (0, 0.25, 0.5, 0.75, 1)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="{whole}" '
        f'viewBox="0 0 {whole} {whole}" font-family="sans-serif" font-size="12">'
        f'<rect width="{whole}" height="{whole}" fill="#fff"/>'
        f'<rect x="{_EDGE}" y="{_EDGE}" width="{_SIZE}" height="{_SIZE}" fill="none" '
        f'stroke="#999"/><line x1="{_x(0)}" y1="{_y(0)}" x2="{_x(1)}" y2="{_y(1)}" '
        f'stroke="#999" stroke-dasharray="4"/>{ticks}{marks}'
        f'<text x="{whole / 2}" y="{_EDGE / 2}" text-anchor="middle">{title}</text>'
        f'<text x="{whole / 2}" y="{whole - 8}" text-anchor="middle">predicted</text>'
        f'<text x="14" y="{whole / 2}" text-anchor="middle" '
        f'transform="rotate(-90 14 {whole / 2})">observed</text></svg>\n'
    )


def _x(value: float) -> float:
    return round(_EDGE + _SIZE * value, 1)


def _y(value: float) -> float:
    return round(_EDGE + _SIZE * (1 - value), 1)
