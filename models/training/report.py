"""Report a training run: the model's card, its held-out metrics, a drawing of its calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from curation.models import ModelCard, sha256_of

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


CARD = "card.yaml"


@dataclass(frozen=True)
class About:
    """What only the user knows of a trained model, for its card."""

    version: str
    licence: str
    source: str
    command: str


@dataclass(frozen=True)
class Report:
    """A trained model and how good it is; `str()` of it is for reading."""

    model: Path
    sha256: str
    metrics: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return _yaml({"model": str(self.model), "sha256": self.sha256, "metrics": self.metrics})


def file_facts(files: Sequence[Path | str]) -> list[dict[str, Any]]:
    """Return the names and checksums of files, for a card."""
    return [{"file": path.name, "sha256": sha256_of(path)} for path in map(Path, files)]


def write_card(
    model: Path,
    task: str,
    about: About,
    files: Sequence[dict[str, Any]],
    settings: BaseModel,
    metrics: dict[str, Any],
) -> Report:
    """Write `card.yaml` next to the model, and `calibration.svg` where there is a calibration."""
    sha256 = sha256_of(model)
    card = ModelCard(
        name=model.stem,
        version=about.version,
        task=task,
        file=model.name,
        sha256=sha256,
        licence=about.licence,
        source=about.source,
        data=list(files),
        command=about.command,
        metrics=metrics,
        settings=settings.model_dump(mode="json"),  # type: ignore[call-arg]
    )
    if "calibration" in metrics:
        drawing = calibration_svg(metrics["calibration"], f"{task}: held-out predictions")
        (model.parent / "calibration.svg").write_text(drawing, encoding="utf-8")
    return write(card, model, sha256, metrics)


def write(card: ModelCard, model: Path, sha256: str, metrics: dict[str, Any]) -> Report:
    """Write the card next to the model; return the report of what was trained."""
    (model.parent / CARD).write_text(_yaml(card.model_dump(mode="json")), encoding="utf-8")
    return Report(model, sha256, metrics)


def _yaml(content: dict[str, Any]) -> str:
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100)
