"""The models that stages load: locate them, read their cards, and verify their checksums.

A model is given by path: `builtin:models/...`, a local file, or any URL that fsspec reads. A
built-in model has a card, `models/<name>/card.yaml`, with the checksum of the file.
"""

import functools
import os
import tempfile
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from curation import resources
from curation.config import Settings, read_yaml
from curation.errors import ConfigError, first_line
from curation.resources import ModelPath
from curation.resources import sha256_of as sha256_of

_CARD = "card.yaml"
_BLOCK = 1 << 20


class ModelFile(Settings):
    """Which model file a stage uses."""

    path: ModelPath = Field(
        description="builtin:models/..., a local path, or a URL that fsspec reads"
    )
    sha256: str | None = Field(
        None,
        pattern=r"^[0-9a-f]{64}$",
        description="expected hash of the file; null: the card's for a built-in model, unchecked "
        "for a local file (manifests record it nevertheless); required for a URL",
    )


class ModelCard(BaseModel):
    """Description of a model: its source, training and quality."""

    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True)

    name: str
    version: str | int | float = ""
    task: str = ""
    file: str = Field("", description="file next to the card")
    sha256: str | dict[str, str] = Field("", description="of the file, or of each file by name")
    licence: str
    source: str = ""
    data: Any = Field(None, description="what it was trained on")
    command: str | None = Field(None, description="what retrains it, bit for bit")
    metrics: dict[str, Any] = Field(default_factory=dict)


def list_models() -> dict[Path, ModelCard]:
    """Return the built-in models' cards by folder. Raises ConfigError for an invalid one."""
    folder = resources.root() / "models"
    return {path.parent: read_card(path.parent) for path in sorted(folder.glob(f"*/{_CARD}"))}


def read_card(folder: Path) -> ModelCard:
    """Read the card in a model's folder. Raises ConfigError if it is missing or invalid."""
    path = folder / _CARD
    try:
        return ModelCard.model_validate(read_yaml(path))
    except ValidationError as error:
        raise ConfigError(f"{path}: not a valid model card: {first_line(error)}") from None


@functools.cache
def locate(model: ModelFile) -> tuple[Path, str]:
    """Return the local path of a model file and its checksum, verified once per process.

    Raises ConfigError, in one line, if the file is missing or not the expected one.
    """
    path = Path(_download(model) if "://" in model.path else resources.resolve(model.path))
    if not path.is_file():
        raise ConfigError(f"{model.path}: no such model file")
    found = sha256_of(path)
    expected = model.sha256 or _card_sha256(model.path, path)
    if expected is not None and found != expected:
        raise ConfigError(f"{model.path}: wrong model file: sha256 {found}, expected {expected}")
    return path, found


def _card_sha256(name: str, path: Path) -> str | None:
    if not name.startswith(resources.PREFIX):
        return None
    card = read_card(path.parent)
    expected = card.sha256 if isinstance(card.sha256, str) else card.sha256.get(path.name)
    if not expected:
        raise ConfigError(f"{name}: its model card has no checksum (sha256) for this file")
    return expected


def _download(model: ModelFile) -> str:
    """Download a remote model to the user's cache, named by its checksum."""
    import fsspec  # few models are remote

    if model.sha256 is None:
        raise ConfigError(f"{model.path}: a model from a URL needs its sha256")
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    suffix = Path(model.path.partition("?")[0]).suffix
    target = Path(home) / "curation" / "models" / f"{model.sha256}{suffix}"
    if target.is_file():
        return str(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, part = tempfile.mkstemp(dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file, fsspec.open(model.path, "rb") as source:
            while block := source.read(_BLOCK):
                file.write(block)
        if (found := sha256_of(Path(part))) != model.sha256:
            raise ConfigError(
                f"{model.path}: wrong model file: sha256 {found}, expected {model.sha256}"
            )
        Path(part).replace(target)
    except ConfigError:
        raise
    except Exception as error:  # every file system raises its own exceptions
        reason = first_line(error)
        raise ConfigError(f"{model.path}: the model can't be read: {reason}") from None
    finally:
        Path(part).unlink(missing_ok=True)
    return str(target)
