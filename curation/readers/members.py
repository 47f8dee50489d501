"""Compressed files as members: where each begins, what it holds, and where it breaks.

A gzip member, a zstd frame and an LZ4 frame are the same thing here. After damage, decoding goes on
at the next place where a member can begin; what a broken member gave before its damage is kept.

Formats: RFC 1952 (gzip), RFC 8878 (zstd), the LZ4 frame format 1.6, and for zstd dictionaries the
IIPC proposal "WARC Compression with Zstandard" 1.0.
"""

from __future__ import annotations

import bz2
import functools
import lzma
import re
import zlib
from collections.abc import Callable, Generator, Iterator
from typing import Any, NamedTuple, Protocol

import lz4.frame
import zstandard

from curation.readers.raw import RawFile

CHUNK = 1 << 16  # bytes read at once from a compressed file
OUTPUT = 1 << 18  # bytes that one step of decoding gives at most
PLAIN_CHUNK = 1 << 20  # bytes read at once from a file that is not compressed
_TRIAL_INPUT = 1 << 16  # bytes that a possible member may take to prove itself
_TRIAL_OUTPUT = 512
_NEVER = 1 << 62  # an offset that no file reaches
_PADDING = b"\0\r\n"


class Start(NamedTuple):
    """A member begins here in the file; what follows is its content."""

    offset: int


class Break(NamedTuple):
    """The content is interrupted here; `offset` is the broken member's."""

    offset: int
    reason: str
    detail: str


Piece = Start | Break | bytes

#: How records begin; a place like this in the middle of damage is believed.
RECORD = re.compile(rb"[\r\n]*(?:WARC/\d|WARC-Type:|\{|[a-z]+://\S+ [0-9.]+ \d{8})")


class Decoder(Protocol):
    """One member being decoded, in the manner of `bz2.BZ2Decompressor`."""

    def decompress(self, data: bytes, max_length: int) -> bytes: ...
    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes | None: ...


class _Gzip:
    """zlib with the interface of the other decompressors."""

    def __init__(self) -> None:
        self._decoder = zlib.decompressobj(31)
        self._tail = b""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        out = self._decoder.decompress(self._tail + data if self._tail else data, max_length)
        self._tail = self._decoder.unconsumed_tail
        return out

    @property
    def eof(self) -> bool:
        return self._decoder.eof

    @property
    def needs_input(self) -> bool:
        return not self._tail and not self._decoder.eof

    @property
    def unused_data(self) -> bytes:
        return self._decoder.unused_data


class Codec(NamedTuple):
    """A compressed format that is decoded as a stream."""

    name: str
    magic: bytes
    decoder: Callable[[], Decoder]
    errors: tuple[type[Exception], ...]
    header_fits: Callable[[bytes], bool] = lambda head: True  # false for what only looks like one


GZIP = Codec("gzip", b"\x1f\x8b\x08", _Gzip, (zlib.error,), lambda h: len(h) < 4 or h[3] < 32)
LZ4 = Codec("lz4", b"\x04\x22\x4d\x18", lz4.frame.LZ4FrameDecompressor, (RuntimeError, EOFError))
BZIP2 = Codec("bzip2", b"BZh", bz2.BZ2Decompressor, (OSError, EOFError, ValueError))
XZ = Codec("xz", b"\xfd7zXZ\x00", lzma.LZMADecompressor, (lzma.LZMAError, EOFError))
STREAM_CODECS = (GZIP, LZ4, BZIP2, XZ)

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")
_DICTIONARY = b"\x5d\x2a\x4d\x18"


def is_zstd(head: bytes) -> bool:
    return head.startswith((ZSTD_MAGIC, _DICTIONARY))


def plain_pieces(raw: RawFile, offset: int = 0) -> Iterator[Piece]:
    """A file that is not compressed: one member."""
    yield Start(offset)
    while data := raw.fetch(offset, PLAIN_CHUNK):
        yield data
        offset += len(data)


def stream_pieces(raw: RawFile, codec: Codec, offset: int = 0) -> Iterator[Piece]:
    """Members of a gzip, LZ4, bzip2 or xz file from `offset` on."""
    trial = functools.partial(_tries, raw, codec)
    data = b""  # read but not decoded; it ends at `at` in the file
    at = offset
    while True:
        start = at - len(data)
        while len(data) < len(codec.magic) + 1:
            more = raw.fetch(at, CHUNK)
            if not more:
                break
            data += more
            at += len(more)
        if not data:
            return
        if not (data.startswith(codec.magic) and codec.header_fits(data)):
            found = yield from _gap(raw, start, codec.name, codec.magic, trial)
            if found is None:
                return
            data, at = b"", found
            continue
        yield Start(start)
        decoder = codec.decoder()
        given = 0
        chunk_start = start
        problem = ""
        while not decoder.eof:
            try:
                out = decoder.decompress(data, OUTPUT)
            except codec.errors as error:
                problem = str(error) or type(error).__name__
                break
            data = b""
            if out:
                given += len(out)
                yield out
            if decoder.eof or not decoder.needs_input:
                continue
            chunk_start = at
            data = raw.fetch(at, CHUNK)
            at += len(data)
            if not data and not out:
                break
        if decoder.eof:
            data = decoder.unused_data or b""
            continue
        if problem:
            yield from _salvage(raw, codec, start, given)
            yield Break(start, f"{codec.name}.corrupt", problem)
        else:
            yield Break(start, f"{codec.name}.truncated", "the file ends inside a member")
        found = _next_member(raw, codec.magic, start + 1, chunk_start, trial)
        if found is None:
            return
        data, at = b"", found


def _salvage(raw: RawFile, codec: Codec, start: int, given: int) -> Iterator[bytes]:
    """What a broken member holds beyond its first `given` bytes, to the last before the damage.

    Decoders lose the output of the call that fails, so the member is decoded again in smaller and
    smaller steps.
    """
    for step in (OUTPUT >> 4, OUTPUT >> 10, 16, 1):
        decoder = codec.decoder()
        at = start
        done = 0
        data = b""
        try:
            while not decoder.eof:
                room = min(OUTPUT, given - done) if done < given else step
                out = decoder.decompress(data, room)
                data = b""
                done += len(out)
                if done > given:
                    yield out
                    given = done
                if decoder.needs_input:
                    data = raw.fetch(at, CHUNK)
                    at += len(data)
                    if not data and not out:
                        break
        except codec.errors:
            continue


def _tries(raw: RawFile, codec: Codec, offset: int) -> bytes | None:
    """First content of the member that may begin at `offset`; None if it can't be one."""
    data = raw.fetch(offset, _TRIAL_INPUT)
    if not codec.header_fits(data):
        return None
    decoder = codec.decoder()
    try:
        out = decoder.decompress(data, _TRIAL_OUTPUT)
    except codec.errors:
        return None
    return out if out or decoder.eof else None


def _next_member(
    raw: RawFile, magic: bytes, begin: int, certain: int, trial: Callable[[int], bytes | None]
) -> int | None:
    """Offset of the next member at or after `begin`, or None.

    Compressed data may hold another member verbatim (a stored block around a gzip body), so before
    `certain`, where decoding was still going well, only a member that begins with a record counts.
    """
    at = begin
    while data := raw.fetch(at, CHUNK * 4):
        hit = data.find(magic)
        while hit >= 0:
            content = trial(at + hit)
            if content is not None and (at + hit >= certain or RECORD.match(content)):
                return at + hit
            hit = data.find(magic, hit + 1)
        if len(data) < CHUNK * 4:
            break
        at += len(data) - len(magic) + 1
    return None


def _gap(
    raw: RawFile, start: int, name: str, magic: bytes, trial: Callable[[int], bytes | None]
) -> Generator[Piece, None, int | None]:
    """Bytes at a member's place that begin none: plain records, padding or garbage.

    Returns where the next member begins, or None at the end of the file.
    """
    plain = RECORD.match(raw.fetch(start, _TRIAL_OUTPUT)) is not None
    found = _next_member(raw, magic, start, _NEVER if plain else start, trial)
    if plain:
        yield Start(start)
        at = start
        while data := raw.fetch(at, PLAIN_CHUNK if found is None else min(PLAIN_CHUNK, found - at)):
            yield data
            at += len(data)
    elif raw.fetch(start, _TRIAL_OUTPUT).strip(_PADDING):
        yield Break(start, f"{name}.garbage", "bytes between members that begin none")
    return found


class ZstdFrameError(Exception):
    """A zstd frame is cut or is none."""


def zstd_blocks(raw: RawFile, start: int) -> Iterator[tuple[bytes, int]]:
    """The header of the frame at `start` and its blocks, each with the offset behind it.

    A block decodes to 128 KiB at most, so decoding by block bounds memory whatever the data.
    Raises ZstdFrameError where the frame is cut or is none.
    """
    head = raw.fetch(start, 18)
    if len(head) < 6 or not head.startswith(ZSTD_MAGIC):
        raise ZstdFrameError("the file ends inside a frame header")
    descriptor = head[4]
    single = bool(descriptor & 0x20)
    size = 5 + (not single) + (0, 1, 2, 4)[descriptor & 3]
    size += (1 if single else 0, 2, 4, 8)[descriptor >> 6]
    if len(head) < size:
        raise ZstdFrameError("the file ends inside a frame header")
    yield head[:size], start + size
    at = start + size
    last = False
    while not last:
        header = raw.fetch(at, 3)
        if len(header) < 3:
            raise ZstdFrameError("the file ends inside a frame")
        bits = int.from_bytes(header, "little")
        last = bool(bits & 1)
        if (bits >> 1) & 3 == 3:
            raise ZstdFrameError("a block of a reserved type")
        length = 1 if (bits >> 1) & 3 == 1 else bits >> 3
        checksum = 4 if last and descriptor & 4 else 0
        block = raw.fetch(at + 3, length + checksum)
        if len(block) < length + checksum:
            raise ZstdFrameError("the file ends inside a frame")
        at += 3 + len(block)
        yield header + block, at


def zstd_dictionary(raw: RawFile, max_bytes: int) -> zstandard.ZstdCompressionDict | None:
    """The dictionary in the first frame of a `.warc.zst` file, if it has one."""
    head = raw.fetch(0, 8)
    if not head.startswith(_DICTIONARY) or len(head) < 8:
        return None
    data = raw.fetch(8, min(int.from_bytes(head[4:], "little"), max_bytes))
    if data.startswith(ZSTD_MAGIC):
        try:
            data = zstandard.ZstdDecompressor().decompressobj().decompress(data)
        except zstandard.ZstdError:
            return None  # each frame then fails and is set aside
    return zstandard.ZstdCompressionDict(data) if data else None


def zstd_pieces(
    raw: RawFile, max_window_bytes: int, dictionary: Any, offset: int = 0
) -> Iterator[Piece]:
    """Frames of a zstd file from `offset` on; skippable frames are passed over."""
    buffered = _Buffered(raw)
    context = zstandard.ZstdDecompressor(dict_data=dictionary, max_window_size=max_window_bytes)

    def trial(at: int) -> bytes | None:
        decoder = context.decompressobj()
        out = b""
        try:
            for block, _ in zstd_blocks(buffered, at):
                out += decoder.decompress(block)
                if len(out) >= _TRIAL_OUTPUT:
                    break
        except (ZstdFrameError, zstandard.ZstdError):
            return None
        return out

    at = offset
    while head := buffered.fetch(at, 8):
        start = at
        if _SKIPPABLE.match(head):
            at, problem, certain = _skippable(buffered, start)
            if not problem:
                continue
            yield Break(start, "zstd.corrupt", problem)
            found = _next_member(buffered, ZSTD_MAGIC, start + 1, certain, trial)
        elif not head.startswith(ZSTD_MAGIC):
            found = yield from _gap(buffered, start, "zstd", ZSTD_MAGIC, trial)
        else:
            yield Start(start)
            decoder = context.decompressobj()
            try:
                for block, end in zstd_blocks(buffered, start):
                    out = decoder.decompress(block)
                    at = end
                    if out:
                        yield out
                continue
            except ZstdFrameError as error:
                yield Break(start, "zstd.truncated", str(error))
            except zstandard.ZstdError as error:
                yield Break(start, "zstd.corrupt", str(error))
            found = _next_member(buffered, ZSTD_MAGIC, start + 1, at, trial)
        if found is None:
            return
        at = found


def _skippable(raw: RawFile, start: int) -> tuple[int, str, int]:
    """The end of the skippable frame at `start`, what is wrong with it, and the first place behind
    its beginning where any member is believed: a dictionary may be one itself."""
    head = raw.fetch(start, 8)
    end = start + 8 + int.from_bytes(head[4:], "little")
    if len(head) < 8 or not raw.fetch(end - 1, 1):
        certain = end if head.startswith(_DICTIONARY) else start + 1
        return end, "the file ends inside a skippable frame", certain
    follows = raw.fetch(end, 4)
    if is_zstd(follows) or _SKIPPABLE.match(follows) or not follows.strip(_PADDING):
        return end, "", end
    return end, "no frame begins where a skippable frame ends", end


class _Buffered(RawFile):
    """Small reads served from one larger one."""

    def __init__(self, raw: RawFile) -> None:
        super().__init__(raw.handle, raw.name)
        self._raw = raw
        self._data = b""
        self._start = 0

    def fetch(self, offset: int, size: int) -> bytes:
        begin = offset - self._start
        if begin < 0 or begin + size > len(self._data):
            self._data = self._raw.fetch(offset, max(size, CHUNK))
            self._start = offset
            begin = 0
        return self._data[begin : begin + size]
