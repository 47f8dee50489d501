"""Encode with a Hugging Face `tokenizer.json`, by its library; write one for a vocabulary.

Its models, normalizers and pre-tokenizers are many; only the library gives each its own ids.
Needs the extra `tokenizers`.
"""

import functools
import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.arrow import Texts
from curation.errors import ConfigError, InputError, first_line, require
from curation.text.surrogates import well_formed
from curation.tokenize.card import BOS, EOS, HF_FILE, PAD
from curation.tokenize.vocabulary import splits

CONFIG = "tokenizer_config.json"
_BATCH_BYTES = 1 << 22  # text given to the library at once; bounds what its encodings take
_NAMES = ("bos", "eos", "pad")


class Marks(NamedTuple):
    """Ids of the tokens that begin and end a document and fill a sequence; None: there is none."""

    bos: int | None
    eos: int | None
    pad: int | None


class HuggingFaceTokenizer:
    """A tokenizer of the library `tokenizers`, with the interface of `Tokenizer`.

    Special tokens are never made from text. Begin, end and pad tokens are those that
    `tokenizer_config.json` in the same folder names; without a pad token the end token fills.
    """

    def __init__(self, path: Path) -> None:
        """Raises ConfigError without the library, InputError for a file that it can't read."""
        self.path = path
        self.name = path.parent.name if path.name == HF_FILE else path.stem
        try:
            content = path.read_bytes()
        except OSError as error:
            raise InputError(f"{path}: cannot read the vocabulary: {error.strerror}") from None
        self._library = _library(path, content)
        self.marks = _marks(path.with_name(CONFIG), self._library)
        self.file_sha256 = hashlib.sha256(content).hexdigest()
        ids = self._library.get_vocab(with_added_tokens=True).values()
        self.vocab_size = max(ids, default=-1) + 1
        added = self._library.get_added_tokens_decoder()
        self._special = np.array(sorted(i for i, token in added.items() if token.special), np.int64)

    def __reduce__(self) -> tuple[Any, ...]:
        return HuggingFaceTokenizer, (self.path,)

    @functools.cached_property
    def sha256(self) -> str:
        """Identity of the vocabulary: SHA-256 over the file and the ids of the marks."""
        return hashlib.sha256(f"{self.file_sha256} {tuple(self.marks)}".encode()).hexdigest()

    @property
    def bos(self) -> int:
        return self._mark("bos")

    @property
    def eos(self) -> int:
        return self._mark("eos")

    @property
    def pad(self) -> int:
        return self._mark("eos" if self.marks.pad is None and self.marks.eos is not None else "pad")

    def _mark(self, name: str) -> int:
        found: int | None = getattr(self.marks, name)
        if found is None:
            optional = "" if name == "pad" else f", or set tokenize.{name}=false"
            raise ConfigError(
                f"{self.path}: no {name} token: name it as `{name}_token` in {CONFIG} beside it"
                f"{optional}"
            )
        return found

    def encode_batch(
        self, texts: Texts, threads: int = 1
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
        """Ids of all texts end to end (uint32) and their bounds (int64 [n + 1]).

        Nulls are empty. Lone surrogates in Python strings become U+FFFD. `threads` is not used: the
        library takes one, unless TOKENIZERS_PARALLELISM says otherwise.
        """
        strings = texts.to_pylist() if isinstance(texts, pa.Array | pa.ChunkedArray) else texts
        bounds, parts = [0], [np.zeros(0, np.uint32)]
        waiting: list[str] = []
        size = 0
        for k, text in enumerate(strings):
            waiting.append(well_formed(text or ""))
            size += len(waiting[-1])
            if size >= _BATCH_BYTES or k + 1 == len(strings):
                for encoded in self._library.encode_batch_fast(waiting, add_special_tokens=False):
                    parts.append(np.array(encoded.ids, np.uint32))
                    bounds.append(bounds[-1] + len(parts[-1]))
                waiting, size = [], 0
        return np.concatenate(parts), np.array(bounds, np.int64)

    def encode(self, text: str) -> list[int]:
        """Ids of one text, no special tokens."""
        ids: list[int] = self._library.encode(well_formed(text), add_special_tokens=False).ids
        return ids

    def decode(self, ids: Sequence[int] | npt.NDArray[np.integer]) -> str:
        """Text of the ids; special tokens give their names. Raises InputError on an unknown id."""
        given = np.asarray(ids, np.int64)
        if given.size and not (given.min() >= 0 and given.max() < self.vocab_size):
            wrong = given[(given < 0) | (given >= self.vocab_size)][0]
            raise InputError(f"tokenizer {self.name} has no id {wrong} (0..{self.vocab_size - 1})")
        text: str = self._library.decode(given.tolist(), skip_special_tokens=False)
        return text

    def is_special(self, ids: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
        """Whether each id is a special token, which is no part of a text."""
        return np.isin(ids, self._special)

    def token_ends(self, text: str) -> npt.NDArray[np.int64]:
        """Return the end byte in the text of each of its tokens."""
        ends = self._library.encode(well_formed(text), add_special_tokens=False).offsets
        sizes = [len(character.encode()) for character in well_formed(text)]
        return np.cumsum([0, *sizes], dtype=np.int64)[[end for _, end in ends]]


def from_path(path: Path) -> HuggingFaceTokenizer:
    """Return the tokenizer of a `tokenizer.json` or of the folder that has it."""
    return HuggingFaceTokenizer(path / HF_FILE if path.is_dir() else path)


def _library(path: Path, content: bytes) -> Any:
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # workers are processes
    tokenizers = require("tokenizers", str(path))
    try:
        loaded = tokenizers.Tokenizer.from_buffer(content)
    except Exception as error:  # the library raises plain exceptions
        line = first_line(error)
        raise InputError(f"{path}: not a Hugging Face tokenizer: {line}") from None
    loaded.no_truncation()
    loaded.no_padding()
    loaded.encode_special_tokens = True  # their names in a text are text
    return loaded


def _marks(config: Path, library: Any) -> Marks:
    """Return the ids of the marks that the configuration names; without one, none."""
    try:
        held = json.loads(config.read_text(encoding="utf-8")) if config.is_file() else {}
    except (OSError, ValueError) as error:
        raise InputError(f"{config}: {error}") from None
    ids = []
    for name in _NAMES:
        named = held.get(f"{name}_token") if isinstance(held, dict) else None
        text = named.get("content") if isinstance(named, dict) else named
        found = None if text is None else library.token_to_id(text)
        if text is not None and found is None:
            raise InputError(f"{config}: {name}_token {text!r} is not a token of {HF_FILE}")
        ids.append(found)
    return Marks(*ids)


def byte_alphabet() -> list[str]:
    """Printable character of each byte, as GPT-2's byte-level BPE lays them out: [256].

    Visible Latin-1 characters stand for themselves, the rest for U+0100 and on, in order.
    """
    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(b) if b in visible else chr(next(others)) for b in range(256)]


def tokenizer_json(
    tokens: list[bytes], expression: str, specials: dict[str, int]
) -> dict[str, Any]:
    """Content of `tokenizer.json`.

    tiktoken merges any two neighbours that make a token, so every split of every token into two
    tokens is listed as a merge, in order of the token's rank. Special tokens are in the model's
    vocabulary, where no merge leads, and not among `added_tokens`, which the library would look for
    in every text: their names in a document stay text.
    """
    alphabet = byte_alphabet()
    names = ["".join(alphabet[b] for b in token) for token in tokens]
    merges = [[names[a], names[b]] for a, b, _ in splits(tokens).tolist()]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    pattern = {"Regex": expression}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False},
                {**byte_level, "use_regex": False},
            ],
        },
        "post_processor": None,
        "decoder": {**byte_level, "use_regex": False},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": True,
            "vocab": {name: rank for rank, name in enumerate(names)} | specials,
            "merges": merges,
        },
    }


def write_files(
    folder: Path, tokens: list[bytes], expression: str, specials: dict[str, int]
) -> None:
    """Write `tokenizer.json` and `tokenizer_config.json` into the folder."""
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BOS,
        "eos_token": EOS,
        "pad_token": PAD,
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": True,
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (
        ("tokenizer.json", tokenizer_json(tokens, expression, specials)),
        ("tokenizer_config.json", config),
    ):
        text = json.dumps(content, ensure_ascii=False, indent=None if name[9] == "." else 2)
        (folder / name).write_text(text + "\n", encoding="utf-8")
