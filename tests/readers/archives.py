"""Small archives written in code, sound ones that tests then break."""

from __future__ import annotations

import bz2
import functools
import gzip
import lzma
from dataclasses import dataclass

import lz4.frame
import yaml
import zstandard

from curation.readers.settings import ReaderSettings
from curation.resources import root


@functools.cache
def default_settings(**changes: object) -> ReaderSettings:
    """The default settings with some changed."""
    defaults = yaml.safe_load((root() / "configs/defaults/readers.yaml").read_text())
    return ReaderSettings(**(defaults | changes))


@dataclass(frozen=True)
class Sample:
    """An archive, and where each of its records lies in the file."""

    data: bytes
    bodies: list[bytes]
    spans: list[tuple[int, int]]  # of a record with its blank lines, or of its member


def page_body(number: int, size: int = 300) -> bytes:
    words = b" ".join(b"w%d" % (number * 7919 + i * i) for i in range(size // 6))
    return b"<html><title>Page %d</title><p>" % number + words + b"</p></html>"


def http_response(body: bytes, headers: bytes = b"Content-Type: text/html") -> bytes:
    return b"HTTP/1.1 200 OK\r\n" + headers + b"\r\n\r\n" + body


def warc_record(
    number: int,
    block: bytes,
    type_: str = "response",
    mime: str = "application/http; msgtype=response",
    extra: bytes = b"",
    length: int | None = None,
    url: str = "",
) -> bytes:
    head = (
        f"WARC/1.0\r\nWARC-Type: {type_}\r\n"
        f"WARC-Target-URI: {url or f'http://site.example/{number}'}\r\n"
        f"WARC-Date: 2024-05-06T07:08:{number % 60:02d}Z\r\n"
        f"WARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-{number:012d}>\r\n"
        f"Content-Type: {mime}\r\n"
        f"Content-Length: {len(block) if length is None else length}\r\n"
    ).encode()
    return head + extra + b"\r\n" + block + b"\r\n\r\n"


def arc_record(number: int, block: bytes) -> bytes:
    line = f"http://site.example/{number} 192.0.2.1 20240506070809 text/html {len(block)}\n"
    return line.encode() + block + b"\n"


ARC_HEAD = (
    b"filedesc://test.arc 0.0.0.0 20240506070809 text/plain 75\n1 0 Test\n"
    b"URL IP-address Archive-date Content-type Archive-length\n\n         \n"
)


def zstd_with_dictionary(records: list[bytes], compress_dictionary: bool) -> list[bytes]:
    """Frames of the IIPC format: the dictionary in a skippable frame, then one per record."""
    dictionary = zstandard.train_dictionary(1024, [r[:400] for r in records for _ in range(8)])
    stored = dictionary.as_bytes()
    if compress_dictionary:
        stored = zstandard.ZstdCompressor().compress(stored)
    compressor = zstandard.ZstdCompressor(dict_data=dictionary, write_checksum=True)
    skippable = b"\x5d\x2a\x4d\x18" + len(stored).to_bytes(4, "little") + stored
    return [skippable, *(compressor.compress(record) for record in records)]


_COMPRESS = {
    "gz": lambda record: gzip.compress(record, mtime=0),
    "zst": zstandard.ZstdCompressor(write_checksum=True).compress,
    "lz4": functools.partial(lz4.frame.compress, content_checksum=True),
    "bz2": bz2.compress,
    "xz": lzma.compress,
}


def sample(kind: str, count: int = 8, size: int = 300) -> Sample:
    """`count` pages as `warc` or `arc`, compressed by record after a dot: `warc.gz`, `arc.zst`.

    `warc.dict` is zstd with a dictionary.
    """
    bodies = [page_body(number, size + 37 * number) for number in range(count)]
    archive, _, compression = kind.partition(".")
    make = warc_record if archive == "warc" else arc_record
    records = [make(number, http_response(body)) for number, body in enumerate(bodies)]
    if archive == "arc":
        records.insert(0, ARC_HEAD)
    if compression == "dict":
        records = zstd_with_dictionary(records, compress_dictionary=True)
    elif compression:
        records = [_COMPRESS[compression](record) for record in records]
    spans = []
    at = 0
    for record in records:
        spans.append((at, at + len(record)))
        at += len(record)
    return Sample(b"".join(records), bodies, spans[-count:])
