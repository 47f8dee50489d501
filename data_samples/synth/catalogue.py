# ruff: noqa: E501 (markup and tables)
"""Which page goes where: the files of the synthetic web and the fate of every page."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from synth.dice import Dice
from synth.noise import all_noise
from synth.pages import KEEP, Encoding, Page, earlier_version, make, removed
from synth.render import CODE_FORMS, MATH_FORMS
from synth.templates import Site
from synth.text import SOURCES, Text, load

UTF8 = Encoding()
META8 = Encoding(declared="meta")
_OLDER = "dedup-urls:url.older_capture"
_EXACT = "dedup-documents:document.exact"
_NEAR = "dedup-documents:document.near"

#: Encodings met on pages of a language, used in turn: (codec, label, where declared).
ENCODINGS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "de": (("cp1252", "windows-1252", "meta"), ("utf-8", "utf-8", "header"), ("latin-1", "iso-8859-1", "header")),
    "fr": (("latin-1", "iso-8859-1", "http-equiv"), ("utf-8", "utf-8", "meta"), ("iso8859-15", "iso-8859-15", "header")),
    "es": (("utf-8", "utf-8", "bom"), ("latin-1", "iso-8859-1", "meta"), ("utf-8", "utf-8", "wrong")),
    "it": (("utf-8", "utf-8", "header"), ("cp1252", "windows-1252", "http-equiv")),
    "pt": (("utf-8", "utf-8", "header"), ("latin-1", "latin1", "meta")),
    "pl": (("iso8859-2", "iso-8859-2", "header"), ("utf-8", "utf-8", "meta"), ("cp1250", "windows-1250", "meta")),
    "tr": (("iso8859-9", "iso-8859-9", "meta"), ("utf-8", "utf-8", "header"), ("cp1254", "windows-1254", "header")),
    "vi": (("utf-8", "utf-8", "meta"), ("utf-8", "utf-8", "none")),
    "ru": (("cp1251", "windows-1251", "header"), ("utf-8", "utf-8", "meta"), ("koi8-r", "koi8-r", "meta"), ("cp1251", "windows-1251", "none")),
    "uk": (("utf-8", "utf-8", "header"), ("cp1251", "windows-1251", "meta"), ("koi8-u", "koi8-u", "header")),
    "el": (("iso8859-7", "iso-8859-7", "header"), ("utf-8", "utf-8", "meta"), ("cp1253", "windows-1253", "meta")),
    "ar": (("cp1256", "windows-1256", "header"), ("utf-8", "utf-8", "meta")),
    "he": (("cp1255", "windows-1255", "meta"), ("utf-8", "utf-8", "header")),
    "hi": (("utf-8", "utf-8", "header"), ("utf-8", "utf-8", "meta"), ("utf-16-le", "utf-16le", "bom")),
    "th": (("cp874", "windows-874", "meta"), ("utf-8", "utf-8", "header"), ("tis-620", "tis-620", "header")),
    "ja": (("shift_jis", "shift_jis", "meta"), ("euc-jp", "euc-jp", "header"), ("utf-8", "utf-8", "header"), ("iso2022_jp", "iso-2022-jp", "http-equiv")),
    "ko": (("euc-kr", "euc-kr", "meta"), ("utf-8", "utf-8", "header"), ("cp949", "ks_c_5601-1987", "http-equiv")),
    "zh": (("gb18030", "gb18030", "header"), ("utf-8", "utf-8", "meta"), ("gbk", "gb2312", "meta"), ("utf-8", "utf-8", "header")),
    "ka": (("utf-8", "utf-8", "header"), ("utf-16-be", "utf-16be", "bom")),
}  # fmt: skip

SCRIPTS = {
    "ru": "Cyrillic", "uk": "Cyrillic", "el": "Greek", "ar": "Arabic", "he": "Hebrew",
    "hi": "Devanagari", "th": "Thai", "ja": "Japanese", "ko": "Hangul", "zh": "Han",
    "ka": "Georgian", "und": "",
}  # fmt: skip


@dataclass(frozen=True)
class Capture:
    """A page and the file that holds it."""

    file: str
    page: Page


def sites(name: str) -> dict[str, Site]:
    raw = tomllib.loads((SOURCES / f"{name}.toml").read_text(encoding="utf-8"))
    lists = ("nav", "related", "inside")
    return {
        host: Site(host=host, **{k: tuple(v) if k in lists else v for k, v in row.items()})
        for host, row in raw.items()
    }


def _without_any(phrases: tuple[str, ...], hidden: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(x for x in phrases if not any(h in x for h in hidden))


def _english(site: dict[str, Site]) -> list[Page]:
    articles = [t for n in ("en_articles_1", "en_articles_2", "en_articles_3") for t in load(n)]
    hosts = ["harbourpost", "fieldnotes", "openfolio", "plainwords", "harbourpost", "uncleherbert",
             "plainwords"]  # fmt: skip
    pages = []
    for i, text in enumerate(articles):
        host = "slowkitchen" if text.topic in ("food", "home") else hosts[i % len(hosts)]
        encoding = (
            Encoding("cp1252", "windows-1252", "meta") if i % 7 == 3 else (UTF8, META8)[i % 2]
        )
        pages.append(make(site[f"{host}.example"], text, "article", encoding=encoding))
    for text in load("personal"):
        page = make(site["fieldnotes.example"], text, "personal-data", encoding=META8)
        hidden = tuple(x.strip() for x in text.fields["hide"].split(" ; "))
        page = replace(
            page,
            contains=_without_any(page.contains, hidden),
            source_contains=_without_any(page.source_contains, hidden),
            excludes=page.excludes + hidden,
            note="redacted",
        )
        pages.append(page)
    return pages


def _knowledge(site: dict[str, Site]) -> list[Page]:
    pages = []
    maths = [t for n in ("maths_1", "maths_2") for t in load(n)]
    for i, text in enumerate(maths):
        form = MATH_FORMS[i % len(MATH_FORMS)]
        host = {"wiki": "mathpedia", "mathjax": "mathnotes"}.get(form, "proofs")
        host = "mathnotes" if i % 5 == 4 and form != "wiki" else host
        page = make(
            site[f"{host}.example"], text, "maths", math=form, encoding=(UTF8, META8)[i % 2]
        )
        pages.append(replace(page, note=f"formulas: {form}"))
    code = [t for n in ("code_1", "code_2") for t in load(n)]
    for i, text in enumerate(code):
        form = CODE_FORMS[i % len(CODE_FORMS)]
        host = "devhandbook" if i % 3 else "bytesandbrackets"
        page = make(site[f"{host}.example"], text, "code", code=form, encoding=(META8, UTF8)[i % 2])
        pages.append(replace(page, note=f"code: {form}"))
    pages += [make(site["wheelandkettle.example"], t, "forum") for t in load("forum")]
    for i, text in enumerate(load("answers")):
        math = MATH_FORMS[2 + i % 2] if text.topic == "mathematics" else None
        pages.append(
            make(site["askbench.example"], text, "answers", math=math, code=CODE_FORMS[i % 3])
        )
    for text in load("products"):
        page = make(site["goodthings.example"], text, "product")
        if text.slug == "backpack-30":
            fate = f"{KEEP}|classify:quality.low_score"
            page = replace(page, fate=fate, note="sales copy close to the quality limit")
        pages.append(page)
    return pages


def _encoding(language: str, i: int) -> Encoding:
    choices = ENCODINGS.get(language, (("utf-8", "utf-8", "header"),))
    return Encoding(*choices[i % len(choices)])


def _world(site: dict[str, Site]) -> list[Page]:
    pages = []
    for one in site.values():
        for i, text in enumerate(load(f"lang_{one.language}")):
            encoding = _encoding(one.language, i)
            # One page in layout tables: their lines aren't counted on as repeated ones.
            template = "legacy" if i == 3 else ("news", "blog", "wiki", "divs")[i % 4]
            pages.append(make(replace(one, template=template), text, "article", encoding=encoding))
    return pages


def _find(pages: list[Page], slug: str) -> Page:
    for page in pages:
        if f"/{slug}.html" in page.url:
            return page
    raise ValueError(f"no page of {slug}")


@dataclass(frozen=True)
class Maker:
    """Makes a page again from an edited text: what duplicates and captures are made with."""

    text: Text
    make: Callable[[Text], Page]


def _slugs(pages: list[Page], count: int, name: str, kinds: tuple[str, ...]) -> list[Page]:
    """A fixed choice of kept pages, spread over kinds and languages."""
    return Dice(name).sample([p for p in pages if p.kind in kinds], count)


def _mirrors(pages: list[Page]) -> list[Page]:
    """Exact copies on other hosts; the newest capture is the one to be kept."""
    copies = []
    for n, page in enumerate(_slugs(pages, 14, "mirrors", ("article", "maths", "code", "product"))):
        path = urlsplit(page.url).path
        for k in range(3 if n % 5 == 0 else 1):
            host = f"mirror{k + 1}-{n}.example"
            date = f"2023-{11 + k % 2}-{n % 27 + 1:02}T10:{n:02}:{k:02}Z"
            copies.append(
                removed(page, _EXACT, url=f"https://{host}{path}", date=date, group=f"exact-{n}",
                        note=f"copy of {page.url}")
            )  # fmt: skip
    return copies


def _has_sentences(page: Page) -> bool:
    """Articles from which a sentence can be left out; Thai marks no end of sentences."""
    return page.kind == "article" and page.language != "th"


def _edited(pages: list[Page], texts: dict[str, Text]) -> list[Page]:
    """Near copies on other hosts: an older version that lacks one sentence."""
    copies = []
    taken = {p.url for p in _slugs(pages, 14, "mirrors", ("article", "maths", "code", "product"))}
    free = [p for p in pages if p.url not in taken and _has_sentences(p)]
    for n, page in enumerate(_slugs(free, 16, "edited", ("article",))):
        text = texts[_slug(page)]
        html = _without(page.html, text)
        url = f"https://syndicate{n}.example{urlsplit(page.url).path}"
        date = f"2023-12-{n + 1:02}T06:{n:02}:30Z"
        copies.append(
            removed(page, f"{_NEAR}", url=url, date=date, html=html, group=f"near-{n}",
                    note=f"lacks one sentence of {page.url}")
        )  # fmt: skip
    return copies


def _slug(page: Page) -> str:
    return urlsplit(page.url).path.rsplit("/", 1)[-1].removesuffix(".html")


def _without(html: str, text: Text) -> str:
    """The page's HTML as it was before the shortest sentence of its text was written."""
    from synth.render import inline

    earlier = earlier_version(text)
    for new, old in zip(text.blocks, earlier.blocks, strict=True):
        if new != old:
            now, before = inline(new.text, None), inline(old.text, None)
            if now not in html:
                raise ValueError(f"{text.slug}: paragraph not found in its page")
            return html.replace(now, before)
    raise ValueError(f"{text.slug}: nothing was left out")


def _variants(url: str, n: int) -> str:
    """Another spelling of the same address."""
    parts = urlsplit(url)
    rest = parts.path
    return (
        url,
        f"http://{parts.netloc}{rest}",
        f"https://www.{parts.netloc}{rest}",
        f"{url}?utm_source=feed&utm_medium=rss&utm_campaign=week{n}",
        f"HTTPS://{parts.netloc.upper()}:443{rest}",
        f"{url}#comments",
        f"{url}?fbclid=IwAR{n:04d}xyz",
        f"https://{parts.netloc}/./x/..{rest}",
    )[n % 8]


def _captures(pages: list[Page], texts: dict[str, Text], taken: set[str]) -> list[Page]:
    """Older captures of addresses that the crawl visited again."""
    older = []
    free = [p for p in pages if _has_sentences(p) and p.url not in taken]
    for n, page in enumerate(_slugs(free, 16, "captures", ("article",))):
        for k in range(2 if n % 4 == 0 else 1):
            date = f"2023-{10 - k:02}-{n + 3:02}T12:00:{n:02}Z"
            url = _variants(page.url, n + k)
            html = _without(page.html, texts[_slug(page)]) if k == 0 else page.html
            older.append(
                removed(page, _OLDER, url=url, date=date, html=html, group=f"capture-{n}",
                        note=f"captured again as {page.url}")
            )  # fmt: skip
    return older


def _file_of(page: Page, i: int) -> str:
    if page.fate != KEEP and page.kind in (
        "spam", "log", "adult", "gibberish", "empty", "listing", "placeholder", "error", "probe",
    ):  # fmt: skip
        return "noise-00003.warc.gz"
    if page.language != "en" and page.group:  # copies are the same text only if both are HTML
        return "world-00002.warc.zst" if i % 2 else "world-00001.warc.gz"
    if page.language != "en":
        if page.encoding.codec not in ("utf-8", "utf-16-le", "utf-16-be") and i % 9 == 4:
            return "old-00005.arc.gz"
        if page.encoding.codec == "utf-8" and page.fate == KEEP and i % 8 == 1:
            return "text-00006.warc.wet.gz"
        if page.encoding.codec == "utf-8" and page.fate == KEEP and i % 8 == 5:
            return "records-00007.jsonl.gz"
        return "world-00002.warc.zst" if i % 2 else "world-00001.warc.gz"
    if page.kind in ("forum", "answers") and i % 3 == 0:
        return "board-00004.warc.lz4"
    return "english-00000.warc.gz"


def catalogue() -> tuple[list[Capture], list[Page]]:
    """All whole pages with their files, and the pages reserved for the damaged file."""
    site, world = sites("sites"), sites("world")
    english, knowledge, foreign = _english(site), _knowledge(site), _world(world)
    names = [f"lang_{s.language}" for s in world.values()]
    names += ["en_articles_1", "en_articles_2", "en_articles_3"]
    texts = {t.slug: t for n in names for t in load(n)}
    reserved = [p for p in english if p.kind == "article" and "slowkitchen" not in p.url][-17:]
    kept = [p for p in [*english, *knowledge, *foreign] if p not in reserved]
    mirrors, edited = _mirrors(kept), _edited(kept, texts)
    taken = {c.note.rsplit(" ", 1)[-1] for c in [*mirrors, *edited]}
    captures = _captures(kept, texts, taken)
    groups = {c.note.rsplit(" ", 1)[-1]: c.group for c in [*mirrors, *edited, *captures]}
    kept = [replace(p, group=groups.get(p.url, "")) for p in kept]
    noise = all_noise(site["goodthings.example"], site["harbourpost.example"],
                      [t.title for t in texts.values() if t.title.isascii()], texts)  # fmt: skip
    pages = [*kept, *mirrors, *edited, *captures, *noise]
    files = [Capture(_file_of(p, i), p) for i, p in enumerate(pages)]
    return files, reserved
