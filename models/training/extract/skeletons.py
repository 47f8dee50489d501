"""Pages of our own: skeletons whose places for text are filled from texts of our own.

A skeleton is a page of a site that doesn't exist, in the markup that sites of its kind and time
have, written for training. Attributes mark its main content (`k`), what in it is none (`x`) and
comments below articles and products (`o`, none either); the innermost counts, and they are gone
from the page that is made.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from curation import resources
from curation.errors import ConfigError
from models.training.extract.fillings import Filler, Texts
from models.training.extract.pages import Example, block_texts, scanned, words_of
from models.training.extract.settings import SKELETONS, ExtractTraining
from models.training.inputs import rows

_TAG = re.compile(r"<(/?)([a-zA-Z][\w:-]*)((?:[^<>\"']|\"[^\"]*\"|'[^']*')*)>")
_MARK = re.compile(r"\s+([kxo])(?=[\s/>]|$)(?:=\"\")?", re.IGNORECASE)
_REPEAT = re.compile(r"\{\{#(\d+)(?:-(\d+))?\}\}|\{\{/\}\}")
_PLACE = re.compile(r"\{\{([a-zA-Z]+)(?::(\d+)(?:-(\d+))?)?\}\}")
_WORD = re.compile(r"(?<!\S)(?!(?:&nbsp;)+(?!\S))\S+")  # blanks stay blank
_VOID = frozenset("area base br col embed hr img input link meta param source track wbr".split())
_OPTIONAL = frozenset("p li dt dd td th tr option".split())  # end tags that may be left out
_ENDS_P = frozenset(
    "p div ul ol dl table form fieldset h1 h2 h3 h4 h5 h6 blockquote pre section article aside nav "
    "header footer main figure details address center hr".split()
)
_RAW = frozenset("title script style textarea".split())  # no tag in them is one
_CONTENT = "\ue000"  # precedes each word of the content while its block is sought


@dataclass(frozen=True)
class Skeleton:
    """A page to be filled."""

    name: str
    kind: str
    language: str
    html: str


def read_skeletons(path: str) -> list[Skeleton]:
    """Skeletons of a gzipped JSONL file ({name, kind, language, html}).

    Raises ConfigError, InputError when it is none or not JSON.
    """
    found = []
    for place, row in rows(Path(resources.resolve(path))):
        try:
            found.append(Skeleton(**row))
        except TypeError as error:
            raise ConfigError(f"{place}: not a skeleton: {error}") from None
    return found


def _repeated(html: str, chance: random.Random) -> str:
    """Return the skeleton with its repetitions written out. Raises ValueError when they don't
    nest."""
    stack: list[list[str]] = [[]]
    times: list[int] = []
    at = 0
    for mark in _REPEAT.finditer(html):
        stack[-1].append(html[at : mark.start()])
        at = mark.end()
        if mark[1]:
            low = int(mark[1])
            times.append(chance.randint(low, max(low, int(mark[2] or low))))
            stack.append([])
            continue
        if not times:
            raise ValueError("{{/}} without {{#}}")
        stack[-2].append("".join(stack.pop()) * times.pop())
    if times:
        raise ValueError("{{#}} without {{/}}")
    stack[-1].append(html[at:])
    return "".join(stack[-1])


def _marked(html: str) -> tuple[str, str]:
    """Return the page without its marks, and the same with a sign before each word of content."""
    plain: list[str] = []
    signed: list[str] = []
    open_tags: list[tuple[str, str]] = [("", "")]
    at = 0

    def text(run: str) -> None:
        plain.append(run)
        name, mark = open_tags[-1]
        content = mark == "k" and name not in _RAW
        signed.append(_WORD.sub(_CONTENT + r"\g<0>", run) if content else run)

    for tag in _TAG.finditer(html):
        text(html[at : tag.start()])
        at = tag.end()
        closing, name, rest = tag[1], tag[2].lower(), tag[3]
        mark = _MARK.search(rest)
        written = f"<{closing}{tag[2]}{_MARK.sub('', rest)}>"
        plain.append(written)
        signed.append(written)
        if closing:
            for depth in range(len(open_tags) - 1, 0, -1):
                if open_tags[depth][0] == name:
                    del open_tags[depth:]
                    break
        elif name not in _VOID and not rest.endswith("/"):
            above = open_tags[-1][0]
            if (name in _OPTIONAL and above == name) or (above == "p" and name in _ENDS_P):
                open_tags.pop()
            open_tags.append((name, mark[1].lower() if mark else open_tags[-1][1]))
    text(html[at:])
    return "".join(plain), "".join(signed)


def filled(skeleton: Skeleton, texts: Texts, chance: random.Random) -> tuple[str, str]:
    """Return a page made of a skeleton, and the same with signs. Raises ConfigError."""
    try:
        html = _repeated(skeleton.html, chance)
        if "{{" in (left := _PLACE.sub("", html)):
            raise ValueError(f"{left[left.index('{{') :][:20]}: no place for text")
        html = _PLACE.sub(Filler(skeleton.language, texts, chance).fill, html)
    except ValueError as error:
        raise ConfigError(f"skeleton {skeleton.name}: {error}") from None
    return _marked(html)


def _share(signed: str) -> float:
    """Share of a block's words that are content."""
    words = signed.split()
    return sum(_CONTENT in word for word in words) / max(len(words), 1)


def skeleton_examples(settings: ExtractTraining) -> Iterator[Example]:
    """Pages made of the skeletons. Raises ConfigError when one is malformed."""
    texts = Texts(settings.text_file)
    for skeleton in read_skeletons(settings.skeleton_file):
        for copy in range(settings.skeleton_copies):
            chance = random.Random(f"{skeleton.name}/{copy}")
            plain, signed = filled(skeleton, texts, chance)
            source = plain.encode()
            page = scanned(source)
            shown = block_texts(scanned(signed.encode()))
            if len(shown) != len(page.b_start):
                raise ConfigError(f"skeleton {skeleton.name}: its marks change how it is cut")
            count = np.array([len(words_of(text)) for text in block_texts(page)], np.float64)
            yield Example(
                f"{SKELETONS}/{skeleton.name}.{copy}",
                f"skeleton {skeleton.name}",
                source,
                page,
                label=np.array([_share(text) for text in shown]),
                words=count,
                judged=np.ones(len(shown), np.bool_),
                weight=settings.skeleton_weight * settings.weight_of(SKELETONS, skeleton.kind),
                kind=skeleton.kind,
            )
