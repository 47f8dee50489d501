"""A second, small model that corrects the first one and knows languages that the first does not.

The first model is fastText's: large training data, but languages it always takes for others, and
no way to say "none of mine". The second is trained on clean texts of every label of the first, cut
to all lengths, and of hundreds of other languages: character n-grams of lower-case letters alone.
Their answers are weighed as evidence (a product of experts; Hinton 2002):

    log score(c) = a log second(c) + b log sum_j given(j | c) first(j) + offset(c)

where `given` tells how the first model answers texts of language c, and the weights depend on the
amount of text (`curation.language.evidence`). They are fitted on texts of sources that neither
model was trained on. Close languages are told from each other by their words
(`curation.language.close`). A text whose runs of letters are strange for its best label speaks for
a language that no model knows (`curation.language.familiar`).
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from curation.archive import read_as, read_headed
from curation.arrow import Texts, text_buffers
from curation.errors import ConfigError
from curation.language.close import CloseLanguages
from curation.language.evidence import KNOTS, Evidence
from curation.language.familiar import Familiarity
from curation.language.fasttext import FastText, add_products, prepare
from curation.language.fasttext_file import FastTextFile

VERSION = 4

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_NEGLIGIBLE = 1e-3  # few answers are above, and the rest moves no score


@dataclass(frozen=True, eq=False)
class Corrector:
    """The second model and how the two are weighed.

    Its labels are the k labels of the first model in the same order, then others: K in all.
    """

    model: FastText
    familiar: Familiarity
    given: Floats  # [K, k] answers of the first model to texts of each label, rows sum to 1
    evidence: Evidence
    close: CloseLanguages
    favoured: npt.NDArray[np.bool_]  # [K] languages of most pages
    floor: float  # added to probabilities before their logarithm

    @property
    def labels(self) -> tuple[str, ...]:
        return self.model.labels

    @property
    def foreign(self) -> npt.NDArray[np.bool_]:
        """Labels that the first model does not have."""
        return np.arange(len(self.labels)) >= self.given.shape[1]

    def combine(self, first: Floats, second: Floats, lines: Texts, firsts: Ints) -> Floats:
        """Probabilities [texts, K + 1] from those of the two models, [texts, k] and [texts, K].

        The last column is for a language of neither model. The second model read
        `lines[firsts[i]:firsts[i + 1]]` of text i, letters only. All are 0 for a text of which
        the second model knows nothing.
        """
        one, two = self.logarithms(first, second)
        likely = self.weighed(one, two, lines, firsts)
        refused = self.evidence.refused(self.seen(one, two, likely, lines, firsts))
        out = np.zeros((len(likely), likely.shape[1] + 1))
        out[:, :-1] = likely * (1 - refused)[:, None]
        out[:, -1] = refused
        out[~second.any(1)] = 0
        return out

    def weighed(self, one: Floats, two: Floats, lines: Texts, firsts: Ints) -> Floats:
        """Probabilities of the labels, if it is one of them: [texts, K]."""
        sizes = np.diff(text_buffers(lines).offsets[firsts])
        scores = self.evidence.scores(one, two, sizes, self.favoured, self.foreign)
        return self.close.shared_out(softmax(scores), lines, firsts, self.favoured)

    def logarithms(self, first: Floats, second: Floats) -> tuple[Floats, Floats]:
        """Log evidence of either model for every label: [texts, K] each."""
        expected = np.zeros((len(first), len(self.given)))
        # the labels of an answer side by side
        given = np.ascontiguousarray(self.given.T)
        add_products(np.where(first > _NEGLIGIBLE, first, 0.0), given, expected)
        return np.log(expected + self.floor), np.asarray(np.log(second + self.floor))

    def seen(
        self, one: Floats, two: Floats, probabilities: Floats, lines: Texts, firsts: Ints
    ) -> Floats:
        """What the refusal weighs (`evidence.REFUSAL`): [texts, features]."""
        best = probabilities.argmax(1)
        rows = np.arange(len(best))
        sizes = np.diff(text_buffers(lines).offsets[firsts])
        strange = self.familiar.strangeness(lines, firsts, best) - self.evidence.strange_from
        columns = [
            np.ones(len(best)),
            np.log2(np.maximum(sizes, 1)).clip(KNOTS[0], KNOTS[-1]),
            np.maximum(strange, 0),
            one[rows, best],
            two[rows, best],
            np.log(probabilities[rows, best] + self.floor),
            self.favoured[best].astype(np.float64),
        ]
        return np.stack(columns, 1)


def softmax(scores: Floats) -> Floats:
    """Probabilities of every row's scores."""
    out = np.exp(scores - scores.max(1, keepdims=True, initial=-np.inf))
    return np.asarray(out / out.sum(1, keepdims=True))


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
            rows=arrays["rows"].astype(np.float32) * arrays["scale"].astype(np.float32)[:, None],
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
            given=np.asfortranarray(arrays["given"].astype(np.float64)),
            evidence=Evidence(arrays["weights"], arrays["refusal"], head["strange_from"]),
            close=CloseLanguages(
                tuple(map(tuple, head["close"])),
                arrays["close_starts"],
                np.cumsum(arrays["close_keys"], dtype=np.uint32),
                arrays["close_odds"],
                arrays["close_weights"],
            ),
            favoured=arrays["favoured"],
            floor=head["floor"],
        )
    if found.labels[: len(labels)] != labels or found.given.shape[1] != len(labels):
        raise ConfigError(
            f"{name}: a corrector of another language model: its labels differ "
            "(corrector: null turns it off)"
        )
    return found
