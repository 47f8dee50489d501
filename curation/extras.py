"""Packages that only some settings need, and the extras that install them."""

from __future__ import annotations

import importlib
from typing import Any

from curation.errors import ConfigError

#: The extra that installs a package, by the package's or its module's name in lower case.
EXTRAS = {
    "aiohttp": "http",
    "apache_beam": "dataflow",  # the modules that its own extra brings
    "cryptography": "sign",
    "datasets": "huggingface",
    "gcsfs": "gcs",
    "huggingface_hub": "hf",
    "justext": "engines",
    "onnxruntime": "onnx",
    "rapidfuzz": "train-extractor",
    "resiliparse": "engines",
    "s3fs": "s3",
    "streaming": "mds",
    "tokenizers": "tokenizers",
    "torch": "torch",
}


def require(module: str, user: str) -> Any:
    """Import and return a module that an extra installs.

    Raises ConfigError, with what needs it (`user`, an option or a file) and what to install.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise missing(module, user, error) from None


def missing(package: str, user: str, error: ImportError | None = None) -> ConfigError:
    """Return the error for a package that is absent or, by `error`, can't be imported."""
    extra = EXTRAS.get(package.partition(".")[0].lower())
    wanted = f"curation[{extra}]" if extra else "curation"
    absent = error is None or isinstance(error, ModuleNotFoundError)
    name = (error and error.name) or package
    return ConfigError(
        f"{user}: needs {name}: pip install '{wanted}'{'' if absent else f' ({error})'}"
    )
