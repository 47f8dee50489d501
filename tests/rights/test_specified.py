# ruff: noqa: E501 (cases)
"""Statements that are unusual, broken or hostile, with the answers of the specifications.

Each is also given to `extract` as files of a site and lines of an HTTP head, which must find what
`preferences` finds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from curation.readers.records import Page
from curation.rights import preferences, read_page
from curation.rights.preferences import decide
from curation.rights.signals import document_rights
from curation.rights.sites import SiteFile, SiteIndex, build_index, kind_of

URL = "https://a.example/docs/p?q=1"
T = "https://a.example/t.xml"
R = "User-agent: *\n"
NS = 'xmlns="https://rslstandard.org/rsl"'
A, D, N = "allow", "deny", "unstated"
#: Never permitted; whether it is refused is open.
NEVER = (D, N)
Given = dict[str, Any]


def rsl(body: str, attributes: str = NS) -> str:
    return f"<rsl {attributes}>{body}</rsl>"


def con(body: str, url: str = "/") -> str:
    return f'<content url="{url}">{body}</content>'


def lic(body: str) -> str:
    return f"<license>{body}</license>"


def rob(lines: str, **more: Any) -> Given:
    return {"robots": R + lines, **more}


def script(document: str) -> str:
    return f'<script type="application/rsl+xml">{document}</script>'


def hd(*lines: tuple[str, str], **more: Any) -> Given:
    return {"headers": [*lines], **more}


def doc(document: str | bytes, **more: Any) -> Given:
    return {
        "robots": f"License: {T}\nUser-agent: *\nAllow: /\n",
        "well_known": {T: document},
        **more,
    }


ALLIC = lic("<permits>all</permits>")
PERMITS_ALL = rsl(con(ALLIC))
SEARCH_ONLY = rsl(con(lic("<permits>search</permits>")))
CASES: list[tuple[str, Given, tuple[Any, ...]]] = [
    ("cs basic", rob("Content-Signal: search=yes,ai-train=no"), (D, A, N)),
    (
        "cs multiple lines",
        rob("Content-Signal: search=yes\nContent-Signal: ai-train=no"),
        (D, A, N),
    ),
    ("cs unknown key kept, no effect", rob("Content-Signal: foo=no, use=full"), (N, N, N)),
    ("cs broken neighbour", rob("Content-Signal: ai-train, search=no, =, ai-input==no"), (N, D, N)),
    ("cs comment", rob("Content-Signal: search=yes # ai-train=no"), (N, A, N)),
    (
        "cs merged groups",
        {
            "robots": "User-agent: b\nContent-Signal: search=no\n\nUser-agent: c\nDisallow: /x\n\nUser-agent: B\nContent-Signal: ai-train=no",
            "agents": ["b"],
        },
        (D, D, N),
    ),
    (
        "cs shared group",
        {"robots": "User-agent: b\nUser-agent: c\nContent-Signal: ai-train=no", "agents": ["c"]},
        (D, N, N),
    ),
    (
        "cs agent case",
        {"robots": "User-Agent: GPTBOT\nContent-Signal: ai-train=no", "agents": ["gptbot"]},
        (D, N, N),
    ),
    (
        "cs agent version",
        {"robots": "User-Agent: GPTBot/1.1\nContent-Signal: ai-train=no", "agents": ["GPTBot/2"]},
        (D, N, N),
    ),
    (
        "cs named ignores star",
        {
            "robots": "User-agent: *\nContent-Signal: ai-train=no\nUser-agent: x\nDisallow:",
            "agents": ["x"],
        },
        (N, N, N),
    ),
    (
        "cs two agents",
        {
            "robots": "User-agent: *\nContent-Signal: ai-train=no\nUser-agent: x\nContent-Signal: ai-train=yes",
            "agents": ["x", "y"],
        },
        (D, N, N),
    ),
    ("cs BOM", {"robots": "\ufeffUser-agent: *\nContent-Signal: ai-train=no"}, (D, N, N)),
    ("cs CR only", {"robots": "User-agent: *\rContent-Signal: ai-train=no\r"}, (D, N, N)),
    ("cs after blank line", rob("\n\nContent-Signal: ai-train=no"), (D, N, N)),
    ("cs header", hd(("content-signal", "ai-train=no")), (D, N, N)),
    (
        "cs header yes robots no",
        {
            "robots": R + "Content-Signal: ai-train=no",
            "headers": [("Content-Signal", "ai-train=yes")],
        },
        (D, N, N),
    ),
    ("cs key prefix not same", rob("Content-Signal: ai-training=no, xsearch=no"), (N, N, N)),
    (
        "cs lookalike name",
        rob("X-Content-Signal: ai-train=no\nContent-Signals: ai-train=no"),
        (N, N, N),
    ),
    (
        "cs sitemap between",
        rob("Sitemap: https://a.example/s\nContent-Signal: ai-train=no"),
        (D, N, N),
    ),
    # usage
    ("cu", hd(("Content-Usage", "train-ai=n")), (D, N, N)),
    ("cu ai-use", hd(("Content-Usage", "ai-use=n, search=y")), (N, A, D)),
    ("cu params", hd(("Content-Usage", 'train-ai=n;x="a,b";y')), (D, N, N)),
    ("cu semicolon is param", hd(("Content-Usage", "train-ai=n; search=y")), (D, N, N)),
    ("cu string", hd(("Content-Usage", 'train-ai="n"')), (N, N, N)),
    ("cu bare key", hd(("Content-Usage", "train-ai")), (N, N, N)),
    ("cu ?0", hd(("Content-Usage", "train-ai=?0, search=n")), (N, D, N)),
    ("cu last dup", hd(("Content-Usage", "train-ai=n, train-ai=y")), (A, N, N)),
    ("cu last dup unknown", hd(("Content-Usage", "train-ai=n, train-ai=x")), (N, N, N)),
    (
        "cu two lines last wins",
        hd(("Content-Usage", "train-ai=n"), ("Content-usage", "train-ai=y")),
        (A, N, N),
    ),
    ("cu upper key fails all", hd(("Content-Usage", "Search=y, train-ai=n")), (N, N, N)),
    ("cu upper token unknown", hd(("Content-Usage", "train-ai=N, search=n")), (N, D, N)),
    ("cu trailing comma", hd(("Content-Usage", "train-ai=n,")), (N, N, N)),
    ("cu trailing semicolon", hd(("Content-Usage", "train-ai=n;")), (N, N, N)),
    ("cu blank around =", hd(("Content-Usage", "train-ai = n")), (N, N, N)),
    ("cu tabs around comma", hd(("Content-Usage", "train-ai=n\t,\tsearch=y")), (D, A, N)),
    ("cu inner list", hd(("Content-Usage", 'x=(a "b" 1.5);p, train-ai=n')), (D, N, N)),
    ("cu inner list of n", hd(("Content-Usage", "train-ai=(n)")), (N, N, N)),
    ("cu tab in inner list", hd(("Content-Usage", "x=(a\tb), train-ai=n")), (N, N, N)),
    (
        "cu date display bytes",
        hd(("Content-Usage", 'a=@1659578233, b=%"f%c3%bc", c=:YQ==:, train-ai=n')),
        (D, N, N),
    ),
    ("cu display upper hex", hd(("Content-Usage", 'b=%"f%C3%BC", train-ai=n')), (N, N, N)),
    ("cu display bad utf8", hd(("Content-Usage", 'b=%"f%ff", train-ai=n')), (N, N, N)),
    ("cu int 16 digits", hd(("Content-Usage", "a=1234567890123456, train-ai=n")), (N, N, N)),
    ("cu decimal 4", hd(("Content-Usage", "a=1.2345, train-ai=n")), (N, N, N)),
    ("cu decimal no frac", hd(("Content-Usage", "a=1., train-ai=n")), (N, N, N)),
    ("cu space before param", hd(("Content-Usage", "train-ai=n ;x=1")), (N, N, N)),
    ("cu space after ;", hd(("Content-Usage", "train-ai=n;   x=1")), (D, N, N)),
    ("cu token n*", hd(("Content-Usage", "train-ai=n*")), (N, N, N)),
    ("cu star key", hd(("Content-Usage", "*a=1, train-ai=n")), (D, N, N)),
    ("cu digit key", hd(("Content-Usage", "1a=1, train-ai=n")), (N, N, N)),
    ("cu leading sp", hd(("Content-Usage", "   train-ai=n  ")), (D, N, N)),
    ("cu nonascii", hd(("Content-Usage", 'train-ai=n, a="é"')), (N, N, N)),
    ("cu base64 bad", hd(("Content-Usage", "a=:=A:, train-ai=n")), (N, N, N)),
    ("cu old labels", hd(("Content-Usage", "train-genai=n, bots=n, ai=n, tdm=n")), (N, N, N)),
    (
        "cu meta none",
        {"html": '<head><meta http-equiv="Content-Usage" content="train-ai=n">'},
        (None,) * 3,
    ),
    (
        "cu robots path",
        rob("Content-Usage: /docs/ train-ai=n\nContent-Usage: / train-ai=y, search=n"),
        (D, N, N),
    ),
    (
        "cu robots longest alone",
        rob("Content-Usage: /docs/ search=y\nContent-Usage: train-ai=n"),
        (N, A, N),
    ),
    ("cu robots order", rob("Content-Usage: train-ai=n\nContent-Usage: /zz train-ai=y"), (D, N, N)),
    (
        "cu robots $",
        rob("Content-Usage: /docs/p$ train-ai=y\nContent-Usage: / train-ai=n"),
        (D, N, N),
    ),
    ("cu robots *", rob("Content-Usage: /*?q= train-ai=n"), (D, N, N)),
    (
        "cu robots pct",
        {
            "robots": R + "Content-Usage: /%64ocs/ train-ai=n",
        },
        (D, N, N),
    ),
    (
        "cu robots same path stricter",
        rob("Content-Usage: /docs train-ai=y\nContent-Usage: /docs train-ai=n"),
        (D, N, N),
    ),
    ("cu robots disallowed", rob("Disallow: /docs\nContent-Usage: train-ai=n"), (N, N, N)),
    (
        "cu robots disallowed, header stays",
        rob("Disallow: /docs\nContent-Usage: train-ai=n", headers={"Content-Usage": "search=n"}),
        (N, D, N),
    ),
    ("cu robots tab", rob("Content-Usage: /docs\ttrain-ai=n"), (D, N, N)),
    ("cu robots nbsp in path", rob("Content-Usage: /docs\u00a0x train-ai=n"), (N, N, N)),
    ("cu robots not path", rob("Content-Usage: docs/ train-ai=n"), (N, N, N)),
    ("cu robots *path is no path", rob("Content-Usage: *.html train-ai=n"), (N, N, N)),
    ("cu robots case path", rob("Content-Usage: /Docs train-ai=n"), (N, N, N)),
    (
        "cu broken neighbour line",
        rob("Content-Usage: /docs train-ai=n,\nContent-Usage: /docs search=n"),
        (N, D, N),
    ),
    (
        "cu header yes robots no",
        {"robots": R + "Content-Usage: train-ai=n", "headers": {"Content-Usage": "train-ai=y"}},
        (D, N, N),
    ),
    # RSL
    (
        "rsl group over global",
        {
            "robots": f"License: {T}\nUser-agent: x\nLicense: https://a.example/u.xml\n",
            "agents": ["x"],
            "well_known": {
                "/t.xml": rsl(con(ALLIC)),
                "/u.xml": rsl(con(lic("<prohibits>all</prohibits>"))),
            },
        },
        (D, D, D),
    ),
    (
        "rsl other agent global",
        {
            "robots": f"License: {T}\nUser-agent: x\nLicense: https://a.example/u.xml\n",
            "agents": ["y"],
            "well_known": {
                "/t.xml": rsl(con(ALLIC)),
                "/u.xml": rsl(con(lic("<prohibits>all</prohibits>"))),
            },
        },
        (A, A, A),
    ),
    ("rsl license outside content", doc(rsl(ALLIC)), (N, N, N)),
    ("rsl license behind content", doc(rsl(con("") + ALLIC)), (N, N, N)),
    (
        "rsl amount without type",
        doc(
            rsl(
                con(
                    lic(
                        '<permits>all</permits><payment><amount currency="USD">5</amount></payment>'
                    )
                )
            )
        ),
        (D, D, D),
    ),
    (
        "rsl typeless standard",
        doc(
            rsl(
                con(
                    lic(
                        "<permits>all</permits><payment><standard>https://creativecommons.org/licenses/by/4.0/</standard></payment>"
                    )
                )
            )
        ),
        (None, None, None),
    ),
    (
        "rsl free",
        doc(rsl(con(lic('<permits>ai-train</permits><payment type="free"/>')))),
        (A, D, D),
    ),
    (
        "rsl subscription for ai, search free",
        doc(
            rsl(
                con(
                    lic("<permits>search</permits>")
                    + lic('<permits>ai-all</permits><payment type="subscription"/>')
                )
            )
        ),
        (D, None, D),
    ),
    (
        "rsl whole address no slash",
        doc(rsl(con(lic("<prohibits>ai-train</prohibits>"), "https://a.example"))),
        (D, None, None),
    ),
    (
        "rsl whole address capitals",
        doc(rsl(con(lic("<prohibits>ai-train</prohibits>"), "HTTPS://A.Example/docs"))),
        (D, None, None),
    ),
    (
        "rsl other host prefix",
        doc(rsl(con(lic("<prohibits>ai-train</prohibits>"), "https://a.example.org/"))),
        (N, N, N),
    ),
    ("rsl path not matching", doc(rsl(con(ALLIC, "/blog/"))), (N, N, N)),
    (
        "rsl narrower prohibits",
        doc(rsl(con(ALLIC, "/") + con(lic("<prohibits>ai-train</prohibits>"), "/docs/"))),
        (D, A, A),
    ),
    ("rsl wildcard $", doc(rsl(con(ALLIC, "/docs/*=1$"))), (A, A, A)),
    (
        "rsl ai-index says none of train",
        doc(rsl(con(lic("<permits>ai-index</permits>")))),
        (D, D, D),
    ),
    (
        "rsl users limited never allow",
        doc(rsl(con(lic('<permits>all</permits><permits type="user">education</permits>')))),
        (NEVER,) * 3,
    ),
    ("rsl wrong ns", doc(rsl(con(ALLIC), 'xmlns="https://rslstandard.org/rsl2"')), (NEVER,) * 3),
    ("rsl unknown element", doc(rsl(con(lic("<permits>all</permits><bogus/>")))), (NEVER,) * 3),
    (
        "rsl foreign ignored",
        doc(
            rsl(
                con(lic('<permits>all</permits><x:y xmlns:x="urn:x"><permits>none</permits></x:y>'))
            )
        ),
        (A, A, A),
    ),
    (
        "rsl link header",
        hd(
            ("Link", f'<{T}>; rel="license"; type="application/rsl+xml"'),
            well_known={T: rsl(con(ALLIC))},
        ),
        (A, A, A),
    ),
    (
        "rsl link header type first, many rels",
        hd(
            ("link", f'<{T}>; type="application/rsl+xml"; rel="describedby license"'),
            well_known={T: rsl(con(ALLIC))},
        ),
        (A, A, A),
    ),
    (
        "rsl link param text in title",
        hd(
            ("Link", f'<{T}>; title="rel=license; type=application/rsl+xml"; rel="next"'),
            well_known={T: rsl(con(ALLIC))},
        ),
        (N, N, N),
    ),
    (
        "rsl link first rel counts",
        hd(
            ("Link", f'<{T}>; rel=next; rel=license; type="application/rsl+xml"'),
            well_known={T: rsl(con(ALLIC))},
        ),
        (N, N, N),
    ),
    (
        "rsl link title with <",
        hd(
            ("Link", f'<{T}>; title="a <b>, c"; rel=license; type="application/rsl+xml"'),
            well_known={T: rsl(con(ALLIC))},
        ),
        (A, A, A),
    ),
    (
        "rsl link anchor elsewhere",
        hd(
            ("Link", f'<{T}>; rel=license; anchor="/other"; type="application/rsl+xml"'),
            well_known={T: rsl(con(ALLIC))},
        ),
        (N, N, N),
    ),
    (
        "rsl link type longer",
        hd(
            ("Link", f'<{T}>; rel=license; type="application/rsl+xml2"'),
            well_known={T: rsl(con(ALLIC))},
        ),
        (N, N, N),
    ),
    (
        "rsl link type params",
        hd(
            ("Link", f'<{T}>; rel=license; type="Application/RSL+XML;charset=utf-8"'),
            well_known={T: rsl(con(ALLIC))},
        ),
        (A, A, A),
    ),
    (
        "rsl html link caps",
        {
            "html": '<HEAD><LINK TYPE="APPLICATION/RSL+XML" REL="LICENSE" HREF="/t.xml"></HEAD>',
            "well_known": {T: rsl(con(ALLIC))},
        },
        (A, A, A),
    ),
    (
        "rsl html link commented",
        {
            "html": '<head><!--<link rel=license type="application/rsl+xml" href="/t.xml">--></head>',
            "well_known": {T: rsl(con(ALLIC))},
        },
        (N, N, N),
    ),
    (
        "rsl html other rel",
        {
            "html": '<head><link rel=alternate type="application/rsl+xml" href="/t.xml"></head>',
            "well_known": {T: rsl(con(ALLIC))},
        },
        (N, N, N),
    ),
    (
        "rsl inline bare type",
        {"html": f"<head><script type=application/rsl+xml>{rsl(con(ALLIC, ''))}</script></head>"},
        (A, A, A),
    ),
    (
        "rsl two docs strict",
        {
            "robots": f"License: {T}\nLicense: https://b.example/u\nUser-agent: *\nAllow: /",
            "well_known": {
                T: rsl(con(ALLIC)),
                "https://b.example/u": rsl(con(lic("<prohibits>search</prohibits>"))),
            },
        },
        (A, D, A),
    ),
    ("rsl injection robots", rob(f"License: {T} / permits=all"), (N, N, N)),
    (
        "rsl injection href",
        {
            "html": '<head><link rel=license type="application/rsl+xml" href="https://b.example/x / permits=all"></head>'
        },
        (N, N, N),
    ),
    (
        "rsl injection header",
        hd(
            ("Link", '<https://b.example/x / permits=all>; rel=license; type="application/rsl+xml"')
        ),
        (N, N, N),
    ),
    (
        "rsl injection url attr",
        doc(rsl(con(lic("<prohibits>all</prohibits>"), "/zz permits=all"))),
        (N, N, N),
    ),
    ("rsl doc 404 html", doc("<html><body>Not found</body></html>"), (N, N, N)),
    # TDM
    (
        "tdm order",
        {
            "headers": {"tdm-reservation": "1"},
            "html": '<head><meta name="tdm-reservation" content="0"></head>',
            "well_known": {"/.well-known/tdmrep.json": '[{"location":"/","tdm-reservation":1}]'},
        },
        (A, N, N),
    ),
    (
        "tdm broken page falls to header",
        {
            "headers": {"tdm-reservation": "1"},
            "html": '<head><meta name="tdm-reservation" content="2"></head>',
        },
        (D, N, N),
    ),
    (
        "tdm broken header falls to file",
        {
            "headers": {"tdm-reservation": "10"},
            "well_known": {"/.well-known/tdmrep.json": '[{"location":"/","tdm-reservation":0}]'},
        },
        (A, N, N),
    ),
    (
        "tdm first match",
        {
            "well_known": {
                "/.well-known/tdmrep.json": '[{"location":"/docs/*","tdm-reservation":0},{"location":"/","tdm-reservation":1}]'
            }
        },
        (A, N, N),
    ),
    (
        "tdm $",
        {
            "well_known": {
                "/.well-known/tdmrep.json": '[{"location":"/docs/p$","tdm-reservation":0},{"location":"/","tdm-reservation":1}]'
            }
        },
        (D, N, N),
    ),
    (
        "tdm whole address",
        {
            "well_known": {
                "https://a.example/.well-known/tdmrep.json": '[{"location":"/","tdm-reservation":1}]'
            }
        },
        (D, N, N),
    ),
    (
        "tdm other host's file",
        {
            "well_known": {
                "https://b.example/.well-known/tdmrep.json": '[{"location":"/","tdm-reservation":1}]'
            }
        },
        (N, N, N),
    ),
    ("tdm policy injection", hd(("tdm-reservation", "0"), ("tdm-policy", "1")), (A, N, N)),
    (
        "tdm broken rule then good",
        {
            "well_known": {
                "/.well-known/tdmrep.json": '[{"location":"/","tdm-reservation":"x"},7,{"location":"/","tdm-reservation":1}]'
            }
        },
        (D, N, N),
    ),
    # directives
    ("noai header", hd(("X-Robots-Tag", "noindex, noai")), (D, N, N)),
    ("noai for agent", hd(("X-Robots-Tag", "GPTBot: noai"), agents=["gptbot"]), (D, N, N)),
    ("noai for another agent", hd(("X-Robots-Tag", "GPTBot: noai"), agents=["CCBot"]), (N, N, N)),
    ("noai agent none asked", hd(("X-Robots-Tag", "GPTBot: noai")), (N, N, N)),
    ("noai caps", hd(("X-ROBOTS-TAG", "NoAI")), (D, N, N)),
    ("noimageai only", hd(("X-Robots-Tag", "noimageai")), (N, N, N)),
    ("noai meta", {"html": '<head><meta content="noai, noimageai" name=ROBOTS></head>'}, (D, N, N)),
    (
        "noai meta agent",
        {"html": '<head><meta name="GPTBot" content="noai"></head>', "agents": ["GPTBot"]},
        (D, N, N),
    ),
    (
        "noai meta other agent",
        {"html": '<head><meta name="GPTBot" content="noai"></head>', "agents": ["CCBot"]},
        (N, N, N),
    ),
    (
        "noai after date",
        hd(("X-Robots-Tag", "unavailable_after: 25 Jun 2010 15:00:00 PST, noai")),
        (D, N, N),
    ),
    (
        "noai date with comma",
        hd(("X-Robots-Tag", "unavailable_after: Friday, 25 Jun 2010 15:00:00 PST, noai")),
        (D, N, N),
    ),
    (
        "robots text in meta description",
        {"html": '<head><meta name="description" content="noai"></head>'},
        (N, N, N),
    ),
    ("star agent given", rob("Content-Signal: ai-train=no", agents=["*"]), (D, N, N)),
    (
        "group name empty",
        {
            "robots": "User-agent:\nContent-Signal: ai-train=no\n\nUser-agent: *\nContent-Signal: search=no"
        },
        (N, D, N),
    ),
    (
        "utf8 agent",
        {"robots": "User-agent: *\nContent-Signal: ai-train=no\nUser-agent: bötte\nDisallow: /"},
        (D, N, N),
    ),
    (
        "two cs in group then rules then cs",
        rob("Content-Signal: ai-train=no\nDisallow: /x\nContent-Signal: ai-train=yes"),
        (D, N, N),
    ),
    (
        "names in a row across comment",
        {
            "robots": "User-agent: a\n# c\n\nUser-agent: b\nContent-Signal: ai-train=no",
            "agents": ["a"],
        },
        (D, N, N),
    ),
    (
        "cs between names splits terms",
        {
            "robots": "User-agent: a\nContent-Signal: ai-train=no\nUser-agent: b\nContent-Signal: search=no",
            "agents": ["b"],
        },
        (N, D, N),
    ),
    (
        "cu between names closes group",
        {
            "robots": "User-agent: a\nContent-Usage: train-ai=n\nUser-agent: b\nContent-Usage: search=n",
            "agents": ["b"],
        },
        (N, D, N),
    ),
    (
        "agent hyphen not prefix",
        {
            "robots": "User-agent: Googlebot\nContent-Signal: ai-train=no",
            "agents": ["Googlebot-News"],
        },
        (N, N, N),
    ),
    (
        "agent underscores",
        {"robots": "User-agent: my_bot\nContent-Signal: ai-train=no", "agents": ["MY_BOT"]},
        (D, N, N),
    ),
    ("cu root only $", rob("Content-Usage: /$ train-ai=n", url="https://a.example/"), (D, N, N)),
    ("cu root only $, other page", rob("Content-Usage: /$ train-ai=n"), (N, N, N)),
    (
        "cu root, no path in url",
        rob("Content-Usage: /$ train-ai=n", url="https://a.example"),
        (D, N, N),
    ),
    (
        "cu escapes equal",
        rob("Content-Usage: /caf%C3%A9 train-ai=n", url="https://a.example/café/x"),
        (D, N, N),
    ),
    (
        "cu lower-case escape",
        rob("Content-Usage: /caf%c3%a9 train-ai=n", url="https://a.example/caf%C3%A9"),
        (D, N, N),
    ),
    (
        "cu encoded slash differs",
        rob("Content-Usage: /a%2Fb train-ai=n", url="https://a.example/a/b"),
        (N, N, N),
    ),
    ("cu star in middle", rob("Content-Usage: /d*s/p train-ai=n"), (D, N, N)),
    (
        "cu star end no-op, longest",
        rob("Content-Usage: /docs/* train-ai=n\nContent-Usage: /docs/ train-ai=y"),
        (D, N, N),
    ),
    (
        "cu disallow longer allow",
        rob("Disallow: /\nAllow: /docs\nContent-Usage: train-ai=n"),
        (D, N, N),
    ),
    (
        "cu equal allow wins",
        rob("Disallow: /docs\nAllow: /docs\nContent-Usage: train-ai=n"),
        (D, N, N),
    ),
    (
        "cs on disallowed page (undecided)",
        rob("Disallow: /\nContent-Signal: ai-train=no"),
        (None, None, None),
    ),
    (
        "header on disallowed page",
        rob("Disallow: /", headers={"Content-Usage": "train-ai=y"}),
        (A, N, N),
    ),
    ("cu empty dictionary", hd(("Content-Usage", "")), (N, N, N)),
    (
        "cu header split over lines",
        hd(("Content-Usage", "train-ai=n;a=1"), ("X", "y"), ("Content-Usage", "search=y")),
        (D, A, N),
    ),
    (
        "cu, one broken line breaks all",
        hd(("Content-Usage", "train-ai=n"), ("Content-Usage", "Search=y")),
        (N, N, N),
    ),
    ("cu nested parens broken", hd(("Content-Usage", "x=((a)), train-ai=n")), (N, N, N)),
    ("cu params on inner items", hd(("Content-Usage", "x=(a;q=1 b;r), train-ai=n")), (D, N, N)),
    ("cu param dup keys", hd(("Content-Usage", "train-ai=n;a=1;a=2")), (D, N, N)),
    ("cu param upper", hd(("Content-Usage", "train-ai=n;A=1")), (N, N, N)),
    ("cu escaped quote", hd(("Content-Usage", 'x="a\\"b", train-ai=n')), (D, N, N)),
    ("cu bad escape", hd(("Content-Usage", 'x="a\\b", train-ai=n')), (N, N, N)),
    ("cu neg int", hd(("Content-Usage", "x=-5, train-ai=n")), (D, N, N)),
    ("cu plus int", hd(("Content-Usage", "x=+5, train-ai=n")), (N, N, N)),
    ("cu token colon slash", hd(("Content-Usage", "x=a:b/c, train-ai=n")), (D, N, N)),
    ("cu comma only", hd(("Content-Usage", ",")), (N, N, N)),
    ("cs quotes (undecided)", rob('Content-Signal: ai-train="no"'), (None, N, N)),
    (
        "rsl prohibits in other licence",
        doc(rsl(con(ALLIC + lic("<prohibits>ai-train</prohibits>")))),
        (D, None, None),
    ),
    (
        "rsl permit and paid choice",
        doc(
            rsl(
                con(
                    lic("<permits>ai-train</permits><payment type='purchase'/>")
                    + lic("<permits>ai-train</permits>")
                )
            )
        ),
        (None, D, D),
    ),
    (
        "rsl ai-all prohibited leaves search",
        doc(rsl(con(lic("<permits>all</permits><prohibits>ai-all</prohibits>")))),
        (D, A, D),
    ),
    (
        "rsl narrower path other doc",
        doc(rsl(con(lic("<prohibits>search</prohibits>"), "/docs/p") + con(ALLIC))),
        (A, D, A),
    ),
    (
        "rsl comments in list",
        doc(rsl(con(lic("<permits>search<!-- x --> ai-train</permits>")))),
        (A, A, D),
    ),
    ("rsl cdata list", doc(rsl(con(lic("<permits><![CDATA[search]]></permits>")))), (D, A, D)),
    ("rsl pi and doctype", doc("<?xml version='1.0'?><!DOCTYPE rsl>" + rsl(con(ALLIC))), (A, A, A)),
    ("rsl utf16", doc(rsl(con(ALLIC)).encode("utf-16")), (A, A, A)),
    ("rsl trailing junk", doc(rsl(con(ALLIC)) + "x"), (N, N, N)),
    ("rsl two roots", doc(rsl(con(ALLIC)) * 2), (N, N, N)),
    ("rsl content nested", doc(rsl(con(con(ALLIC)))), (N, N, N)),
    ("rsl html entity", doc(rsl(con(lic("<permits>all&nbsp;</permits>")))), (N, N, N)),
    (
        "rsl html entity, with a doctype",
        doc('<!DOCTYPE rsl SYSTEM "x">' + rsl(con(lic("<permits>all</permits>&copy;")))),
        (A, A, A),
    ),
    (
        "rsl payments by commas",
        doc(rsl(con(lic('<permits>all</permits><payment type="free,attribution"/>')))),
        (A, A, A),
    ),
    ("rsl empty permits closed", doc(rsl(con(lic("<permits/>")))), (D, D, D)),
    (
        "rsl geo only never allow",
        doc(rsl(con(lic('<permits>all</permits><prohibits type="geo">EU</prohibits>')))),
        (NEVER,) * 3,
    ),
    (
        "rsl license global + header page",
        {
            "robots": f"License: {T}\nUser-agent: *\nAllow: /",
            "headers": {"Link": '<https://b.example/u>; rel=license; type="application/rsl+xml"'},
            "well_known": {
                T: rsl(con(ALLIC)),
                "https://b.example/u": rsl(con(lic("<prohibits>ai-train</prohibits>"))),
            },
        },
        (D, None, None),
    ),
    (
        "rsl link two rels lines",
        hd(
            ("Link", "<https://b.example/n>; rel=next"),
            ("Link", f'<{T}>; rel=license; type="application/rsl+xml"'),
            well_known={T: rsl(con(ALLIC))},
        ),
        (A, A, A),
    ),
    (
        "rsl link rel plural no",
        hd(
            ("Link", f'<{T}>; rel=licenses; type="application/rsl+xml"'),
            well_known={T: rsl(con(ALLIC))},
        ),
        (N, N, N),
    ),
    (
        "rsl script src not spec",
        {
            "html": '<head><script type="application/rsl+xml" src="/t.xml"></script>',
            "well_known": {T: rsl(con(ALLIC))},
        },
        (N, N, N),
    ),
    (
        "rsl in textarea text",
        {"html": '<body><p>&lt;script type="application/rsl+xml"&gt;'},
        (N, N, N),
    ),
    (
        "tdm case of location",
        {"well_known": {"/.well-known/tdmrep.json": '[{"location":"/DOCS/","tdm-reservation":1}]'}},
        (N, N, N),
    ),
    (
        "tdm query",
        {
            "well_known": {
                "/.well-known/tdmrep.json": '[{"location":"/docs/p?q=","tdm-reservation":1}]'
            }
        },
        (D, N, N),
    ),
    (
        "tdm float 1.0",
        {"well_known": {"/.well-known/tdmrep.json": '[{"location":"/","tdm-reservation":1.5}]'}},
        (N, N, N),
    ),
    (
        "tdm bool",
        {"well_known": {"/.well-known/tdmrep.json": '[{"location":"/","tdm-reservation":true}]'}},
        (N, N, N),
    ),
    (
        "tdm BOM",
        {
            "well_known": {
                "/.well-known/tdmrep.json": '\ufeff[{"location":"/","tdm-reservation":1}]'
            }
        },
        (D, N, N),
    ),
    (
        "tdm trailing comma",
        {"well_known": {"/.well-known/tdmrep.json": '[{"location":"/","tdm-reservation":1},]'}},
        (N, N, N),
    ),
    (
        "tdm meta outside head is read?",
        {"html": '<html><head></head><body><meta name="tdm-reservation" content="1">'},
        (None, N, N),
    ),
    (
        "tdm two metas",
        {
            "html": '<head><meta name="tdm-reservation" content="0"><meta name="tdm-reservation" content="1"></head>'
        },
        (D, N, N),
    ),
    (
        "tdm header 0 meta absent file 1",
        {
            "headers": {"tdm-reservation": "0"},
            "html": "<head></head>",
            "well_known": {"/.well-known/tdmrep.json": '[{"location":"/","tdm-reservation":1}]'},
        },
        (A, N, N),
    ),
    (
        "tdm allow, noai deny",
        {"headers": [("tdm-reservation", "0"), ("X-Robots-Tag", "noai")]},
        (D, N, N),
    ),
    ("noai inside quotes sentence", hd(("X-Robots-Tag", "we have noai here")), (N, N, N)),
    (
        "noai agent list semis",
        hd(("X-Robots-Tag", "GPTBot: noindex; noai"), agents=["GPTBot"]),
        (D, N, N),
    ),
    (
        "noai second agent",
        hd(("X-Robots-Tag", "GPTBot: noindex, CCBot: noai"), agents=["GPTBot"]),
        (N, N, N),
    ),
    ("noai robots: prefix", hd(("X-Robots-Tag", "robots: noai")), (D, N, N)),
    (
        "meta robots two",
        {"html": '<head><meta name=robots content=index><meta name=robots content="noai"></head>'},
        (D, N, N),
    ),
    (
        "meta robots entity",
        {"html": '<head><meta name="robots" content="noa&#105;"></head>'},
        (D, N, N),
    ),
    (
        "meta in noscript comment",
        {"html": "<head><!-- <meta name=robots content=noai> --></head>"},
        (N, N, N),
    ),
    (
        "content-signal meta is invention",
        {"html": '<head><meta name="content-signal" content="ai-train=no"></head>'},
        (None, None, None),
    ),
    (
        "rsl group for one of two agents",
        {
            "robots": f"License: {T}\n\nUser-agent: b\nLicense: {T}2\nAllow: /\n\nUser-agent: *\nAllow: /",
            "well_known": {
                T: rsl(con(lic("<prohibits>ai-train</prohibits>"))),
                f"{T}2": rsl(con(ALLIC)),
            },
            "agents": ["b", "c"],
        },
        (D, A, A),
    ),
    (
        "rsl whole address is no narrower",
        doc(
            rsl(
                con(ALLIC, "https://A.example/")
                + con(lic("<prohibits>ai-train</prohibits>"), "/docs/")
            )
        ),
        (D, A, A),
    ),
    (
        "rsl escapes are no narrower",
        doc(
            rsl(con(ALLIC, "/caf%C3%A9/") + con(lic("<prohibits>ai-train</prohibits>"), "/café/p")),
            url="https://a.example/caf%C3%A9/p",
        ),
        (D, A, A),
    ),
    (
        "rsl address of another site",
        doc(rsl(con(ALLIC, "https://b.example/") + con(ALLIC, "docs/p"))),
        (N, N, N),
    ),
    (
        "rsl two inline",
        {"html": f"<head>{script(PERMITS_ALL)}{script(SEARCH_ONLY)}</head>"},
        (D, A, D),
    ),
    (
        "rsl one inline twice",
        {"html": f"<head>{script(PERMITS_ALL)}{script(PERMITS_ALL)}</head>"},
        (A, A, A),
    ),
    (
        "rsl in the body permits nothing",
        {"html": f"<head></head><body><div>{script(PERMITS_ALL)}"},
        (N, N, N),
    ),
    ("rsl in a textarea", {"html": f"<body><textarea>{script(PERMITS_ALL)}</textarea>"}, (N, N, N)),
    (
        "rsl in the body refuses",
        {"html": f"<head></head><body><div>{script(SEARCH_ONLY)}"},
        (D, N, D),
    ),
    (
        "rsl link in the body permits nothing",
        {
            "html": '<head></head><body><textarea><link rel=license type="application/rsl+xml" href="/t.xml">',
            "well_known": {T: PERMITS_ALL},
        },
        (N, N, N),
    ),
    ("rsl blanks before", doc('\n <?xml version="1.0"?>' + rsl(con(ALLIC))), (A, A, A)),
    (
        "rsl blanks before, inline",
        {
            "html": f'<head><script type="application/rsl+xml">\n<?xml version="1.0"?>{rsl(con(ALLIC))}</script>'
        },
        (A, A, A),
    ),
    (
        "ai.txt changes nothing",
        {"well_known": {"/ai.txt": "User-agent: *\nDisallow: /"}},
        (N, N, N),
    ),
]


def as_extracted(given: Given, place: Path) -> list[dict[str, Any]]:
    """Return the signals that a document has of the same."""
    url, site = given["url"], "https://a.example"
    files = {"/robots.txt": given["robots"]} if "robots" in given else {}
    captured = {
        address if "://" in address else f"{site}{address}": text.encode()
        if isinstance(text, str)
        else text
        for address, text in {**files, **given.get("well_known", {})}.items()
    }
    build_index(
        (SiteFile(kind_of(a, t) or "other", a, None, 200, "", t) for a, t in captured.items()),
        given.get("agents", ()),
        place,
    )
    headers = given.get("headers", ())
    lines = headers.items() if isinstance(headers, dict) else headers
    html = str(given.get("html", "<p>Text")).encode()
    head = tuple((name.lower(), value.strip()) for name, value in lines)
    page = Page(url, content=html, status=200, headers=head)
    found = document_rights(page, read_page(html), "", SiteIndex(place))
    return found["signals"] if found else []


@pytest.mark.parametrize(
    ("given", "expected"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_each_is_read_as_the_specifications_say(
    given: Given, expected: tuple[Any, ...], tmp_path: Path
) -> None:
    given = {"url": URL, **given}
    found = preferences(**given)
    answers = [found[use] for use in ("train", "search", "ai-input")]
    for answer, right in zip(answers, expected, strict=True):
        assert right is None or answer in ([right] if isinstance(right, str) else right)
    decided = decide(as_extracted(given, tmp_path / "sites"), given.get("agents", ()))
    assert [decided[use][0] for use in ("train", "search", "ai-input")] == answers
