"""Archive files byte by byte: WARC, WET and ARC records, HTTP messages, compression.

Gzip headers carry no time and no name, so equal records give equal bytes.
"""

from __future__ import annotations

import hashlib
import struct
import uuid
import zlib
from base64 import b32encode
from collections.abc import Iterable, Sequence

import brotli
import lz4.frame
import zstandard

Headers = Sequence[tuple[str, str]]
_NAMES = uuid.UUID("8f1d6e0a-2f57-4b55-9f3e-6f5a1c0d7b21")


def record_id(*parts: str) -> str:
    return f"<urn:uuid:{uuid.uuid5(_NAMES, ' '.join(parts))}>"


def _block(first: str, headers: Headers) -> bytes:
    lines = [first, *(f"{name}: {value}" for name, value in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8")


def sha1(data: bytes) -> str:
    return "sha1:" + b32encode(hashlib.sha1(data).digest()).decode()


def warc_record(headers: Headers, block: bytes, version: str = "1.0") -> bytes:
    """One record; Content-Length is added unless `headers` already gives (a wrong) one."""
    if not any(name == "Content-Length" for name, _ in headers):
        headers = [*headers, ("Content-Length", str(len(block)))]
    return _block(f"WARC/{version}", headers) + block + b"\r\n\r\n"


def http_response(status: str, headers: Headers, body: bytes) -> bytes:
    return _block(f"HTTP/1.1 {status}", headers) + body


def http_request(host: str, path: str) -> bytes:
    fields = [("Host", host), ("User-Agent", "sample-crawler/1.0"), ("Accept", "text/html,*/*")]
    return _block(f"GET {path} HTTP/1.1", fields)


def gzip_member(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(data) + packer.flush()
    head = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"
    return head + packed + struct.pack("<II", zlib.crc32(data), len(data) & 0xFFFFFFFF)


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def encode_body(body: bytes, coding: str) -> bytes:
    """Apply a Content-Encoding; `deflate-raw` is the headerless stream some servers send."""
    if coding == "gzip":
        return gzip_member(body)
    if coding == "br":
        return bytes(brotli.compress(body, quality=9))
    if coding == "deflate":
        return zlib.compress(body, 9)
    if coding == "deflate-raw":
        return raw_deflate(body)
    if coding == "zstd":
        return zstandard.ZstdCompressor(level=10).compress(body)
    raise ValueError(f"unknown content coding {coding}")


def chunked(body: bytes, size: int) -> bytes:
    """Transfer coding with chunks of `size` bytes, upper-case sizes and a closing chunk."""
    parts = [body[i : i + size] for i in range(0, len(body), size)]
    return b"".join(b"%X\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def arc_file_header(name: str, stamp: str) -> bytes:
    text = "1 0 SampleCrawler\nURL IP-address Archive-date Content-type Archive-length\n\n"
    return f"filedesc://{name} 0.0.0.0 {stamp} text/plain {len(text)}\n{text}".encode()


def arc_record(url: str, stamp: str, mime: str, payload: bytes, address: str) -> bytes:
    return f"{url} {address} {stamp} {mime} {len(payload)}\n".encode() + payload + b"\n"


def pack_gzip(records: Iterable[bytes]) -> bytes:
    return b"".join(gzip_member(record) for record in records)


def pack_zstd(records: Sequence[bytes], dictionary: bool) -> bytes:
    """One frame per record; with `dictionary`, as the IIPC WARC-zstd specification lays it out:
    a skippable frame 0x184D2A5D holding the dictionary, itself compressed, comes first.
    """
    if not dictionary:
        packer = zstandard.ZstdCompressor(level=12, write_checksum=True)
        return b"".join(packer.compress(record) for record in records)
    trained = zstandard.train_dictionary(
        8192, [r[i : i + 512] for r in records for i in range(0, len(r), 512)]
    )
    packed = zstandard.ZstdCompressor(level=12).compress(trained.as_bytes())
    packer = zstandard.ZstdCompressor(level=12, dict_data=trained)
    head = struct.pack("<II", 0x184D2A5D, len(packed)) + packed
    return head + b"".join(packer.compress(record) for record in records)


def pack_lz4(records: Iterable[bytes]) -> bytes:
    return b"".join(lz4.frame.compress(record, content_checksum=True) for record in records)
