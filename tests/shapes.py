"""Input made to hurt, of any size: files, pages of bytes, texts and addresses.

Each maker gives about as many bytes as it is asked for. The same shape at several sizes shows how
costs grow (tests/test_growth.py), and fuzzing begins with them (tests/fuzz.py). Whole pages are in
tests/hostile_pages.py.
"""

from __future__ import annotations

import bz2
import functools
import gzip
import io
import json
import lzma
import random
import zipfile
import zlib
from collections.abc import Callable
from typing import NamedTuple

import brotli
import lz4.frame
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from curation.rights import parse_directives, parse_robots, read_page
from curation.rights.tdm import of_path, parse_tdm_file

Maker = Callable[[int], bytes]


class File(NamedTuple):
    """A file to read: its name, which tells the format, and its content by size."""

    name: str
    make: Maker
    small_records: bool = False  # read with a limit of 64 KiB per record


FILES: dict[str, File] = {}
_HTTP = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
_HEAD = b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.b/\r\n"
_ARC = b"http://a.b/ 1.2.3.4 20240506070809 text/html "
_GZIP = b"\x1f\x8b\x08\0\0\0\0\0\0\x03"
_NOISE = random.Random(1).randbytes(1 << 20)


def repeat(unit: bytes, size: int, before: bytes = b"", behind: bytes = b"") -> bytes:
    return before + unit * max(1, (size - len(before) - len(behind)) // len(unit)) + behind


def numbered(unit: Callable[[int], bytes], size: int) -> bytes:
    """Units, all different."""
    first = unit(10**6)
    return b"".join(unit(10**6 + i) for i in range(max(1, size // len(first))))


def warc(block: bytes, length: int | None = None, head: bytes = b"") -> bytes:
    size = len(block) if length is None else length
    return _HEAD + head + b"Content-Length: %d\r\n\r\n" % size + block + b"\r\n\r\n"


def stored(block: bytes) -> bytes:
    """The beginning of a gzip member that holds bytes as they are, and has no end."""
    size = len(block)
    return b"\0" + size.to_bytes(2, "little") + (size ^ 0xFFFF).to_bytes(2, "little") + block


def add(name: str, file: str, make: Maker, small_records: bool = False) -> None:
    FILES[name] = File(file, make, small_records)


def add_bytes(name: str, file: str, unit: bytes, before: bytes = b"", behind: bytes = b"") -> None:
    add(name, file, lambda size: repeat(unit, size, before, behind))


# ----------------------------------------------------------------------------- heads of records

for _name, _unit, _before, _behind in (
    ("line ends", b"\r\n", b"", b""),
    ("carriage returns", b"\r", b"WARC/1.0", b"\n"),
    ("padding", b"\0\r\n", b"", b"x"),
    ("versions", b"WARC/1.0\r\n", b"", b""),
    ("version digits", b"1", b"WARC/1.", b""),
    ("versions cut", b"WARC/", b"", b""),
    ("heads without end", b"WARC/1.0\nContent-A:\n", b"", b""),
    ("lower-case heads", b"warc/1.0\nwarc-a:\n", b"", b""),
    ("fields without end", b"WARC-Type: response\n", b"WARC/1.0\n", b""),
    ("names of fields", b"WARC-", b"WARC/1.0\n", b""),
    ("folded fields", b"\n a", b"WARC/1.0\nWARC-Type:", b"\n\n"),
    ("heads and ARC lines", b"WARC/1.0\n" + _ARC + b"0\n", b"", b""),
    ("empty records", b"WARC/1.0\n\n", b"", b""),
    ("records of no length", _HEAD + b"\r\nabc", b"", b""),
):
    add_bytes(f"warc: {_name}", "x.warc", _unit, _before, _behind)

for _name, _unit, _before, _behind in (
    ("spaces", b" ", b"http:", b""),
    ("addresses", b" 1.2.3.4", b"http:", b""),
    ("addresses and dates", b" 1.2.3.4 20240506", b"http:", b""),
    ("addresses and dates, bad end", b" 1.2.3.4 20240506", b"http:", b" \r\r\n"),
    ("dashes", b" - - -", b"http:", b"\r\r\n"),
    ("colons", b":", b"http: ", b" 20240506 x 1\n"),
    ("groups of hex digits", b" ab:cd", b"http:", b"\n"),
    ("no scheme", b" 1.2.3.4 20240506070809 \n", b"", b""),
    ("no scheme, long lines", b" 1.2.3.4 20240506070809 " * 300 + b"\n", b"", b""),
    ("schemes", b"http:", b"", b" 1.2.3.4 20240506070809 x 1\n"),
    ("bad ends", b"http:/ 1.2.3.4 20240506070809 " * 250 + b"\r\r\n", b"", b""),
    ("joined lines", b"a:b - - x 3\nxyza:b - - x 3\nxyz", b"", b""),
):
    add_bytes(f"arc: {_name}", "x.arc", _unit, _before, _behind)


# ------------------------------------------------------------------------------ wrong lengths

for _length in (10**5, 6 * 10**7, 10**11):
    for _file, _record in (
        ("x.warc", warc(b"abc", _length)),
        ("x.arc", _ARC + b"%d\nabc\n" % _length),
        ("x.warc.gz", gzip.compress(warc(b"abc", _length), 1, mtime=0)),
        ("x.warc.zst", zstandard.compress(warc(b"abc", _length))),
    ):
        for _small in (False, True):
            add(
                f"{_file}: length {_length:.0e}{', small records' if _small else ''}",
                _file,
                lambda size, record=_record: repeat(record, size),  # type: ignore[misc]
                _small,
            )
add(
    "one member: lengths of 100 GB",
    "x.warc.gz",
    lambda size: gzip.compress(repeat(warc(b"abc", 10**11), size), 1, mtime=0),
    True,
)
add(
    "lengths that end in one run of line ends",
    "x.warc",
    lambda size: repeat(warc(b"abc", size // 2 + 200), size // 2) + b"\n" * (size // 2) + b"x",
)
add(
    "members that don't begin as their records do",
    "x.warc.gz",
    lambda size: repeat(gzip.compress(b"x" + warc(b"abc", 6 * 10**7), 1, mtime=0), size),
)
add(
    "members that look like records",
    "x.warc.gz",
    lambda size: repeat(gzip.compress(b"WARC/1.", 1, mtime=0), size, gzip.compress(warc(b"a"))),
)


# ------------------------------------------------------------------------------ HTTP


def add_http(name: str, head: Maker, body: Maker) -> None:
    """A record whose head and body have half the size each."""

    def make(size: int) -> bytes:
        return warc(head(size // 2) + b"\r\n\r\n" + body(size // 2))

    add(f"http: {name}", "x.warc", make)


def fixed(data: bytes) -> Maker:
    return lambda size: data


for _name, _unit, _before in (
    ("carriage returns", b"\r", _HTTP),
    ("types", b"Content-Type: text/html\r\n", b"HTTP/1.1 200 OK\r\n"),
    ("lengths", b"Content-Length: 5\r\n", _HTTP),
    ("fields", b"X: y\r\n", _HTTP),
    ("folded fields", b"\r\n b", _HTTP + b"Content-Type: a"),
    ("codings", b"gzip,deflate,br,", _HTTP + b"Content-Encoding: "),
    ("transfer codings", b"chunked,", _HTTP + b"Transfer-Encoding: "),
    ("status", b"/", b"HTTP/"),
    ("status spaces", b" ", b"HTTP/1.1"),
    ("charset", b"charset ", b"HTTP/1.1 200 OK\r\nContent-Type: text/html;"),
):
    add_http(
        _name,
        lambda size, unit=_unit, before=_before: repeat(unit, size, before),  # type: ignore[misc]
        fixed(b"<p>text"),
    )
for _name, _body in (
    ("comments", lambda size: repeat(b"<!---->", size) + b"x"),
    ("comments unclosed", lambda size: repeat(b"<!--", size)),
    ("declarations", lambda size: repeat(b"<?xml ?><!---->", size) + b"x"),
    ("white space", lambda size: b" " * size),
):
    add_http(_name, fixed(b"HTTP/1.1 200 OK\r\nX: y"), _body)


def _coded(coding: bytes, body: Maker) -> None:
    number = sum(name.startswith(f"http: {coding.decode()}") for name in FILES)
    head = _HTTP + b"Content-Encoding: " + coding
    if coding == b"chunked":
        head = _HTTP + b"Transfer-Encoding: chunked"
    add_http(f"{coding.decode()} {number}", fixed(head), body)


_coded(b"chunked", lambda size: repeat(b"1\r\na\r\n", size))
_coded(b"chunked", lambda size: b"1\r\na\r\n1;" + b";" * size)
_coded(b"chunked", lambda size: b"1\r\na\r\n" + b" " * size)
_coded(b"gzip", lambda size: repeat(gzip.compress(b"", mtime=0), size))
_coded(b"gzip", lambda size: gzip.compress(_NOISE[:size])[:-9] + bytes(9))
_coded(b"gzip", lambda size: _GZIP + repeat(stored(b""), size) + b"\x07")
_coded(b"deflate", lambda size: zlib.compress(_NOISE[:size])[:-4])
_coded(b"deflate", lambda size: repeat(b"\x02\0", size))
_coded(b"br", lambda size: brotli.compress(_NOISE[:size], quality=1)[:-9])
_coded(b"br", lambda size: brotli.compress(_NOISE[:size], quality=1)[:-9] + b"\xff" * 9)
_coded(b"zstd", lambda size: repeat(zstandard.compress(b""), size))
_coded(b"zstd", lambda size: zstandard.compress(_NOISE[:size])[:-9])


# ------------------------------------------------------------------------------ members

_SLOT = _GZIP + stored(b"-" + _GZIP)[:6]
_RECORD_SLOT = _GZIP + stored(b"WARC/1.0" + _GZIP)[:13]
_BROKEN = gzip.compress(warc(b"<p>abc"), mtime=0)
_FRAME = zstandard.ZstdCompressor(write_content_size=False)
_RAW_SLOT = b"\x28\xb5\x2f\xfd\x00\x58" + ((14 + 6) << 3).to_bytes(3, "little") + b"WARC/1.0 12345"
for _name, _unit, _before, _behind in (
    ("gzip: overlapping", _SLOT, b"", b""),
    ("gzip: overlapping, broken", _SLOT, b"", b"\xff" * 20),
    ("gzip: overlapping records", _RECORD_SLOT, b"", b"\xff" * 20),
    ("gzip: overlapping records, no end", _RECORD_SLOT, b"", b""),
    ("gzip: overlapping a bomb", _RECORD_SLOT, b"", _GZIP + zlib.compress(bytes(1 << 22))[2:-4]),
    ("gzip: magic", b"\x1f\x8b\x08", b"", b""),
    ("gzip: names without end", b"\x1f\x8b\x08\x08abcdefgh", b"", b""),
    ("gzip: comments without end", b"\x1f\x8b\x08\x18abcdef\0z", b"", b""),
    ("gzip: extra fields", b"\x1f\x8b\x08\x06abcdef\xff\xff", b"", b""),
    ("gzip: empty members", gzip.compress(b"", mtime=0), b"", b""),
    ("gzip: members of a byte", gzip.compress(b"x", mtime=0), b"", b""),
    ("gzip: members of line ends", gzip.compress(b"\n", mtime=0), b"", b""),
    ("gzip: broken members", _BROKEN[:-9] + b"\0" * 9, b"", b""),
    ("gzip: members cut", _BROKEN[:60], b"", b""),
    ("gzip: empty blocks", stored(b""), _GZIP, b"\xff"),
    ("gzip: garbage between", gzip.compress(b"{}", mtime=0) + b"garbage", b"", b""),
    ("zstd: magic", b"\x28\xb5\x2f\xfd", b"", b""),
    ("zstd: overlapping", _RAW_SLOT, b"", b""),
    ("zstd: overlapping, broken", _RAW_SLOT, b"", b"\xff" * 40),
    ("zstd: empty frames", zstandard.compress(b""), b"", b""),
    ("zstd: empty blocks", b"\0\0\0", b"\x28\xb5\x2f\xfd\x00\x58", b""),
    ("zstd: large windows", b"\x28\xb5\x2f\xfd\x00\xa8\x09\0\0a", b"", b""),
    ("zstd: skippable frames", b"\x50\x2a\x4d\x18\0\0\0\0", b"", b""),
    ("zstd: long skippable frames", b"\x50\x2a\x4d\x18\xff\xff\xff\0", b"", b""),
    ("zstd: broken frames", _FRAME.compress(warc(b"<p>abc"))[:-9] + b"\xff" * 9, b"", b""),
    ("lz4: magic", b"\x04\x22\x4d\x18", b"", b""),
    ("lz4: empty frames", lz4.frame.compress(b""), b"", b""),
    ("lz4: heads", lz4.frame.compress(b"")[:7], b"", b""),
    ("lz4: broken frames", lz4.frame.compress(warc(b"<p>abc"))[:-9] + b"\xff" * 9, b"", b""),
    ("bzip2: magic", b"BZh9", b"", b""),
    ("bzip2: blocks", b"BZh91AY&SY", b"", b""),
    ("bzip2: empty members", bz2.compress(b""), b"", b""),
    ("xz: magic", b"\xfd7zXZ\0", b"", b""),
    ("xz: heads", lzma.compress(b"")[:12], b"", b""),
    ("xz: empty members", lzma.compress(b""), b"", b""),
):
    _suffix = {"gzip": "gz", "zstd": "zst", "bzip2": "bz2"}.get(_name.split(":")[0], _name[:3])
    add_bytes(_name, f"x.warc.{_suffix.strip(':')}", _unit, _before, _behind)


def _dictionary(size: int) -> bytes:
    """A dictionary of 16 MiB and more in a frame of `size` bytes: blocks of one byte."""
    block = ((1 << 17) << 3 | 2).to_bytes(3, "little") + b"a"
    frame = repeat(block, size, b"\x28\xb5\x2f\xfd\x00\x58")
    return b"\x5d\x2a\x4d\x18" + len(frame).to_bytes(4, "little") + frame


add("zstd: dictionary", "x.warc.zst", _dictionary)


# ------------------------------------------------------------------------------ packages, tables


def _package(size: int, method: int, content: bytes, each: bool) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", method) as package:
        if each:
            for number in range(max(1, size // (len(content) + 150))):
                package.writestr(f"archive/{number:06}.warc.gz", content)
        else:
            package.writestr("archive/x.warc.gz", repeat(content, size))
    return held.getvalue()


def _overlapping_entries(size: int) -> bytes:
    """A directory in which each entry names the same archive."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as package:
        package.writestr("x.warc", repeat(warc(b"<p>a"), 1 << 16))
        package.filelist *= max(1, size // 60)
    return held.getvalue()


_MEMBER = gzip.compress(warc(b"<p>abc"), mtime=0)
for _method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
    for _each in (False, True):
        for _what, _content in (("sound", _MEMBER), ("broken", _BROKEN[:-9] + b"\0" * 9)):
            add(
                f"wacz: {_what}, {'many' if _each else 'one'}, method {_method}",
                "x.wacz",
                lambda size, m=_method, c=_content, e=_each: _package(size, m, c, e),  # type: ignore[misc]
            )
add("wacz: entries that overlap", "x.wacz", _overlapping_entries)

for _name, _unit, _before, _behind in (
    ("blank lines", b"\n", b"", b""),
    ("braces", b"{", b"", b""),
    ("lines of a brace", b"{\n", b"", b""),
    ("arrays", b"[", b'{"text":', b""),
    ("objects", b'{"text":', b"", b""),
    ("rows", b'{"text":"a b c"}\n', b"", b""),
    ("digits", b"9", b'{"text":"a","id":', b"}\n"),
    ("fraction", b"9", b'{"text":"a","id":0.', b"}\n"),
    ("exponent", b"9", b'{"text":"a","id":1e', b"}\n"),
    ("surrogates", b"\\ud800", b'{"text":"', b'"}\n'),
    ("many surrogates", b'"a":"\\ud800",', b"{", b'"text":""}\n'),
    ("same keys", b'"text":"a",', b"{", b'"id":1}\n'),
    ("bad UTF-8", b"\xff\xfe", b'{"text":"', b'"}\n'),
    ("long line", b"a ", b'{"text":"', b'"}\n'),
    ("spaces", b" ", b"{", b"}"),
):
    add_bytes(f"jsonl: {_name}", "x.jsonl", _unit, _before, _behind)
add(
    "jsonl: lines over the limit",
    "x.jsonl",
    lambda size: repeat(b'{"text":"', size) * 4 + b"\n",
    True,
)


def _parquet(rows: int, columns: int, group: int) -> bytes:
    held = pa.BufferOutputStream()
    names = {"text": pa.array(["some text"] * rows)}
    names |= {f"c{i}": pa.array([None] * rows, pa.int8()) for i in range(columns)}
    pq.write_table(pa.table(names), held, row_group_size=group)
    return bytes(held.getvalue())


add("parquet: rows", "x.parquet", lambda size: _parquet(size // 9, 0, 1 << 20))
add("parquet: groups", "x.parquet", lambda size: _parquet(size // 300, 0, 1))
add("parquet: columns", "x.parquet", lambda size: _parquet(1, size // 300, 1))

for _name, _unit, _before, _behind in (
    ("rows", b"a,b\n", b"text,more\n", b""),
    ("blank lines", b"\n", b"text\n", b""),
    ("one line", b"a,", b"", b""),
    ("cells of a row", b"a,", b"text\n", b""),
    ("quotes", b'"', b"text\n", b""),
    ("quoted lines", b'"a\n",', b"text\n", b""),
    ("a quote that stays open", b"a\n", b'text\n"', b""),
    ("nul", b"a\0\n", b"text\n", b""),
):
    add_bytes(f"csv: {_name}", "x.csv", _unit, _before, _behind)
add(
    "csv: columns and rows",
    "x.csv",
    lambda size: b"text" + numbered(lambda i: b",%d" % i, size // 2) + b"\n" + b"a\n" * (size // 4),
)
add(
    "jsonl: different keys",
    "x.jsonl",
    lambda size: numbered(lambda i: b'{"text":"a","%d":1}\n' % i, size),
)
add(
    "jsonl: one row of many keys",
    "x.jsonl",
    lambda size: (
        b'{"text":"a"' + numbered(lambda i: b',"%d":1' % i, size // 2) + b"}\n"
        + repeat(b'{"text":"a"}\n', size // 2)
    ),
)  # fmt: skip


def _arrow(rows: int, each: int) -> bytes:
    held = pa.BufferOutputStream()
    table = pa.table({"text": ["some text"] * rows})
    with pa.ipc.new_stream(held, table.schema) as stream:
        stream.write_table(table, each)
    return bytes(held.getvalue())


add("arrow: rows", "x.arrow", lambda size: _arrow(size // 13, 1 << 20))
add("arrow: batches", "x.arrow", lambda size: _arrow(size // 200, 1))

for _name, _unit, _before, _behind in (
    ("links", b"<link ", b"<html>", b""),
    ("links closed once", b"<link ", b"<html>", b">"),
    ("links that name no address", b"<link rel=canonical href='http://>", b"<html>", b""),
    ("spaces in a link", b" ", b"<link rel", b">"),
):
    add_bytes(f"html: {_name}", "x.html", _unit, _before, _behind)


# ------------------------------------------------------------------------------ encodings

#: Bytes whose encoding is to be found out.
ENCODED: dict[str, Maker] = {
    f"{name} {behind!r}"[:60]: lambda size, u=unit, b=behind: repeat(u, size, b"", b)  # type: ignore[misc]
    for behind in (b"\xe9", b"\x81\xff")
    for name, unit in {
        "meta": b"<meta charset=x>",
        "meta unclosed": b"<meta charset=x ",
        "meta quotes": b"<meta a='<meta b=\"",
        "meta content": b"<meta http-equiv=content-type content='charset  '>",
        "comments": b"<!-->",
        "comments unclosed": b"<!-- charset",
        "tags unclosed": b"<a charset",
        "attributes": b"<meta charset = ",
        "declaration": b"<?xml encoding=",
        "escapes": b"\x1b$B\x1b(B",
        "hz": b"~{~}",
        "high bytes": bytes(range(128, 256)),
        "double bytes": "日本語".encode("shift_jis"),
        "korean": "한국어".encode("euc_kr"),
        "cyrillic": "русский ".encode("koi8_r"),
        "nul": b"a\0",
        "lone surrogates": b"\xed\xa0\x80",
        "broken UTF-8": b"\xe2\x82a",
        "utf-32": "a\U0001f30a".encode("utf-32-le"),
    }.items()
}


# ------------------------------------------------------------------------------ rights

_JSON_LD = b"<script type='application/ld+json'>"
_STATED = b"</script><a rel=license href=x>license</a>"


def read_robots(data: bytes) -> object:
    """Who is named, and what a named agent and any other may read.

    One agent at a time: agents of a group share its rules, and all agents' rules are quadratic.
    """
    file = parse_robots(data)
    return [*file.groups], file.access("a1000000", "/x"), file.access("b", "/x")


#: What reads each kind of RIGHTS, by the word before the colon; the answer can be compared.
READ_RIGHTS: dict[str, Callable[[bytes], object]] = {
    "page": lambda data: repr(read_page(data)),
    "robots": read_robots,
    "tdm": lambda data: of_path(parse_tdm_file(data), "https://a.example/b"),
    # past the cache, which would answer for the second call
    "header": lambda data: repr(parse_directives.__wrapped__(data.decode("latin-1"))),
}
#: What states rights: a page, a robots.txt, a tdmrep.json or a header.
RIGHTS: dict[str, Maker] = {
    name: lambda size, u=unit, b=before, e=behind: repeat(u, size, b, e)  # type: ignore[misc]
    for name, (unit, before, behind) in {
        "page: a licence's address": (
            b"etalab.gouv.fr/",
            _JSON_LD + b'{"license":"',
            b'"}' + _STATED,
        ),
        "page: licences": (b'"x",', _JSON_LD + b'{"license":[', b'"x"]}' + _STATED),
        "page: words": (b"creative commons ", _JSON_LD + b'{"license":"', b'"}' + _STATED),
        "page: nested": (b"[", _JSON_LD, _STATED),
        "page: scripts": (_JSON_LD, b"", _STATED),
        "page: anchors": (b"<a rel=license>", b"", b""),
        "page: badges": (b"//licensebuttons.net/l/by/4.0/ ", b"", b""),
        "page: addresses": (b"//creativecommons.org/licenses/by/4.0/ ", b"", b""),
        "page: metas": (b"<meta name=robots content=noai>", b"", b""),
        "page: metas unclosed": (b"<meta name=robots ", b"", b""),
        "page: signs": (b"&copy; 2020 ", b"", b""),
        "page: signs in scripts": (b"<script>(c) 2020", b"", b""),
        "page: comments": (b"<!-- license <a rel=license ", b"", b""),
        "page: feet": (b"<div class=foot>license ", b"", b""),
        "robots: agents": (b"User-agent: a\n", b"", b"Allow: /\n"),
        "robots: rules": (b"Disallow: /*a*b$\n", b"User-agent: *\n", b""),
        "robots: groups": (b"User-agent: a\nAllow: /\n", b"", b""),
        "robots: letters": (b"dis", b"", b"s: /"),
        "robots: asterisks": (b"*", b"User-agent: *\nDisallow: /", b""),
        "robots: escapes": (b"%e9", b"User-agent: *\nDisallow: /", b""),
        "tdm: rules": (
            b'{"location":"/*a*b$","tdm-reservation":1},',
            b"[",
            b"0]",
        ),
        "header: colons": (b"a:", b"", b""),
        "header: commas": (b",", b"", b""),
        "header: dates": (b", 1 ", b"expires: x", b""),
        "header: spaces": (b" ", b"noai", b":"),
    }.items()
}
RIGHTS["robots: agents and rules"] = lambda size: (
    numbered(lambda i: b"User-agent: a%d\n" % i, size // 2) + b"Disallow: /x\n" * (size // 26)
)


# ------------------------------------------------------------------------------ texts

_QUESTION = (
    "A freight train leaves the harbour at noon with {} crates of porcelain. How many arrive? "
)
_ZALGO = "".join(map(chr, range(0x300, 0x340)))
#: Texts by size in characters.
TEXTS: dict[str, Callable[[int], str]] = {
    name: lambda size, u=unit: (u * (size // len(u) + 1))[:size]  # type: ignore[misc]
    for name, unit in {
        "letter": "a",
        "capital": "A",
        "digit": "1",
        "space": " ",
        "line end": "\n",
        "carriage return": "\r",
        "tab": "\t",
        "full stop": ".",
        "dash": "-",
        "at": "@",
        "mark": "\u0301",
        "marks of two classes": "\u0316\u0301",
        "many marks": "e" + _ZALGO,
        "zero width": "\u200d",
        "no-break space": "\u00a0",
        "ideograph": "漢",
        "syllable": "한",
        "thai": "ก็",
        "devanagari": "क्षि",
        "arabic": "\u0640ل",
        "emoji": "\U0001f468\u200d\U0001f469\u200d",
        "flags": "\U0001f1e6",
        "noncharacter": "\uffff",
        "control": "\x01\x7f",
        "line separator": "a\u2028",
        "words": "word ",
        "words of one letter": "a b c ",
        "words in lines": "word\n",
        "letters in lines": "a\n",
        "blank lines": "a\n\n",
        "bullets": "- a\n• b\n",
        "headings": "# a\n",
        "braces": "{[(<",
        "closing braces": "}])>",
        "quotes": "\"'`",
        "backticks": "```\n",
        "backslashes": "\\(x\\) $y$ ",
        "formulas unclosed": "$$ \\[ \\begin{a} ",
        "tags": "<a b='c'>",
        "tags unclosed": "<a ",
        "references": "&amp;",
        "pipes": "|a|b|\n",
        "dots": "...",
        "sentences": "It is. ",
        "questions": "?!",
        "code": "if (a) { b; }\n",
        "indented": "        x = 1\n",
        "comments": "// a\n/* b\n",
        "urls": "http://a.b/c ",
        "urls joined": "http://a.b/",
        "addresses": "a@b.com ",
        "addresses joined": "a@b.c@d.",
        "dots in an address": "a.",
        "at and dots": "@a.",
        "numbers": "4111 1111 1111 1111 ",
        "digits and dashes": "1-2-",
        "digits and dots": "1.2.",
        "phones": "+1 (212) 555-0123 ",
        "brackets in phones": "+(1) ",
        "ip": "1.2.3.4.",
        "public ip": "8.8.8.8 ",
        "public ip and addresses": "a@b.com 8.8.8.8 ",
        "named phones": "tel: 030 1234567 ",
        "ip6": "2001:db8::",
        "ip6 colons": "a:",
        "ibans": "DE89 3704 0044 0532 0130 00 ",
        "tokens": "AKIA",
        "tokens sk": "sk-",
        "web tokens": "eyJ",
        "private keys": "-----BEGIN PRIVATE KEY-----",
        "hex": "deadbeef",
        "base64": "QUJD/+==",
        "placeholders": "[EMAIL][PHONE]",
        "citations": "[1] [2] [edit] ",
        "lorem": "lorem ipsum ",
        "javascript": "javascript ",
        "stop words": "the and of ",
        "number words": "tel: ssn: ",
        "diffs": "+a\n-b\n@@ -1 +1 @@\n",
        "mixed scripts": "aя漢한ก",
        "double encoded": "Ã©â€™",
        "percent": "%20%zz",
        "special tokens": "<|endoftext|>",
        "apostrophes": "'s't're",
        "long lines": "ab " * 2000 + "\n",
        "an evaluation item": _QUESTION.format(340),
    }.items()
}
#: Texts without any period.
TEXTS |= {
    "different words": lambda size: numbered(lambda i: b"w%d " % i, size).decode(),
    "items of a template": lambda size: numbered(
        lambda i: _QUESTION.format(i % 100).encode(), size
    ).decode(),
    "different lines": lambda size: numbered(lambda i: b"line %d\n" % i, size).decode(),
    "different addresses": lambda size: numbered(lambda i: b"u%d@x.com " % i, size).decode(),
    "one long number": lambda size: repeat(b" 1", size, b"+49").decode(),
    "different keys": lambda size: json.dumps({f"{i:x}": i for i in range(max(1, size // 12))}),
    "noise": lambda size: _NOISE[:size].decode("latin-1"),
    "noise in lines": lambda size: _NOISE[: size // 2].hex(" ").replace(" 0", "\n0")[:size],
}

#: Addresses by size.
URLS: dict[str, Callable[[int], str]] = {
    name: lambda size, u=unit, b=before: b + u * (size // len(u))  # type: ignore[misc]
    for name, (unit, before) in {
        "dots": ("../", "http://a.b/"),
        "folders": ("a/../", "http://a.b/"),
        "slashes": ("/", "http://a.b"),
        "colons": (":", "http://a.b"),
        "at": ("@", "http://a"),
        "percent": ("%", "http://a.b/"),
        "encoded": ("%41%2e", "http://a.b/"),
        "parameters": ("a=b&", "http://a.b/?"),
        "ampersands": ("&", "http://a.b/?"),
        "sessions": ("sid=1;jsessionid=2;", "http://a.b/;"),
        "question marks": ("?", "http://a.b/"),
        "hashes": ("#", "http://a.b/"),
        "labels": ("a.", "http://"),
        "www": ("www.", "http://"),
        "punycode": ("xn--", "http://"),
        "not ASCII": ("é", "http://a.b/"),
        "not ASCII host": ("é.", "http://"),
        "spaces": (" ", "http://a.b/"),
        "brackets": ("[", "http://"),
        "digits": ("1", "http://a.b:"),
    }.items()
}


# ------------------------------------------------------------------------------------- the chain


@functools.cache
def stages() -> dict[str, Callable[[pa.Array], object]]:
    """What the stages do to the texts of documents, a large_string array."""
    import numpy as np

    from curation.classify.classifier import Classifier
    from curation.classify.classify_settings import default_settings as classify_settings
    from curation.decontaminate.catalog import build_catalog
    from curation.decontaminate.decontaminate_settings import EvalSettings
    from curation.decontaminate.decontaminate_settings import default_settings as evals_settings
    from curation.decontaminate.index import load_background
    from curation.decontaminate.items import Item
    from curation.decontaminate.judge import Decontaminator
    from curation.dedup import lines as line_dedup
    from curation.dedup.dedup_settings import DocumentDedupSettings, LineDedupSettings, defaults
    from curation.dedup.minhash import signatures
    from curation.dedup.normalize import exact_keys
    from curation.extract.clean import clean
    from curation.filters import pii
    from curation.filters.apply import Filter
    from curation.filters.filter_settings import default_settings as filter_settings
    from curation.language import LanguageIdentifier
    from curation.language.language_settings import default_settings as language_settings
    from curation.tokenize import load_tokenizer

    whole = Filter(filter_settings())
    evals = evals_settings().model_copy(update={"evals": {"sums": EvalSettings(files=("-",))}})
    items = [Item("sums", str(k), _QUESTION.format(k)) for k in range(100)]
    decontaminator = Decontaminator(evals, build_catalog(items, load_background(evals.background)))
    language = LanguageIdentifier(language_settings())
    normalization = defaults(DocumentDedupSettings).exact.normalization
    minhash = defaults(DocumentDedupSettings).minhash
    lines = defaults(LineDedupSettings).model_copy(update={"max_occurrences": 1})

    def filtered(texts: pa.Array) -> None:
        rows = len(texts)
        known = {"id": ["a"] * rows, "url": ["http://a.b/"] * rows, "language": ["en"] * rows}
        whole.apply(pa.record_batch({**known, "text": texts}))

    def decontaminated(texts: pa.Array) -> None:
        decontaminator.apply(pa.record_batch({"id": ["a"] * len(texts), "text": texts}))

    def lines_removed(texts: pa.Array) -> None:
        doc64 = np.arange(len(texts), dtype=np.uint64)
        counts = line_dedup.count_lines(line_dedup.line_hashes(texts, lines), doc64)
        frequent = line_dedup.frequent_lines(line_dedup.total_lines(counts), lines)
        line_dedup.remove_lines(texts, frequent, lines)

    return {
        "normal form": lambda texts: [clean(text) for text in texts.to_pylist()],
        "exact keys": lambda texts: exact_keys(texts, normalization),
        "signatures": lambda texts: signatures(texts, minhash),
        "lines": lines_removed,
        "decontaminate": decontaminated,
        "filter": filtered,
        "personal data": lambda texts: pii.redact(texts, filter_settings().pii),
        "language": language.apply,
        "classify": Classifier(classify_settings()).apply,
        "tokenize": load_tokenizer("curation-128k").encode_batch,
    }
