"""What the places of a skeleton are filled with: texts of our own, names, dates and prices."""

from __future__ import annotations

import math
import random
import re
from collections import defaultdict
from pathlib import Path

from curation import resources
from models.training.inputs import rows

_SENTENCE = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])")
_SYLLABLES = (
    "an ber cor dal el fin gar ho ik jo ka lun mar no ol pe ri sa tor vin wes yra zo".split()
)
_TOO_LONG = 1.3  # times the words wanted
_PARAGRAPH = (40, 120)  # words, where a place says nothing
_UNSPACED = frozenset(["ja", "zh"])
#: Languages without texts of their own borrow others: long texts are judged by their shape.
_BORROWED = "de fr es ru".split()
_ENOUGH = 30  # documents


class Texts:
    """Texts of our own by language, cut into paragraphs and sentences."""

    def __init__(self, path: str):
        self.documents: dict[str, list[list[str]]] = defaultdict(list)
        for _, row in rows(Path(resources.resolve(path))):
            lines = [part.strip() for part in row["text"].splitlines() if part.strip()]
            if len(lines) > 2:
                self.documents[row["language"]].append(lines)

    def of(self, language: str, chance: random.Random) -> list[list[str]]:
        """Return documents of a language, or of another when there are few."""
        own = self.documents.get(language, [])
        return own if len(own) >= _ENOUGH else self.documents[chance.choice(_BORROWED)]


class Filler:
    """Fills the places of one page; all choices follow from `chance`."""

    def __init__(self, language: str, texts: Texts, chance: random.Random):
        self.chance = chance
        self.documents = texts.of(language, chance)
        self.title, *lines = chance.choice(self.documents)
        self.spaced = language not in _UNSPACED
        self.title = self._cut(self.title, 14)[:90]
        self.main = self._sentences(lines)

    def fill(self, place: re.Match[str]) -> str:
        name = place[1]
        low = int(place[2]) if place[2] else _PARAGRAPH[0]
        high = int(place[3]) if place[3] else (low if place[2] else _PARAGRAPH[1])
        size = self.chance.randint(low, max(low, high))
        match name:
            case "T":
                text = self.title
            case "m":
                text = self._main(size)
            case "p":
                text = self._other(size)
            case "t":
                text = self._headline()
            case "name":
                text = self._name()
            case "date":
                text = self._date()
            case "n":
                text = str(int(math.exp(self.chance.uniform(0, 8))))
            case "price":
                cents = self.chance.choice(("00", "50", "90", "99"))
                text = f"{self.chance.randint(3, 900)}.{cents}"
            case "word":
                text = self._words(self.chance.randint(1, 2))
            case _:
                raise ValueError(f"{place[0]}: no such place for text")
        return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

    def _main(self, size: int) -> str:
        """Return the next sentences of the page's own text, and then of another."""
        if len(self.main) < 2:
            self.main += self._sentences(self.chance.choice(self.documents)[1:])
        text, self.main = self._run(self.main, size)
        return text

    def _other(self, size: int) -> str:
        """Sentences of another text, from anywhere in it on."""
        sentences = self._sentences(self.chance.choice(self.documents)[1:])
        start = self.chance.randrange(len(sentences))
        return self._run(sentences[start:] + sentences[:start], size)[0]

    @staticmethod
    def _sentences(lines: list[str]) -> list[str]:
        return [sentence for line in lines for sentence in _SENTENCE.split(line) if sentence]

    def _run(self, sentences: list[str], size: int) -> tuple[str, list[str]]:
        """Return the first sentences, of about so many words, and the others. A longer first one is
        cut.

        Two Han characters or kana count as a word.
        """
        count = 0.0
        taken = 0
        for sentence in sentences:
            words = len(sentence.split()) if self.spaced else len(sentence) / 2
            if count + words > _TOO_LONG * size:
                break
            taken += 1
            count += words
            if count >= size:
                break
        if not taken:
            return self._cut(sentences[0], size), sentences[1:]
        return (" " if self.spaced else "").join(sentences[:taken]), sentences[taken:]

    def _cut(self, text: str, size: int) -> str:
        return " ".join(text.split()[:size]) if self.spaced else text[: 2 * size]

    def _headline(self) -> str:
        sentences = self._sentences(self.chance.choice(self.documents))
        return self._cut(self.chance.choice(sentences), self.chance.randint(4, 12)).rstrip(".,。、")

    def _words(self, count: int) -> str:
        line = self.chance.choice(self.chance.choice(self.documents))
        return self._cut(line, count)[:20]

    def _name(self) -> str:
        first, family = (
            "".join(self.chance.choices(_SYLLABLES, k=self.chance.randint(2, 3))) for _ in range(2)
        )
        if self.chance.random() < 0.4:
            return first + self.chance.choice(("", "", "77", "_x", "2003"))
        return f"{first.capitalize()} {family.capitalize()}"

    def _date(self) -> str:
        year, month = self.chance.randint(1999, 2025), self.chance.randint(1, 12)
        day, hour = self.chance.randint(1, 28), self.chance.randint(0, 23)
        return self.chance.choice(
            (
                f"{day:02d}.{month:02d}.{year}",
                f"{month}/{day}/{year}",
                f"{year}-{month:02d}-{day:02d} {hour:02d}:{day + 20}",
                f"{day}.{month}.{year}, {hour}:{day + 20}",
            )
        )
