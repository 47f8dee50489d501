"""A page's head is read as a plain reading of it says, whatever is broken in it."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from curation.rights.page import read_page
from curation.rights.scan import MOST_TAGS, TAG_BYTES, scan

_IN_HEAD = re.compile(
    rb"<(?:(!--)|(script|style|title|template|textarea)\b|(body[>\0- ]|/head>)|(?:meta|link))", re.I
)
_CONTENT = re.compile(rb"<(?:p|div|h[1-6]|a|[ou]l|span|table|img|main|article)[\s>]", re.I)
_STATING = re.compile(
    rb"canonical|robots|bot[\"']|no(?:index|follow|archive|snippet|ai|imageai)|[\"']none|tdm-|rights|"
    rb"licen|copyright",
    re.I,
)
_PIECES = """
<!-- --> <!--> <!---> - > <script <script> </script </SCRIPT> <script_ <style> </style <title> x é
</title <template </template> <textarea> </textarea <meta <META name= <link < <head> </head> </head
<body> <BODY <body\0 <bodyx <p> <a <div> canonical 'robots' bot" noindex noai nofollow NoArchive
nosnippet noimageai "none nonce tdm- right height licence
"""
_MORE = (b" ", b"\n", b"y" * TAG_BYTES)
_HEADS = st.lists(st.sampled_from([*_PIECES.encode().split(), *_MORE]), max_size=40)


def _plain(source: bytes) -> tuple[int, list[bytes]]:
    """Return where the head ends and its tags that state something, found mark by mark."""
    tags, at, unclosed = list[bytes](), 0, set[bytes]()
    while found := _IN_HEAD.search(source, at):
        at = found.end()
        if found[3]:
            return found.start(), tags
        if found[1]:
            at = source.find(b"-->", at - 2) + len(b"-->")
            if at < len(b"-->"):
                break
        elif found[2]:
            name = found[2].lower()
            closed = re.compile(b"</" + name, re.I).search(source, at)
            if closed and name not in unclosed:
                at = closed.end()
            else:
                unclosed.add(name)
        elif end := source.find(b">", at, found.start() + TAG_BYTES) + 1:
            at = end
            tags += [source[found.start() : end]] * bool(
                _STATING.search(source, found.start(), end)
            )
    content = _CONTENT.search(source)
    return content.start() if content else len(source), tags


@given(_HEADS.map(b"".join))
@example(b"")
@example(b"<meta")
@example(b"<meta" + b"x" * (TAG_BYTES - 6) + b">")
@example(b"<link noai" + b"x" * (TAG_BYTES - 11) + b"></head>")
@example(b"<!--><link noai></head>")
@example(b"<template><meta noai></head></textarea><style></template")
def test_heads_are_read_as_plainly(source: bytes) -> None:
    found = scan(source)
    end, tags = _plain(source)
    assert found.head_end == end
    assert [tag for tag in found.tags if _STATING.search(tag)] == tags[:MOST_TAGS]


@pytest.mark.parametrize(
    "part", [b"<meta", b"<!--", b"<script>", b"<template", b"<link <", b"licen", b"\xc2\xa9"]
)
def test_hostile_pages_say_nothing(part: bytes) -> None:
    said = read_page(part * 200_000)
    assert not said.statements and not said.directives
