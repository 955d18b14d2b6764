"""The chunker ``transcript``: whole messages, one per line, in small chunks with the preceding messages as context.

Each line that is not empty is a message. A form feed alone on a line separates two sessions: no chunk and no context
crosses it. Short messages share a chunk, a long one has its own, and one larger than a chunk is split at its sentences.
The context of a chunk is the messages just before it in the session, or the last sentences of a message that is too
long. So an answer is also found by the words of its question.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from attrs import field, frozen

from klaw_core import Span, TokenCounter
from klaw_notes.options import TranscriptOptions

if TYPE_CHECKING:
    from klaw_notes.chunking.blocks import Block
    from klaw_notes.chunking.pieces import Gauge

_SECTION = "\f"


@frozen(eq=False)
class TranscriptChunker:
    """Splits a transcript between its messages."""

    options: TranscriptOptions = field(factory=TranscriptOptions)

    def split(self, text: str, count_tokens: TokenCounter, /) -> Iterator[Span]:
        """Yield the spans of ``text``, in order; none if it is empty or white space. Time is linear in the text."""
        if not text or text.isspace():
            return
        # regex and markdown-it-py are imported here, at the first split: `klaw --help` needs neither.
        from klaw_notes.chunking.pieces import Bounds, Gauge

        gauge = Gauge(text, count_tokens, Bounds(self.options.max_tokens, 0))
        for messages in _sessions(text):
            yield from _Session(messages, _measure(messages, gauge), gauge, self.options).spans()


@frozen(eq=False, repr=False)
class _Session:
    """The messages of a session. ``sizes`` are their tokens, including those of the white space after them.

    A message that is too long to be counted, or consists mostly of white space, gets a size larger than a chunk.
    """

    messages: Sequence[Block]
    sizes: Sequence[int]
    gauge: Gauge
    options: TranscriptOptions

    def spans(self) -> Iterator[Span]:
        """Yield the session's chunks with their context."""
        for start, end, continues in self._bounds_of_chunks():
            context = self._context(start)
            yield Span(start, end, (), continues, context if context < start else None)

    def _bounds_of_chunks(self) -> Iterator[tuple[int, int, str | None]]:
        most = min(self.options.packed_tokens, self.options.max_tokens)
        first = 0
        while first < len(self.messages):
            if self.sizes[first] > self.options.max_tokens:
                yield from self._pieces(self.messages[first])
                first += 1
                continue
            after, filled = first + 1, self.sizes[first]
            longest = self.messages[first].start + self.gauge.bounds.max_characters
            while after < len(self.messages) and filled + self.sizes[after] <= most:
                if self.messages[after].end > longest:
                    break
                filled += self.sizes[after]
                after += 1
            yield self.messages[first].start, self.messages[after - 1].end, None
            first = after

    def _pieces(self, message: Block) -> Iterator[tuple[int, int, str | None]]:
        """Yield the chunks of a message that is larger than one."""
        from klaw_notes.chunking.packing import pack
        from klaw_notes.chunking.pieces import lay_out

        return pack(lay_out([message], self.gauge), self.gauge.bounds)

    def _context(self, start: int) -> int:
        """Return where the context of the chunk that starts at ``start`` begins; ``start`` if it has none."""
        index = bisect_left(self.messages, start, key=lambda message: message.start)
        if index == 0 or not self.options.context_tokens:
            return start
        nearest = self.messages[index - 1]
        # The context of a later piece of a long message is the message's own beginning.
        if nearest.end > start or self.sizes[index - 1] > self.options.context_tokens:
            return self._tail(nearest.start, start)
        left = self.options.context_tokens
        while index > 0 and self.sizes[index - 1] <= left:
            index -= 1
            left -= self.sizes[index]
        return self.messages[index].start

    def _tail(self, start: int, end: int) -> int:
        """Return where the last sentences of ``text[start:end]`` begin that fit in a context; ``end`` if none does."""
        from klaw_notes.chunking import cuts
        from klaw_notes.chunking.pieces import Bounds

        text, left = self.gauge.text, self.options.context_tokens
        nearest = max(start, end - Bounds(left, 0).max_characters)
        positions = cuts.sentences(text, nearest, end, 0)
        beginnings = [start, *positions] if nearest == start else positions
        if not beginnings:
            return end
        sizes = self.gauge.count_tokens([text[first:after] for first, after in pairwise((*beginnings, end))])
        for index in range(len(beginnings) - 1, -1, -1):
            if sizes[index] > left:
                return beginnings[index + 1] if index + 1 < len(beginnings) else end
            left -= sizes[index]
        return beginnings[0]


def _sessions(text: str) -> Iterator[list[Block]]:
    """Yield the messages of each session that has any."""
    from klaw_core import line_starts
    from klaw_notes.chunking.blocks import Block
    from klaw_notes.chunking.cuts import content

    messages: list[Block] = []
    starts = [*line_starts(text), len(text)]
    for start, end in pairwise(starts):
        bounds = content(text, start, end)
        if bounds is not None:
            messages.append(Block("message", *bounds))
        elif messages and text[start:end].rstrip("\r\n") == _SECTION:
            yield messages
            messages = []
    if messages:
        yield messages


def _measure(messages: Sequence[Block], gauge: Gauge) -> list[int]:
    """Return each message's tokens and those of the white space after it; more than a chunk's if it is too long."""
    from klaw_notes.chunking.cuts import sentences
    from klaw_notes.chunking.pieces import Piece, Strength

    pieces = [Piece(message.start, message.end, Strength.END, message, (sentences,)) for message in messages]
    too_long = gauge.bounds.max_tokens + 1
    counts = gauge.measure(pieces, [None] * len(pieces))
    tokens = [
        too_long if count is None or message.end - message.start > gauge.bounds.max_characters else count
        for message, count in zip(messages, counts, strict=True)
    ]
    gaps = [gauge.gap(left, right) for left, right in pairwise(pieces)]
    return [size + gap for size, gap in zip(tokens, [*gaps, 0], strict=True)]
