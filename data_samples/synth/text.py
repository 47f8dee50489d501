"""The source texts: a line-based format, one block per line.

=== slug | topic            starts a text; further `| key=value` fields may follow
Title                       first line
A paragraph.                any other line
## Heading
- list item
> quotation
| cell | cell |             table row
$$ x^2 $$                   displayed formula; `$x$` inside a line where formulas are on
```python ... ```           code
@ author | 2023-05-04 10:12 starts a post of a thread
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

SOURCES = Path(__file__).resolve().parent.parent / "sources"


@dataclass(frozen=True)
class Block:
    """`kind` is p, h2, li, quote, row, math, code or post; `note` the code language or author."""

    kind: str
    text: str
    note: str = ""


@dataclass(frozen=True)
class Text:
    slug: str
    topic: str
    title: str
    blocks: tuple[Block, ...]
    fields: dict[str, str] = field(default_factory=dict)

    @property
    def prose(self) -> list[str]:
        return [b.text for b in self.blocks if b.kind == "p"]

    def with_blocks(self, blocks: list[Block], slug: str | None = None) -> Text:
        return replace(self, blocks=tuple(blocks), slug=slug or self.slug)


_MARKS = {"## ": "h2", "- ": "li", "> ": "quote"}


def _blocks(lines: list[str]) -> list[Block]:
    out: list[Block] = []
    fence: list[str] | None = None
    language = ""
    for line in lines:
        if line.startswith("```"):
            if fence is None:
                fence, language = [], line[3:].strip()
            else:
                out.append(Block("code", "\n".join(fence), language))
                fence = None
        elif fence is not None:
            fence.append(line)
        elif not line.strip():
            continue
        elif line.startswith("@ "):
            author, _, when = line[2:].partition(" | ")
            out.append(Block("post", when, author))
        elif line.startswith("$$"):
            out.append(Block("math", line.strip().strip("$").strip()))
        elif line.startswith("| "):
            out.append(Block("row", line.strip("| ")))
        else:
            for mark, kind in _MARKS.items():
                if line.startswith(mark):
                    out.append(Block(kind, line[len(mark) :].strip()))
                    break
            else:
                out.append(Block("p", line.strip()))
    if fence is not None:
        raise ValueError("code without closing fence")
    return out


def parse(source: str) -> list[Text]:
    """Texts of one source file, in order."""
    texts = []
    for part in ("\n" + source).split("\n=== ")[1:]:
        lines = part.split("\n")
        slug, topic, *extra = (cell.strip() for cell in lines[0].split("|"))
        fields = dict(cell.split("=", 1) for cell in extra)
        texts.append(Text(slug, topic, lines[1].strip(), tuple(_blocks(lines[2:])), fields))
    return texts


def load(name: str) -> list[Text]:
    """Texts of `sources/<name>.txt`; raises ValueError on a slug used twice."""
    texts = parse((SOURCES / f"{name}.txt").read_text(encoding="utf-8"))
    slugs = [text.slug for text in texts]
    if len(set(slugs)) != len(slugs):
        twice = sorted({slug for slug in slugs if slugs.count(slug) > 1})
        raise ValueError(f"{name}.txt: slug used twice: {', '.join(twice)}")
    return texts
