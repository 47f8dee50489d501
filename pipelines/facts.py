"""What decides a stage's outputs besides its input: settings, lists, models, software."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

import curation
from curation import resources
from curation.classify import ClassifySettings, onnx, words
from curation.extract.engines import engine_packages
from curation.extract.settings import ExtractSettings
from curation.language import LanguageIdentifier, LanguageSettings
from curation.models import model_checksums
from curation.tokenize.settings import EncodeSettings, TokenizeSettings
from curation.tokenize.tokenizer import load_tokenizer
from pipelines.token_formats import format_packages

#: Packages whose version can change a stage's bytes, besides pyarrow, which writes them all.
_PACKAGES = {
    "extract": ["brotli", "chardet", "webencodings", "zstandard"],
    "dedup-urls": ["numpy"],
    "dedup-documents": ["numpy", "numba"],
    "dedup-lines": ["numpy", "numba"],
    "identify-language": ["numpy", "numba"],
    "filter": ["numpy", "numba"],
    "classify": ["numpy", "numba"],
    "mix": ["numpy", "tiktoken"],
    "tokenize": ["numpy", "tiktoken"],
}


def stage_facts(stage: str, sections: Sequence[BaseModel]) -> dict[str, Any]:
    """Software versions, checksums of models and of list files, for key and manifest.

    `sections` are the settings that the stage reads.
    """
    packages = ["pyarrow", *_PACKAGES[stage]]
    models: dict[str, str] = {}
    lists: dict[str, str] = {}
    for settings in sections:
        if isinstance(settings, ExtractSettings):
            packages += engine_packages(settings.engine)
        if isinstance(settings, TokenizeSettings):
            packages += format_packages(settings.formats)
        if isinstance(settings, EncodeSettings):
            models["tokenizer"] = load_tokenizer(settings.tokenizer).sha256
        if hasattr(settings, "models"):
            models |= model_checksums(settings)
        if isinstance(settings, LanguageSettings):
            LanguageIdentifier(settings).load()  # what does not fit together is told before the run
        if isinstance(settings, ClassifySettings) and settings.fasttext is not None:
            words.load(settings.fasttext)
        if isinstance(settings, ClassifySettings) and settings.onnx is not None:
            onnx.load(settings.onnx)
            packages += ["onnxruntime", "tokenizers"]
        lists |= dict(_list_checksums(settings.model_dump(mode="json")))
    versions = {name: importlib.metadata.version(name) for name in sorted(set(packages))}
    return {
        "software": {"curation": curation.__version__, **versions},
        "models": models,
        "lists": lists,
    }


def _list_checksums(value: Any) -> Iterator[tuple[str, str]]:
    """Checksums of every file or folder that the settings name."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key != "against":  # indexes: their stage looks at the files that it reads
                yield from _list_checksums(item)
    elif isinstance(value, list):
        for item in value:
            yield from _list_checksums(item)
    elif isinstance(value, str) and value:
        path = Path(resources.resolve(value)) if value.startswith(resources.PREFIX) else None
        if path is None and "/" in value and len(value) < 4096 and "\n" not in value:
            path = Path(value)
        if path is not None and path.exists():
            yield value, _checksum(path)


@functools.cache
def _checksum(path: Path) -> str:
    digest = hashlib.sha256()
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    for file in files:
        digest.update(str(file.relative_to(path)).encode() + b"\0")
        with file.open("rb") as content:
            while chunk := content.read(1 << 20):
                digest.update(chunk)
    return digest.hexdigest()
