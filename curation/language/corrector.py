"""A second, small model that corrects the first one and knows what neither of them knows.

The first model is fastText's: large training data, but languages it always takes for others, and
no way to say "none of mine". The second is trained on few, clean texts of every label and of
hundreds of other languages: character n-grams of lower-case letters alone, with one more label for
"another language". Their answers are weighed as evidence (a product of experts; Hinton 2002):

    log score(c) = a log second(c) + b log sum_j given(j | c) first(j) + offset(c)

where `given` tells how the first model answers texts of language c, learnt from the same examples.
A text whose runs of letters are strange for its best label speaks for another language
(`curation.language.familiar`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from curation.archive import read_as, read_headed
from curation.arrow import Texts, text_buffers
from curation.compiled import kernel
from curation.errors import ConfigError
from curation.language.familiar import Familiarity
from curation.language.fasttext import FastText, prepare
from curation.language.fasttext_file import FastTextFile

VERSION = 2

#: Label of texts in a language that the first model does not have.
OTHER = "other"

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_NEGLIGIBLE = 1e-3  # few answers are above, and the rest moves no score


@dataclass(frozen=True, eq=False)
class Corrector:
    """The second model and how the two are weighed.

    Its labels are those of the first model in the same order, and `OTHER` last: k + 1 in all.
    """

    model: FastText
    familiar: Familiarity
    given: Floats  # [k + 1, k] answers of the first model to texts of each label, rows sum to 1
    first_weight: float
    second_weight: float
    offsets: Floats  # [k + 1]
    strange_from: float  # deviations of strangeness that are still usual
    strange_weight: float  # log odds for another language of each deviation beyond
    floor: float  # added to probabilities before their logarithm
    settled: int  # bytes of letters from which the evidence counts in full; "App" is no Swedish

    @property
    def labels(self) -> tuple[str, ...]:
        return self.model.labels

    def combine(self, first: Floats, second: Floats, lines: Texts, firsts: Ints) -> Floats:
        """Probabilities [texts, k + 1] from those of the two models, [texts, k] and [texts, k + 1].

        The second model read `lines[firsts[i]:firsts[i + 1]]` of text i, letters only. All are 0
        for a text of which it knows nothing.
        """
        scores = np.log(expected(first, self.given) + self.floor)
        scores *= self.first_weight
        scores += np.log(second + self.floor) * self.second_weight
        scores += self.offsets
        best = scores[:, :-1].argmax(1)
        strange = self.familiar.strangeness(lines, firsts, best) - self.strange_from
        scores[:, -1] += self.strange_weight * np.maximum(strange, 0)
        sizes = np.diff(text_buffers(lines).offsets[firsts])
        scores *= np.minimum(sizes / self.settled, 1.0)[:, None]
        scores -= scores.max(1, keepdims=True, initial=-np.inf)
        out = np.exp(scores)
        out /= out.sum(1, keepdims=True)
        out[~second.any(1)] = 0
        return np.asarray(out)

    def save(self, path: Path) -> None:
        """Write the corrector; the same one gives the same bytes. Rows are kept in 8 bits each."""
        file = self.model.file
        scale = np.maximum(np.abs(file.rows).max(1), 1e-12) / 127
        head = {
            "version": VERSION,
            "labels": list(file.labels),
            "min_n": file.min_n,
            "max_n": file.max_n,
            "buckets": file.buckets,
            "first_weight": self.first_weight,
            "second_weight": self.second_weight,
            "floor": self.floor,
            "settled": self.settled,
            "everywhere": self.familiar.everywhere,
            "strange_from": self.strange_from,
            "strange_weight": self.strange_weight,
        }
        with path.open("wb") as out:
            np.savez_compressed(
                out,
                head=np.frombuffer(json.dumps(head, sort_keys=True).encode(), np.uint8),
                words=np.frombuffer(b"\n".join(file.words), np.uint8),
                rows=np.rint(file.rows / scale[:, None]).astype(np.int8),
                scale=scale.astype(np.float32),
                outputs=file.outputs.astype(np.float32),
                given=self.given.astype(np.float32),
                offsets=self.offsets.astype(np.float32),
                table=self.familiar.table,
                usual=self.familiar.usual.astype(np.float32),
                spread=self.familiar.spread.astype(np.float32),
                runs=self.familiar.runs.astype(np.float32),
            )


@kernel
def expected(first, given):  # type: ignore[no-untyped-def]
    """Probability of the first model's answers under each label: [texts, k + 1].

    Sums go in one order, so that no bit depends on the size of a batch or on the BLAS.
    """
    out = np.zeros((first.shape[0], given.shape[0]))
    for text in range(first.shape[0]):
        for j in range(first.shape[1]):
            if first[text, j] > _NEGLIGIBLE:
                for label in range(given.shape[0]):
                    out[text, label] += first[text, j] * given[label, j]
    return out


def load_corrector(path: Path, name: str, labels: tuple[str, ...]) -> Corrector:
    """Read a corrector of the model with these labels. Raises ConfigError, in one line."""
    with read_as(name, "a language corrector"):
        head, arrays = read_headed(path)
        if head["version"] != VERSION:
            raise ValueError(f"it is of version {head['version']}, not {VERSION}")
        words = tuple(arrays["words"].tobytes().split(b"\n")) if len(arrays["words"]) else ()
        file = FastTextFile(
            labels=tuple(head["labels"]),
            counts=np.ones(len(head["labels"]), np.int64),
            words=words,
            rows=arrays["rows"].astype(np.float32) * arrays["scale"][:, None],
            outputs=arrays["outputs"],
            loss="softmax",
            min_n=head["min_n"],
            max_n=head["max_n"],
            word_ngrams=1,
            buckets=head["buckets"],
            pruned=None,
        )
        found = Corrector(
            model=prepare(file),
            familiar=Familiarity(
                arrays["table"],
                arrays["usual"].astype(np.float64),
                arrays["spread"].astype(np.float64),
                arrays["runs"].astype(np.float64),
                head["everywhere"],
            ),
            given=arrays["given"].astype(np.float64),
            first_weight=head["first_weight"],
            second_weight=head["second_weight"],
            offsets=arrays["offsets"].astype(np.float64),
            strange_from=head["strange_from"],
            strange_weight=head["strange_weight"],
            floor=head["floor"],
            settled=head["settled"],
        )
    if found.labels != (*labels, OTHER):
        raise ConfigError(
            f"{name}: a corrector of another language model: its labels differ "
            "(corrector: null turns it off)"
        )
    return found
