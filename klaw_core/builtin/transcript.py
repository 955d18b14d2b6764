"""The chunker ``transcript``: whole messages, a line each, packed into passages; a session is never left.

A line that is not empty is a message. A form feed alone on a line parts two sessions: no passage and no overlap
reaches over it. A message larger than a passage is cut at its sentences.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from attrs import Attribute, field, frozen

from klaw_core.values import Span, TokenCounter

if TYPE_CHECKING:
    from klaw_core.builtin.markdown.blocks import Block

_SECTION = "\f"
_SMALLEST_PASSAGE = 8


def _at_least_smallest(_options: TranscriptOptions, _attribute: Attribute[int], value: int) -> None:
    if value < _SMALLEST_PASSAGE:
        raise ValueError(f"max_tokens must be at least {_SMALLEST_PASSAGE}, not {value}")


def _at_most_half(options: TranscriptOptions, _attribute: Attribute[int], value: int) -> None:
    if not 0 <= value <= options.max_tokens // 2:
        half = options.max_tokens // 2
        raise ValueError(f"overlap_tokens must be 0 to {half} (half of max_tokens), not {value}")


@frozen
class TranscriptOptions:
    """How large passages are, in the embedder's own tokens.

    ``max_tokens`` bounds a passage (at least 8), ``overlap_tokens`` what it repeats of the one before it (at
    most half of the bound), in whole messages. Raise ValueError otherwise.
    """

    max_tokens: int = field(default=256, validator=_at_least_smallest)
    overlap_tokens: int = field(default=32, validator=_at_most_half)


@frozen
class TranscriptChunker:
    """Cuts a transcript between its messages."""

    options: TranscriptOptions = field(factory=TranscriptOptions)

    def split(self, text: str, count_tokens: TokenCounter, /) -> Iterator[Span]:
        """Yield the spans of ``text``, in order; none if it is empty or white space. Time is linear in the text."""
        if not text or text.isspace():
            return
        # regex and markdown-it-py are imported here, at the first split: `klaw --help` needs neither.
        from klaw_core.builtin.markdown.packing import pack
        from klaw_core.builtin.markdown.pieces import Bounds, Gauge, lay_out, whole

        gauge = Gauge(text, count_tokens, Bounds(self.options.max_tokens, self.options.overlap_tokens))
        for messages in _sessions(text):
            layout = whole(messages, gauge) or lay_out(messages, gauge)
            for start, end, continues in pack(layout, gauge.bounds):
                yield Span(start, end, (), continues)


def _sessions(text: str) -> Iterator[list[Block]]:
    """Yield the messages of each session that has any."""
    from klaw_core.builtin.markdown.blocks import Block
    from klaw_core.builtin.markdown.cuts import content
    from klaw_core.lines import line_starts

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
