"""Detect a file's compression and format by content, with the name only as a hint.

An HTML, PDF or text file is one page."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal
from urllib.parse import quote

from curation.readers import http, members, tables
from curation.readers.charset import decode_text, is_binary
from curation.readers.headers import may_begin_warc, parse_arc
from curation.readers.raw import HEAD, RawFile
from curation.readers.records import Damage, Event, Page, binary
from curation.readers.scan import scan
from curation.readers.settings import KEEP_RAW_BYTES, PDF_MAGIC, ReaderSettings
from curation.readers.stream import Stream
from curation.readers.suffixes import COMPRESSED, HTML, JSON_LINES, without_compression

_HEAD = 1 << 16  # bytes in which a page names its own address
_LINK = re.compile(rb"<link\s[^>]{0,4096}>", re.IGNORECASE)
_CANONICAL = re.compile(rb"\srel\s*=\s*[\"']?canonical[\"'\s/>]", re.IGNORECASE)
_ADDRESS = re.compile(rb"\shref\s*=\s*(?:\"(https?://[^\"]+)\"|'(https?://[^']+)')", re.IGNORECASE)


def canonical_url(content: bytes) -> str:
    """Return the absolute address that an HTML page gives for itself, or empty."""
    for link in _LINK.findall(content[:_HEAD]):
        if _CANONICAL.search(link) and (address := _ADDRESS.search(link)):
            return (address[1] or address[2]).decode("utf-8", "replace").strip()
    return ""


def read_file(name: str, kind: str, stream: Stream, settings: ReaderSettings) -> Iterator[Event]:
    """Yield the file as a page whose address is the one it names, or `file:` and its relative name.

    The modification time is no date: it changes when files are copied.
    """
    reached = stream.fill(settings.max_record_bytes + 1)
    content = bytes(stream.buffer[: reached - stream.base])
    if len(content) > settings.max_record_bytes:
        yield Damage(0, "record.too_large", f"over {settings.most}", None, content[:KEEP_RAW_BYTES])
        return
    mended = detail = ""
    if stream.breaks:
        _, mended, detail = stream.breaks[0][1]
        if not (settings.keep_truncated and content):
            yield Damage(0, mended, detail, None, content[:KEEP_RAW_BYTES])
            return
    if kind != "pdf" and is_binary(content):
        yield binary(0, content, None, KEEP_RAW_BYTES)
        return
    if kind == "text":
        content = decode_text(content, None)[0].encode("utf-8", "replace")
    yield Page(
        url=(kind == "html" and canonical_url(content)) or "file:" + quote(name),
        content=content,
        kind=kind,
        charset="utf-8" if kind == "text" else None,
        mime=tables.MIMES[kind],
        mended=mended,
        detail=detail,
        normalize=settings.normalize_text or "repair",
    )


_PARQUET_MAGIC = b"PAR1"
_ARROW_STREAM = b"\xff\xff\xff\xff"
_ZIP_MAGIC = b"PK\x03\x04"
_ARCHIVE_NAME = re.compile(r"\.(w?arc|wet|wat)(\.|$)")

#: Texts that may begin as HTML does: markup for readers, and source files.
_TEXTS = tuple(
    f".{suffix}"
    for suffix in (
        "md markdown rst adoc org tex bib "
        "py pyi pyx ipy rb pl pm php lua r jl sh bash zsh fish ps1 bat awk tcl "
        "c h cc cpp cxx hpp hh cu cuh m mm rs go java kt kts scala groovy swift cs fs vb dart d "
        "nim zig ada adb ads f f90 f95 for pas asm s v sv vhd vhdl "
        "js mjs cjs jsx ts tsx vue svelte css scss less sql graphql proto thrift "
        "hs lhs ml mli erl hrl ex exs elm clj cljs lisp lsp el scm rkt agda lean coq idr "
        "cmake mk gradle dockerfile toml yaml yml ini cfg conf tf nix"
    ).split()
)


def compression_of(head: bytes, name: str) -> str:
    """Name of the codec, empty for none; by content, by name where the content is damaged."""
    for codec in members.CODECS:
        if head.startswith(codec.magic) and codec.header_fits(head):
            return codec.name
    if members.is_zstd(head):
        return "zstd"
    by_name = COMPRESSED.get(PurePosixPath(name.lower()).suffix, "")
    magics = {codec.name: codec.magic for codec in members.CODECS}
    if magics.get(by_name, members.ZSTD_MAGIC) in head:
        return by_name
    if members.RECORD.match(head) or head.lstrip().startswith(b"<"):
        return ""
    return by_name if is_binary(head) else ""


@dataclass(frozen=True)
class Packing:
    """The compression of a file that is not a table, and its decoder."""

    raw: RawFile
    compression: str  # name of the codec, empty for none

    @classmethod
    def of(cls, raw: RawFile, name: str) -> Packing:
        """Return that of a file, by its beginning and its name."""
        return cls(raw, compression_of(raw.head, name))

    @functools.cached_property
    def codec(self) -> members.Codec:
        """The codec; of zstd with the file's dictionary."""
        found = next(c for c in members.CODECS if c.name == self.compression)
        if not found.in_blocks:
            return found
        dictionary = members.zstd_dictionary(self.raw)
        return found._replace(
            decoder=functools.partial(members.zstd_decoder, dictionary=dictionary)
        )

    def stream(
        self, offset: int = 0, position: int = 0, effort: members.Effort | None = None
    ) -> Stream:
        """Return the content from the member at `offset` on, `position` bytes into the content."""
        effort = effort or members.Effort.from_here(offset)
        pieces: Callable[[int], Iterator[members.Piece]]
        if not self.compression:
            pieces = functools.partial(members.plain_pieces, self.raw)
        else:
            pieces = functools.partial(members.member_pieces, self.raw, self.codec, effort)
        return Stream(pieces, bool(self.compression), offset, position)


def format_of(raw: RawFile, name: str) -> Literal["parquet", "arrow", "zip", "stream"]:
    """Return a file's format by its first bytes; `stream`: anything read from the beginning.

    Arrow's streams begin as other files may, so their names count.
    """
    if raw.head.startswith(_PARQUET_MAGIC):
        return "parquet"
    stream = raw.head.startswith(_ARROW_STREAM) and name.endswith(".arrow")
    if stream or raw.head.startswith(tables.ARROW_MAGIC):
        return "arrow"
    return "zip" if raw.head.startswith(_ZIP_MAGIC) else "stream"


def is_table(raw: RawFile, name: str, settings: ReaderSettings) -> bool:
    """Return whether a file has rows with columns, apart from formats of `format_of_rows`."""
    if (kind := format_of(raw, name)) != "stream":
        return kind != "zip"
    stream = Packing.of(raw, name).stream()
    return reader_of(stream, settings, name) is tables.read_jsonl


Reader = Callable[[Stream, ReaderSettings], Iterator[Event]]


def reader_of(stream: Stream, settings: ReaderSettings, name: str) -> Reader | None:
    """Return the reader for `stream`, at its beginning; None for an unknown format."""
    lower = without_compression(name)
    stream.fill(HEAD)
    head = bytes(stream.buffer[:HEAD])
    start = head.lstrip(b"\r\n\0")
    if may_begin_warc(start, 0) or parse_arc(start, 0, len(start)) or _ARCHIVE_NAME.search(lower):
        return scan if head or stream.breaks else None
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    # Templates and source code begin with `{`, too.
    if re.match(rb'\{\s*["}]', text) or lower.endswith(JSON_LINES):
        return tables.read_jsonl
    if not head:
        return scan if stream.breaks else None
    kind = _kind_of_file(lower, head, settings)
    return functools.partial(read_file, name, kind) if kind else None


def _kind_of_file(lower: str, head: bytes, settings: ReaderSettings) -> str:
    if settings.pdf and (lower.endswith(".pdf") or head.startswith(PDF_MAGIC)):
        return "pdf"
    if lower.endswith(_TEXTS):
        return "text"
    if lower.endswith(HTML) or http.looks_like_html(head):
        return "html"
    return "text" if lower.endswith((".txt", ".text")) else ""
