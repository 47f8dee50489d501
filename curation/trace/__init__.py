"""Find where a passage occurs in a corpus, by sampled fingerprints, and its exact spans."""

import re

from curation.errors import ConfigError

#: Words of the shortest span that is looked for: 40 Han or kana letters, 80 Thai letters.
LEAST_WORDS = 20
_RUN = re.compile(r"[^\W\d_]+|\d+")
_DENSE = "\u0e00"  # from here on a letter may be a word


def refuse_short(text: str) -> None:
    """Raise ConfigError for a passage that is surely too short; `Passage` counts exactly."""
    if len(_RUN.findall(text)) + sum(letter >= _DENSE for letter in text) < LEAST_WORDS:
        raise ConfigError(f"the passage is too short: give at least {LEAST_WORDS} words")
