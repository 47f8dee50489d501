"""Train the models that stages use, from files the user names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from curation.lazy import lazily

if TYPE_CHECKING:
    from models.training.classes import train_classes
    from models.training.corrector import train_corrector
    from models.training.language import train_citable, train_language
    from models.training.quality import train_quality
    from models.training.report import About, Report

__all__ = [
    "About",
    "Report",
    "train_citable",
    "train_classes",
    "train_corrector",
    "train_language",
    "train_quality",
]

_MODULES = {
    "classes": ("train_classes",),
    "corrector": ("train_corrector",),
    "language": ("train_citable", "train_language"),
    "quality": ("train_quality",),
    "report": ("About", "Report"),
}
lazily(__name__, _MODULES)
