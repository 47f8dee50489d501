"""Stage `tokenize`."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from curation.config import nearest, read_yaml
from curation.errors import ConfigError, InputError
from curation.resources import resolve
from curation.stages.base import Columns, Stage
from curation.tokenize.card import BUILTIN, CARD, is_hugging_face
from curation.tokenize.tokenize_settings import CustomFormat, TokenizeSettings

#: Folders of a stage that have other files.
_TAKEN = ("documents", "index", "removed", "shards")


def check_formats(formats: Sequence[CustomFormat]) -> None:
    """Raise ConfigError where a format's folder, named like its function, is another's."""
    folders = list(_TAKEN)
    for own in (format.python.reference for format in formats):
        folder = own.rpartition(":")[2]
        if folder in folders:
            raise ConfigError(f"tokenize.formats: {own}: there is a folder {folder!r} already")
        folders.append(folder)


#: Among the models: what of a tokenizer decides token ids, its pattern and special tokens, too.
VOCABULARY = "tokenizer_vocabulary"


class _Tokenize(Stage[TokenizeSettings]):
    name = "tokenize"
    purpose = "write token shards"
    settings = TokenizeSettings
    after = "mix"
    cost = 0.2
    passes = 2
    packages = ("numpy", "tiktoken")
    is_sink = True
    per_mix = True

    def reads(self, settings: TokenizeSettings) -> Columns:
        return Columns(used=("repeats", "places"))

    def check_recipe(self, settings: TokenizeSettings, recipe: Any) -> None:
        for name in settings.mixes:
            if name not in recipe.mixes:
                hint = nearest(name, recipe.mixes)
                raise ValueError(f"tokenize.mixes: no mix named {name!r}{hint}")

    def packages_of(self, settings: TokenizeSettings, also: Mapping[str, Any]) -> tuple[str, ...]:
        library = ("tokenizers",) if is_hugging_face(Path(resolve(settings.tokenizer))) else ()
        check_formats(settings.formats)
        return (*self.packages, *library)

    def load(self, settings: TokenizeSettings) -> None:
        if is_hugging_face(Path(resolve(settings.tokenizer))):
            from curation.tokenize.tokenizer import load_tokenizer  # NumPy and Arrow

            loaded = load_tokenizer(settings.tokenizer)
            _ = settings.bos and loaded.bos, settings.eos and loaded.eos, loaded.pad

    def models(self, settings: TokenizeSettings, also: Mapping[str, Any]) -> dict[str, str]:
        return tokenizer_checksums(settings.tokenizer)

    def of_mix(self, settings: TokenizeSettings, mix: str) -> TokenizeSettings:
        return settings.for_mix(mix)


def tokenizer_checksums(name: str) -> dict[str, str]:
    """Return SHA-256 of a tokenizer's file, and of the vocabulary, which decides every id.

    The card of a built-in one says both, so that it is not loaded. Raises ConfigError.
    """
    if name in BUILTIN:
        path = Path(resolve(BUILTIN[name]))
        card = read_yaml(path.parent / CARD)
        same = hashlib.sha256(path.read_bytes()).hexdigest() == card.get("sha256")
        if same and "vocabulary_sha256" in card:
            return {"tokenizer": card["sha256"], VOCABULARY: card["vocabulary_sha256"]}
    from curation.tokenize.tokenizer import load_tokenizer  # compiled kernels

    try:
        found = load_tokenizer(name)
        return {"tokenizer": found.file_sha256, VOCABULARY: found.sha256}
    except InputError as error:
        raise ConfigError(f"tokenize.tokenizer: {error}") from None


STAGE = _Tokenize()
