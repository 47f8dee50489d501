"""Texts and items as an experiment: tokenized, evaluation texts that a run has left out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt
import xxhash

from curation.decontaminate.items import Item
from curation.errors import ConfigError, InputError
from curation.tokenize.tokenizer import Tokenizer
from models.ablate.experiment import MOST_TOKENS, Corpus, Documents, Experiment, TaskSet, TextSet


@dataclass(frozen=True)
class Text:
    """A text with its address, if it has one, and how often a run repeats it."""

    text: str
    url: str = ""
    repeats: int = 1

    def one_line(self) -> Text:
        """Return the text with one space for all white space.

        Where lines break is the custom of an extractor and of those who wrote gold texts, and
        would decide between runs of the same words.
        """
        return replace(self, text=" ".join(self.text.split()))


def smaller(tokenizer: Tokenizer, size: int) -> Tokenizer:
    """Return the vocabulary of the first `size` tokens.

    A token is only made of earlier ones, so that the first ones are a whole vocabulary: what a
    shorter training of the same one would have given. Raises ConfigError.
    """
    if not 256 <= size <= min(len(tokenizer.tokens), MOST_TOKENS):
        raise ConfigError(
            f"--vocabulary {size}: from 256 to {min(len(tokenizer.tokens), MOST_TOKENS)} tokens"
        )
    tokens = tokenizer.tokens[:size]
    if len({token for token in tokens if len(token) == 1}) < 256:
        raise ConfigError(f"{tokenizer.name}: the first {size} tokens lack single bytes")
    return Tokenizer(
        f"{tokenizer.name}", tokens, tokenizer.pattern, tuple(tokenizer.special_tokens)
    )


def documents(texts: Sequence[str], tokenizer: Tokenizer) -> Documents:
    """Return texts as ids."""
    ids, bounds = tokenizer.encode_batch(texts)
    sizes = np.array([len(text.encode("utf-8", "replace")) for text in texts], np.int64)
    return Documents(ids.astype(np.uint16), bounds, sizes)


def corpus(name: str, texts: Iterable[Text], tokenizer: Tokenizer) -> Corpus:
    """Return what a run trains on. Documents without text are left out."""
    some = [text for text in texts if text.text.strip()]
    repeated = [(text, copy) for text in some for copy in range(text.repeats)]
    keys = [_key(text, copy) for text, copy in repeated]
    return Corpus(
        name,
        documents([text.text for text, _ in repeated], tokenizer),
        np.array(keys, np.uint64),
    )


def _key(text: Text, copy: int) -> int:
    """Return what decides a document's place: its address, so that runs of the same pages read
    them in the same order whatever text they made of them."""
    return xxhash.xxh64_intdigest((text.url or text.text).encode("utf-8", "replace"), copy)


def text_set(label: str, texts: Iterable[Text], tokenizer: Tokenizer) -> TextSet:
    """Return texts to measure with; those of one host are one group."""
    some = [text for text in texts if text.text.strip()]
    if not some:
        raise InputError(f"--eval {label}: no text")
    hosts = [urlsplit(text.url).hostname or f"#{k}" for k, text in enumerate(some)]
    _, groups = np.unique(hosts, return_inverse=True)
    return TextSet(
        label, documents([text.text for text in some], tokenizer), groups.astype(np.int64)
    )


def task_set(label: str, items: Iterable[Item], tokenizer: Tokenizer) -> TaskSet:
    """Return items to measure with: a continuation for each choice, or the answer alone.

    Items without an answer are left out. Raises InputError where none is left.
    """
    some = [(item, _continuations(item)) for item in items if item.answer]
    if not some:
        raise InputError(f"--task {label}: no item has an answer")
    prompts = ["\n".join(filter(None, [item.passage, item.question])) for item, _ in some]
    found = [(k, text) for k, (_, texts) in enumerate(some) for text in texts]
    right = [text == item.answer for k, text in found for item in [some[k][0]]]
    return TaskSet(
        label,
        documents(prompts, tokenizer),
        documents([f" {text}" for _, text in found], tokenizer),
        np.array([k for k, _ in found], np.int64),
        _first_of_each(np.array([k for k, _ in found], np.int64), np.array(right)),
    )


def _continuations(item: Item) -> tuple[str, ...]:
    return item.choices if item.answer in item.choices else (item.answer,)


def _first_of_each(
    items: npt.NDArray[np.int64], right: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Return which continuation is right, the first where two are the same."""
    places = np.flatnonzero(right)
    _, firsts = np.unique(items[places], return_index=True)
    found = np.zeros(len(items), np.bool_)
    found[places[firsts]] = True
    return found


def without_copies(
    texts: Sequence[Text], corpora: Sequence[Sequence[Text]]
) -> tuple[list[Text], int]:
    """Return the texts that no run has word for word, and how many are left out."""
    known = {_bare(text.text) for some in corpora for text in some}
    kept = [text for text in texts if _bare(text.text) not in known]
    return kept, len(texts) - len(kept)


def _bare(text: str) -> int:
    return xxhash.xxh64_intdigest(" ".join(text.split()).encode("utf-8", "replace"))


def experiment(
    tokenizer: Tokenizer,
    runs: Sequence[tuple[str, Sequence[Text]]],
    texts: Sequence[tuple[str, Sequence[Text]]],
    tasks: Sequence[tuple[str, Sequence[Item]]],
) -> Experiment:
    """Return an experiment; `tokenizer` has few tokens already (`smaller`)."""
    sets, notes = [], []
    for label, some in texts:
        kept, left_out = without_copies(some, [found for _, found in runs])
        if left_out:
            notes.append(f"{label}: {left_out} of {len(some)} texts are in a run, and left out.")
        sets.append(text_set(label, kept, tokenizer))
    return Experiment(
        tokenizer.name,
        len(tokenizer.tokens),
        tuple(corpus(name, some, tokenizer) for name, some in runs),
        tuple(sets),
        tuple(task_set(label, items, tokenizer) for label, items in tasks),
        tuple(notes),
    )
