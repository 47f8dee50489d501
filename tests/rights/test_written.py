# ruff: noqa: E501 (pages)
"""Pages and header sets written for this, with signals in every form that docs/rights.md lists."""

from __future__ import annotations

import json
from typing import NamedTuple

import pytest

from curation.readers.http import parse_head
from curation.readers.records import Page
from curation.rights import read_page
from curation.rights.signals import document_rights

BY = "https://creativecommons.org/licenses/by/4.0/"
NC = "http://creativecommons.org/licenses/by-nc-sa/3.0/de/"
ZERO = "https://creativecommons.org/publicdomain/zero/1.0/"
BADGE = "https://i.creativecommons.org/l/by/4.0/88x31.png"


class Case(NamedTuple):
    """A page with its HTTP head, and what is to be read of it."""

    signals: list[tuple[str, str, str | None, str]]
    licence: str | None = None
    head: str = ""
    body: str = ""
    headers: str = ""
    text: str = ""


def directive(place: str, agent: str, *names: str) -> list[tuple[str, str, str | None, str]]:
    return [("directive", place, agent, name) for name in names]


def linked(**thing: object) -> str:
    return f'<script type="application/ld+json">{json.dumps(thing)}</script>'


def licence(place: str, value: str = BY) -> list[tuple[str, str, str | None, str]]:
    return [("licence", place, None, value)]


def part(place: str = "body", value: str = BY) -> list[tuple[str, str, str | None, str]]:
    return [("part_licence", place, None, value)]


DIRECTIVES = ("noai", "noimageai", "noindex", "nofollow", "noarchive", "nosnippet")
BOTS = ("googlebot", "bingbot", "GPTBot", "CCBot", "Google-Extended", "anthropic-ai")
METAS = (
    '<meta name="robots" content="{}">',
    "<META NAME='ROBOTS' CONTENT='{}'/>",
    "<meta name=robots content={}>",
    '<meta content="{}" name="robots">',
    '<meta\n  name="robots"\n  content=" {} "\n>',
)
#: Sentences that license what the page shows, with a link in place of the braces.
WHOLE = (
    'Text is available under <a href="{}">these terms</a>.',
    'Except where otherwise noted, content is licensed <a href="{}">CC BY</a>.',
    'Alle Inhalte dieser Seite stehen unter <a href="{}">CC</a>.',
    'Ce contenu est sous licence <a href="{}">CC</a>.',
    'El contenido está bajo <a href="{}">CC</a>.',
    'O conteúdo deste sítio está sob <a href="{}">CC</a>.',
    'Treść dostępna na licencji <a href="{}">CC</a>.',
    'Текст доступен по лицензии <a href="{}">CC</a>.',
    '本文は<a href="{}">CC</a>で提供されます。',
    '本站内容采用<a href="{}">CC</a>许可。',
    '이 콘텐츠는 <a href="{}">CC</a>에 따라 이용할 수 있습니다.',
    'This work is licensed under a <a rel="license" href="{}">licence</a>.',
)
#: Places in which a licence is that of a part.
PARTS = (
    '<figure><img src="a.jpg"><figcaption>A, <a rel="license" href="{}">CC</a></figcaption></figure>',
    '<p>Photo: Ann, <a href="{}">CC BY</a></p>',
    '<p>Image by Bo via Flickr, <a href="{}">CC BY</a></p>',
    '<p>Music: Cy (<a href="{}">CC BY</a>)</p>',
    '<p>Foto: Di, <a href="{}">CC</a></p>',
    '<p>写真：絵里 <a href="{}">CC</a></p>',
    '<p>图片 <a href="{}">CC</a></p>',
    '<p>Icon by Flo: <a href="{}">CC</a></p>',
    '<div class="photo-credit">Gus <a href="{}">CC</a></div>',
    '<div class="wp-caption">Hal <a href="{}">CC</a></div>',
    "<script>map.credit('<a href=\"{}\">CC</a>')</script>",
    '<p>Map data: <a href="{}">CC</a></p>',
)

CASES: dict[str, Case] = {
    **{
        f"meta {k} {name}": Case(directive("head", "*", name), head=form.format(name))
        for k, form in enumerate(METAS)
        for name in DIRECTIVES
    },
    **{
        f"meta for {bot}": Case(
            directive("head", bot.lower(), "noindex", "nofollow"),
            head=f'<meta name="{bot}" content="none">',
        )
        for bot in BOTS
    },
    **{
        f"header {name}": Case(directive("header", "*", name), headers=f"X-Robots-Tag: {name}")
        for name in DIRECTIVES
    },
    **{
        f"header for {bot}": Case(
            directive("header", bot.lower(), "noai", "noimageai"),
            headers=f"x-robots-tag: {bot}: noai, noimageai",
        )
        for bot in BOTS
    },
    "two header lines": Case(
        directive("header", "ccbot", "noai") + directive("header", "*", "noindex"),
        headers="X-Robots-Tag: CCBot: noai\r\nX-Robots-Tag: noindex",
    ),
    "header and page": Case(
        directive("header", "*", "noarchive") + directive("head", "*", "noai"),
        head='<meta name="robots" content="noai">',
        headers="X-ROBOTS-TAG: noarchive",
    ),
    "a folded header": Case(
        directive("header", "*", "noindex", "noai"), headers="X-Robots-Tag: noindex,\r\n noai"
    ),
    "directives with values": Case(
        directive("head", "*", "max-snippet:-1", "noai"),
        head='<meta name="robots" content="max-snippet:-1, noai">',
    ),
    "directives with a date": Case(
        directive("header", "googlebot", "unavailable_after:Sat, 01 Jan 2011 00:00:00 GMT", "noai"),
        headers="X-Robots-Tag: googlebot: unavailable_after: Sat, 01 Jan 2011 00:00:00 GMT, noai",
    ),
    **{
        f"meta with '{sign}'": Case(
            directive("head", "*", "noai", "noimageai"),
            head=f'<meta name="robots" content="noai{sign}noimageai">',
        )
        for sign in (" ", ";", "; ", "&#44;")
    },
    **{
        f"meta for {bot}": Case(
            directive("head", bot.lower(), "noindex"), head=f"<meta name={bot} content=noindex>"
        )
        for bot in ("googlebot", "googlebot-news", "Bytespider", "meta-externalagent")
    },
    "meta in place of a header": Case(
        directive("head", "*", "noai"), head='<meta http-equiv="X-Robots-Tag" content="noai">'
    ),
    **{
        f"meta behind a long {tag}": Case(
            directive("head", "*", "noai"),
            head=f'<{tag}>{"a=1; " * 20_000}</{tag}><meta name="robots" content="noai">',
        )
        for tag in ("style", "script")
    },
    "in a long script": Case(
        [], head=f"<script>{'a=1; ' * 20_000}'<meta name=\"robots\" content=\"noai\">'</script>"
    ),
    "words of directives": Case([], head='<meta name="keywords" content="noindex, nofollow">'),
    "none of something else": Case([], head='<meta name="msapplication-config" content="none">'),
    "commented out": Case([], head='<!-- <meta name="robots" content="noai"> -->'),
    "in a script": Case([], head='<script>x = \'<meta name="robots" content="noai">\'</script>'),
    "described robots": Case([], head='<meta name="description" content="robots: noai">'),
    "in the body": Case([], body='<p>Write &lt;meta name="robots" content="noai"></p>'),
    # Reservations
    "tdm header": Case([("tdm", "header", None, "1")], headers="TDM-Reservation: 1"),
    "tdm header, lower case": Case([("tdm", "header", None, "1")], headers="tdm-reservation:1"),
    "tdm header with policy": Case(
        [("tdm", "header", None, "1 https://a.example/p.json")],
        headers="tdm-reservation: 1\r\ntdm-policy: https://a.example/p.json",
    ),
    "tdm header, not reserved": Case([("tdm", "header", None, "0")], headers="tdm-reservation: 0"),
    "tdm header, no value": Case(
        [("tdm", "header", None, "unread=yes")], headers="tdm-reservation: yes"
    ),
    "tdm policy alone": Case([], headers="tdm-policy: https://a.example/p.json"),
    "tdm meta": Case([("tdm", "head", None, "1")], head='<meta name="tdm-reservation" content="1">'),
    "tdm meta with policy": Case(
        [("tdm", "head", None, "1 https://a.example/p")],
        head='<meta name="tdm-reservation" content="1"><meta name="tdm-policy" content="https://a.example/p">',
    ),
    "tdm meta, property": Case(
        [("tdm", "head", None, "0")], head='<meta property="tdm-reservation" content="0">'
    ),
    "tdm header and meta": Case(
        [("tdm", "header", None, "0"), ("tdm", "head", None, "1")],
        head='<meta name="tdm-reservation" content="1">',
        headers="tdm-reservation: 0",
    ),
    # Licences of the page
    "link": Case(licence("head"), "CC-BY-4.0", head=f'<link rel="license" href="{BY}">'),
    "link, other order": Case(licence("head"), "CC-BY-4.0", head=f"<link href={BY} rel=license>"),
    "link, capitals": Case(licence("head"), "CC-BY-4.0", head=f'<LINK REL="LICENSE" HREF="{BY}">'),
    "link of a ported licence": Case(
        licence("head", NC), "CC-BY-NC-SA-3.0", head=f'<link rel="license" href="{NC}">'
    ),
    "link header": Case(
        licence("header"), "CC-BY-4.0", headers=f'Link: <{BY}>; rel="license"'
    ),
    "link header among others": Case(
        licence("header", ZERO),
        "CC0-1.0",
        headers=f'Link: </a.css>; rel=preload, <{ZERO}>; title="x"; rel="license nofollow"',
    ),
    "link header of a style": Case([], headers="Link: </license.css>; rel=stylesheet"),
    **{
        f"meta {name}": Case(
            licence("head"), "CC-BY-4.0", head=f'<meta name="{name}" content="{BY}">'
        )
        for name in ("dc.rights", "DC.Rights.License", "dcterms.license", "license", "DCTERMS.rights")
    },
    "cc property": Case(
        licence("head", "CC BY-SA 4.0"),
        "CC-BY-SA-4.0",
        head='<meta property="cc:license" content="CC BY-SA 4.0">',
    ),
    "json-ld article": Case(
        licence("head"), "CC-BY-4.0", head=linked(**{"@type": "Article", "license": BY})
    ),
    "json-ld graph": Case(
        licence("head", ZERO),
        "CC0-1.0",
        head=linked(**{"@graph": [{"@type": "WebPage", "license": {"@id": ZERO}}]}),
    ),
    "json-ld picture": Case(
        part("head"), head=linked(**{"@type": "Article", "image": {"@type": "ImageObject", "license": BY}})
    ),
    "json-ld in the body": Case(
        licence("body"), "CC-BY-4.0", body=linked(**{"@type": "BlogPosting", "license": BY})
    ),
    "badge with rel": Case(
        licence("body") + licence("body", BADGE),
        "CC-BY-4.0",
        body=f'<a rel="license" href="{BY}"><img src="{BADGE}"></a>',
    ),
    **{
        f"sentence {k}": Case(licence("body"), "CC-BY-4.0", body=f"<p>{form.format(BY)}</p>")
        for k, form in enumerate(WHOLE)
    },
    **{
        f"footer {k}": Case(
            licence("footer"), "CC-BY-4.0", body=f"<footer><p>{form.format(BY)}</p></footer>"
        )
        for k, form in enumerate(WHOLE)
    },
    **{f"part {k}": Case(part(), body=form.format(BY)) for k, form in enumerate(PARTS)},
    **{
        f"page and part {k}": Case(
            licence("head", ZERO) + part(),
            "CC0-1.0",
            head=f'<link rel="license" href="{ZERO}">',
            body=form.format(BY),
        )
        for k, form in enumerate(PARTS)
    },
    "terms of one's own": Case(
        licence("body", "/terms"), body='<a href="/terms" rel="license">Terms</a>'
    ),
    "apache": Case(
        licence("body", "https://www.apache.org/licenses/LICENSE-2.0"),
        "Apache-2.0",
        body='<a rel="license" href="https://www.apache.org/licenses/LICENSE-2.0">A</a>',
    ),
    "a comment": Case([], body=f'<!-- <a rel="license" href="{BY}">CC</a> -->'),
    **{
        f"named {name}": Case(
            licence("head", name), name_of, head=f'<meta name="dc.rights" content="{name}">'
        )
        for name, name_of in (
            ("Creative Commons Attribution-ShareAlike 4.0 International", "CC-BY-SA-4.0"),
            ("Creative Commons Attribution-Noncommercial-Share Alike 3.0 Unported", "CC-BY-NC-SA-3.0"),
            ("Creative Commons Attribution-NonCommercial-NoDerivatives 4.0", "CC-BY-NC-ND-4.0"),
            ("Creative Commons Attribution License, for non-commercial use ask us", "CC-BY"),
            ("Creative Commons Namensnennung - Keine Bearbeitungen 3.0", "CC-BY-ND-3.0"),
            ("クリエイティブ・コモンズ CC BY-NC 4.0", "CC-BY-NC-4.0"),
            ("Creative Commons 表示-継承 4.0", "CC-BY-SA-4.0"),
            ("Creative Commons Zero", "CC0-1.0"),
            ("We license this under CC BY 4.0.", "CC-BY-4.0"),
        )
    },
    **{
        f"microdata {k}": Case(licence("body"), "CC-BY-4.0", body=form.format(BY))
        for k, form in enumerate(
            (
                '<i itemscope itemtype="https://schema.org/Article"><a itemprop="license" href="{}">A</a></i>',
                '<i itemscope itemtype="https://schema.org/Article"><link itemprop="license" href="{}"></i>',
                '<i itemscope itemtype="https://schema.org/Article"><meta itemprop="license" content="{}"></i>',
                '<span property="dct:license" resource="{}">A</span>',
                '<a rel="cc:license" href="{}">A</a>',
                '<a property="schema:license" href="{}">A</a>',
            )
        )
    },
    "microdata of a picture": Case(
        part(),
        body=f'<i itemscope itemtype="https://schema.org/ImageObject"><a itemprop="license" href="{BY}">A</a></i>',
    ),
    "json-ld in comments": Case(
        licence("head"),
        "CC-BY-4.0",
        head=f'<script type="application/ld+json">//<![CDATA[\n{{"license":"{BY}"}}\n//]]></script>',
    ),
    "json-ld with a broken line": Case(
        licence("head"),
        "CC-BY-4.0",
        head=f'<script type="application/ld+json">{{"name":"a\nb","license":"{BY}"}}</script>',
    ),
    "terms that name a licence": Case(
        licence("footer", "/l"), "CC-BY-SA-4.0", body='<footer><a rel="license" href="/l">CC BY-SA 4.0</a></footer>'
    ),
    "a link that names a licence": Case(
        licence("footer", "CC BY-SA 4.0"),
        "CC-BY-SA-4.0",
        body='<footer><a href="/license">CC BY-SA 4.0</a></footer>',
    ),
    "a badge from elsewhere": Case(
        licence("footer", "https://licensebuttons.net/l/by/4.0/88x31.png"),
        "CC-BY-4.0",
        body='<footer><img src="https://licensebuttons.net/l/by/4.0/88x31.png"></footer>',
    ),
    "a link around a badge": Case(
        licence("body"), "CC-BY-4.0", body=f'<aside><a href="{BY}"><img src="/img/cc-by-88x31.png"></a></aside>'
    ),
    "a link around a picture": Case(
        part(), body=f'<aside><a href="{BY}"><img src="/img/tree.png"></a></aside>'
    ),
    "in a footer without words": Case(
        licence("footer"), "CC-BY-4.0", body=f'<footer><a href="{BY}">CC</a></footer>'
    ),
    "credits in a footer": Case(part("footer"), body=f'<footer>Icons: <a href="{BY}">CC</a></footer>'),
    "writing about licences": Case(part(), body=f'<p>Content of all kinds.</p><p>On <a href="{BY}">CC</a>.</p>'),
    "below each photo": Case(
        part(), body=f'<div class="photo"><img src="1.jpg"><a rel="license" href="{BY}">CC</a></div>'
    ),
    # Code and copyright
    **{
        f"spdx {one}": Case([("spdx", "body", None, one)], text=form.format(one))
        for one, form in (
            ("GPL-2.0+", "/* SPDX-License-Identifier: {} */\n"),
            ("(MIT OR Apache-2.0)", "# SPDX-License-Identifier: {}\r\n"),
            ("CC-BY-4.0", "<!-- SPDX-License-Identifier: {} -->"),
        )
    },
    **{
        f"copyright {written}": Case([("copyright", "footer", None, line)], body=f"<p>{written}</p>")
        for written, line in (
            ("&copy 2020 Ann", "© 2020 Ann"),
            ("&#xA9; 2020 Ann", "© 2020 Ann"),
            ("(c) 2020 Ann", "(c) 2020 Ann"),
            ("版权所有 2021 安", "版权所有 2021 安"),
            ("版權所有 2021 安", "版權所有 2021 安"),
            ("著作権 2021 安", "著作権 2021 安"),
            ("저작권 2021 안", "저작권 2021 안"),
            ("© 2021 Ann<script>x = 1</script> and Bo", "© 2021 Ann and Bo"),
        )
    },
    "copyright before a script": Case(
        [("copyright", "footer", None, "© 2021 Ann")],
        body='<p>© 2021 Ann</p><script>/* (c) 2019 a library */</script><img alt="© Bo">',
    ),
    "spdx": Case(
        [("spdx", "body", None, "MIT OR Apache-2.0")],
        text="// SPDX-License-Identifier: MIT OR Apache-2.0\nfn main() {}\n",
    ),
    "copyright sign": Case([("copyright", "footer", None, "© 2024 Ann")], body="<p>© 2024 Ann</p>"),
    "copyright entity": Case(
        [("copyright", "footer", None, "© Ann & Bo")], body="<p>&copy; Ann &amp; Bo</p>"
    ),
    "copyright number": Case([("copyright", "footer", None, "© Cy")], body="<p>&#169; Cy</p>"),
    "copyright word": Case(
        [("copyright", "footer", None, "Copyright 2023 Di")], body="<p>Copyright 2023 Di</p>"
    ),
    "copyright in a script": Case([], body="<script>/* © 2024 library */</script>"),
    "nothing": Case([]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_written_page(name: str) -> None:
    case = CASES[name]
    source = f"<!doctype html><html><head><title>T</title>{case.head}</head><body><p>A page.</p>{case.body}</body></html>"
    response = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{case.headers}\r\n\r\n".encode()
    head = parse_head(response, 0, len(response))
    assert head is not None
    page = Page(
        "https://a.example/", None, "", 0, source.encode(), "html", None, "text/html", head.status,
        None, headers=head.kept,
    )  # fmt: skip
    found = document_rights(page, read_page(page.content), case.text)
    assert found is not None
    signals = [(s["kind"], s["place"], s["agent"], s["value"]) for s in found["signals"]]
    assert (signals, found["licence"]) == (case.signals, case.licence)


def test_there_are_enough() -> None:
    assert len(CASES) >= 120
