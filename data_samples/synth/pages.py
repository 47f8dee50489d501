"""A page of the synthetic web: its bytes as a server would send them, and its expected fate."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from synth.dice import Dice
from synth.render import TEX_FORMS
from synth.templates import TEMPLATES, Dress, Site
from synth.text import Block, Text

KEEP = "keep"
#: Languages written without spaces between words: phrases are counted in characters.
UNSPACED = frozenset({"ja", "zh", "th"})


@dataclass(frozen=True)
class Encoding:
    """`codec` is Python's name, `label` the one declared, `declared` where: header, meta,
    http-equiv, bom, none, or wrong (the header lies, the bytes are valid UTF-8)."""

    codec: str = "utf-8"
    label: str = "utf-8"
    declared: str = "header"


@dataclass(frozen=True)
class Page:
    url: str
    date: str
    kind: str
    language: str
    html: str
    fate: str = KEEP
    encoding: Encoding = Encoding()
    contains: tuple[str, ...] = ()
    source_contains: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    group: str = ""
    note: str = ""
    status: str = "200 OK"
    mime: str = "text/html"
    server: str = "nginx"
    plain: str = field(default="", repr=False)
    extra_headers: tuple[tuple[str, str], ...] = ()

    def body(self) -> bytes:
        data = self.html.encode(self.encoding.codec, errors="xmlcharrefreplace")
        if self.encoding.declared == "bom":
            mark = {"utf-8": b"\xef\xbb\xbf", "utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}
            data = mark[self.encoding.codec] + data
        return data

    def content_type(self) -> str:
        if self.encoding.declared == "header":
            return f"{self.mime}; charset={self.encoding.label}"
        if self.encoding.declared == "wrong":
            return f"{self.mime}; charset=iso-8859-1"
        return self.mime


_UNSAFE = re.compile(r"[\"'`$<>&\\“”‘’«»„|]")


def phrase(line: str, language: str) -> str:
    """A run from the middle of a line, free of markup, formulas and quotation marks.

    Returns "" when the line has no such run.
    """
    if language in UNSPACED:
        # Thai vowel signs and tone marks are no word characters to `re`.
        runs = re.findall(
            r"(?:[^\W\d_a-zA-Z]|[\u0e31-\u0e4e])(?:[^\W\d_a-zA-Z]|[\u0e31-\u0e4e]){7,}", line
        )
        return max(runs, key=len)[:12] if runs else ""
    words = line.split()
    middle = max(1, len(words) // 2 - 3)
    for start in [*range(middle, len(words) - 6), *range(1, middle)]:
        run = words[start : start + 6]
        joined = " ".join(run)
        if len(run) == 6 and not _UNSAFE.search(joined) and "  " not in joined:
            return joined.rstrip(".,;:!?")
    return ""


def phrases(text: Text, language: str) -> tuple[str, ...]:
    """One phrase from the first and one from the last paragraph of a text."""
    prose = text.prose
    ends = [prose[0], prose[-1]] if len(prose) > 1 else prose[:1]
    found = [phrase(line, language) for line in ends]
    return tuple(dict.fromkeys(p for p in found if p))


def _source_lines(text: Text, math: str | None) -> tuple[str, ...]:
    """What must survive of code (one indented line as it stands) and of TeX."""
    out = []
    for block in text.blocks:
        if block.kind == "code":
            lines = [x for x in block.text.split("\n") if x.startswith("    ") and len(x) > 14]
            if lines and "\t" not in lines[0]:
                out.append(lines[0].rstrip())
                break
    if math in TEX_FORMS:
        tex = [b.text for b in text.blocks if b.kind == "math" and len(b.text) < 60]
        out += tex[:1]
    return tuple(out)


def day_of(name: str) -> str:
    """A publication day between 2021 and 2023, fixed by name."""
    dice = Dice("day " + name)
    return f"{dice.between(2021, 2023)}-{dice.between(1, 12):02}-{dice.between(1, 28):02}"


def crawl_time(name: str, month: str) -> str:
    """A capture time in the given month (`2024-02`), fixed by name."""
    dice = Dice("crawl " + name)
    clock = f"{dice.between(0, 23):02}:{dice.between(0, 59):02}:{dice.between(0, 59):02}"
    return f"{month}-{dice.between(1, 28):02}T{clock}Z"


def plain_text(site: Site, text: Text) -> str:
    """The page as a text extraction without boilerplate removal leaves it (as in WET files)."""
    lines = [*site.nav, text.title]
    body = [b.text for b in text.blocks if b.kind != "post"]
    if len(body) > 1:
        for line, place in zip(site.inside, (1, len(body) + 1), strict=False):
            body.insert(place, line)
    return "\n".join([*lines, *body, site.footer]) + "\n"


def boilerplate(site: Site) -> tuple[str, ...]:
    """Strings of the site that must not be in the final text."""
    # Nothing but its place tells the signature of a plain page from its text: it may stay.
    footer = "" if site.template == "minimal" else site.footer
    return tuple(x[:48].rstrip() for x in (site.cookies, footer, *site.inside) if len(x) > 12)


def make(
    site: Site,
    text: Text,
    kind: str,
    *,
    path: str | None = None,
    month: str = "2024-02",
    math: str | None = None,
    code: str = "plain",
    encoding: Encoding = Encoding(),
) -> Page:
    """Dress a text as a page of a site; the expected phrases come from the text."""
    path = path or f"/{kind}/{text.slug}.html"
    meta = {"meta": encoding.label, "http-equiv": f"http-equiv:{encoding.label}"}
    dress = Dress(
        path=path,
        day=day_of(text.slug),
        math=math,
        code=code,
        meta_charset=meta.get(encoding.declared, ""),
    )
    return Page(
        url=f"https://{site.host}{path}",
        date=crawl_time(site.host + path, month),
        kind=kind,
        language=site.language,
        html=TEMPLATES[site.template](site, text, dress),
        encoding=encoding,
        contains=phrases(text, site.language),
        source_contains=_source_lines(text, math),
        excludes=boilerplate(site),
        server=site.server,
        plain=plain_text(site, text),
    )


_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？।])")


def earlier_version(text: Text) -> Text:
    """The text without its shortest sentence: what a page said before its last edit.

    The first and the last sentence of the text stay. Raises ValueError when nothing can go.
    """
    best: tuple[int, int, list[str], int] | None = None
    for at, block in enumerate(text.blocks):
        if block.kind != "p":
            continue
        sentences = [s for s in _SENTENCE.split(block.text) if s]
        for i in range(1, len(sentences) - 1):
            key = len(sentences[i])
            if key >= 12 and (best is None or key < best[0]):
                best = (key, at, sentences, i)
    if best is None:
        raise ValueError(f"{text.slug}: no sentence to leave out")
    _, at, sentences, i = best
    joint = "" if re.search("[。！？]", text.blocks[at].text) else " "
    line = joint.join(sentences[:i] + sentences[i + 1 :])
    blocks = list(text.blocks)
    blocks[at] = Block("p", line)
    return text.with_blocks(blocks)


def removed(page: Page, fate: str, **changes: object) -> Page:
    """The same page with another fate; a removed page is asked for no phrases."""
    return replace(
        page,
        fate=fate,
        contains=(),
        source_contains=(),
        excludes=(),
        **changes,  # type: ignore[arg-type]
    )
