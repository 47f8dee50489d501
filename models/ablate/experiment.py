"""An experiment as arrays: what each run trains on, and what all of them are measured with."""

from __future__ import annotations

import json
import zipfile
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.errors import ConfigError, InputError

Ids = npt.NDArray[np.uint16]
Numbers = npt.NDArray[np.int64]

#: Ids have 16 bits; the one after the vocabulary begins a document.
MOST_TOKENS = (1 << 16) - 1
FILE = "experiment.npz"
_VERSION = 1


@dataclass(frozen=True)
class Documents:
    """Texts end to end, as ids below the vocabulary's size."""

    tokens: Ids  # [tokens]
    bounds: Numbers  # [documents + 1]
    sizes: Numbers  # [documents] bytes of UTF-8

    def __len__(self) -> int:
        return len(self.sizes)

    def ids(self, document: int) -> Ids:
        """Ids of one text."""
        return self.tokens[self.bounds[document] : self.bounds[document + 1]]


@dataclass(frozen=True)
class Corpus:
    """What a run offers to train on."""

    name: str
    documents: Documents
    keys: npt.NDArray[np.uint64]  # [documents] decides the order; the same page has the same key

    @property
    def tokens(self) -> int:
        """Tokens of one epoch, the mark before each document counted."""
        return len(self.documents.tokens) + len(self.documents)


@dataclass(frozen=True)
class TextSet:
    """Held-out texts to measure with; those of a group, such as a site, are resampled together."""

    label: str
    documents: Documents
    groups: Numbers  # [documents]


@dataclass(frozen=True)
class TaskSet:
    """Items of an evaluation set; each continuation of a question is a document."""

    label: str
    prompts: Documents  # a question each
    continuations: Documents  # choices, or the answer alone, end to end
    items: Numbers  # [continuations] which question
    right: npt.NDArray[np.bool_]  # [continuations] one for each item


@dataclass(frozen=True)
class Experiment:
    """Runs and measures, tokenized with one vocabulary."""

    vocabulary: str  # its name
    vocabulary_size: int  # tokens; the id of that number begins a document
    corpora: tuple[Corpus, ...]
    texts: tuple[TextSet, ...]
    tasks: tuple[TaskSet, ...]
    notes: tuple[str, ...] = ()

    @property
    def least_tokens(self) -> int:
        """Tokens of the smallest run: so many, and none is read twice."""
        return min(corpus.tokens for corpus in self.corpora)


#: Fields of an experiment of which there are several, and what each is.
_PARTS = {"corpora": Corpus, "texts": TextSet, "tasks": TaskSet}


def check(experiment: Experiment) -> None:
    """Raise ConfigError or InputError where nothing can be compared."""
    names = [corpus.name for corpus in experiment.corpora]
    if len(set(names)) != len(names):
        raise ConfigError(f"two runs have the same name: {', '.join(names)}; write NAME=PATH")
    measures = [texts.label for texts in experiment.texts]
    measures += [task.label for task in experiment.tasks]
    if not measures:
        raise ConfigError("nothing to measure with: name texts with --eval, or items with --task")
    if len(set(measures)) != len(measures):
        raise ConfigError(f"two sets have the same label: {', '.join(measures)}")
    for corpus in experiment.corpora:
        if not len(corpus.documents.tokens):
            raise InputError(f"{corpus.name}: no text to train on")


def save(experiment: Experiment, folder: Path) -> None:
    """Write `experiment.npz`; the same experiment gives the same bytes."""
    arrays: dict[str, Any] = {}
    head: dict[str, Any] = {"version": _VERSION, "notes": experiment.notes}
    head["vocabulary"] = [experiment.vocabulary, experiment.vocabulary_size]
    for kind in _PARTS:
        parts = [asdict(part) for part in getattr(experiment, kind)]
        head[kind] = [next(iter(part.values())) for part in parts]
        for number, part in enumerate(parts):
            _flatten(f"{kind}.{number}", part, arrays)
    arrays["head"] = np.frombuffer(json.dumps(head).encode(), np.uint8)
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder / FILE, allow_pickle=False, **arrays)


def _flatten(prefix: str, tree: dict[str, Any], arrays: dict[str, Any]) -> None:
    for name, value in tree.items():
        if isinstance(value, dict):
            _flatten(f"{prefix}.{name}", value, arrays)
        elif not isinstance(value, str):
            arrays[f"{prefix}.{name}"] = value


def load(folder: Path) -> Experiment:
    """Read what `save` wrote. Raises InputError where it is absent or damaged."""
    path = folder / FILE
    try:
        with np.load(path) as stored:
            arrays = dict(stored)
        head = json.loads(arrays["head"].tobytes())
        if head["version"] != _VERSION:
            raise ValueError(f"version {head['version']}, not {_VERSION}")
        name, size = head["vocabulary"]
        parts = {
            kind: tuple(_part(of, n, f"{kind}.{k}", arrays) for k, n in enumerate(head[kind]))
            for kind, of in _PARTS.items()
        }
        return Experiment(name, size, notes=tuple(head["notes"]), **parts)
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: not a prepared experiment: {error}") from None


def _part(kind: type[Any], name: str, prefix: str, arrays: dict[str, Any]) -> Any:
    """Return a corpus or set: its name first, then arrays and texts."""
    values = [
        Documents(*(arrays[f"{prefix}.{one.name}.{f.name}"] for f in fields(Documents)))
        if f"{prefix}.{one.name}.tokens" in arrays
        else arrays[f"{prefix}.{one.name}"]
        for one in fields(kind)[1:]
    ]
    return kind(name, *values)
