"""The content of a file as a byte stream with positions, with only a window in memory."""

import bisect
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from curation.readers.members import Break, Piece, Start
from curation.readers.records import Damage


class Mark(NamedTuple):
    """A position and the member it lies in, from which `Stream.restart` can go back to it."""

    position: int
    member_position: int
    member_offset: int


class Stop(NamedTuple):
    """A place between two events: file offset of a member or record, and its position."""

    offset: int
    position: int
    spent: int  # of `members.Effort`, before it


class Stream:
    """Content from the members of a file.

    Positions count the bytes of the content from the beginning of the file; in a file that is not
    compressed they are file offsets. `buffer` holds the bytes from position `base` on. `breaks`
    holds the interruptions seen so far and not yet taken.
    """

    def __init__(
        self,
        pieces: Callable[[int], Iterator[Piece]],
        compressed: bool,
        offset: int = 0,
        position: int = 0,
    ) -> None:
        self._pieces_from = pieces
        self._compressed = compressed
        self._pieces = pieces(offset)
        self.buffer = bytearray()
        self.base = position if compressed else offset
        self.end = self.base  # position behind the buffer
        self.ended = False
        self.breaks: deque[tuple[int, Break]] = deque()
        self._starts: list[tuple[int, Start]] = []  # with their positions
        self._passed = 0  # number of the first of them that still matters
        self._claimed = -1  # file offset of the last member that gave an event its name
        #: File offset from which on events are left to another reader; None for no limit.
        self.limit: int | None = None
        self.stop: Stop | None = None  # where that other reader begins
        self.counted = False  # whether an offset was given that counts the content's bytes

    def beginning(self, size: int) -> bytes:
        """Return the first bytes of the content, up to its first break, wherever this one is."""
        content = b""
        for piece in self._pieces_from(0):
            if isinstance(piece, Break) or len(content) >= size:
                break
            content += piece if isinstance(piece, bytes) else b""
        return content[:size]

    def fill(self, upto: int) -> int:
        """Read until position `upto`, a break or the end; return the position that is reached.

        It is never behind `upto`, however much is in the buffer: what a reader sees must not depend
        on where it began to read.
        """
        return min(upto, self.reach(upto))

    def reach(self, upto: int) -> int:
        """As `fill`, but return the end of all that could be read without a gap."""
        while self.end < upto and not self.ended and not self.breaks:
            self._step()
        return self.breaks[0][0] if self.breaks else self.end

    def stops_at(self, position: int, after: int) -> bool:
        """Return whether the event at `position` is another reader's, which can begin right there.

        `after` as in `claim`. In a compressed file the event must be the first in its member.
        """
        if self.limit is None:
            return False
        stop = Stop(position, position, 0)
        if self._compressed:
            start, member = self._starts[self._held(position)]
            stop = Stop(member.offset, start, member.spent)
        if stop.offset < self.limit or (self._compressed and stop.position < after):
            return False
        self.stop = stop
        return True

    def _step(self) -> None:
        piece = next(self._pieces, None)
        if piece is None:
            self.ended = True
        elif isinstance(piece, bytes):
            self.buffer += piece
            self.end += len(piece)
        elif isinstance(piece, Start):
            if self._starts and self._starts[-1][0] == self.end:
                self._starts.pop()  # an empty member has no content
            self._starts.append((self.end, piece))
        else:
            self.breaks.append((self.end, piece))

    def drop(self, position: int) -> None:
        """Forget the bytes before `position`."""
        if position > self.base:
            del self.buffer[: position - self.base]
            self.base = min(position, self.end)

    def skip_to(self, position: int) -> int:
        """Read on to `position`, a break or the end without keeping the bytes."""
        reached = self.reach(self.base)
        while reached < position and not self.ended and not self.breaks:
            self.drop(reached)
            reached = self.reach(min(position, reached + 1))
        reached = min(reached, position)
        self.drop(reached)
        return reached

    def member_starts(self, begin: int, end: int) -> Iterator[int]:
        """Positions in [begin, end) where members start, in order."""
        first = bisect.bisect_left(self._starts, (begin,), self._passed)
        for k in range(first, len(self._starts)):
            start = self._starts[k][0]
            if start >= end:
                return
            yield start

    def member_of(self, position: int) -> int:
        """Return the file offset of the member that contains a position; 0 without members."""
        return self._starts[self._held(position)][1].offset if self._starts else 0

    def _held(self, position: int) -> int:
        """Return the number of the member that contains a position."""
        behind = bisect.bisect_left(self._starts, (position + 1,), self._passed)
        return max(behind - 1, self._passed)

    def _member(self, position: int) -> tuple[int, int]:
        """Return the member that contains a position; forget those before it."""
        if not self._starts:
            return 0, 0
        self._passed = self._held(position)
        if 2 * self._passed > len(self._starts):
            del self._starts[: self._passed]
            self._passed = 0
        start, member = self._starts[self._passed]
        return start, member.offset

    def claim(self, position: int, after: int) -> int:
        """Offset under which the event that begins at `position` is found again; call in order.

        `after` is where the event before it ended; only padding lies between. In a compressed
        file the offset is the member's when the event is the first thing in it.
        """
        if not self._compressed:
            return position
        start, offset = self._member(position)
        if offset == self._claimed or start < after:
            self.counted = True
            return -position
        self._claimed = offset
        return offset

    def take_break(self) -> Damage:
        """Return the damage of the first break, from which no event was read, and forget it."""
        position, (offset, reason, detail) = self.breaks.popleft()
        if offset == self._claimed:
            self.counted, offset = True, -position
        else:
            self._claimed = offset
        return Damage(offset, reason, detail, None, b"")

    def mark(self, position: int) -> Mark:
        if not self._compressed:
            return Mark(position, position, position)
        return Mark(position, *self._member(position))

    def restart(self, mark: Mark) -> None:
        """Go back to a mark; the bytes between its member's start and it are decoded again."""
        self._pieces = self._pieces_from(mark.member_offset)
        self.buffer.clear()
        self._starts.clear()
        self._passed = 0
        self.breaks.clear()
        self.ended = False
        self.base = self.end = mark.member_position
        self.skip_to(mark.position)
