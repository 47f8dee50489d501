"""Word lists and models by language, from folders with one file per language."""

from collections.abc import Iterable
from pathlib import Path

from curation.errors import ConfigError
from curation.resources import resolve


def read_list(path: str | Path) -> list[str]:
    """Entries of a list: one a line, `#` begins a comment. Raises ConfigError if unreadable."""
    try:
        text = Path(resolve(path) if isinstance(path, str) else path).read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read as a list: {error}") from error
    lines = (line.strip() for line in text.split("\n"))
    return [line for line in lines if line and not line.startswith("#")]


def by_language(folder: str | None, suffix: str) -> dict[str, Path]:
    """Language -> file `<language><suffix>` of a folder, in the order of the languages."""
    if folder is None:
        return {}
    path = Path(resolve(folder))
    if not path.is_dir():
        raise ConfigError(f"{folder}: no such folder")
    return {file.name.removesuffix(suffix): file for file in sorted(path.glob(f"*{suffix}"))}


def closest(language: str | None, known: Iterable[str]) -> str | None:
    """The entry for a language label: the label itself, or its part before `-` or `_`."""
    if language is None:
        return None
    held = set(known)
    for label in (language, language.replace("_", "-").split("-")[0]):
        if label in held:
            return label
    return None
