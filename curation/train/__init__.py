"""Train the models that stages use, from files the user names."""

from __future__ import annotations

from curation.models import About
from curation.train.classes import train_classes
from curation.train.corrector import train_corrector
from curation.train.language import train_citable, train_language
from curation.train.quality import train_quality
from curation.train.report import Report

__all__ = [
    "About",
    "Report",
    "train_citable",
    "train_classes",
    "train_corrector",
    "train_language",
    "train_quality",
]
