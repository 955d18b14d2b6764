"""Split notes along their block structure (``MarkdownChunker``), and conversations between messages (``transcript``).

``blocks`` parses the block structure, ``pieces`` divides the text into measured pieces that are not split further,
``cuts`` finds the positions where a text may be split, and ``packing`` fills chunks with pieces. They, and
markdown-it-py, are imported at the first split.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrs import field, frozen

from klaw_core import Heading, HeadingChunker, Span, TokenCounter
from klaw_notes.options import MarkdownOptions

if TYPE_CHECKING:
    from klaw_notes.chunking.blocks import Block


# Characters of the names of a table's columns. More would be a table of prose.
_MAX_COLUMNS = 200


@frozen(eq=False)
class MarkdownChunker(HeadingChunker):
    """Splits Markdown between its blocks, and keeps text that belongs together in one chunk.

    ``docs/explanation/chunking.md`` says which elements are kept whole and where a text may be split.
    """

    options: MarkdownOptions = field(factory=MarkdownOptions)

    def split(self, text: str, count_tokens: TokenCounter, /) -> tuple[Span, ...]:
        """Return the spans of ``text``, in order; none if it is empty or white space.

        ``count_tokens`` is called a few times with many pieces each, and reads every character about once.
        Time and memory are linear in the text.
        """
        if not text or text.isspace():
            return ()
        # markdown-it-py and regex are imported here, at the first split: `klaw --help` needs neither.
        from klaw_notes.chunking.blocks import outline, parse
        from klaw_notes.chunking.packing import pack
        from klaw_notes.chunking.pieces import Bounds, Gauge, lay_out, whole

        blocks = parse(text)
        gauge = Gauge(text, count_tokens, Bounds(self.options.max_tokens, self.options.overlap_tokens))
        layout = whole(blocks, gauge) or lay_out(blocks, gauge)
        sections = outline(blocks)
        rows: dict[int, tuple[int, str]] = {}
        return tuple(
            Span(
                start,
                end,
                (*sections.path_at(start), *_columns(text, blocks, start, rows if continues == "table" else None)),
                continues,
            )
            for start, end, continues in pack(layout, gauge.bounds)
        )

    def headings(self, text: str, /) -> tuple[Heading, ...]:
        """Return the headings at the top level of the text, not those in quotes and lists."""
        from klaw_notes.chunking.headings import headings

        return tuple(headings(text))


def _columns(
    text: str, blocks: Sequence[Block], start: int, rows: dict[int, tuple[int, str]] | None
) -> tuple[str, ...]:
    """Return the first row of the table that a span continues, as a heading; nothing for other spans: ``rows`` is None.

    ``rows`` keeps the length of the first row of each table, and its names: a wide table has many spans.
    """
    if rows is None:
        return ()
    for block in blocks:
        if block.start < start < block.end:
            if block.kind != "table":
                return _columns(text, block.children, start, rows)
            if block.start not in rows:
                row = text[block.start : block.end].splitlines()[0]
                cells = (cell.strip() for cell in row.strip(" \t>|").split("|"))
                rows[block.start] = len(row), " | ".join(filter(None, cells))
            length, names = rows[block.start]
            return (names,) if start >= block.start + length and 0 < len(names) <= _MAX_COLUMNS else ()
    return ()
