"""What decides a stage's outputs besides its input: settings, lists, models, software."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel

import curation
from curation import resources, stores
from curation.classify import Classifier, ClassifySettings
from curation.credentials import redact
from curation.errors import ConfigError, InputError
from curation.extract.engines import engine_packages
from curation.extract.model import load as load_extraction_model
from curation.extract.settings import ExtractSettings
from curation.language import LanguageIdentifier, LanguageSettings
from curation.models import model_checksums, sha256_of
from curation.tokenize.settings import EncodeSettings, TokenizeSettings
from curation.tokenize.tokenizer import checksums
from pipelines.named_files import named_files
from pipelines.token_formats import format_packages

#: Among the models: what of a tokenizer decides token ids, its pattern and special tokens, too.
VOCABULARY = "tokenizer_vocabulary"
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
            for model in settings.models().values():
                load_extraction_model(model)
        if isinstance(settings, TokenizeSettings):
            packages += format_packages(settings.formats)
        if isinstance(settings, EncodeSettings):
            models |= _tokenizer_checksums(settings.tokenizer)
        if hasattr(settings, "models"):
            models |= model_checksums(settings)
        if isinstance(settings, LanguageSettings):
            LanguageIdentifier(settings).load()  # what does not fit together is told before the run
        if isinstance(settings, ClassifySettings):
            Classifier(settings).load()
            packages += ["onnxruntime", "tokenizers"] if settings.onnx is not None else []
        for named in named_files(stage, settings):
            lists |= _checksums(named.path)
    versions = {name: importlib.metadata.version(name) for name in sorted(set(packages))}
    return {
        "software": {"curation": curation.__version__, **versions},
        "models": models,
        "lists": lists,
    }


def _tokenizer_checksums(name: str) -> dict[str, str]:
    try:
        file, vocabulary = checksums(name)
    except InputError as error:
        raise ConfigError(f"tokenize.tokenizer: {error}") from None
    return {"tokenizer": file, VOCABULARY: vocabulary}


@functools.cache
def _checksums(name: str) -> dict[str, str]:
    """SHA-256 of a list's file, of each file in its folder, or of what its URL gives."""
    if "://" in name:
        try:
            with stores.open_url(name) as content:
                digest = hashlib.file_digest(cast(Any, content), "sha256").hexdigest()
                return {redact(name): digest}
        except Exception as error:  # every file system has its own exceptions
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise ConfigError(f"{name}: the list can't be read: {reason}") from None
    path = Path(resources.resolve(name))
    if not path.exists():
        raise ConfigError(f"{name}: no such list")
    if path.is_file():
        return {name: sha256_of(path)}
    files = sorted(p for p in path.rglob("*") if p.is_file())
    return {f"{name.rstrip('/')}/{f.relative_to(path).as_posix()}": sha256_of(f) for f in files}
