"""Compressed files as members: where each begins, its content, and where it is damaged.

A gzip member, a zstd frame and an LZ4 frame are treated alike. After damage, decoding continues at
the next place where a member can begin; the output of a broken member before its damage is kept.

Crafted members may overlap, so that each place in one begins another: repeated decoding is limited
to a few times the size of the file (`Effort`).

Formats: RFC 1952 (gzip), RFC 8878 (zstd), the LZ4 frame format 1.6, and for zstd dictionaries the
IIPC proposal "WARC Compression with Zstandard" 1.0.
"""

from __future__ import annotations

import bz2
import contextlib
import functools
import io
import lzma
import re
import zlib
from collections.abc import Callable, Generator, Iterator
from typing import Any, NamedTuple

import lz4.frame
import zstandard

from curation.readers.raw import RawFile

igzip_lib: Any
try:
    from isal import igzip_lib
except ImportError:  # not built for this kind of machine
    igzip_lib = None

CHUNK = 1 << 16  # bytes read at once from a compressed file
OUTPUT = 1 << 18  # bytes that one step of decoding gives at most
PLAIN_CHUNK = 1 << 20  # bytes read at once from a file that is not compressed
_AT_ONCE = 1 << 22  # bytes of output of a member that is decoded in one piece
_FIRST_CHUNK = 1 << 10  # bytes that a member is fed first: most possible ones are none
_TRIAL_INPUT = 1 << 16  # bytes that a possible member may take to prove itself
_TRIAL_OUTPUT = 512
_AGAIN = 32  # times the bytes passed, that may go into broken and possible members
_AGAIN_AT_FIRST = 1 << 20
_ATTEMPT = 1 << 11  # bytes that are read in the time that any member takes
_OUTPUT_COST = 4  # bytes of output that take as long as one of input
_LONGEST_NAME = 1 << 12  # bytes, of a file name or a comment in a gzip header
_MOST_DICTIONARY = 1 << 24  # bytes; `zstd --train` makes 110 KiB, crawls keep 1 MiB at most
_ZSTD_BLOCK = 1 << 17  # bytes, the most that RFC 8878 allows
_NEVER = 1 << 62  # an offset that no file reaches
_PADDING = b"\0\r\n"


class Start(NamedTuple):
    """A member begins here in the file; its content follows."""

    offset: int
    spent: int = 0  # of `Effort`, before anything of this member was looked at


class Break(NamedTuple):
    """The content is interrupted here; `offset` is the broken member's."""

    offset: int
    reason: str
    detail: str


Piece = Start | Break | bytes

#: How records begin; a place like this in the middle of damage is believed.
RECORD = re.compile(
    rb"[\r\n]{0,64}+(?:(?i:WARC/\d|WARC-Type:)|\{|[a-z]{1,16}+://\S++ [0-9.]++ \d{8})"
)


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
    """A compressed format."""

    name: str
    magic: bytes
    decoder: Callable[[], Any]  # of one member, as `bz2.BZ2Decompressor`; of zstd one of blocks
    errors: tuple[type[Exception], ...]
    header_fits: Callable[[bytes], bool] = lambda head: True  # false for what only looks like one
    at_once: Callable[[RawFile, int], tuple[bytes, int] | None] = lambda raw, start: None
    in_blocks: bool = False  # as zstd, whose files have skippable frames, too


def _gzip_header_fits(head: bytes) -> bool:
    """Return whether flags are known and names are terminated, as far as present."""
    if len(head) < 10:
        return len(head) < 4 or head[3] < 32
    flags, at = head[3], 10
    if flags & 4:
        at += 2 + int.from_bytes(head[at : at + 2], "little")
    for flag in (8, 16):
        if flags & flag and at < len(head):
            end = head.find(0, at, at + _LONGEST_NAME)
            if end < 0 and at + _LONGEST_NAME <= len(head):
                return False
            at = len(head) if end < 0 else end + 1
    return flags < 32


def _bzip2_header_fits(head: bytes) -> bool:
    """Return whether a block follows, or the end of an empty member."""
    follows = head[4:10]
    first, end = b"\x31\x41\x59\x26\x53\x59", b"\x17\x72\x45\x38\x50\x90"
    return head[3:4] in b"123456789" and (first.startswith(follows) or end.startswith(follows))


def _sound_gzip(raw: RawFile, start: int) -> tuple[bytes, int] | None:
    """Return the content of a member and where it ends, decoded in half the time by ISA-L.

    None if it is large or damaged: zlib says where and how.
    """
    if igzip_lib is None:
        return None
    decoder = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
    parts, size, at = list[bytes](), 0, start
    while not decoder.eof and size < _AT_ONCE:
        chunk = CHUNK if parts else CHUNK >> 3  # what is left of it is copied, and most are small
        data = raw.fetch(at, chunk) if decoder.needs_input else b""
        at += len(data)
        try:
            parts.append(decoder.decompress(data, _AT_ONCE))
        except igzip_lib.error:
            return None
        size += len(parts[-1])
        if not data and not parts[-1]:
            return None
    return (b"".join(parts), at - len(decoder.unused_data)) if decoder.eof else None


GZIP = Codec("gzip", b"\x1f\x8b\x08", _Gzip, (zlib.error,), _gzip_header_fits, _sound_gzip)
LZ4 = Codec("lz4", b"\x04\x22\x4d\x18", lz4.frame.LZ4FrameDecompressor, (RuntimeError, EOFError))
BZIP2 = Codec(
    "bzip2", b"BZh", bz2.BZ2Decompressor, (OSError, EOFError, ValueError), _bzip2_header_fits
)
XZ = Codec("xz", b"\xfd7zXZ\x00", lzma.LZMADecompressor, (lzma.LZMAError, EOFError))

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")
_DICTIONARY = b"\x5d\x2a\x4d\x18"


def is_zstd(head: bytes) -> bool:
    return head.startswith((ZSTD_MAGIC, _DICTIONARY))


def plain_pieces(raw: RawFile, offset: int = 0) -> Iterator[Piece]:
    """Yield a file that is not compressed: one member."""
    yield Start(offset)
    while data := raw.fetch(offset, PLAIN_CHUNK):
        yield data
        offset += len(data)


class Effort:
    """Work spent on members that are broken or false: bounded by the offset that is reached.

    `spent` counts from the beginning of the file. `room` is how much more might have been spent
    before without changing any answer of `allows`; None if it was never asked.
    """

    def __init__(self, spent: int = 0) -> None:
        self.spent = spent
        self.room: int | None = None

    @classmethod
    def from_here(cls, offset: int) -> Effort:
        """Return the bound for a reader that begins at `offset` and must not rely on bytes before
        it."""
        return cls(_AGAIN * offset)

    def spend(self, read: int, given: int) -> None:
        """Add the cost of bytes that were read and of bytes that came out."""
        self.spent += _ATTEMPT + read + given // _OUTPUT_COST

    def allows(self, at: int) -> bool:
        """Return whether a member at `at` may be decoded or tried at length."""
        left = _AGAIN * at + _AGAIN_AT_FIRST - self.spent
        if left >= 0:
            self.room = left if self.room is None else min(left, self.room)
        return left >= 0


def member_pieces(raw: RawFile, codec: Codec, effort: Effort, offset: int = 0) -> Iterator[Piece]:
    """Yield the members of a compressed file from `offset` on, without skippable frames."""
    buffered = _Buffered(raw)
    trial = functools.partial(_tries, buffered, codec, effort)
    at: int | None = offset
    while at is not None and (head := buffered.fetch(at, _LONGEST_NAME)):
        start = at
        if codec.in_blocks and _SKIPPABLE.match(head):
            at, problem, certain = _skippable(buffered, start)
            if problem:
                yield Break(start, f"{codec.name}.corrupt", problem)
                at = _next_member(buffered, codec.magic, start + 1, certain, trial)
            continue
        if not (head.startswith(codec.magic) and codec.header_fits(head)):
            at = yield from _gap(buffered, start, codec, effort, trial)
            continue
        yield Start(start, effort.spent)
        if whole := codec.at_once(buffered, start):
            content, at = whole
            yield content
            continue
        decoding = (_Blocks if codec.in_blocks else _Decoding)(buffered, codec, start)
        yield from decoding.outputs()
        if decoding.ended:
            at = decoding.end
            continue
        yield from decoding.salvaged()
        yield Break(start, f"{codec.name}.{decoding.fault}", decoding.problem)
        effort.spend(decoding.end - start, decoding.given)
        behind = start + 1
        if not effort.allows(start):  # then what it covered is left to it
            behind = max(behind, decoding.end_of_sound())
        at = _next_member(buffered, codec.magic, behind, decoding.fed, trial)


class _Decoding:
    """One member being decoded, fed with little at first and with more as it goes on."""

    def __init__(self, raw: RawFile, codec: Codec, start: int) -> None:
        self.raw = raw
        self.codec = codec
        self.start = start
        self.fed = start  # where the bytes of the last call begin in the file
        self.end = start  # behind the bytes that were fed; behind the member if it `ended`
        self.given = 0  # bytes of output
        self.fault, self.problem = "truncated", "the file ends inside a member"
        self.ended = False

    def outputs(self) -> Iterator[bytes]:
        decoder = self.codec.decoder()
        data = b""
        size = _FIRST_CHUNK
        while not decoder.eof:
            if decoder.needs_input:
                self.fed = self.end
                data = self.raw.fetch(self.end, size)
                self.end += len(data)
                size = min(2 * size, CHUNK)
            try:
                out = decoder.decompress(data, OUTPUT)
            except self.codec.errors as error:
                self.fault, self.problem = "corrupt", str(error) or type(error).__name__
                return
            if out:
                self.given += len(out)
                yield out
            elif not data and not decoder.eof:
                return
            data = b""
        self.ended = True
        self.end -= len(decoder.unused_data or b"")

    def salvaged(self) -> Iterator[bytes]:
        """Yield a corrupt member's content behind what was given, up to the damage.

        Decoders lose the output of the call that fails, so the member is decoded again in smaller
        and smaller steps.
        """
        for step in (OUTPUT >> 4, OUTPUT >> 10, 16, 1) if self.fault == "corrupt" else ():
            decoder = self.codec.decoder()
            at = self.start
            size = _FIRST_CHUNK
            done = 0
            data = b""
            try:
                while not decoder.eof:
                    if decoder.needs_input:
                        data = self.raw.fetch(at, size)
                        at += len(data)
                        size = min(2 * size, CHUNK)
                    room = min(OUTPUT, self.given - done) if done < self.given else step
                    out = decoder.decompress(data, room)
                    done += len(out)
                    if done > self.given:
                        self.given = done
                        yield out
                    if not data and not out:
                        break
                    data = b""
            except self.codec.errors:
                continue

    def end_of_sound(self) -> int:
        """Return where the damage appears, to within 16 bytes; not before `fed`."""
        decoder = self.codec.decoder()
        at = self.start
        data = b""
        with contextlib.suppress(*self.codec.errors):
            while not decoder.eof:
                if decoder.needs_input:
                    data = self.raw.fetch(at, min(CHUNK, self.fed - at) if at < self.fed else 16)
                    at += len(data)
                if not decoder.decompress(data, OUTPUT) and not data:
                    break
                data = b""
        return at


class _Blocks(_Decoding):
    """One zstd frame being decoded, block by block."""

    def outputs(self) -> Iterator[bytes]:
        decoder = self.codec.decoder()
        try:
            for block, end in zstd_blocks(self.raw, self.start):
                out = decoder.decompress(block)
                self.fed = self.end = end
                self.given += len(out)
                if out:
                    yield out
            self.ended = True
        except ZstdFrameError as error:
            self.problem = str(error)
        except zstandard.ZstdError as error:
            self.fault, self.problem = "corrupt", str(error)

    def salvaged(self) -> Iterator[bytes]:
        return iter(())  # a block gives all or nothing

    def end_of_sound(self) -> int:
        return self.end


def _tries(raw: RawFile, codec: Codec, effort: Effort, offset: int) -> bytes | None:
    """Return the first content of a possible member at `offset`; None if it is not one."""
    if codec.in_blocks:
        return _tries_frame(raw, codec, effort, offset)
    if not codec.header_fits(raw.fetch(offset, _LONGEST_NAME + _FIRST_CHUNK)):
        return None
    decoder = codec.decoder()
    most = _TRIAL_INPUT if effort.allows(offset) else _FIRST_CHUNK
    used, size = 0, _FIRST_CHUNK
    out = b""
    try:
        while not out and not decoder.eof and used < most:
            data = raw.fetch(offset + used, size)
            out = decoder.decompress(data, _TRIAL_OUTPUT)
            used += len(data)
            if not data:
                break
            size = min(4 * size, most - used)
    except codec.errors:
        return None
    finally:
        effort.spend(used, 0)
    return out if out or decoder.eof else None


def _next_member(
    raw: RawFile,
    magic: bytes,
    begin: int,
    certain: int,
    trial: Callable[[int], bytes | None],
    end: int = _NEVER,
) -> int | None:
    """Offset of the next member in [begin, end), or None.

    Compressed data may hold another member verbatim (a stored block around a gzip body), so before
    `certain`, where decoding was still going well, only a member that begins with a record counts.
    """
    at = begin
    size = CHUNK >> 4
    while at < end and (data := raw.fetch(at, size)):
        hit = data.find(magic)
        while 0 <= hit < end - at:
            content = trial(at + hit)
            if content is not None and (at + hit >= certain or RECORD.match(content)):
                return at + hit
            hit = data.find(magic, hit + 1)
        if len(data) < size:
            break
        at += len(data) - len(magic) + 1
        size = min(2 * size, 4 * CHUNK)
    return None


def _gap(
    raw: RawFile, start: int, codec: Codec, effort: Effort, trial: Callable[[int], bytes | None]
) -> Generator[Piece, None, int | None]:
    """Handle bytes between members: plain records, padding or garbage.

    Returns where the next member begins, or None at the end of the file.
    """
    spent = effort.spent
    plain = RECORD.match(raw.fetch(start, _TRIAL_OUTPUT)) is not None
    found = _next_member(raw, codec.magic, start, _NEVER if plain else start, trial)
    if plain:
        yield Start(start, spent)
        at = start
        while data := raw.fetch(at, PLAIN_CHUNK if found is None else min(PLAIN_CHUNK, found - at)):
            yield data
            at += len(data)
    elif raw.fetch(start, _TRIAL_OUTPUT).strip(_PADDING):
        yield Break(start, f"{codec.name}.garbage", "bytes that do not begin a member")
    return found


class ZstdFrameError(Exception):
    """Truncated or invalid zstd frame."""


def zstd_blocks(raw: RawFile, start: int) -> Iterator[tuple[bytes, int]]:
    """Yield the header of the frame at `start` and its blocks, each with the offset behind it.

    A block decodes to 128 KiB at most, so decoding by block bounds memory whatever the data.
    Raises ZstdFrameError for a truncated or invalid frame.
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
        if length > _ZSTD_BLOCK:
            raise ZstdFrameError("a block of more than 128 KiB")
        checksum = 4 if last and descriptor & 4 else 0
        block = raw.fetch(at + 3, length + checksum)
        if len(block) < length + checksum:
            raise ZstdFrameError("the file ends inside a frame")
        at += 3 + len(block)
        yield header + block, at


def zstd_dictionary(raw: RawFile) -> zstandard.ZstdCompressionDict | None:
    """Return the dictionary in the first frame of a `.warc.zst` file, if it has one of at most 16
    MiB.

    Without it, or where it is broken, each frame fails and is set aside.
    """
    head = raw.fetch(0, 8)
    if not head.startswith(_DICTIONARY) or len(head) < 8:
        return None
    data = raw.fetch(8, min(int.from_bytes(head[4:], "little"), _MOST_DICTIONARY))
    if data.startswith(ZSTD_MAGIC):
        decoder = zstandard.ZstdDecompressor().decompressobj()
        dictionary = bytearray()
        try:
            for block, _ in zstd_blocks(RawFile(io.BytesIO(data), raw.name), 0):
                dictionary += decoder.decompress(block)
                if len(dictionary) > _MOST_DICTIONARY:
                    return None
        except (ZstdFrameError, zstandard.ZstdError):
            return None
        data = bytes(dictionary)
    found = zstandard.ZstdCompressionDict(data) if data else None
    try:
        zstd_decoder(0, found)
    except zstandard.ZstdError:
        return None
    return found


#: `zstd --long=31`, the largest window that the command line tool writes.
MOST_WINDOW = 1 << 31


def zstd_decoder(max_window_bytes: int = MOST_WINDOW, dictionary: Any = None) -> Any:
    """Return a decoder of one frame.

    Never of two: what a broken frame gives before its error, and the error, depend on the buffers
    that an earlier frame left.
    """
    context = zstandard.ZstdDecompressor(dict_data=dictionary, max_window_size=max_window_bytes)
    return context.decompressobj()


ZSTD = Codec("zstd", ZSTD_MAGIC, zstd_decoder, (zstandard.ZstdError,), in_blocks=True)
CODECS = (GZIP, LZ4, BZIP2, XZ, ZSTD)


def _tries_frame(raw: RawFile, codec: Codec, effort: Effort, at: int) -> bytes | None:
    decoder = codec.decoder()
    most = at + (_TRIAL_INPUT if effort.allows(at) else _FIRST_CHUNK)
    end, out = at, b""
    try:
        for block, end in zstd_blocks(raw, at):
            out += decoder.decompress(block)
            if len(out) >= _TRIAL_OUTPUT or end > most:
                break
    except (ZstdFrameError, zstandard.ZstdError):
        return None
    finally:
        effort.spend(end - at, len(out))
    return out


def _skippable(raw: RawFile, start: int) -> tuple[int, str, int]:
    """Return the end of a skippable frame, its problem, and where members are believed again.

    That is the first place after its beginning: a dictionary may itself be a member.
    """
    head = raw.fetch(start, 8)
    end = start + 8 + int.from_bytes(head[4:], "little")
    if len(head) < 8 or not raw.fetch(end - 1, 1):
        certain = end if head.startswith(_DICTIONARY) else start + 1
        return end, "the file ends inside a skippable frame", certain
    follows = raw.fetch(end, 4)
    if is_zstd(follows) or _SKIPPABLE.match(follows) or not follows.strip(_PADDING):
        return end, "", end
    return end, "no frame begins where a skippable frame ends", end


def find_record_member(raw: RawFile, codec: Codec, begin: int, end: int) -> int | None:
    """Offset in [begin, end) of the first place that looks like a member with a record first."""
    buffered = _Buffered(raw)
    trial = functools.partial(_tries, buffered, codec, Effort.from_here(begin))
    return _next_member(buffered, codec.magic, begin, _NEVER, trial, end)


def is_one_member(raw: RawFile, codec: Codec, bound: int) -> bool:
    """Return whether the first member reaches to the file's end or beyond `bound` bytes."""
    buffered, begin = _Buffered(raw), 0
    while codec.in_blocks and _SKIPPABLE.match(head := buffered.fetch(begin, 8)):
        begin += 8 + int.from_bytes(head[4:], "little")
    if codec.in_blocks:  # their headers say where they end: nothing is decoded
        end = begin
        try:
            for _, end in zstd_blocks(buffered, begin):
                if end - begin > bound:
                    return True
        except ZstdFrameError:
            return False
        return not raw.fetch(end, 1)
    decoding = _Decoding(buffered, codec, begin)
    for _ in decoding.outputs():
        if decoding.fed > bound:
            return True
    if decoding.fault == "corrupt":
        return False
    return decoding.end > bound or not raw.fetch(decoding.end, 1)


class _Buffered(RawFile):
    """Small reads served from larger ones, forwards without seeking."""

    def __init__(self, raw: RawFile) -> None:
        super().__init__(raw.handle, raw.name)
        self._raw = raw
        self._data = b""
        self._start = 0
        self._ended = False  # whether the file ends where the data does

    def fetch(self, offset: int, size: int) -> bytes:
        begin = offset - self._start
        if not 0 <= begin <= len(self._data):
            self._data, self._start, self._ended, begin = b"", offset, False, 0
        lacking = begin + size - len(self._data)
        if lacking > 0 and not self._ended:
            more = max(lacking, CHUNK)
            follows = self._raw.fetch(self._start + len(self._data), more)
            self._data = self._data[begin:] + follows
            self._start, begin = offset, 0
            self._ended = len(follows) < more
        return self._data[begin : begin + size]
