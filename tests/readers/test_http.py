"""HTTP bodies in every coding, sound and broken."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from curation.readers import http

TEXT = b"<!DOCTYPE html><p>" + " ".join(f"Wort{i * i}" for i in range(3000)).encode()
LIMIT = 1 << 20


def raw_deflate(data: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-15)
    return compressor.compress(data) + compressor.flush()


CODINGS: dict[str, list[Callable[[bytes], bytes]]] = {
    "gzip": [gzip.compress, lambda data: gzip.compress(data[:99]) + gzip.compress(data[99:])],
    "x-gzip": [gzip.compress],
    "deflate": [zlib.compress, raw_deflate],
    "br": [brotli.compress],
    "zstd": [zstandard.ZstdCompressor().compress],
    "identity": [bytes],
}
CASES = [(name, pack) for name, packs in CODINGS.items() for pack in packs]


def chunked(data: bytes, size: int = 1000, line_end: bytes = b"\r\n") -> bytes:
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    chunks = [b"%X;x=y" % len(part) + line_end + part + line_end for part in parts]
    return b"".join(chunks) + b"0" + line_end + line_end


def decode(body: bytes, content: str = "", transfer: str = "", limit: int = LIMIT) -> http.Body:
    fields = {"content-encoding": content, "transfer-encoding": transfer}
    return http.decode_body(body, {name: value for name, value in fields.items() if value}, limit)


@pytest.mark.parametrize(("name", "pack"), CASES)
def test_codings(name: str, pack: Callable[[bytes], bytes]) -> None:
    assert decode(pack(TEXT), name) == (TEXT, "", name != "identity", False)
    assert decode(chunked(pack(TEXT)), name.upper(), "chunked").content == TEXT
    assert decode(chunked(pack(TEXT)), "", f"{name}, chunked").content == TEXT


def test_several_codings() -> None:
    body = brotli.compress(zlib.compress(gzip.compress(TEXT)))
    assert decode(body, "gzip, deflate, br").content == TEXT
    assert decode(chunked(body, 7, b"\n"), "gzip,deflate,br", "chunked").content == TEXT


@pytest.mark.parametrize(
    "named", ["", "gzip", "deflate", "br", "zstd", "brotli", '"gzip"', "gzip;q=1"]
)
@pytest.mark.parametrize(("name", "pack"), CASES[:-1])
def test_a_wrong_or_unknown_coding_or_none(
    name: str, pack: Callable[[bytes], bytes], named: str
) -> None:
    for body in (pack(TEXT), b"\r\n" + pack(TEXT)):
        decoded = decode(body, named)
        assert decoded.content.startswith(TEXT[:99]) and decoded.problem == ""


@pytest.mark.parametrize("named", ["", "gzip", "deflate", "br", "zstd"])
def test_gzip_under_any_header_is_gzip(named: str) -> None:
    """A short body, one that is no text, and one that is cut."""
    for body in (b"<p>x", b"%PDF-1.4 of which is more"):
        assert decode(gzip.compress(body), named) == (body, "", True, False)
    cut = decode(gzip.compress(TEXT)[:-500], named)
    assert TEXT.startswith(cut.content[:99]) and cut.problem == "http.bad_gzip"
    whole = gzip.compress(TEXT)
    wrong = decode(whole[:-8] + bytes(4) + whole[-4:], named)  # only its checksum is
    assert wrong.content == TEXT[: len(wrong.content)] and wrong.problem == "http.bad_gzip"
    assert len(TEXT) - len(wrong.content) <= 8


def test_of_a_large_body_only_the_end_is_decoded_in_fine_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps, real = list[int](), http._DECODERS["gzip"]
    counted = lambda body, step: (steps.append(len(p)) or p for p in real(body, step))  # noqa: E731
    monkeypatch.setitem(http._DECODERS, "gzip", counted)
    whole = gzip.compress(b"<p>Text." * (1 << 20), 1)
    wrong = decode(whole[:-8] + bytes(4) + whole[-4:], "gzip", limit=1 << 24)
    assert len(wrong.content) >= (1 << 23) - 8
    assert len(steps) < 1 << 17


@pytest.mark.parametrize("named", ["", "gzip", "br", "brotli"])
def test_what_no_coding_opens(named: str) -> None:
    noise = bytes(at * at * 7 % 251 for at in range(5000))
    decoded = decode(noise, named)
    assert decoded.problem if named else decoded.content == noise


@pytest.mark.parametrize(
    ("body", "transfer"),
    [
        (b"\r\n" + chunked(TEXT), "chunked"),
        (chunked(TEXT, 256).replace(b"100;", b"0x100;"), "chunked"),
        (chunked(TEXT), ""),
        (chunked(gzip.compress(TEXT)), ""),
    ],
)
def test_chunks_that_are_odd_or_unnamed(body: bytes, transfer: str) -> None:
    assert decode(body, "", transfer).content == TEXT
    assert decode(b"5\r\nand more lines\r\n0\r\n", "", "").content.startswith(b"5\r\nand")


@pytest.mark.parametrize(("name", "pack"), CASES[:-1])
def test_coding_undone_by_the_crawler(name: str, pack: Callable[[bytes], bytes]) -> None:
    assert decode(TEXT, name, "chunked") == (TEXT, "", False, False)


@pytest.mark.parametrize(("name", "pack"), CASES[:-1])
def test_cut_body_gives_its_beginning(name: str, pack: Callable[[bytes], bytes]) -> None:
    body = pack(TEXT)
    cut = decode(body[: len(body) * 3 // 4], name)
    assert cut.problem == f"http.bad_{name.removeprefix('x-')}"
    assert not cut.complete
    assert TEXT.startswith(cut.content)
    if name != "zstd":  # it is one block
        assert len(cut.content) > len(TEXT) // 3


@pytest.mark.parametrize(("name", "pack"), CASES[:-1])
def test_bomb(name: str, pack: Callable[[bytes], bytes]) -> None:
    bomb = decode(pack(bytes(LIMIT * 8)), name)
    assert bomb.too_large
    assert not bomb.content


def test_broken_chunks() -> None:
    body = chunked(TEXT)
    assert decode(body[:5000], transfer="chunked").problem == "http.bad_chunk"
    assert TEXT.startswith(decode(body[:5000], transfer="chunked").content)
    assert decode(body[:-5], transfer="chunked") == (TEXT, "http.bad_chunk", False, False)
    wrong = body.replace(b"3E8;x=y", b"3E0;x=y", 3).replace(b"3E0;x=y", b"3E8;x=y", 2)
    assert decode(wrong, transfer="chunked").content == TEXT[:2000] + TEXT[2000:2992]


def test_unknown_coding() -> None:
    assert decode(TEXT, "utf-8").content == TEXT
    assert decode(b"\x1f\x9d\x90" + bytes(9), "compress") == (
        b"",
        "http.unknown_coding",
        False,
        False,
    )


def test_content_length() -> None:
    fields = {"content-length": "5"}
    assert http.decode_body(b"12345678", fields, LIMIT) == (b"12345678", "", True, False)
    assert http.decode_body(b"12345678", fields, LIMIT, obey_length=True).content == b"12345"
    assert not http.decode_body(b"123", fields, LIMIT).complete


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Type: a/b\r\n\r\n", 200),
        (b"HTTP/1.0 302 \r\nContent-Type: a/b\r\n\r\n", 302),
        (b"HTTP/2 404\nContent-Type:a/b\n\n", 404),
        (b"http/1.1 200\r\nX: y\r\nContent-Type:\r\n  a/b\r\n\r\n", 200),
        (b"HTTP/1.1 OK\r\nContent-type : a/b \r\n\r\n", None),
        (b"ICY 200 OK\r\ncontent-type: a/b\r\n\r\n", 200),
        (b"HTTP/1.1 200 OK\rX: y\rContent-Type: a/b\r\r", 200),
        (b"HTTP/1.1 200 OK\r\r\nContent-Type: a/b\r\r\n\r\r\n", 200),
        (b"HTTP/1.1 200 OK\r\nX: y\r\rz\r\nContent-Type: a/b\r\n\r\n", 200),
    ],
)
def test_heads(head: bytes, status: int | None) -> None:
    found = http.parse_head(head + b"body\r\n\r\n", 0, len(head) + 8)
    assert found is not None
    assert (found.status, found.fields, found.body) == (status, {"content-type": "a/b"}, len(head))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("text/html; charset=UTF-8", ("text/html", "UTF-8")),
        ("TEXT/HTML;charset='koi8-r';x=y", ("text/html", "koi8-r")),
        ("text/html, text/html; charset=x", ("text/html", "x")),
        ("text/html; x=charset", ("text/html", None)),
        ('"text/html"; charset=x', ("text/html", "x")),
        ("", ("", None)),
        ("text/plain, text/html; charset=x", ("text/html", "x")),
        ('text/html;profile="http://a/b,c/d";charset=x', ("text/html", "x")),
        ('text/html; charset=x; title="a, b/c', ("text/html", "x")),
        ("text/html; charset=x, text/html", ("text/html", "x")),
        ("text/html; charset=x, application/pdf", ("application/pdf", None)),
        ("text/html; charset=x, */*, none, max-age=3", ("text/html", "x")),
        (", text/html", ("text/html", None)),
    ],
)
def test_media_types(value: str, expected: tuple[str, str | None]) -> None:
    assert http.media_type(value) == expected


@given(
    body=st.binary(max_size=300),
    content=st.sampled_from(["", "gzip", "deflate", "br", "zstd", "gzip, br", "x"]),
    transfer=st.sampled_from(["", "chunked"]),
)
def test_any_body(body: bytes, content: str, transfer: str) -> None:
    decoded = decode(body, content, transfer, 10_000)
    assert len(decoded.content) <= 10_000
    assert decoded.problem or decoded.content or not body or transfer or content


OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"


@pytest.mark.parametrize(
    "before",
    [
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 100\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 2,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 5000,
        b"HTTP/1.1 100 Continue\r\nDate: x\r\nContent-Type: text/plain\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n",
        b"HTTP/2 103 \nlink: </a>; rel=preload\n\n",
        b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 102 Processing\r\n\r\n",
        b"HTTP/1.0 200 Connection established\r\n\r\n",
        b"HTTP/1.1 200 Connection Established\r\nProxy-Agent: Proxy/1.0\r\nVia: 1.1 x\r\n\r\n",
        b"HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 301 Moved\r\nLocation: /\r\nContent-Type: a/b\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n",
        b"HTTP/1.1 100 Continue\nX-Cache: miss\n",
        b"HTTP/1.1 100 Continue\r\n\r\n\r\n\r\n",
        b"HTTP/1.1 100 Continue\n\n",
        b"\r\n",
        b"\r\n\r\n\n",
        b" \t\r\n",
        b"\r\nHTTP/1.1 100 Continue\r\n\r\n\r\n",
    ],
)
def test_the_last_head_is_the_pages(before: bytes) -> None:
    """Interim responses and a proxy's answers are none, nor are lines before a status line."""
    data = before + OK + b"<p>HTTP/1.1 500 is text here\r\n\r\n"
    found = http.parse_head(data, 0, len(data))
    assert found is not None and found.ended
    assert (found.status, found.fields) == (200, {"content-type": "text/html"})
    assert found.kept == (("content-type", "text/html"),)
    assert data[found.body :].startswith(b"<p>HTTP")


@pytest.mark.parametrize(
    "body",
    [
        b"HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n\r\nan example of a head",
        b"\r\nHTTP/1.1 404 Not Found\r\n\r\n",
        b"HTTP/1.1 is a protocol\r\n\r\n",
    ],
)
def test_a_body_that_begins_as_a_head_does(body: bytes) -> None:
    data = OK + body
    found = http.parse_head(data, 0, len(data))
    assert found is not None and (found.status, data[found.body :]) == (200, body)


def test_an_interim_response_alone() -> None:
    data = b"HTTP/1.1 100 Continue\r\n\r\n"
    found = http.parse_head(data, 0, len(data))
    assert found is not None and (found.status, found.body) == (100, len(data))
    cut = data + b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-"
    found = http.parse_head(cut, 0, len(cut))
    assert found is not None and (found.status, found.ended) == (200, False)


def test_a_list_of_numbers_is_no_chunks() -> None:
    body = b"1\nA\n0\n" + b"a text " * 99
    assert http.decode_body(body, {}, LIMIT).content == body
