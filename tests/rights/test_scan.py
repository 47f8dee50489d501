"""The head of a page, read byte by byte, is what regular expressions find in it."""

from __future__ import annotations

import re
from itertools import islice

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from curation.rights import scan

_IN_HEAD = re.compile(
    rb"<(?:(!--)|(script|style|title|template|textarea)\b|(body[>\0- ]|/head>)|(?:meta|link))", re.I
)
_STATING = (
    "canonical robots bot\" bot' noindex nofollow noarchive nosnippet noai noimageai \"none 'none "
    "tdm- rights licen copyright"
).split()
_CONTENT = re.compile(rb"<(?:p|div|h[1-6]|a|[ou]l|span|table|img|main|article)[\s>]", re.I)
_WORDS = (
    b"<!-- --> <!--> <script> </script </SCRIPT> <style </style> <title> </title <textarea "
    b"</textarea> <templatex> <template-x> </template> <script_ <meta <META link <link> <metadata "
    b"> < </ <body <body> <bodyx> </head> </HEAD bot\" 'none nofollow NOAI tdm- rights licen "
    b"canonical no ca <p> <div \x00 \xc3\xa9 x"
).split(b" ")
_PARTS = st.sampled_from([*_WORDS, b" ", b'<meta name="robots" content="noai">', b"y" * 30])
_HEADS = st.lists(_PARTS, max_size=14).map(b"".join)


def _plain(source: bytes, limit: int) -> tuple[int, list[bytes]]:
    """Return where the head ends, and its tags that say something."""
    tags, at, unclosed = list[bytes](), 0, set[bytes]()
    end = -1
    while end < 0 and (found := _IN_HEAD.search(source, at, limit)):
        begin, at = found.span()
        if found[3]:
            end = begin
        elif found[1]:
            if (closed := source.find(b"-->", at - 2, limit)) < 0:
                break
            at = closed + 3
        elif found[2]:
            name = found[2].lower()
            closing = re.compile(b"</" + name, re.I).search(source, at, limit)
            if name not in unclosed and closing:
                at = closing.end()
            else:
                unclosed.add(name)
        elif (closed := source.find(b">", at, begin + scan.TAG_BYTES)) >= 0:
            at = closed + 1
            tags.append(source[begin:at])
    if end < 0:
        content = _CONTENT.search(source, 0, limit)
        end = content.start() if content else limit
    said = (t for t in tags if any(s in t[:-1].lower().decode("latin-1") for s in _STATING))
    return end, list(islice(said, scan.MOST_TAGS))


@given(_HEADS, st.sampled_from((40, scan.HEAD_BYTES)))
@example(b"", 40)
@example(b"<meta rights" + b"y" * (scan.TAG_BYTES - 13) + b">", scan.HEAD_BYTES)
@example(b"<meta rights" + b"y" * (scan.TAG_BYTES - 12) + b">", scan.HEAD_BYTES)
@example(b"<script_<meta name=rights></script>", 40)
@example(b"<title-x><meta name=rights></title>", 40)
@example(b"<!--><meta name=rights>-->", 40)
@example(b"<style><meta name=rights><style></STYLE", 40)
@example(b"<bodyx><meta name=rights><body", 40)
@example(b"<meta name=rights>" * 300 + b"<body>", scan.HEAD_BYTES)
def test_a_head_is_read_as_expressions_find_it(source: bytes, limit: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "HEAD_BYTES", limit)
        found = scan.scan(source)
    assert (found.head_end, found.tags) == _plain(source, min(len(source), limit))
