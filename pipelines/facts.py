"""What decides a stage's outputs besides its input: settings, lists, models, software."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from pydantic import BaseModel

import curation
from curation import resources, stores
from curation.classify import ClassifySettings, onnx, words
from curation.errors import ConfigError, InputError
from curation.extract.engines import engine_packages
from curation.extract.settings import ExtractSettings
from curation.language import LanguageIdentifier, LanguageSettings
from curation.models import model_checksums
from curation.tokenize.settings import EncodeSettings, TokenizeSettings
from curation.tokenize.tokenizer import load_tokenizer
from pipelines.named_files import named_files
from pipelines.token_formats import format_packages

#: Packages whose version can change a stage's bytes, besides pyarrow, which writes them all.
_PACKAGES = {
    "extract": ["brotli", "chardet", "lz4", "numba", "numpy", "regex", "webencodings", "zstandard"],
    "dedup-urls": ["idna", "numpy"],
    # datasketch: permutations and, by scipy's integrals, bands
    "dedup-documents": ["datasketch", "idna", "numba", "numpy", "regex", "scipy"],
    "dedup-lines": ["numba", "numpy", "regex"],  # regex: which characters are letters and spaces
    "identify-language": ["numba", "numpy", "regex"],
    "filter": ["idna", "numba", "numpy", "regex"],
    "classify": ["numba", "numpy", "regex"],
    "mix": ["numpy", "tiktoken"],
    "tokenize": ["numpy", "tiktoken"],
}


def stage_facts(stage: str, sections: Sequence[BaseModel]) -> dict[str, Any]:
    """Software versions, checksums of models and of list files, for key and manifest.

    `sections` are the settings that the stage reads. Raises ConfigError when a model or a list is
    absent or can't be read.
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
            models["tokenizer"] = _tokenizer_checksum(settings.tokenizer)
        if hasattr(settings, "models"):
            models |= model_checksums(settings)
        if isinstance(settings, LanguageSettings):
            LanguageIdentifier(settings).load()  # what does not fit together is told before the run
        if isinstance(settings, ClassifySettings) and settings.fasttext is not None:
            words.load(settings.fasttext)
        if isinstance(settings, ClassifySettings) and settings.onnx is not None:
            onnx.load(settings.onnx)
            packages += ["onnxruntime", "tokenizers"]
        lists |= {named.path: _checksum(named.path) for named in named_files(stage, settings)}
    versions = {name: importlib.metadata.version(name) for name in sorted(set(packages))}
    return {
        "software": {"curation": curation.__version__, **versions},
        "models": models,
        "lists": lists,
    }


def _tokenizer_checksum(name: str) -> str:
    try:
        return load_tokenizer(name).sha256
    except InputError as error:
        raise ConfigError(f"tokenize.tokenizer: {error}") from None


@functools.cache
def _checksum(name: str) -> str:
    """Of a list's file, of all files in its folder, or of what its URL gives."""
    digest = hashlib.sha256()
    if "://" in name:
        try:
            with stores.open_url(name) as content:
                _add(content, digest)
        except Exception as error:  # every file system has its own exceptions
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise ConfigError(f"{name}: the list can't be read: {reason}") from None
        return digest.hexdigest()
    path = Path(resources.resolve(name))
    if not path.exists():
        raise ConfigError(f"{name}: no such list")
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    for file in files:
        digest.update(str(file.relative_to(path)).encode() + b"\0")
        with file.open("rb") as content:
            _add(content, digest)
    return digest.hexdigest()


def _add(content: IO[bytes], digest: Any) -> None:
    while chunk := content.read(1 << 20):
        digest.update(chunk)
